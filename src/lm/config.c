/* Hyperparameters, from the keys of a GGUF file or from config.json, and what families have in
 * common. */
#include "lm/lm.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cjson/cJSON.h>
#include "base/error.h"

/* Names of GGUF and of model_type; what is set only where a file of that kind has it. */
static const struct {
    const char *gguf, *hf;
    unsigned is, gguf_is, hf_is;
    int64_t global_every, global_at;
} families[] = {
    { "llama", "llama", 0, FAC_LM_NEIGHBOURS, 0, 0, 0 },
    { "llama", "mistral", 0, FAC_LM_NEIGHBOURS, 0, 0, 0 },
    { "qwen2", "qwen2", 0, 0, 0, 0, 0 },
    { "qwen3", "qwen3", 0, 0, 0, 0, 0 },
    { "phi3", "phi3", 0, 0, 0, 0, 0 },
    { "gpt2", "gpt2", FAC_LM_LAYER_NORM | FAC_LM_LEARNED | FAC_LM_GELU_TANH, 0, FAC_LM_TRANSPOSED,
      0, 0 },
    { "gptneo", "gpt_neo", FAC_LM_LAYER_NORM | FAC_LM_LEARNED | FAC_LM_GELU_TANH, 0, 0, 2, 0 },
    { "gptneox", "gpt_neox", FAC_LM_LAYER_NORM | FAC_LM_GELU_ERF, 0, FAC_LM_PER_HEAD, 0, 0 },
    { "bert", "bert", FAC_LM_LAYER_NORM | FAC_LM_LEARNED | FAC_LM_GELU_ERF | FAC_LM_ENCODER, 0, 0,
      0, 0 },
    { "gemma2", "gemma2", FAC_LM_GELU_TANH | FAC_LM_SCALED, 0, FAC_LM_PLUS_ONE, 2, 1 },
    { "gemma3", "gemma3_text", FAC_LM_GELU_TANH | FAC_LM_SCALED, 0, FAC_LM_PLUS_ONE, 6, 5 },
};
enum { FAMILIES = sizeof families / sizeof *families };
static const char known[] = "llama, mistral, qwen2, qwen3, phi3, gpt2, gpt_neo, gpt_neox, gemma2, "
                            "gemma3 and bert are known";

/* Numbers that would make angles, scores or logits infinite or NaN. */
static fac_status check_reals(const fac_lm_config *c, fac_error *err) {
    const struct {
        const char *name;
        double x;
        bool zero; /* says that there is none */
    } all[] = {
        { "eps of norms", c->eps, false },
        { "base of rotary angles", c->base, false },
        { "base of rotary angles with a window", c->local_base, false },
        { "factor of rope scaling", c->factor, false },
        { "attention factor of rope scaling", c->stretch, true },
        { "original context", c->before, true },
        { "scale of scores", c->scale, true },
        { "softcap of scores", c->cap, true },
        { "softcap of logits", c->last_cap, true },
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (!isfinite(all[k].x) || all[k].x < 0 || (all[k].x == 0 && !all[k].zero))
            return fac_raise(err, FAC_E_FORMAT,
                             "a model whose %s is %g: a positive number%s is "
                             "expected",
                             all[k].name, all[k].x, all[k].zero ? " or 0" : "");
    if (c->window >= 0) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT,
                     "a model whose attention window is not a number of tokens, 0 or more");
}

/* What cannot be, whatever the file says. */
static fac_status check(const fac_lm_config *c, fac_error *err) {
    const struct {
        const char *name;
        int64_t x, most;
    } sizes[] = {
        { "layers", c->layers, 1 << 12 },      { "width", c->width, 1 << 20 },
        { "heads", c->heads, 1 << 12 },        { "heads of keys", c->kv_heads, 1 << 12 },
        { "size of heads", c->head, 1 << 12 }, { "context", c->context, 1 << 28 },
    };
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        if (sizes[k].x < 1 || sizes[k].x > sizes[k].most)
            return fac_raise(err, FAC_E_FORMAT, "a model: its %s: %lld, expected 1 to %lld",
                             sizes[k].name, (long long)sizes[k].x, (long long)sizes[k].most);
    if (c->heads % c->kv_heads || c->rotary < 2 || c->rotary % 2 || c->rotary > c->head)
        return fac_raise(err, FAC_E_FORMAT,
                         "a model of %lld heads, %lld of keys, of size %lld, %lld of it rotated",
                         (long long)c->heads, (long long)c->kv_heads, (long long)c->head,
                         (long long)c->rotary);
    return check_reals(c, err);
}

