/* Scaled dot-product attention (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762). */
#include <limits.h>
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/attention.h"
#include "ops/cost.h"
#include "ops/fusions.h"
#include "ops/grad.h"
#include "ops/known.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* What the output `scores` shows: products, after the soft cap, with the mask, or probabilities. */
typedef enum fac_attention_scores {
    FAC_SCORES_PRODUCT,
    FAC_SCORES_CAPPED,
    FAC_SCORES_MASKED,
    FAC_SCORES_SOFTMAX
} fac_attention_scores;

typedef struct fac_attention_opts {
    int64_t q_heads, kv_heads; /* of operands with three dims; else taken from their shapes */
    double scale;              /* 0 = 1 / sqrt(D) */
    double softcap; /* > 0: scores become softcap tanh(scores / softcap) before they are masked */
    bool causal;    /* query i sees keys 0..i, counted from the end of the past */
    int scores;     /* fac_attention_scores */
    fac_dtype precision; /* of the softmax; FAC_NONE: that of q */
    int64_t window; /* > 0: with causal, a query sees at most so many keys, itself and those before
                       it */
} fac_attention_opts;

/* y = softmax(scale q k^T + mask) v for every head.  Q queries, T keys after P earlier ones, H
 * heads of q, G of k and v, each of which serves H/G heads of q (grouped queries):
 *   q B,H,Q,D   k B,G,T,D   v B,G,T,E   y B,H,Q,E;  or with three dims  q B,Q,HD   k B,T,GD   v
 *               B,T,GE   y B,Q,HE
 *   mask       NULL, or broadcast to B,H,Q,P+T: bool, true where a key takes part, or numbers that
 *              are added to the scores; a last dim that is shorter is filled up with keys that take
 *              no part.  With five dims it is broadcast to R,S,H,Q,P+T, where R times S is B: what
 *              S sequences have, such as the windows of an image, all R groups of them have
 *   past_key   NULL, or B,G,P,D, past_value B,G,P,E: keys and values that stand before k and v
 *   lengths    NULL, or i64 B: only so many keys of each sequence take part, and `causal` counts
 *              from their end
 * A query without any key gives zeros.  Further outputs: 1 past_key and k, 2 past_value and v, 3
 * scores B,H,Q,P+T.  All follow ONNX Attention.  4, for gradients: lse B,H,Q, log sum exp of the
 * masked scores, 0 for a query without keys; f64 of f64, else f32.  f32 f64 f16 bf16. */
fac_value *fac_attention(fac_value *q, fac_value *k, fac_value *v, fac_value *mask,
                         fac_value *past_key, fac_value *past_value, fac_value *lengths,
                         const fac_attention_opts *opts);
#endif

static const char *const stages[] = { "product", "capped", "masked", "softmax", NULL };
#define AT(field) offsetof(fac_attention_opts, field)
static const fac_attr table[] = {
    { "q_heads", FAC_A_INT, AT(q_heads), 0, 0, 0, INT_MAX, NULL, "of a q with three dims" },
    { "kv_heads", FAC_A_INT, AT(kv_heads), 0, 0, 0, INT_MAX, NULL, "of k and v with three dims" },
    { "scale", FAC_A_REAL, AT(scale), 0, 0, 0, 0, NULL,
      "of the products; 0: 1 / sqrt(size of a head)" },
    { "softcap", FAC_A_REAL, AT(softcap), 0, 0, 0, 0, NULL, "limit of the scores" },
    { "causal", FAC_A_FLAG, AT(causal), 0, 0, 0, 0, NULL, "no query sees what follows it" },
    { "scores", FAC_A_ENUM, AT(scores), 0, 0, 0, 0, stages, "what the output scores shows" },
    { "precision", FAC_A_DTYPE, AT(precision), 0, 0, 0, 0, NULL, "of the softmax" },
    { "window", FAC_A_INT, AT(window), 0, 0, 0, INT_MAX, NULL,
      "with causal: how many keys a query sees at most; 0: all" },
    { 0 }
};
#undef AT
static const fac_port in[] = { { "q", FAC_FLOATS, 0 },
                               { "k", FAC_FLOATS, 0 },
                               { "v", FAC_FLOATS, 0 },
                               { "mask", FAC_FLOATS | FAC_BOOLS, FAC_OPTIONAL },
                               { "past_key", FAC_FLOATS, FAC_OPTIONAL },
                               { "past_value", FAC_FLOATS, FAC_OPTIONAL },
                               { "lengths", FAC_INTS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 },
                                { "present_key", FAC_FLOATS, FAC_OPTIONAL },
                                { "present_value", FAC_FLOATS, FAC_OPTIONAL },
                                { "scores", FAC_FLOATS, FAC_OPTIONAL },
                                { "lse", FAC_FLOATS, FAC_OPTIONAL | FAC_INTERNAL },
                                { 0 } };

