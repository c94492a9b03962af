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

/* ---- weights that cannot be ---- */

/* Without the weight of this name, or (x) with its first number x. */
static void write_without(folder *f, const char *name, const char *settings) {
    const shape *kept[MOST];
    shape some[MOST] = { { 0 } };
    int n = 0;
    for (const shape *s = of_llama; s->name; s++)
        if (strcmp(s->name, name)) kept[n++] = s;
    for (int k = 0; k < n; k++) some[k] = *kept[k];
    write_folder(f, some, settings);
}

static fac_status built(const char *path) {
    fac_lm *m = NULL;
    fac_session *s = NULL;
    fac_status status = fac_lm_load(path, cpu, NULL, &m, &err);
    if (!status) status = fac_session_new(m, &s, &err);
    fac_session_free(s);
    fac_lm_free(m);
    return status;
}

/* A norm that a file lacks is no identity, and a layer that the settings leave out is no model. */
static void weights_that_files_lack(void **state) {
    (void)state;
    static const char *const needed[] = { "model.layers.%d.input_layernorm.weight",
                                          "model.layers.%d.post_attention_layernorm.weight",
                                          "model.norm.weight" };
    static const char *const says[] = { "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight",
                                        "output_norm.weight" };
    folder f = { .n = 0 };
    for (int k = 0; k < 3; k++) {
        write_without(&f, needed[k], LLAMA(""));
        if (!built(f.path)) fail_msg("a model without %s is read", needed[k]);
        if (!strstr(err.text, says[k]) || !strstr(err.text, f.path))
            fail_msg("'%s' does not say '%s'", err.text, says[k]);
        remove_folder(&f);
    }
    write_folder(&f, of_llama,
                 "{\"model_type\":\"llama\",\"hidden_size\":16,\"num_hidden_layers\":1,"
                 "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"intermediate_size\":24,"
                 "\"max_position_embeddings\":40,\"rms_norm_eps\":1e-5}");
    if (!built(f.path)) fail_msg("a model of two layers is read as one of one");
    if (!strstr(err.text, "model.layers.1.")) fail_msg("'%s' names no weight", err.text);
    remove_folder(&f);
    write_folder(&f, of_llama, LLAMA(""));
    OK(built(f.path));
    remove_folder(&f);
}

/* Weights that are no numbers make no text and no score. */
static void weights_that_are_no_numbers(void **state) {
    (void)state;
    folder f = { .n = 0 };
    char path[100];
    fac_lm *m;
    fac_perplexity p;
    const float logits[] = { NAN, NAN, NAN };
    write_folder(&f, of_llama, LLAMA(""));
    float *norm = fac_tensor_storage(f.all[f.n - 1])->host;
    for (int k = 0; k < WIDTH; k++) norm[k] = NAN;
    snprintf(path, sizeof path, "%s/model.safetensors", f.path);
    OK(fac_safetensors_save(path, f.n, (const char *const *)f.names, f.all, &err));
    OK(fac_lm_load(f.path, cpu, NULL, &m, &err));
    assert_int_equal(fac_lm_perplexity(m, (int32_t[]){ 1, 2, 3 }, 3, 0, &p, &err), FAC_E_FORMAT);
    fac_lm_free(m);
    remove_folder(&f);
    for (int k = 0; k < 2; k++)
        assert_int_equal(fac_sample(&(fac_sampler){ .temperature = k }, logits, 3, NULL, 0, NULL),
                         -1);
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

/* A key of another kind is no missing one, and the file is named. */
static void keys_of_another_kind(void **state) {
    (void)state;
    static const char begin[24] = "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\2";
    char path[60], name[60];
    snprintf(path, sizeof path, "/tmp/facula-kinds-%d.gguf", (int)getpid());
    static const char *const keys[] = { "block_count", "attention.head_count_kv",
                                        "rope.freq_base" };
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        fac_gguf_head h = { .keys = 0 };
        fac_lm *m;
        fac_text_add_bytes(&h.text, begin, sizeof begin);
        fac_gguf_put_text(&h, "general.architecture", "llama");
        snprintf(name, sizeof name, "llama.%s", keys[k]);
        fac_gguf_put_text(&h, name, "3");
        OK(fac_file_write(path, h.text.s, h.text.n, &err));
        assert_int_equal(fac_lm_load(path, cpu, NULL, &m, &err), FAC_E_FORMAT);
        assert_non_null(strstr(err.text, path));
        if (!strstr(err.text, name)) fail_msg("%s", err.text);
        OK(fac_file_write(path, h.text.s, h.text.n - 2, &err));
        assert_int_equal(fac_lm_load(path, cpu, NULL, &m, &err), FAC_E_FORMAT);
        assert_non_null(strstr(err.text, path));
        fac_text_free(&h.text);
    }
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_that_cannot_be),
        cmocka_unit_test(numbers_of_gguf_that_cannot_be),
        cmocka_unit_test(weights_that_files_lack),
        cmocka_unit_test(weights_that_are_no_numbers),
        cmocka_unit_test(scalings_of_gguf_that_are_not_known),
        cmocka_unit_test(keys_of_another_kind),
    };
    return run_families(tests, sizeof tests / sizeof *tests);
}
