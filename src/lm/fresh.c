/* Models with fresh weights, to be trained: which weights there are, and how they begin. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "lm/lm.h"
#include "tensor/tensor_internal.h"
#include "tensor/weights.h"

static const double deviation = 0.02;
enum { MOST_LAYERS = 1024, MOST_WIDTH = 1 << 16, MOST_CONTEXT = 1 << 20, MULTIPLE = 32 };

/* ---- shapes ---- */

fac_status fac_lm_shape_parse(const char *text, fac_lm_shape *out, fac_error *err) {
    static const char *const families[] = { "gpt", "llama" };
    for (int k = 0; k < 2; k++) {
        const size_t n = strlen(families[k]);
        long long layers, heads, width;
        int used = 0;
        if (strncmp(text, families[k], n) || text[n] != ':') continue;
        const int got = sscanf(text + n + 1, "%6lldx%6lldx%6lld%n", &layers, &heads, &width, &used);
        if (got < 3 || text[n + 1 + (size_t)used]) break;
        snprintf(out->family, sizeof out->family, "%s", families[k]);
        out->layers = layers;
        out->heads = heads;
        out->width = width;
        return FAC_OK;
    }
    return fac_raise(err, FAC_E_ARGUMENT,
                     "a language model \"%.60s\": expected gpt:LAYERSxHEADSxWIDTH or "
                     "llama:LAYERSxHEADSxWIDTH, such as gpt:4x4x128",
                     text);
}

static fac_status check(const fac_lm_shape *s, fac_error *err) {
    const struct {
        const char *what;
        int64_t n, most;
    } sizes[] = { { "layers", s->layers, MOST_LAYERS },
                  { "heads", s->heads, MOST_WIDTH },
                  { "numbers a token", s->width, MOST_WIDTH },
                  { "tokens of context", s->context, MOST_CONTEXT },
                  { "tokens in the vocabulary", s->vocabulary, 1 << 24 } };
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        if (sizes[k].n < 1 || sizes[k].n > sizes[k].most)
            return fac_raise(err, FAC_E_ARGUMENT, "a language model of %lld %s: 1 to %lld",
                             (long long)sizes[k].n, sizes[k].what, (long long)sizes[k].most);
    if (s->width % s->heads)
        return fac_raise(err, FAC_E_ARGUMENT, "a width of %lld is not divided by %lld heads",
                         (long long)s->width, (long long)s->heads);
    if (!strcmp(s->family, "llama") && s->width / s->heads % 2)
        return fac_raise(err, FAC_E_ARGUMENT, "heads of %lld numbers: llama rotates pairs of them",
                         (long long)(s->width / s->heads));
    if (!(s->dropout >= 0 && s->dropout < 1))
        return fac_raise(err, FAC_E_ARGUMENT, "dropout of %g: it is in 0..1", s->dropout);
    return FAC_OK;
}