/* ---- shapes ---- */

bool fac_attention_dims(fac_node *n, int i, int64_t heads, fac_dims *to) {
    const fac_dims *d = &n->in[i]->type.dims;
    if (d->n == 4) {
        *to = *d;
        return true;
    }
    if (d->n != 3)
        return fac_fail(n, FAC_E_SHAPE, "%s must have three or four dims", n->op->in[i].name);
    if (heads < 1)
        return fac_fail(n, FAC_E_ARGUMENT, "operands with three dims need q_heads and kv_heads");
    if (d->d[2] >= 0 && d->d[2] % heads)
        return fac_fail(n, FAC_E_SHAPE, "%s: %lld features do not divide into %lld heads",
                        n->op->in[i].name, (long long)d->d[2], (long long)heads);
    *to = fac_shape(d->d[0], heads, d->d[1], fac_size_quotient(n->graph, d->d[2], heads));
    return true;
}

bool fac_attention_fits(fac_node *n, const fac_dims *q, const fac_dims *k, const fac_dims *v) {
    if (fac_differ(q->d[0], k->d[0]) || fac_differ(k->d[0], v->d[0]))
        return fac_fail(n, FAC_E_SHAPE, "q, k and v must have one batch");
    if (fac_differ(q->d[3], k->d[3]))
        return fac_fail(n, FAC_E_SHAPE, "heads of q and k must have one size");
    if (fac_differ(k->d[1], v->d[1]) || fac_differ(k->d[2], v->d[2]))
        return fac_fail(n, FAC_E_SHAPE, "k and v must have the same heads and rows");
    if (q->d[1] >= 0 && k->d[1] >= 0 && (k->d[1] == 0 || q->d[1] == 0 || q->d[1] % k->d[1]))
        return fac_fail(n, FAC_E_SHAPE, "%lld heads of q cannot share %lld heads of k",
                        (long long)q->d[1], (long long)k->d[1]);
    return true;
}

/* How many rows stand before those of k or v. */
static bool past_rows(fac_node *n, int i, const fac_dims *now, int64_t *rows) {
    *rows = 0;
    if (!n->in[i]) return true;
    const fac_dims *d = &n->in[i]->type.dims;
    if (d->n != 4 || fac_differ(d->d[0], now->d[0]) || fac_differ(d->d[1], now->d[1]) ||
        fac_differ(d->d[3], now->d[3]))
        return fac_fail(n, FAC_E_SHAPE, "%s must be batch, heads, rows, size as %s is", in[i].name,
                        in[i - FAC_ATTENTION_PAST_KEY + FAC_ATTENTION_K].name);
    *rows = d->d[2];
    return true;
}

