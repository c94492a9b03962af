/* A server that guesses ahead, and one whose model has adapters: what a client gets is what
 * fac_generate gives alone. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/memory.h"
#include "base/rng.h"
#include "fresh_seed.h"
#include "http/microhttpd.h"
#include "lm/lora.h"
#include "openai_client.h"
#include "serve/serve.h"
#include "tensor/tensor_internal.h"

static fac_error err;
static fac_device *cpu;
static fac_tokenizer *tokens;
static uint64_t seed;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

enum { CONTEXT = 128, ANSWER = 60, PROMPTS = 4 };
static const char text[] = "the cat sat on the mat, the dog lay on the log, ";
static const char *const prompts[PROMPTS] = { "the cat sat on the mat, the cat", "dog, dog, dog",
                                              "the", "on the log, on the log" };

static fac_lm *fresh(const char *shape, int64_t vocabulary, fac_lm *(*then)(fac_lm *)) {
    fac_lm_shape s = { .context = CONTEXT, .seed = seed };
    fac_lm *m;
    OK(fac_lm_shape_parse(shape, &s, &err));
    s.vocabulary = vocabulary;
    OK(fac_lm_new(&s, cpu, &m, &err));
    return then ? then(m) : m;
}

/* ---- answers ---- */

typedef struct said {
    char text[1024];
    size_t n;
} said;

static bool hear(void *self, int32_t id, const char *s, size_t n) {
    said *a = self;
    (void)id;
    memcpy(a->text + a->n, s, n);
    a->text[a->n += n] = 0;
    return true;
}

static said alone(fac_lm *m, const char *prompt) {
    int32_t ids[100];
    said a = { .n = 0 };
    fac_session *s;
    const fac_generate_opts o = { .tokens = ANSWER, .ignore_end = true };
    OK(fac_session_new_slots(m, 1, &s, &err));
    const int64_t n = fac_tokenizer_encode(tokens, prompt, strlen(prompt), FAC_TEXT_BOS, ids, 100);
    OK(fac_generate(s, tokens, ids, n, &o, hear, &a, NULL, &err));
    fac_session_free(s);
    return a;
}

typedef struct client {
    const char *prompt, *how;
    char answer[ROOM], text[ROOM];
} client;

static void *run_client(void *self) {
    client *c = self;
    char body[512];
    snprintf(body, sizeof body, "{\"prompt\":\"%s\",\"ignore_eos\":true,\"max_tokens\":%d,%s}",
             c->prompt, ANSWER, c->how);
    ask("/v1/completions", body, c->answer);
    join(c->answer, "text", c->text);
    return NULL;
}

/* One after the other, which lets the server guess, then all at once, in slots. */
static void compare(const char *how, const said want[PROMPTS]) {
    static client of[PROMPTS];
    for (int together = 0; together < 2; together++) {
        pthread_t threads[PROMPTS];
        for (int k = 0; k < PROMPTS; k++) {
            of[k].prompt = prompts[k];
            of[k].how = how;
            if (!together) run_client(&of[k]);
            if (together) assert_false(pthread_create(&threads[k], NULL, run_client, &of[k]));
        }
        for (int k = 0; k < PROMPTS; k++) {
            if (together) pthread_join(threads[k], NULL);
            if (strcmp(of[k].text, want[k].text))
                fail_msg("\"%s\" (%s, %s):\n%s\ninstead of\n%s", prompts[k], how,
                         together ? "together" : "alone", of[k].text, want[k].text);
        }
    }
}

static fac_serve *serve(fac_lm *m, fac_lm *draft, int lookup) {
    fac_serve *s;
    const fac_serve_opts o = {
        .name = "small", .format = "chatml", .slots = 3, .draft = draft, .lookup = lookup
    };
    OK(fac_serve_start(m, tokens, &o, &s, &err));
    port = fac_serve_port(s);
    return s;
}

static fac_engine_stat when_idle(const fac_serve *s) {
    fac_engine_stat e = { .active = 1 };
    for (int k = 0; k < 200 && (e.active || e.queued); k++) {
        if (k) usleep(25000);
        e = fac_engine_about(s->engine);
    }
    return e;
}

/* ---- guesses ---- */