static void configure(const fac_lm_shape *s, fac_lm_config *c) {
    const bool llama = !strcmp(s->family, "llama");
    *c = (fac_lm_config){ .family = llama ? "llama" : "gpt2",
                          .layers = s->layers,
                          .width = s->width,
                          .heads = s->heads,
                          .kv_heads = s->heads,
                          .head = s->width / s->heads,
                          .rotary = s->width / s->heads,
                          .context = s->context,
                          .eps = 1e-5,
                          .base = 10000,
                          .factor = 1,
                          .hidden = 4 * s->width };
    if (!llama) c->is = FAC_LM_LAYER_NORM | FAC_LM_LEARNED | FAC_LM_GELU_TANH;
    if (llama) c->hidden = (8 * s->width / 3 + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
}

/* ---- weights ---- */

typedef struct making {
    fac_lm *m;
    uint64_t seed;
    int64_t layer;
    fac_error *err;
} making;

typedef enum beginning { ZEROS, ONES, NORMAL, NARROW } beginning;

static void fill(const making *k, const char *name, beginning how, int64_t n, float *x) {
    const uint64_t stream = fac_hash_text(fac_hash_start(0), name).a;
    const double narrow = deviation / sqrt(2 * (double)k->m->c.layers);
    for (int64_t i = 0; i < n && how == ONES; i++) x[i] = 1;
    for (int64_t i = 0; i < n && how >= NORMAL; i++)
        x[i] = (float)((how == NARROW ? narrow : deviation) *
                       fac_random_normal(k->seed, stream, (uint64_t)i));
}

static fac_status add(const making *k, const char *canonical, beginning how, fac_dims dims) {
    char name[256];
    fac_tensor *t;
    fac_lm_name_gguf(k->m, canonical, k->layer, name);
    FAC_TRY(fac_tensor_new(NULL, FAC_F32, dims, &t, k->err));
    fill(k, name, how, fac_dims_count(&dims), fac_tensor_storage(t)->host);
    return fac_weights_add(k->m->files[0], name, strlen(name), t, k->err);
}

/* A matrix and its bias, a norm: Llama has neither biases nor shifts. */
static fac_status add_both(const making *k, const char *stem, beginning how, fac_dims dims) {
    char name[64];
    snprintf(name, sizeof name, "%s.weight", stem);
    FAC_TRY(add(k, name, how, dims));
    snprintf(name, sizeof name, "%s.bias", stem);
    if (!(k->m->c.is & FAC_LM_LAYER_NORM)) return FAC_OK;
    return add(k, name, ZEROS, fac_shape(dims.d[0]));
}

static fac_status add_layer(const making *k) {
    const fac_lm_config *c = &k->m->c;
    const int64_t E = c->width, F = c->hidden;
    const bool gpt = c->is & FAC_LM_LAYER_NORM;
    FAC_TRY(add_both(k, "blk.%d.attn_norm", ONES, fac_shape(E)));
    if (gpt) FAC_TRY(add_both(k, "blk.%d.attn_qkv", NORMAL, fac_shape(3 * E, E)));
    if (!gpt) FAC_TRY(add_both(k, "blk.%d.attn_q", NORMAL, fac_shape(E, E)));
    if (!gpt) FAC_TRY(add_both(k, "blk.%d.attn_k", NORMAL, fac_shape(E, E)));
    if (!gpt) FAC_TRY(add_both(k, "blk.%d.attn_v", NORMAL, fac_shape(E, E)));
    FAC_TRY(add_both(k, "blk.%d.attn_output", NARROW, fac_shape(E, E)));
    FAC_TRY(add_both(k, "blk.%d.ffn_norm", ONES, fac_shape(E)));
    if (!gpt) FAC_TRY(add_both(k, "blk.%d.ffn_gate", NORMAL, fac_shape(F, E)));
    FAC_TRY(add_both(k, "blk.%d.ffn_up", NORMAL, fac_shape(F, E)));
    return add_both(k, "blk.%d.ffn_down", NARROW, fac_shape(E, F));
}

static fac_status add_all(making *k, int64_t vocabulary) {
    const fac_lm_config *c = &k->m->c;
    FAC_TRY(add(k, "token_embd.weight", NORMAL, fac_shape(vocabulary, c->width)));
    if (c->is & FAC_LM_LEARNED)
        FAC_TRY(add(k, "position_embd.weight", NORMAL, fac_shape(c->context, c->width)));
    for (k->layer = 0; k->layer < c->layers; k->layer++) FAC_TRY(add_layer(k));
    return add_both(k, "output_norm", ONES, fac_shape(c->width));
}

static fac_status make(fac_lm *m, const fac_lm_shape *s, fac_error *err) {
    making k = { m, s->seed, 0, err };
    FAC_TRY(check(s, err));
    configure(s, &m->c);
    m->name = fac_lm_name_gguf;
    m->trains = m->fresh = true;
    m->dropout = s->dropout;
    m->seed = s->seed;
    m->opts.context = s->context;
    m->files = fac_alloc(1, sizeof *m->files);
    if (!m->files || !(m->files[0] = fac_weights_new()))
        return fac_raise_memory(err, "a language model");
    m->nfiles = 1;
    FAC_TRY(add_all(&k, s->vocabulary));
    return fac_lm_settle(m, err);
}

fac_status fac_lm_new(const fac_lm_shape *shape, fac_device *device, fac_lm **out, fac_error *err) {
    fac_lm *m = fac_lm_empty();
    if (!m) return fac_raise_memory(err, "a language model");
    m->device = device;
    const fac_status status = make(m, shape, err);
    if (status)
        fac_lm_free(m);
    else
        *out = m;
    return status;
}