bool fac_attention_mask_fits(fac_node *n, const fac_value *mask, const fac_dims *scores) {
    if (!mask) return true;
    const fac_dims *d = &mask->type.dims;
    bool good = d->n >= 1 && d->n <= 5;
    for (int k = 1; good && k <= d->n && k <= (d->n == 5 ? 3 : 4); k++) {
        const int64_t have = d->d[d->n - k], want = scores->d[4 - k];
        good = k == 1 ? have < 0 || want < 0 || have <= want : have == 1 || !fac_differ(have, want);
    }
    if (good && d->n == 5) {
        const int64_t each = d->d[1], all = scores->d[0];
        if (each < 1 || (all >= 0 && all % each) ||
            (d->d[0] != 1 && all >= 0 && fac_differ(d->d[0], all / each)))
            return fac_fail(
                n, FAC_E_SHAPE,
                "the first two dims of a mask with five must be numbers whose product is "
                "the batch, or the first is 1");
    }
    return good || fac_fail(n, FAC_E_SHAPE, "mask must broadcast to batch, heads, queries, keys");
}

static bool infer(fac_node *n) {
    const fac_attention_opts *o = n->attrs;
    const fac_dtype dtype = n->in[FAC_ATTENTION_Q]->type.dtype;
    fac_dims q, k, v;
    int64_t past, past_v;
    for (int i = FAC_ATTENTION_K; i < FAC_ATTENTION_LENGTHS; i++)
        if (n->in[i] && n->in[i]->type.dtype != dtype &&
            (i != FAC_ATTENTION_MASK || n->in[i]->type.dtype != FAC_BOOL))
            return fac_fail(
                n, FAC_E_DTYPE,
                "all operands must have one dtype, but for a mask of bools and for lengths");
    if (!fac_attention_dims(n, FAC_ATTENTION_Q, o->q_heads, &q) ||
        !fac_attention_dims(n, FAC_ATTENTION_K, o->kv_heads, &k))
        return false;
    if (!fac_attention_dims(n, FAC_ATTENTION_V, o->kv_heads, &v) ||
        !fac_attention_fits(n, &q, &k, &v))
        return false;
    if (!past_rows(n, FAC_ATTENTION_PAST_KEY, &k, &past) ||
        !past_rows(n, FAC_ATTENTION_PAST_VALUE, &v, &past_v))
        return false;
    if (!n->in[FAC_ATTENTION_PAST_KEY] != !n->in[FAC_ATTENTION_PAST_VALUE] ||
        fac_differ(past, past_v))
        return fac_fail(n, FAC_E_ARGUMENT, "past_key and past_value belong together");
    if (o->window && !o->causal)
        return fac_fail(n, FAC_E_ARGUMENT, "a window is for causal attention");
    if (n->in[FAC_ATTENTION_LENGTHS] &&
        (n->in[FAC_ATTENTION_PAST_KEY] || n->in[FAC_ATTENTION_LENGTHS]->type.dims.n != 1 ||
         fac_differ(n->in[FAC_ATTENTION_LENGTHS]->type.dims.d[0], q.d[0])))
        return fac_fail(n, FAC_E_ARGUMENT,
                        "lengths must have one number for each sequence, and excludes a past");
    const int64_t rows = fac_size_sum(n->graph, past, k.d[2]);
    const fac_dims scores = fac_shape(q.d[0], q.d[1], q.d[2], rows);
    if (!fac_attention_mask_fits(n, n->in[FAC_ATTENTION_MASK], &scores)) return false;
    const bool flat = n->in[FAC_ATTENTION_Q]->type.dims.n == 3;
    n->out[0]->type =
        (fac_type){ dtype,
                    flat ? fac_shape(q.d[0], q.d[2], fac_size_product(n->graph, q.d[1], v.d[3]))
                         : fac_shape(q.d[0], q.d[1], q.d[2], v.d[3]) };
    n->out[1]->type = (fac_type){ dtype, fac_shape(k.d[0], k.d[1], rows, k.d[3]) };
    n->out[2]->type = (fac_type){ dtype, fac_shape(v.d[0], v.d[1], rows, v.d[3]) };
    n->out[3]->type = (fac_type){ dtype, scores };
    n->out[4]->type =
        (fac_type){ dtype == FAC_F64 ? FAC_F64 : FAC_F32, fac_shape(q.d[0], q.d[1], q.d[2]) };
    return true;
}

/* ---- meaning ---- */

