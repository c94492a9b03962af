/* Small models of several families, whose weights follow from a formula
 * (tests/golden/make/golden_lm.py), as folders of Hugging Face and as GGUF files. */
#ifndef TEST_LM_FAMILY_H
#define TEST_LM_FAMILY_H
#include "facula/file.h"
#include "facula/io.h"
#include "golden/lm.h"
#include "lm_check.h"
#include "tensor/tensor_internal.h"

enum {
    VOCABULARY = 23,
    WIDTH = 16,
    HIDDEN = 24,
    CONTEXT = 40,
    TOKENS = 12,
    MOST = 40,
    KEYS = 8, /* of phi3: numbers of a token's key */
};
static int32_t ids[TOKENS];

/* ---- folders ---- */

typedef struct shape {
    const char *name; /* "%d": a layer */
    int64_t rows, columns;
} shape;

static const shape of_gpt_neo[] = {
    { "transformer.h.%d.attn.attention.k_proj.weight", WIDTH, WIDTH },
    { "transformer.h.%d.attn.attention.out_proj.bias", WIDTH, 0 },
    { "transformer.h.%d.attn.attention.out_proj.weight", WIDTH, WIDTH },
    { "transformer.h.%d.attn.attention.q_proj.weight", WIDTH, WIDTH },
    { "transformer.h.%d.attn.attention.v_proj.weight", WIDTH, WIDTH },
    { "transformer.h.%d.ln_1.bias", WIDTH, 0 },
    { "transformer.h.%d.ln_1.weight", WIDTH, 0 },
    { "transformer.h.%d.ln_2.bias", WIDTH, 0 },
    { "transformer.h.%d.ln_2.weight", WIDTH, 0 },
    { "transformer.h.%d.mlp.c_fc.bias", 4 * WIDTH, 0 },
    { "transformer.h.%d.mlp.c_fc.weight", 4 * WIDTH, WIDTH },
    { "transformer.h.%d.mlp.c_proj.bias", WIDTH, 0 },
    { "transformer.h.%d.mlp.c_proj.weight", WIDTH, 4 * WIDTH },
    { "transformer.ln_f.bias", WIDTH, 0 },
    { "transformer.ln_f.weight", WIDTH, 0 },
    { "transformer.wpe.weight", CONTEXT, WIDTH },
    { "transformer.wte.weight", VOCABULARY, WIDTH },
    { 0 }
};
static const shape of_phi3[] = { { "lm_head.weight", VOCABULARY, WIDTH },
                                 { "model.embed_tokens.weight", VOCABULARY, WIDTH },
                                 { "model.layers.%d.input_layernorm.weight", WIDTH, 0 },
                                 { "model.layers.%d.mlp.down_proj.weight", WIDTH, HIDDEN },
                                 { "model.layers.%d.mlp.gate_up_proj.weight", 2 * HIDDEN, WIDTH },
                                 { "model.layers.%d.post_attention_layernorm.weight", WIDTH, 0 },
                                 { "model.layers.%d.self_attn.o_proj.weight", WIDTH, WIDTH },
                                 { "model.layers.%d.self_attn.qkv_proj.weight", WIDTH + 2 * KEYS,
                                   WIDTH },
                                 { "model.norm.weight", WIDTH, 0 },
                                 { 0 } };
static const shape of_llama[] = { { "model.embed_tokens.weight", VOCABULARY, WIDTH },
                                  { "model.layers.%d.input_layernorm.weight", WIDTH, 0 },
                                  { "model.layers.%d.mlp.down_proj.weight", WIDTH, HIDDEN },
                                  { "model.layers.%d.mlp.gate_proj.weight", HIDDEN, WIDTH },
                                  { "model.layers.%d.mlp.up_proj.weight", HIDDEN, WIDTH },
                                  { "model.layers.%d.post_attention_layernorm.weight", WIDTH, 0 },
                                  { "model.layers.%d.self_attn.k_proj.weight", KEYS, WIDTH },
                                  { "model.layers.%d.self_attn.o_proj.weight", WIDTH, WIDTH },
                                  { "model.layers.%d.self_attn.q_proj.weight", WIDTH, WIDTH },
                                  { "model.layers.%d.self_attn.v_proj.weight", KEYS, WIDTH },
                                  { "model.norm.weight", WIDTH, 0 },
                                  { 0 } };