/* ---- GGUF ---- */

typedef struct keys {
    fac_gguf *g;
    const char *arch;
} keys;

static int64_t key_int(const keys *k, const char *name, int64_t missing) {
    char full[200];
    snprintf(full, sizeof full, "%s.%s", k->arch, name);
    return fac_gguf_int(k->g, full, missing);
}
static double key_real(const keys *k, const char *name, double missing) {
    char full[200];
    snprintf(full, sizeof full, "%s.%s", k->arch, name);
    return fac_gguf_real(k->g, full, missing);
}

static void from_keys(const keys *k, fac_lm_config *c) {
    c->layers = key_int(k, "block_count", 0);
    c->width = key_int(k, "embedding_length", 0);
    c->hidden = key_int(k, "feed_forward_length", 0);
    c->heads = key_int(k, "attention.head_count", 0);
    c->kv_heads = key_int(k, "attention.head_count_kv", c->heads);
    c->head = key_int(k, "attention.key_length", c->heads > 0 ? c->width / c->heads : 0);
    c->context = key_int(k, "context_length", 0);
    c->rotary = key_int(k, "rope.dimension_count", c->head);
    c->base = key_real(k, "rope.freq_base", 10000);
    c->local_base = key_real(k, "rope.local.freq_base", 10000);
    const double factor = key_real(k, "rope.scaling.factor", key_real(k, "rope.scale_linear", 1));
    c->factor = factor == 0 ? 1 : factor;
    c->eps = key_real(k, "attention.layer_norm_rms_epsilon",
                      key_real(k, "attention.layer_norm_epsilon", 1e-5));
    c->before = key_real(k, "rope.scaling.original_context_length", 0);
    c->stretch = key_real(k, "rope.scaling.attn_factor", 0);
    c->scale = key_real(k, "attention.scale", 0);
    c->window = key_int(k, "attention.sliding_window", 0);
    c->cap = key_real(k, "attn_logit_softcapping", 0);
    c->last_cap = key_real(k, "final_logit_softcapping", 0);
    if (!key_int(k, "use_parallel_residual", 0)) return;
    c->is |= FAC_LM_PARALLEL;
}

/* Only Phi-3 is built with lists of factors; YaRN is not known. */
static fac_status check_scaling(fac_gguf *g, const char *arch, fac_error *err) {
    char full[200];
    snprintf(full, sizeof full, "%s.rope.scaling.type", arch);
    const char *type = fac_gguf_text(g, full, NULL);
    const bool lists = type && !strcmp(type, "longrope") && !strcmp(arch, "phi3");
    if (!type || lists || !strcmp(type, "none") || !strcmp(type, "linear")) return FAC_OK;
    return fac_raise(err, FAC_E_UNSUPPORTED,
                     "%s \"%.40s\": none, linear and, of phi3, longrope are known", full, type);
}

fac_status fac_lm_config_gguf(fac_gguf *g, fac_lm_config *c, fac_arena *a, fac_error *err) {
    const char *arch = fac_gguf_text(g, "general.architecture", NULL);
    if (!arch) return fac_raise(err, FAC_E_FORMAT, "a GGUF file without general.architecture");
    for (int k = 0; k < FAMILIES; k++) {
        if (strcmp(families[k].gguf, arch)) continue;
        *c = (fac_lm_config){ .family = families[k].gguf,
                              .is = families[k].is | families[k].gguf_is,
                              .global_every = families[k].global_every,
                              .global_at = families[k].global_at };
        (void)a;
        FAC_TRY(check_scaling(g, arch, err));
        from_keys(&(keys){ g, arch }, c);
        FAC_TRY(fac_gguf_right(g, err));
        if (strcmp(arch, "phi3")) c->before = c->stretch = 0;
        if (!strcmp(arch, "gemma2") && c->layers == 46 && !(c->scale > 0))
            c->scale = 1 / sqrt((double)c->width / (double)c->heads);
        return check(c, err);
    }
    return fac_raise(err, FAC_E_UNSUPPORTED, "an architecture \"%.40s\": %s", arch, known);
}

/* ---- config.json ---- */

static const cJSON *get(const cJSON *o, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(o, key);
}
static bool is_missing(const cJSON *j) { return !j || cJSON_IsNull(j); }

