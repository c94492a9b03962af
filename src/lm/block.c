/* The graph of a decoder, one for all families: what differs is in flags, in numbers, and in which
 * weights there are.
 *
 *   h = embed[ids]  (+ position[at])
 *   h += n2(att(n1 h));  h += n4(mlp(n3 h))        or  h += att(n1 h) + mlp(n3 h);  n2 and n4 where
 *       the file has them
 *   att   q, k of x rotated by their positions; keys and values go into caches; softmax(q k^T) v; a
 *         product
 *   mlp   down(act(gate x) * up x),  or down(act(up x)) without a gate
 *   logits = norm(h) output^T */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/nn.h"
#include "lm/build.h"
#include "ops/attention.h"

typedef fac_lm_building build;

/* A weight as a parameter; NULL: there is none, or an error. */
static fac_value *weight_as(build *b, const char *name, bool floats) {
    fac_tensor *t = NULL;
    char full[256];
    if (b->status) return NULL;
    b->status = fac_lm_weight(b->m, name, b->layer, floats, &t, b->err);
    if (b->status || !t) return NULL;
    fac_lm_name_gguf(b->m, name, b->layer, full);
    fac_value *have = fac_graph_find(b->g, full);
    if (have) return have;
    const fac_dtype dtype = fac_tensor_type(t).dtype;
    if (b->m->trains && b->m->lora.rank) return fac_const(b->g, t);
    return dtype == FAC_F32 ? fac_param(b->g, full, t) : fac_state(b->g, full, t);
}
static fac_value *weight(build *b, const char *name) { return weight_as(b, name, false); }
static fac_value *floats(build *b, const char *name) { return weight_as(b, name, true); }

/* The same where the model cannot do without. */
static fac_value *need(build *b, fac_value *have, const char *name) {
    char full[256];
    if (have || b->status) return have;
    b->status = fac_raise(b->err, FAC_E_FORMAT, "a model without %s",
                          fac_lm_name_gguf(b->m, name, b->layer, full));
    return NULL;
}

/* Not while texts are written, whatever the model is for. */
static bool drops(const build *b, double ratio) { return b->m->trains && !b->caches && ratio > 0; }

static fac_value *dropped(build *b, fac_value *x, double ratio) {
    return drops(b, ratio) ? fac_nn_dropout(x, ratio) : x;
}

/* One of the two matrices of an adapter; NULL: the layer has none. */
static fac_value *adapter(build *b, const char *stem, const char *which) {
    char name[128], full[256];
    snprintf(name, sizeof name, "%s.%s", stem, which);
    fac_lm_name_gguf(b->m, name, b->layer, full);
    fac_tensor *t = b->m->lora.rank ? fac_table_get(&b->m->adapters, full) : NULL;
    return t ? fac_param(b->g, full, t) : NULL;
}

/* y and alpha / rank B A x. */
static fac_value *adapted(build *b, fac_value *x, fac_value *y, const char *stem) {
    fac_value *down = adapter(b, stem, "lora_a"), *up = down ? adapter(b, stem, "lora_b") : NULL;
    if (!up) return y;
    const fac_lora *o = &b->m->lora;
    fac_value *scale = fac_number(b->g, FAC_F32, o->alpha / (double)o->rank);
    fac_value *few = fac_linear(dropped(b, x, o->dropout), down, NULL);
    return fac_add(y, fac_mul(fac_linear(few, up, NULL), scale));
}

fac_value *fac_lm_linear(build *b, fac_value *x, const char *stem) {
    char w[64], bias[64];
    snprintf(w, sizeof w, "%s.weight", stem);
    snprintf(bias, sizeof bias, "%s.bias", stem);
    fac_value *matrix = need(b, weight(b, w), w);
    return matrix ? adapted(b, x, fac_linear(x, matrix, floats(b, bias)), stem) : x;
}

/* needed: x itself where there is no such weight is another model. */
static fac_value *norm(build *b, fac_value *x, const char *stem, bool needed) {
    char w[64], bias[64];
    snprintf(w, sizeof w, "%s.weight", stem);
    snprintf(bias, sizeof bias, "%s.bias", stem);
    fac_value *scale = floats(b, w);
    if (needed) scale = need(b, scale, w);
    if (!scale) return x;
    if (b->c->is & FAC_LM_LAYER_NORM)
        return fac_layer_norm(x, scale, floats(b, bias), -1, b->c->eps);
    return fac_rms_norm(x, scale, -1, b->c->eps);
}

fac_value *fac_lm_norm(build *b, fac_value *x, const char *stem) { return norm(b, x, stem, true); }

static bool has(build *b, const char *name) {
    fac_tensor *t = NULL;
    if (!b->status) b->status = fac_lm_weight(b->m, name, b->layer, false, &t, b->err);
    return t;
}

/* ---- positions ---- */

static bool is_local(const build *b) {
    const fac_lm_config *c = b->c;
    if (!(c->window > 0)) return false;
    return !c->global_every || b->layer % c->global_every != c->global_at;
}