fac_value *fac_attention_heads(fac_value *v, int64_t heads) {
    return v->type.dims.n == 4
               ? v
               : fac_transpose(fac_reshape(v, fac_shape(0, 0, heads, -1)), fac_shape(0, 2, 1, 3));
}

fac_value *fac_attention_flat(fac_value *v) {
    return fac_reshape(fac_transpose(v, fac_shape(0, 2, 1, 3)), fac_shape(0, 0, -1));
}

fac_value *fac_attention_grouped(fac_value *v, int64_t groups) {
    const int64_t heads = v->type.dims.d[1];
    if (heads <= 0 || groups <= 0 || heads == groups) return v;
    fac_graph *g = v->graph;
    fac_value *shape = fac_shape_of(v), *rows = fac_slice(shape, 0, 2, 3, 1);
    rows = fac_div(fac_mul(rows, fac_ints(g, fac_shape(heads))), fac_ints(g, fac_shape(groups)));
    fac_value *parts[] = { fac_slice(shape, 0, 0, 1, 1), fac_ints(g, fac_shape(groups)), rows,
                           fac_slice(shape, 0, 3, 4, 1) };
    return fac_reshape_exactly(v, fac_concat(parts, 4, 0));
}

/* The same where it is open how many heads there are of either. */
static fac_value *open_product(fac_value *a, fac_value *b) {
    fac_value *from = fac_shape_of(a), *other = fac_shape_of(b), *size[4];
    for (int k = 0; k < 4; k++) size[k] = fac_slice(from, 0, k, k + 1, 1);
    fac_value *groups = fac_slice(other, 0, 1, 2, 1);
    fac_value *rows = fac_div(fac_mul(size[1], size[2]), groups);
    fac_value *grouped[] = { size[0], groups, rows, size[3] };
    fac_value *back[] = { size[0], size[1], size[2], fac_slice(other, 0, 3, 4, 1) };
    fac_value *y = fac_matmul(fac_reshape_exactly(a, fac_concat(grouped, 4, 0)), b);
    return fac_reshape_exactly(y, fac_concat(back, 4, 0));
}

fac_value *fac_attention_product(fac_value *a, fac_value *b) {
    const int64_t heads = a->type.dims.d[1], groups = b->type.dims.d[1];
    if (heads == groups) return fac_matmul(a, b);
    if (heads < 0 || groups < 0) return open_product(a, b);
    return fac_attention_grouped(fac_matmul(fac_attention_grouped(a, groups), b), heads);
}

fac_value *fac_attention_scaled(fac_value *v, double scale) {
    const int64_t size = v->type.dims.d[3];
    if (scale != 0) return fac_mul(v, fac_number_as(v, scale));
    if (size > 0) return fac_mul(v, fac_number_as(v, 1 / sqrt((double)size)));
    return fac_div(v, fac_sqrt(fac_cast(fac_dim_of(v, 3), v->type.dtype)));
}

/* Rows that see nothing are zeros; their scores are 0 instead of -inf, so that neither they nor
 * gradients become NaN. */
static fac_value *probabilities(fac_value *scores, fac_value *dead, fac_dtype precision) {
    const fac_dtype dtype = scores->type.dtype;
    fac_value *zero = fac_number_as(scores, 0);
    if (dead) scores = fac_where(dead, zero, scores);
    fac_value *p = fac_grad_as(
        fac_softmax(fac_grad_as(scores, precision == FAC_NONE ? dtype : precision), -1), dtype);
    return dead ? fac_where(dead, zero, p) : p;
}