/* NaN, which every check refuses: it is there, and no number. */
static double real(const cJSON *o, const char *a, const char *b, double missing) {
    const cJSON *j = get(o, a);
    if (is_missing(j) && b) j = get(o, b);
    if (is_missing(j)) return missing;
    return cJSON_IsNumber(j) ? j->valuedouble : NAN;
}
static int64_t whole(const cJSON *o, const char *a, const char *b, int64_t missing) {
    const double x = real(o, a, b, (double)missing);
    return x >= 0 && x < 1e15 ? (int64_t)x : -1;
}

/* -1: no share of a head. */
static int64_t share_of(int64_t head, double share) {
    return share >= 0 && share <= 1 ? (int64_t)((double)head * share) : -1;
}

static fac_status positive(const char *name, double x, fac_error *err) {
    if (x > 0 && isfinite(x)) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT,
                     "config.json: rope scaling: %s is %g: a positive number is expected", name, x);
}

/* Phi-3: the lists of factors are read by fac_lm_keep_angles.  What follows from how much longer
 * texts became: sqrt(1 + log(new / old) / log(old)).  Other families' GGUF files have no place for
 * the lists. */
static fac_status longrope(const cJSON *root, const cJSON *s, fac_lm_config *c, fac_error *err) {
    const char *name = "original_max_position_embeddings";
    if (strcmp(c->family, "phi3"))
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "config.json: rope scaling \"longrope\" is known of phi3, not of %s",
                         c->family);
    c->before = real(s, name, NULL, real(root, name, NULL, (double)c->context));
    if (!(c->before >= 2 && isfinite(c->before)))
        return fac_raise(err, FAC_E_FORMAT,
                         "config.json: longrope of texts of %g tokens: %s of 2 or more is expected",
                         c->before, name);
    const double longer = real(s, "factor", NULL, (double)c->context / c->before);
    FAC_TRY(positive("factor", longer, err));
    const double usual = longer > 1 ? sqrt(1 + log(longer) / log(c->before)) : 1;
    c->stretch = real(s, "attention_factor", NULL, usual);
    return positive("attention_factor", c->stretch, err);
}

static fac_status llama3(const cJSON *s, fac_lm_config *c, fac_error *err) {
    c->low = real(s, "low_freq_factor", NULL, 1);
    c->high = real(s, "high_freq_factor", NULL, 4);
    c->original = real(s, "original_max_position_embeddings", NULL, 8192);
    FAC_TRY(positive("low_freq_factor", c->low, err));
    FAC_TRY(positive("high_freq_factor", c->high, err));
    FAC_TRY(positive("original_max_position_embeddings", c->original, err));
    if (c->high > c->low) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT,
                     "config.json: rope scaling: high_freq_factor is %g: more than "
                     "low_freq_factor, %g, is expected",
                     c->high, c->low);
}

static fac_status scaling(const cJSON *root, fac_lm_config *c, fac_error *err) {
    const cJSON *s = get(root, "rope_scaling");
    if (!s || cJSON_IsNull(s)) s = get(root, "rope_parameters");
    c->local_base = real(get(s, "sliding_attention"), "rope_theta", NULL, c->local_base);
    if (get(s, "full_attention")) s = get(s, "full_attention");
    c->rotary = share_of(c->rotary, real(s, "partial_rotary_factor", NULL, 1));
    const char *type = cJSON_GetStringValue(get(s, "rope_type"));
    if (!type) type = cJSON_GetStringValue(get(s, "type"));
    c->base = real(s, "rope_theta", NULL, real(root, "rope_theta", "rotary_emb_base", 10000));
    if (!type || !strcmp(type, "default")) return FAC_OK;
    if (!strcmp(type, "longrope") || !strcmp(type, "su")) return longrope(root, s, c, err);
    if (strcmp(type, "linear") && strcmp(type, "llama3"))
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "config.json: rope scaling \"%.40s\": linear, llama3 and longrope are "
                         "known",
                         type);
    c->factor = real(s, "factor", NULL, 1);
    FAC_TRY(positive("factor", c->factor, err));
    return strcmp(type, "linear") ? llama3(s, c, err) : FAC_OK;
}