static const shape of_gemma3[] = { { "model.embed_tokens.weight", VOCABULARY, WIDTH },
                                   { "model.layers.%d.input_layernorm.weight", WIDTH, 0 },
                                   { "model.layers.%d.mlp.down_proj.weight", WIDTH, HIDDEN },
                                   { "model.layers.%d.mlp.gate_proj.weight", HIDDEN, WIDTH },
                                   { "model.layers.%d.mlp.up_proj.weight", HIDDEN, WIDTH },
                                   { "model.layers.%d.post_attention_layernorm.weight", WIDTH, 0 },
                                   { "model.layers.%d.post_feedforward_layernorm.weight", WIDTH,
                                     0 },
                                   { "model.layers.%d.pre_feedforward_layernorm.weight", WIDTH, 0 },
                                   { "model.layers.%d.self_attn.k_norm.weight", WIDTH / 2, 0 },
                                   { "model.layers.%d.self_attn.k_proj.weight", KEYS, WIDTH },
                                   { "model.layers.%d.self_attn.o_proj.weight", WIDTH, WIDTH },
                                   { "model.layers.%d.self_attn.q_norm.weight", WIDTH / 2, 0 },
                                   { "model.layers.%d.self_attn.q_proj.weight", WIDTH, WIDTH },
                                   { "model.layers.%d.self_attn.v_proj.weight", KEYS, WIDTH },
                                   { "model.norm.weight", WIDTH, 0 },
                                   { 0 } };

static inline void fill(float *x, int64_t n, int which, bool norm) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)((uint64_t)i * 2654435761u + (uint64_t)which * 97531u);
        bits ^= bits >> 15;
        bits *= 2246822519u;
        const double unit = (double)(bits >> 8) / (1 << 24) - 0.5;
        x[i] = (float)(unit * (norm ? 0.6 : 0.8) + norm);
    }
}

typedef struct folder {
    char path[64], *names[MOST];
    fac_tensor *all[MOST];
    int n;
} folder;

static inline void add(folder *f, const shape *s, int layer) {
    char *name = malloc(100);
    const fac_dims d = s->columns ? fac_shape(s->rows, s->columns) : fac_shape(s->rows);
    snprintf(name, 100, s->name, layer);
    OK(fac_tensor_new(NULL, FAC_F32, d, &f->all[f->n], &err));
    const size_t n = strlen(name);
    const bool norm = !s->columns && n > 6 && !strcmp(name + n - 6, "weight");
    fill(fac_tensor_storage(f->all[f->n])->host, fac_dims_count(&d), f->n, norm);
    f->names[f->n++] = name;
}

/* Names of two layers are in order: all of the first one, then all of the second one. */
static inline void write_folder(folder *f, const shape *all, const char *settings) {
    char path[100];
    strcpy(f->path, "/tmp/facula-family-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    for (const shape *s = all; s->name;) {
        const shape *end = s;
        while (end->name && strchr(end->name, '%')) end++;
        if (end == s) add(f, s++, 0);
        for (int layer = 0; layer < 2; layer++)
            for (const shape *k = s; k < end; k++) add(f, k, layer);
        if (end > s) s = end;
    }
    snprintf(path, sizeof path, "%s/config.json", f->path);
    OK(fac_file_write(path, settings, strlen(settings), &err));
    snprintf(path, sizeof path, "%s/model.safetensors", f->path);
    OK(fac_safetensors_save(path, f->n, (const char *const *)f->names, f->all, &err));
}

static inline void remove_folder(folder *f) {
    char path[100];
    for (int k = 0; k < f->n; k++) {
        free(f->names[k]);
        fac_tensor_free(f->all[k]);
    }
    snprintf(path, sizeof path, "%s/config.json", f->path);
    unlink(path);
    snprintf(path, sizeof path, "%s/model.safetensors", f->path);
    unlink(path);
    rmdir(f->path);
    *f = (folder){ .n = 0 };
}

/* ---- logits ---- */

static inline void compare(const char *what, const float *got, const float want[VOCABULARY]) {
    double largest = 0;
    for (int k = 0; k < VOCABULARY; k++) largest = fmax(largest, fabs((double)want[k]));
    for (int k = 0; k < VOCABULARY; k++)
        if (!(fabs((double)got[k] - (double)want[k]) <= 1e-5 * largest))
            fail_msg("%s: logit %d is %.8g instead of %.8g", what, k, (double)got[k],
                     (double)want[k]);
}