static fac_value *rotate(build *b, fac_value *x, int64_t heads) {
    const int which = b->cos[1] && is_local(b);
    const fac_rotary_opts o = { heads, b->c->rotary, b->c->is & FAC_LM_NEIGHBOURS };
    return b->cos[0] ? fac_rotary(x, b->cos[which], b->sin[which], b->positions, &o) : x;
}

/* ---- attention ---- */

static fac_value *part(fac_value *x, int64_t from, int64_t n) {
    return fac_slice(x, 2, from, from + n, 1);
}

/* A norm over each head (Qwen 3, Gemma 3). */
static fac_value *head_norm(build *b, fac_value *x, const char *name, int64_t heads) {
    fac_value *scale = floats(b, name);
    if (!scale) return x;
    x = fac_reshape(x, fac_shape(0, 0, heads, b->c->head));
    return fac_reshape(fac_rms_norm(x, scale, -1, b->c->eps), fac_shape(0, 0, heads * b->c->head));
}

static fac_value *by_heads(fac_value *x, int64_t heads, int64_t size) {
    return fac_transpose(fac_reshape(x, fac_shape(0, 0, heads, size)), fac_shape(0, 2, 1, 3));
}

/* Rows go into the cache; what attention reads is the cache with them. */
static fac_value *cached(build *b, fac_value *rows, int which) {
    char name[64];
    snprintf(name, sizeof name, "cache.%lld.%s", (long long)b->layer, which ? "v" : "k");
    fac_value *cache = fac_state(b->g, name, b->caches[2 * b->layer + which]);
    fac_value *next = fac_cache_write(cache, rows, b->at);
    fac_update(cache, next);
    return next;
}

/* With probabilities that are dropped, as nanoGPT does.  They lie within the op: in training its
 * output `scores` gives them, and a product of its own follows. */
static fac_value *thinned(build *b, fac_value *q, fac_value *k, fac_value *v,
                          fac_attention_opts o) {
    const fac_lm_config *c = b->c;
    o.scores = FAC_SCORES_SOFTMAX;
    fac_value *p = fac_value_other(fac_attention(q, k, v, NULL, NULL, NULL, NULL, &o), 3);
    fac_value *rows = by_heads(v, c->kv_heads, c->head);
    fac_value *y = fac_attention_product(dropped(b, p, b->m->dropout), rows);
    return fac_reshape(fac_transpose(y, fac_shape(0, 2, 1, 3)), fac_shape(0, 0, -1));
}

static fac_value *attention(build *b, fac_value *x) {
    const fac_lm_config *c = b->c;
    const int64_t wide = c->heads * c->head, narrow = c->kv_heads * c->head;
    fac_value *q, *k, *v;
    if (has(b, "blk.%d.attn_qkv.weight")) {
        fac_value *all = fac_lm_linear(b, x, "blk.%d.attn_qkv");
        q = part(all, 0, wide);
        k = part(all, wide, narrow);
        v = part(all, wide + narrow, narrow);
    } else {
        q = fac_lm_linear(b, x, "blk.%d.attn_q");
        k = fac_lm_linear(b, x, "blk.%d.attn_k");
        v = fac_lm_linear(b, x, "blk.%d.attn_v");
    }
    if (b->status) return x;
    q = rotate(b, head_norm(b, q, "blk.%d.attn_q_norm.weight", c->heads), c->heads);
    k = rotate(b, head_norm(b, k, "blk.%d.attn_k_norm.weight", c->kv_heads), c->kv_heads);
    if (b->caches) {
        k = cached(b, by_heads(k, c->kv_heads, c->head), 0);
        v = cached(b, by_heads(v, c->kv_heads, c->head), 1);
    }
    const int64_t flat = b->caches ? 0 : c->kv_heads;
    const fac_attention_opts o = { .q_heads = c->heads,
                                   .kv_heads = flat,
                                   .scale = c->scale,
                                   .softcap = c->cap,
                                   .causal = true,
                                   .window = is_local(b) ? c->window : 0 };
    fac_value *y = drops(b, b->m->dropout)
                       ? thinned(b, q, k, v, o)
                       : fac_attention(q, k, v, NULL, NULL, NULL, b->lengths, &o);
    return dropped(b, fac_lm_linear(b, y, "blk.%d.attn_output"), b->m->dropout);
}

/* ---- the rest of a block ---- */

static fac_value *act(const build *b, fac_value *x) {
    if (b->c->is & FAC_LM_GELU_TANH) return fac_gelu_tanh(x);
    return b->c->is & FAC_LM_GELU_ERF ? fac_gelu(x) : fac_silu(x);
}

static fac_value *mlp(build *b, fac_value *x) {
    fac_value *up = fac_lm_linear(b, x, "blk.%d.ffn_up"), *y;
    if (has(b, "blk.%d.ffn_gate.weight"))
        y = fac_mul(act(b, fac_lm_linear(b, x, "blk.%d.ffn_gate")), up);
    else if (!strcmp(b->c->family, "phi3"))
        y = fac_mul(act(b, part(up, 0, b->c->hidden)), part(up, b->c->hidden, b->c->hidden));
    else
        y = act(b, up);
    return dropped(b, fac_lm_linear(b, y, "blk.%d.ffn_down"), b->m->dropout);
}

