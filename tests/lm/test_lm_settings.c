/* Settings of language models that cannot be, in config.json and in GGUF files: each is refused
 * with what it is and what is expected. */
#include "lm/lm_family.h"
#include "facula/read.h"
#include "text/gguf_write.h"

static void refused(const shape *all, const char *settings, const char *says) {
    folder f = { .n = 0 };
    fac_lm *m;
    write_folder(&f, all, settings);
    if (!fac_lm_load(f.path, cpu, NULL, &m, &err)) fail_msg("%s is read", settings);
    if (!strstr(err.text, says)) fail_msg("'%s' does not say '%s'", err.text, says);
    remove_folder(&f);
}

static void settings_that_cannot_be(void **state) {
    (void)state;
    refused(of_phi3, PHI3("8", ""), "long_factor: a list of 4 numbers");
    refused(of_phi3, PHI3("8", ",\"long_factor\":[1,2,3]"), "long_factor: a list of 4 numbers");
    refused(of_phi3, PHI3("8", ",\"long_factor\":[1,2,3,0]"), "positive numbers");
    refused(of_phi3, PHI3("0", ",\"long_factor\":[1,2,3,4]"), "longrope of texts of 0 tokens");
    refused(of_phi3, PHI3("0", ",\"long_factor\":[1,2,3,4]"), "of 2 or more is expected");
    refused(of_phi3, PHI3("8", ",\"long_factor\":[1,2,3,1e99]"), "positive numbers");
    refused(of_phi3, PHI3("8", ",\"long_factor\":[1,2,3,4],\"factor\":-2"), "factor is -2");
    refused(of_phi3, PHI3("8", ",\"attention_factor\":1e999"), "attention_factor is inf");
    refused(of_llama, LLAMA(",\"rope_scaling\":{\"type\":\"longrope\"}"), "of phi3, not of llama");
    refused(of_llama, LLAMA(",\"rope_scaling\":{\"type\":\"linear\",\"factor\":0}"), "factor is 0");
    refused(of_llama, LLAMA(",\"rope_theta\":-1"), "base of rotary angles is -1");
    refused(of_llama, LLAMA(",\"partial_rotary_factor\":-1"), "-1 of it rotated");
    refused(of_llama, LLAMA(",\"sliding_window\":-5"), "attention window");
    refused(of_llama, LLAMA3("-2", "1.0", "16"), "factor is -2");
    refused(of_llama, LLAMA3("8", "0", "16"), "low_freq_factor is 0");
    refused(of_llama, LLAMA3("8", "4.0", "16"), "more than low_freq_factor, 4");
    refused(of_llama, LLAMA3("8", "1.0", "0"), "original_max_position_embeddings is 0");
    refused(of_gpt_neo, NEO("\"window_size\":-5"), "attention window");
    refused(of_gpt_neo, NEO("\"attention_types\":[[[\"local\",\"global\"],1]]"), "attention_types");
    refused(of_gpt_neo, NEO("\"activation_function\":\"relu\""), "gelu_new");
}

/* Instead of the f32 `at` bytes after `what`; whether the file is refused, when it is loaded or
 * when its graph is built. */
static void refused_with(const char *path, const void *what, size_t n, size_t at, float x,
                         const char *says) {
    fac_lm *m = NULL;
    fac_session *s = NULL;
    char *bytes;
    size_t size;
    OK(fac_read_text(path, 1 << 24, FAC_READ_FILE, &bytes, &size, &err));
    char *place = memmem(bytes, size, what, n);
    assert_non_null(place);
    char had[sizeof x];
    memcpy(had, place + at, sizeof x);
    memcpy(place + at, &x, sizeof x);
    OK(fac_file_write(path, bytes, size, &err));
    if (!fac_lm_load(path, cpu, NULL, &m, &err) && !fac_session_new(m, &s, &err))
        fail_msg("%g is read where '%s' is expected", (double)x, says);
    if (!strstr(err.text, says)) fail_msg("'%s' does not say '%s'", err.text, says);
    fac_lm_free(m);
    memcpy(place + at, had, sizeof x);
    OK(fac_file_write(path, bytes, size, &err));
    fac_read_free(bytes);
}

static void numbers_of_gguf_that_cannot_be(void **state) {
    (void)state;
    static const float list[] = { 1, 2.5F, 4, 7 };
    static const float wrong[] = { 0, -1, NAN, INFINITY };
    static const char factor[] = "phi3.rope.scaling.attn_factor";
    const size_t after = strlen(factor) + 4; /* the key's type is between */
    folder f = { .n = 0 };
    char file[80];
    write_folder(&f, of_phi3, PHI3("8", ",\"long_factor\":[1.0,2.5,4.0,7.0]"));
    as_gguf(f.path, file);
    for (int k = 0; k < 4; k++)
        refused_with(file, list, sizeof list, sizeof *list, wrong[k],
                     "rope_factors_long.weight: number 1 is");
    for (int k = 1; k < 4; k++) /* 0: there is none */
        refused_with(file, factor, strlen(factor), after, wrong[k], "attention factor");
    check_file(file, 0, phi3_long);
    unlink(file);
    remove_folder(&f);
}

/* A file of two keys is enough. */
static void scalings_of_gguf_that_are_not_known(void **state) {
    (void)state;
    static const char begin[24] = "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\2";
    static const char *const types[] = { "yarn", "longrope" };
    char path[60];
    snprintf(path, sizeof path, "/tmp/facula-scaling-%d.gguf", (int)getpid());
    for (int k = 0; k < 2; k++) {
        fac_gguf_head h = { .keys = 0 };
        fac_lm *m;
        fac_text_add_bytes(&h.text, begin, sizeof begin);
        fac_gguf_put_text(&h, "general.architecture", "llama");
        fac_gguf_put_text(&h, "llama.rope.scaling.type", types[k]);
        OK(fac_file_write(path, h.text.s, h.text.n, &err));
        assert_int_equal(fac_lm_load(path, cpu, NULL, &m, &err), FAC_E_UNSUPPORTED);
        assert_non_null(strstr(err.text, "longrope are known"));
        fac_text_free(&h.text);
    }
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_that_cannot_be),
        cmocka_unit_test(numbers_of_gguf_that_cannot_be),
        cmocka_unit_test(scalings_of_gguf_that_are_not_known),
    };
    return run_families(tests, sizeof tests / sizeof *tests);
}
