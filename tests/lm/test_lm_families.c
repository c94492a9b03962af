/* Families of language models against transformers. */
#include "lm/lm_family.h"

static void gpt_neo_is_as_transformers_has_it(void **state) {
    (void)state;
    folder f = { .n = 0 };
    write_folder(&f, of_gpt_neo,
                 "{\"model_type\":\"gpt_neo\",\"vocab_size\":23,\"hidden_size\":16,"
                 "\"num_layers\":2,\"num_heads\":2,\"intermediate_size\":null,"
                 "\"max_position_embeddings\":40,\"window_size\":4,\"layer_norm_epsilon\":1e-5,"
                 "\"activation_function\":\"gelu_new\","
                 "\"attention_types\":[[[\"global\",\"local\"],1]]}");
    check_model(f.path, 0, gpt_neo);
    remove_folder(&f);
}

/* The context decides which factors there are: more than 8 tokens need the long ones, 32 the short
 * ones. */
static void longrope_is_as_transformers_has_it(void **state) {
    (void)state;
    folder f = { .n = 0 };
    write_folder(&f, of_phi3, PHI3("8", ",\"long_factor\":[1.0,2.5,4.0,7.0]"));
    check_model(f.path, 0, phi3_long);
    remove_folder(&f);
    write_folder(&f, of_phi3, PHI3("32", ",\"long_factor\":[1.0,2.5,4.0,7.0]"));
    check_model(f.path, 32, phi3_short);
    remove_folder(&f);
}

/* The folder and its GGUF file say the same; *to is what. */
static void same_as_gguf(const shape *all, const char *settings, float to[VOCABULARY]) {
    folder f = { .n = 0 };
    fac_lm *m;
    fac_session *s;
    write_folder(&f, all, settings);
    OK(fac_lm_load(f.path, cpu, NULL, &m, &err));
    OK(fac_session_new(m, &s, &err));
    OK(fac_session_feed(s, 0, ids, TOKENS, &err));
    OK(fac_session_step(s, &err));
    memcpy(to, fac_session_logits(s, 0), VOCABULARY * sizeof *to);
    fac_session_free(s);
    fac_lm_free(m);
    check_model(f.path, 0, to);
    remove_folder(&f);
}

static void expect_other(const shape *all, const char *a, const char *b) {
    float of[2][VOCABULARY];
    same_as_gguf(all, a, of[0]);
    same_as_gguf(all, b, of[1]);
    assert_true(memcmp(of[0], of[1], sizeof of[0]) != 0);
}

/* What config.json says in four numbers, a GGUF file says in a tensor; the base of layers with a
 * window is a key. */
static void angles_go_into_gguf(void **state) {
    (void)state;
    expect_other(of_llama, LLAMA(""), LLAMA3("8.0", "1.0", "16"));
    expect_other(of_gemma3, GEMMA3("10000"), GEMMA3("100"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt_neo_is_as_transformers_has_it),
        cmocka_unit_test(longrope_is_as_transformers_has_it),
        cmocka_unit_test(angles_go_into_gguf),
    };
    return run_families(tests, sizeof tests / sizeof *tests);
}