static void from_json(const cJSON *root, fac_lm_config *c) {
    c->layers = whole(root, "num_hidden_layers", "n_layer", whole(root, "num_layers", NULL, 0));
    c->width = whole(root, "hidden_size", "n_embd", 0);
    c->hidden = whole(root, "intermediate_size", "n_inner", 4 * c->width);
    c->heads = whole(root, "num_attention_heads", "n_head", whole(root, "num_heads", NULL, 0));
    c->kv_heads = whole(root, "num_key_value_heads", NULL, c->heads);
    c->head = whole(root, "head_dim", NULL, c->heads > 0 ? c->width / c->heads : 0);
    c->context = whole(root, "max_position_embeddings", "n_positions", 0);
    const double part = real(root, "partial_rotary_factor", "rotary_pct", 1);
    c->rotary = share_of(c->head, part);
    c->eps =
        real(root, "rms_norm_eps", "layer_norm_epsilon", real(root, "layer_norm_eps", NULL, 1e-5));
    c->local_base = real(root, "rope_local_base_freq", NULL, 10000);
    c->window = whole(root, "sliding_window", NULL, 0);
    if (cJSON_IsFalse(get(root, "use_sliding_window"))) c->window = 0;
    c->cap = real(root, "attn_logit_softcapping", NULL, 0);
    c->last_cap = real(root, "final_logit_softcapping", NULL, 0);
    const double scalar = real(root, "query_pre_attn_scalar", NULL, 0);
    if (scalar != 0) c->scale = 1 / sqrt(scalar);
}

/* [[["global", "local"], 12]]: in turns, as GPT-Neo's are, or all global. */
static fac_status neo_layers(const cJSON *types, fac_lm_config *c, fac_error *err) {
    static const char *const kinds[] = { "global", "local" };
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetArrayItem(types, 0), 0);
    const int n = cJSON_GetArraySize(first);
    bool usual = cJSON_GetArraySize(types) == 1 && n >= 1 && n <= 2;
    for (int k = 0; k < n && usual; k++) {
        const char *kind = cJSON_GetStringValue(cJSON_GetArrayItem(first, k));
        usual = kind && !strcmp(kind, kinds[k]);
    }
    if (n == 1) c->window = 0;
    if (usual) return FAC_OK;
    return fac_raise(err, FAC_E_UNSUPPORTED,
                     "config.json: attention_types: [[[\"global\", \"local\"], N]] and "
                     "[[[\"global\"], N]] are known");
}

/* Scores are not scaled. */
static fac_status neo(const cJSON *root, fac_lm_config *c, fac_error *err) {
    const cJSON *act = get(root, "activation_function");
    const char *name = cJSON_GetStringValue(act);
    if (name && strcmp(name, "gelu_new"))
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "config.json: activation_function \"%.40s\": gelu_new is known", name);
    c->scale = 1;
    c->window = whole(root, "window_size", NULL, 256);
    return get(root, "attention_types") ? neo_layers(get(root, "attention_types"), c, err) : FAC_OK;
}

static fac_status read_json(const cJSON *root, fac_lm_config *c, fac_error *err) {
    const char *type = cJSON_GetStringValue(get(root, "model_type"));
    if (!type) return fac_raise(err, FAC_E_FORMAT, "config.json without model_type");
    for (int k = 0; k < FAMILIES; k++) {
        if (strcmp(families[k].hf, type)) continue;
        *c = (fac_lm_config){ .family = families[k].gguf,
                              .is = families[k].is | families[k].hf_is,
                              .factor = 1,
                              .global_every = families[k].global_every,
                              .global_at = families[k].global_at };
        from_json(root, c);
        if (!strcmp(type, "gpt_neox") && !cJSON_IsFalse(get(root, "use_parallel_residual")))
            c->is |= FAC_LM_PARALLEL;
        if (!strcmp(type, "qwen2") && !cJSON_IsTrue(get(root, "use_sliding_window"))) c->window = 0;
        if (!strcmp(type, "qwen3") && !cJSON_IsTrue(get(root, "use_sliding_window"))) c->window = 0;
        if (!strcmp(type, "gpt_neo")) FAC_TRY(neo(root, c, err));
        FAC_TRY(scaling(root, c, err));
        return check(c, err);
    }
    return fac_raise(err, FAC_E_UNSUPPORTED, "config.json: model_type \"%.40s\": %s", type, known);
}

fac_status fac_lm_config_json(const char *text, size_t bytes, fac_lm_config *c, fac_error *err) {
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    if (!root) return fac_raise(err, FAC_E_FORMAT, "config.json is no JSON");
    const fac_status status = read_json(root, c, err);
    cJSON_Delete(root);
    return status;
}