static fac_value *block(build *b, fac_value *h) {
    fac_value *a = attention(b, fac_lm_norm(b, h, "blk.%d.attn_norm"));
    a = norm(b, a, "blk.%d.post_attention_norm", false);
    if (b->c->is & FAC_LM_PARALLEL)
        return fac_add(fac_add(h, a), mlp(b, fac_lm_norm(b, h, "blk.%d.ffn_norm")));
    h = fac_add(h, a);
    return fac_add(
        h, norm(b, mlp(b, fac_lm_norm(b, h, "blk.%d.ffn_norm")), "blk.%d.post_ffw_norm", false));
}

static fac_value *rows_of(fac_value *w, fac_value *ids) {
    fac_value *x = fac_gather(w, ids, 0);
    return fac_value_type(x).dtype == FAC_F32 ? x : fac_cast(x, FAC_F32);
}

fac_value *fac_lm_rows(build *b, const char *name, fac_value *ids) {
    fac_value *w = need(b, weight(b, name), name);
    return w ? rows_of(w, ids) : NULL;
}

static fac_value *logits(build *b, fac_value *h, fac_value *embed) {
    fac_value *w = weight(b, "output.weight");
    fac_value *y = fac_linear(h, w ? w : embed, floats(b, "output.bias"));
    if (!(b->c->last_cap > 0)) return y;
    fac_value *cap = fac_number(b->g, FAC_F32, b->c->last_cap);
    return fac_mul(fac_tanh(fac_div(y, cap)), cap);
}

fac_value *fac_lm_counted(build *b, fac_value *ids) {
    fac_value *shape = fac_shape_of(ids),
              *n = fac_squeeze(fac_slice(shape, 0, 1, 2, 1), fac_shape(0));
    fac_value *steps = fac_arange(fac_number(b->g, FAC_I64, 0), n, fac_number(b->g, FAC_I64, 1));
    return fac_expand_to(steps, shape);
}

static void whole(build *b, int64_t batch, int64_t positions) {
    fac_graph *g = b->g;
    const int64_t n = fac_symbol(g, "N"), width = b->c->width;
    fac_value *ids = fac_input(g, "ids", FAC_I64, fac_shape(batch, n)), *rows = NULL;
    b->positions = b->caches ? fac_input(g, "positions", FAC_I64, fac_shape(batch, n))
                             : fac_lm_counted(b, ids);
    if (b->caches) {
        b->at = fac_input(g, "at", FAC_I64, fac_shape(batch));
        b->lengths = fac_input(g, "lengths", FAC_I64, fac_shape(batch));
        rows = fac_input(g, "rows", FAC_I64, fac_shape(fac_symbol(g, "R")));
    }
    fac_lm_angles(b, positions);
    fac_value *embed = need(b, weight(b, "token_embd.weight"), "token_embd.weight");
    if (!embed) return;
    fac_value *h = rows_of(embed, ids);
    if (b->c->is & FAC_LM_SCALED)
        h = fac_mul(h, fac_number(g, FAC_F32, (double)(float)sqrt((double)width)));
    if (b->c->is & FAC_LM_LEARNED) {
        fac_value *places = fac_lm_rows(b, "position_embd.weight", b->positions);
        if (places) h = fac_add(h, places);
    }
    h = dropped(b, h, b->m->dropout);
    for (b->layer = 0; b->layer < b->c->layers && !b->status; b->layer++) {
        char name[32];
        snprintf(name, sizeof name, "blk.%lld", (long long)b->layer);
        fac_graph_push(g, name);
        h = block(b, h);
        fac_graph_pop(g);
    }
    b->layer = 0;
    if (rows) h = fac_gather(fac_reshape(h, fac_shape(-1, width)), rows, 0);
    fac_output(g, "logits", logits(b, fac_lm_norm(b, h, "output_norm"), embed));
}

fac_status fac_lm_build(fac_lm *m, int64_t batch, int64_t capacity, fac_tensor *const *caches,
                        fac_graph **out, fac_error *err) {
    build b = { .m = m, .c = &m->c, .g = fac_graph_new(), .caches = caches, .err = err };
    if (!b.g) return fac_raise_memory(err, "a graph");
    if (!batch) batch = fac_symbol(b.g, "B");
    fac_nn_seed(b.g, m->seed);
    if (m->c.is & FAC_LM_ENCODER)
        fac_lm_encoder(&b, batch);
    else
        whole(&b, batch, capacity);
    if (!b.status) b.status = fac_graph_check(b.g, err);
    if (b.status) {
        fac_graph_free(b.g);
        return m->path ? fac_raise_in(err, b.status, "%s", m->path) : b.status;
    }
    *out = b.g;
    return FAC_OK;
}