/* The same model from a GGUF file that was made of the folder. */
static inline void as_gguf(const char *path, char to[80]) {
    fac_lm *m;
    fac_tokenizer *t;
    snprintf(to, 80, "%s.gguf", path);
    OK(fac_tokenizer_learn("abcdefghijklmnopqrstuvw", VOCABULARY, 0, &t, &err));
    OK(fac_lm_load(path, cpu, NULL, &m, &err));
    OK(fac_lm_save_gguf(m, t, "f32", to, &err));
    fac_lm_free(m);
    fac_tokenizer_free(t);
}

/* Of the last token, read at once and in chunks of 1, 3 and 8. */
static inline void check_file(const char *path, int64_t context, const float want[VOCABULARY]) {
    static const int64_t chunks[] = { 1, 3, 8, TOKENS };
    const fac_lm_opts o = { .context = context, .precision = FAC_PRECISION_HIGHEST };
    fac_lm *m;
    fac_session *s;
    OK(fac_lm_load(path, cpu, &o, &m, &err));
    OK(fac_session_new(m, &s, &err));
    for (int c = 0; c < 4; c++) {
        OK(fac_session_cut(s, 0, 0, &err));
        for (int64_t at = 0; at < TOKENS; at += chunks[c]) {
            const int64_t n = TOKENS - at < chunks[c] ? TOKENS - at : chunks[c];
            OK(fac_session_feed(s, 0, ids + at, n, &err));
            OK(fac_session_step(s, &err));
        }
        compare(path, fac_session_logits(s, 0), want);
    }
    fac_session_free(s);
    fac_lm_free(m);
}

static inline void check_model(const char *path, int64_t context, const float want[VOCABULARY]) {
    char file[80];
    check_file(path, context, want);
    as_gguf(path, file);
    check_file(file, context, want);
    unlink(file);
}

#define PHI3(original, more)                                                                       \
    "{\"model_type\":\"phi3\",\"vocab_size\":23,\"hidden_size\":16,\"num_hidden_layers\":2,"       \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"intermediate_size\":24,"                \
    "\"max_position_embeddings\":40,\"rms_norm_eps\":1e-5,\"rope_theta\":10000.0,"                 \
    "\"sliding_window\":null,\"original_max_position_embeddings\":" original                       \
    ",\"rope_scaling\":{\"type\":\"longrope\",\"short_factor\":[1.0,1.1,1.3,1.6]" more "}}"

#define LLAMA(scaling)                                                                             \
    "{\"model_type\":\"llama\",\"hidden_size\":16,\"num_hidden_layers\":2,"                        \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"intermediate_size\":24,"                \
    "\"max_position_embeddings\":40,\"rms_norm_eps\":1e-5" scaling "}"

#define LLAMA3(factor, low, original)                                                              \
    LLAMA(",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":" factor                         \
          ",\"low_freq_factor\":" low ",\"high_freq_factor\":4.0,"                                 \
          "\"original_max_position_embeddings\":" original "}")
#define GEMMA3(local)                                                                              \
    "{\"model_type\":\"gemma3_text\",\"hidden_size\":16,\"num_hidden_layers\":2,"                  \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":8,"                          \
    "\"intermediate_size\":24,\"max_position_embeddings\":40,\"rms_norm_eps\":1e-6,"               \
    "\"query_pre_attn_scalar\":8,\"sliding_window\":6,\"rope_theta\":1000000.0,"                   \
    "\"rope_local_base_freq\":" local "}"
#define NEO(more)                                                                                  \
    "{\"model_type\":\"gpt_neo\",\"hidden_size\":16,\"num_layers\":2,\"num_heads\":2,"             \
    "\"max_position_embeddings\":40," more "}"

/* Runs tests with the device and tokens that the functions above read. */
static inline int run_families(const struct CMUnitTest *tests, size_t n) {
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &cpu, &err));
    for (int k = 0; k < TOKENS; k++) ids[k] = (k * k * 5 + 3 * k + 1) % VOCABULARY;
    const int failed = _cmocka_run_group_tests("families of language models", tests, n, NULL, NULL);
    fac_device_free(cpu);
    return failed;
}
#endif