static void guesses_change_no_answer(void **state) {
    (void)state;
    static const char greedy[] = "\"temperature\":0",
                      drawn[] = "\"temperature\":0.8,\"top_k\":4,\"seed\":9";
    static client c;
    said want[PROMPTS], seeded[PROMPTS];
    const int64_t n = fac_tokenizer_count(tokens);
    fac_lm *m = fresh("gpt:2x2x32", n, NULL), *draft = fresh("llama:1x2x16", n, NULL),
           *twin = fresh("gpt:2x2x32", n, NULL);
    fac_serve *s = serve(m, NULL, 0);
    for (int k = 0; k < PROMPTS; k++) {
        want[k] = alone(m, prompts[k]);
        assert_true(want[k].n >= ANSWER);
        c.prompt = prompts[k];
        c.how = drawn;
        run_client(&c);
        assert_true(strlen(c.text) >= ANSWER && strlen(c.text) < sizeof seeded[k].text);
        strcpy(seeded[k].text, c.text);
    }
    compare(greedy, want);
    assert_int_equal(when_idle(s).guessed, 0);
    fac_serve_stop(s);
    fac_lm *const drafts[] = { NULL, draft, twin };
    for (int k = 0; k < 3; k++) {
        s = serve(m, drafts[k], k < 2 ? 3 : 0);
        compare(greedy, want);
        const fac_engine_stat e = when_idle(s);
        assert_true(e.guessed > 0 && e.accepted <= e.guessed);
        if (k == 2) assert_true(e.accepted > e.guessed / 2);
        compare(drawn, seeded);
        static char metrics[ROOM];
        ask("/v1/completions", "{\"prompt\":\"the\",\"max_tokens\":3,\"logprobs\":1}", metrics);
        assert_non_null(strstr(metrics, "\"token_logprobs\":["));
        fac_serve_stop(s);
    }
    fac_lm_free(m);
    fac_lm_free(draft);
    fac_lm_free(twin);
}

static void a_draft_of_other_tokens_is_refused(void **state) {
    (void)state;
    const int64_t n = fac_tokenizer_count(tokens);
    fac_lm *m = fresh("gpt:1x1x8", n, NULL), *other = fresh("gpt:1x1x8", n + 1, NULL);
    fac_serve *s;
    const fac_serve_opts o = { .draft = other };
    assert_int_equal(fac_serve_start(m, tokens, &o, &s, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "the same tokens"));
    fac_lm_free(m);
    fac_lm_free(other);
}

/* ---- adapters ---- */

/* Fresh ones add nothing, for B is zero: these have numbers there. */
static fac_lm *adapted(fac_lm *m) {
    const fac_lora how = { .rank = 2, .alpha = 16, .seed = seed };
    OK(fac_lm_lora_new(m, &how, &err));
    for (int64_t layer = 0; layer < m->c.layers; layer++) {
        fac_tensor *b = fac_lora_get(m, "blk.%d.attn_qkv", layer, "lora_b");
        const fac_type type = fac_tensor_type(b);
        fac_random_fill(seed, (uint64_t)layer, -1, 1, (size_t)fac_dims_count(&type.dims),
                        fac_tensor_storage(b)->host);
    }
    return m;
}

static void adapters_are_served(void **state) {
    (void)state;
    char dir[] = "/tmp/facula-lora-XXXXXX", path[64];
    said want[PROMPTS];
    const int64_t n = fac_tokenizer_count(tokens);
    bool differs = false;
    assert_non_null(mkdtemp(dir));
    fac_lm *plain = fresh("gpt:2x2x32", n, NULL), *m = fresh("gpt:2x2x32", n, adapted),
           *again = fresh("gpt:2x2x32", n, NULL);
    OK(fac_lm_lora_save(m, dir, NULL, &err));
    OK(fac_lm_lora_load(again, dir, &err));
    for (int k = 0; k < PROMPTS; k++) {
        want[k] = alone(m, prompts[k]);
        differs |= strcmp(want[k].text, alone(plain, prompts[k]).text) != 0;
    }
    assert_true(differs);
    for (int lookup = 0; lookup < 4; lookup += 3) {
        fac_serve *s = serve(again, NULL, lookup);
        compare("\"temperature\":0", want);
        fac_serve_stop(s);
    }
    fac_lm_free(plain);
    fac_lm_free(m);
    fac_lm_free(again);
    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", dir);
    unlink(path);
    rmdir(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guesses_change_no_answer),
        cmocka_unit_test(a_draft_of_other_tokens_is_refused),
        cmocka_unit_test(adapters_are_served),
    };
    fac_mhd library;
    if (fac_mhd_open(&library, &err)) {
        printf("skipped: %s\n", err.text);
        return 0;
    }
    seed = fresh_seed() & 0xFFFFFFFF;
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &cpu, &err));
    OK(fac_tokenizer_learn(text, strlen(text), 0, &tokens, &err));
    const int failed = cmocka_run_group_tests_name("serve_guess", tests, NULL, NULL);
    fac_tokenizer_free(tokens);
    fac_device_free(cpu);
    return failed;
}