static fac_value *log_sum_exp(fac_value *scores, fac_value *dead, fac_dtype dtype) {
    scores = fac_grad_as(scores, dtype);
    if (dead) scores = fac_where(dead, fac_number_as(scores, 0), scores);
    fac_value *y = fac_reduce_log_sum_exp(scores, fac_shape(-1), false);
    return dead ? fac_where(fac_squeeze(dead, fac_shape(-1)), fac_number_as(y, 0), y) : y;
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_attention_opts *o = n->attrs;
    fac_value *q = fac_attention_heads(n->in[FAC_ATTENTION_Q], o->q_heads),
              *k = fac_attention_heads(n->in[FAC_ATTENTION_K], o->kv_heads);
    fac_value *v = fac_attention_heads(n->in[FAC_ATTENTION_V], o->kv_heads);
    if (n->in[FAC_ATTENTION_PAST_KEY]) {
        k = fac_concat((fac_value *[]){ n->in[FAC_ATTENTION_PAST_KEY], k }, 2, 2);
        v = fac_concat((fac_value *[]){ n->in[FAC_ATTENTION_PAST_VALUE], v }, 2, 2);
    }
    y[1] = k;
    y[2] = v;
    fac_value *stage[4], *dead;
    stage[FAC_SCORES_PRODUCT] =
        fac_attention_product(fac_attention_scaled(q, o->scale), fac_grad_swap(k));
    fac_value *s = stage[FAC_SCORES_PRODUCT];
    if (o->softcap > 0)
        s = fac_mul(fac_tanh(fac_div(s, fac_number_as(s, o->softcap))),
                    fac_number_as(s, o->softcap));
    stage[FAC_SCORES_CAPPED] = s;
    const fac_attention_masks masks = { o->causal, n->in[FAC_ATTENTION_MASK],
                                        n->in[FAC_ATTENTION_PAST_KEY], n->in[FAC_ATTENTION_LENGTHS],
                                        o->window };
    fac_value *bias = fac_attention_bias(&masks, q, k, &dead);
    stage[FAC_SCORES_MASKED] = bias ? fac_add(s, bias) : s;
    stage[FAC_SCORES_SOFTMAX] = probabilities(stage[FAC_SCORES_MASKED], dead, o->precision);
    y[3] = stage[o->scores];
    y[0] = fac_attention_product(stage[FAC_SCORES_SOFTMAX], v);
    if (n->in[FAC_ATTENTION_Q]->type.dims.n == 3) y[0] = fac_attention_flat(y[0]);
    y[4] = log_sum_exp(stage[FAC_SCORES_MASKED], dead, n->out[4]->type.dtype);
}

/* Only where attention_grad says the same as the expansion: gradients of the output alone, by q, k
 * and v, without a past. */
static bool grads(const fac_node *n, fac_value *const dy[]) {
    const fac_attention_opts *o = n->attrs;
    for (int k = 1; k < n->nout; k++)
        if (dy[k]) return false;
    if (n->in[FAC_ATTENTION_MASK] &&
        (fac_needs(n, FAC_ATTENTION_MASK) ||
         fac_differ(
             n->in[FAC_ATTENTION_MASK]->type.dims.d[n->in[FAC_ATTENTION_MASK]->type.dims.n - 1],
             n->out[3]->type.dims.d[3])))
        return false;
    return !o->window && !n->in[FAC_ATTENTION_PAST_KEY] && !n->in[FAC_ATTENTION_LENGTHS] &&
           o->softcap <= 0 && o->precision == FAC_NONE;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const fac_attention_opts *o = n->attrs;
    const fac_attention_grad_opts how = { o->q_heads, o->kv_heads, o->scale, o->causal };
    fac_value *dq =
        fac_attention_grad(n->in[FAC_ATTENTION_Q], n->in[FAC_ATTENTION_K], n->in[FAC_ATTENTION_V],
                           n->out[0], dy[0], n->out[4], n->in[FAC_ATTENTION_MASK], &how);
    for (int i = FAC_ATTENTION_Q; i <= FAC_ATTENTION_V; i++) dx[i] = fac_value_other(dq, i);
}

/* The two products. */
static void cost(const fac_node *n, fac_cost *to) {
    const fac_dims *k = &n->out[1]->type.dims, *v = &n->out[2]->type.dims;
    const double scores = fac_cost_count(n->out[3]);
    fac_cost_bytes(n, to);
    to->macs = scores * (fac_cost_size(k->d[3]) + fac_cost_size(v->d[3]));
    to->other = 6 * scores;
}

