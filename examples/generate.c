/* A text that a language model goes on with: generate MODEL.gguf "PROMPT"
 *
 * The model and its tokenizer come from one file; a session reads the prompt and writes token by
 * token. */
#include <facula/facula.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whole characters, as they become ready. */
static bool tell(void *self, int32_t id, const char *text, size_t bytes) {
    (void)self, (void)id;
    fwrite(text, 1, bytes, stdout);
    fflush(stdout);
    return true;
}

static fac_status answer(fac_lm *m, const fac_tokenizer *t, const char *prompt, fac_error *err) {
    const fac_generate_opts o = {
        .tokens = 60, .sampler = { .temperature = 0.7, .top_k = 40, .top_p = 0.95, .seed = 1 }
    };
    fac_generate_stat stat;
    fac_session *s;
    int32_t ids[1024];
    const int64_t n = fac_tokenizer_encode(t, prompt, strlen(prompt), FAC_TEXT_BOS, ids, 1024);
    if (n < 1 || n > 1024) {
        fprintf(stderr, "generate: a prompt of 1 to 1024 tokens in UTF-8, please\n");
        return FAC_E_ARGUMENT;
    }
    fac_status status = fac_session_new(m, &s, err);
    if (status) return status;
    printf("%s", prompt);
    status = fac_generate(s, t, ids, n, &o, tell, NULL, &stat, err);
    if (!status)
        printf("\n\n%lld tokens, %.1f a second\n", (long long)stat.generated,
               (double)stat.generated / stat.seconds);
    fac_session_free(s);
    return status;
}

int main(int argc, char **argv) {
    fac_error err = { 0 };
    fac_device *cpu = NULL;
    fac_tokenizer *t = NULL;
    fac_lm *m = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: generate MODEL.gguf PROMPT\n");
        return 2;
    }
    fac_status status = fac_device_open("cpu", NULL, &cpu, &err);
    if (!status) status = fac_tokenizer_load(argv[1], &t, &err);
    if (!status) status = fac_lm_load(argv[1], cpu, NULL, &m, &err);
    if (!status) status = answer(m, t, argv[2], &err);
    if (status) fprintf(stderr, "generate: %s\n", err.text);
    fac_lm_free(m);
    fac_tokenizer_free(t);
    fac_device_free(cpu);
    return status ? 1 : 0;
}