static const fac_onnx onnx[] = { { "", "Attention", 23, 0, NULL, fac_load_attention, 0 },
                                 { "ai.onnx.preview", "FlexAttention", 1, 0,
                                   fac_names_flex_attention, fac_load_flex_attention, 3 },
                                 { "com.microsoft", "Attention", 1, 0, fac_names_ms_attention,
                                   fac_load_ms_attention, 2 },
                                 { "com.microsoft", "MultiHeadAttention", 1, 0,
                                   fac_names_ms_attention, fac_load_multi_head_attention, 1 },
                                 { 0 } };

static const fac_case cases[] = {
    { "attention(f32[2,3,4,5], f32[2,3,6,5], f32[2,3,6,2])", -1, 1, 1e-5 },
    { "attention(f32[1,4,3,2], f32[1,2,3,2], f32[1,2,3,3], bool[3,3]) causal softcap=2", -1, 1,
      1e-5 },
    { "attention(f32[2,3,4], f32[2,5,2], f32[2,5,6], f32[2,1,3,4]) q_heads=2 kv_heads=1 scale=0.7",
      -1, 1, 1e-5 },
    { "attention(f32[2,1,8], f32[2,2,5,4], f32[2,2,5,3]) q_heads=2", -1, 1, 1e-5 },
    { "attention(f32[2,2,3,4], f32[2,5,8], f32[2,2,5,3]) kv_heads=2", -1, 1, 1e-5 },
    { "attention(f32[1,2,3,2], f32[1,2,4,2], f32[1,2,4,3], f32[3,4]) scores=masked", -1, 1, 1e-5 },
    { "attention(f32[1,2,2,3], f32[1,2,2,3], f32[1,2,2,3], -, f32[1,2,3,3], f32[1,2,3,3]) causal "
      "scores=softmax",
      -1, 1, 1e-5 },
    { "attention(f32[3,2,3,2], f32[3,1,4,2], f32[3,1,4,2], bool[3,2,3,4], -, -, i64[3]) causal "
      "scores=capped",
      -1, 4, 1e-5 },
    { "attention(f32[2,1,3,4], f32[2,1,5,4], f32[2,1,5,4], -, -, -, i64[2]) precision=f64", -1, 5,
      1e-5 },
    { "attention(f32[2,4,5,3], f32[2,2,7,3], f32[2,2,7,3], -, -, -, i64[2]) causal window=2", 5, 8,
      1e-5 },
    { "attention(f32[1,2,6,3], f32[1,2,6,3], f32[1,2,6,3]) causal window=3", -1, 1, 1e-5 },
    { "attention(f32[1,2,0,4], f32[1,2,3,4], f32[1,2,3,4])", -1, 1, 0 },
    { "attention(f32[6,2,4,3], f32[6,1,5,3], f32[6,1,5,3], f32[1,3,2,4,5])", -1, 1, 1e-5 },
    { "attention(f32[6,2,4,3], f32[6,2,5,3], f32[6,2,5,2], bool[2,3,1,4,3])", -1, 1, 1e-5 },
    { 0 }
};

const fac_op fac_op_attention = {
    .name = "attention",
    .doc = "softmax(q k^T) v for every head",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_attention_opts),
    .infer = infer,
    .expand = expand,
    .grad = grad,
    .grads = grads,
    .cost = cost,
    .onnx = onnx,
    .save = fac_save_attention,
    .cases = cases,
    .torch = "Attention",
    .mixed = FAC_MIXED_PRODUCT,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_attention(fac_value *q, fac_value *k, fac_value *v, fac_value *mask,
                         fac_value *past_key, fac_value *past_value, fac_value *lengths,
                         const fac_attention_opts *opts) {
    return fac_emit(&fac_op_attention, opts, FAC_ATTENTION_INPUTS,
                    (fac_value *[]){ q, k, v, mask, past_key, past_value, lengths });
}
