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
 *              no part
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
enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS, INPUTS };
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
                        in[i - PAST_KEY + K].name);
    *rows = d->d[2];
    return true;
}

bool fac_attention_mask_fits(fac_node *n, const fac_value *mask, const fac_dims *scores) {
    if (!mask) return true;
    const fac_dims *d = &mask->type.dims;
    bool good = d->n >= 1 && d->n <= 4;
    for (int k = 1; good && k <= d->n; k++) {
        const int64_t have = d->d[d->n - k], want = scores->d[4 - k];
        good = k == 1 ? have < 0 || want < 0 || have <= want : have == 1 || !fac_differ(have, want);
    }
    return good || fac_fail(n, FAC_E_SHAPE, "mask must broadcast to batch, heads, queries, keys");
}

static bool infer(fac_node *n) {
    const fac_attention_opts *o = n->attrs;
    const fac_dtype dtype = n->in[Q]->type.dtype;
    fac_dims q, k, v;
    int64_t past, past_v;
    for (int i = K; i < LENGTHS; i++)
        if (n->in[i] && n->in[i]->type.dtype != dtype &&
            (i != MASK || n->in[i]->type.dtype != FAC_BOOL))
            return fac_fail(
                n, FAC_E_DTYPE,
                "all operands must have one dtype, but for a mask of bools and for lengths");
    if (!fac_attention_dims(n, Q, o->q_heads, &q) || !fac_attention_dims(n, K, o->kv_heads, &k))
        return false;
    if (!fac_attention_dims(n, V, o->kv_heads, &v) || !fac_attention_fits(n, &q, &k, &v))
        return false;
    if (!past_rows(n, PAST_KEY, &k, &past) || !past_rows(n, PAST_VALUE, &v, &past_v)) return false;
    if (!n->in[PAST_KEY] != !n->in[PAST_VALUE] || fac_differ(past, past_v))
        return fac_fail(n, FAC_E_ARGUMENT, "past_key and past_value belong together");
    if (o->window && !o->causal)
        return fac_fail(n, FAC_E_ARGUMENT, "a window is for causal attention");
    if (n->in[LENGTHS] && (n->in[PAST_KEY] || n->in[LENGTHS]->type.dims.n != 1 ||
                           fac_differ(n->in[LENGTHS]->type.dims.d[0], q.d[0])))
        return fac_fail(n, FAC_E_ARGUMENT,
                        "lengths must have one number for each sequence, and excludes a past");
    const int64_t rows = fac_size_sum(n->graph, past, k.d[2]);
    const fac_dims scores = fac_shape(q.d[0], q.d[1], q.d[2], rows);
    if (!fac_attention_mask_fits(n, n->in[MASK], &scores)) return false;
    const bool flat = n->in[Q]->type.dims.n == 3;
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

static fac_value *number(const fac_value *like, double x) {
    return fac_number(like->graph, like->type.dtype, x);
}

fac_value *fac_attention_heads(fac_value *v, int64_t heads) {
    return v->type.dims.n == 4
               ? v
               : fac_transpose(fac_reshape(v, fac_shape(0, 0, heads, -1)), fac_shape(0, 2, 1, 3));
}

fac_value *fac_attention_flat(fac_value *v) {
    return fac_reshape(fac_transpose(v, fac_shape(0, 2, 1, 3)), fac_shape(0, 0, -1));
}

/* The size of one dim of v, an i64 scalar. */
static fac_value *size_of(fac_value *v, int axis) {
    return fac_squeeze(fac_slice(fac_shape_of(v), 0, axis, axis + 1, 1), fac_shape(0));
}

/* 0, 1, ... for each row of that axis. */
static fac_value *count_up(fac_value *v, int axis) {
    fac_graph *g = v->graph;
    return fac_arange(fac_number(g, FAC_I64, 0), size_of(v, axis), fac_number(g, FAC_I64, 1));
}

static fac_value *both(fac_value *a, fac_value *b) { return a && b ? fac_and(a, b) : a ? a : b; }

/* lengths as B,1,1,1 */
static fac_value *each_sequence(fac_value *lengths) {
    return fac_unsqueeze(fac_cast(lengths, FAC_I64), fac_shape(1, 2, 3));
}

/* Which keys a query may see because of `causal` and lengths: bool, broadcasting to scores; NULL:
 * all. */
static fac_value *structure(const fac_attention_masks *m, fac_value *q, fac_value *keys) {
    fac_value *lengths = m->lengths ? each_sequence(m->lengths) : NULL, *seen = NULL;
    if (!m->causal && !lengths) return NULL;
    fac_value *j = count_up(keys, 2);
    if (m->causal) {
        fac_value *i = fac_unsqueeze(count_up(q, 2), fac_shape(1));
        if (m->past) i = fac_add(i, size_of(m->past, 2));
        if (lengths) i = fac_add(i, fac_sub(lengths, size_of(q, 2)));
        seen = fac_less_or_equal(j, i);
        if (m->window > 0)
            seen = both(seen,
                        fac_less(fac_sub(i, fac_number(i->graph, FAC_I64, (double)m->window)), j));
    }
    return lengths ? both(seen, fac_less(j, lengths)) : seen;
}

/* The mask with a last dim as long as that of the scores. */
static fac_value *fill_up(fac_value *mask, int64_t want) {
    if (!mask) return NULL;
    const fac_dims *d = &mask->type.dims;
    const int64_t have = d->d[d->n - 1];
    if (!fac_differ(have, want)) return mask;
    fac_value *none = mask->type.dtype == FAC_BOOL ? fac_number(mask->graph, FAC_BOOL, 0)
                                                   : number(mask, -INFINITY);
    fac_dims pads = { .n = 2 * d->n };
    pads.d[2 * d->n - 1] = want - have;
    return fac_pad(mask, fac_ints(mask->graph, pads), none, NULL, FAC_PAD_CONSTANT);
}

fac_value *fac_attention_bias(const fac_attention_masks *m, fac_value *q, fac_value *keys,
                              fac_value **dead) {
    fac_value *mask = fill_up(m->mask, keys->type.dims.d[2]), *seen = structure(m, q, keys),
              *bias = NULL;
    const bool certain = !mask && !m->lengths; /* a causal query sees at least itself */
    *dead = NULL;
    if (mask && mask->type.dtype == FAC_BOOL)
        seen = both(seen, mask);
    else
        bias = mask;
    if (seen) bias = fac_where(seen, bias ? bias : number(q, 0), number(q, -INFINITY));
    if (bias && !certain)
        *dead = fac_equal(fac_reduce_max(bias, fac_shape(-1), true), number(q, -INFINITY));
    return bias;
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

fac_value *fac_attention_product(fac_value *a, fac_value *b) {
    const int64_t heads = a->type.dims.d[1], groups = b->type.dims.d[1];
    if (heads < 0 || groups < 0 || heads == groups) return fac_matmul(a, b);
    return fac_attention_grouped(fac_matmul(fac_attention_grouped(a, groups), b), heads);
}

fac_value *fac_attention_scaled(fac_value *v, double scale) {
    const int64_t size = v->type.dims.d[3];
    if (scale != 0) return fac_mul(v, number(v, scale));
    if (size > 0) return fac_mul(v, number(v, 1 / sqrt((double)size)));
    return fac_div(v, fac_sqrt(fac_cast(size_of(v, 3), v->type.dtype)));
}

/* Rows that see nothing are zeros; their scores are 0 instead of -inf, so that neither they nor
 * gradients become NaN. */
static fac_value *probabilities(fac_value *scores, fac_value *dead, fac_dtype precision) {
    const fac_dtype dtype = scores->type.dtype;
    fac_value *zero = number(scores, 0);
    if (dead) scores = fac_where(dead, zero, scores);
    fac_value *p = fac_grad_as(
        fac_softmax(fac_grad_as(scores, precision == FAC_NONE ? dtype : precision), -1), dtype);
    return dead ? fac_where(dead, zero, p) : p;
}

static fac_value *log_sum_exp(fac_value *scores, fac_value *dead, fac_dtype dtype) {
    scores = fac_grad_as(scores, dtype);
    if (dead) scores = fac_where(dead, number(scores, 0), scores);
    fac_value *y = fac_reduce_log_sum_exp(scores, fac_shape(-1), false);
    return dead ? fac_where(fac_squeeze(dead, fac_shape(-1)), number(y, 0), y) : y;
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_attention_opts *o = n->attrs;
    fac_value *q = fac_attention_heads(n->in[Q], o->q_heads),
              *k = fac_attention_heads(n->in[K], o->kv_heads);
    fac_value *v = fac_attention_heads(n->in[V], o->kv_heads);
    if (n->in[PAST_KEY]) {
        k = fac_concat((fac_value *[]){ n->in[PAST_KEY], k }, 2, 2);
        v = fac_concat((fac_value *[]){ n->in[PAST_VALUE], v }, 2, 2);
    }
    y[1] = k;
    y[2] = v;
    fac_value *stage[4], *dead;
    stage[FAC_SCORES_PRODUCT] =
        fac_attention_product(fac_attention_scaled(q, o->scale), fac_grad_swap(k));
    fac_value *s = stage[FAC_SCORES_PRODUCT];
    if (o->softcap > 0)
        s = fac_mul(fac_tanh(fac_div(s, number(s, o->softcap))), number(s, o->softcap));
    stage[FAC_SCORES_CAPPED] = s;
    const fac_attention_masks masks = { o->causal, n->in[MASK], n->in[PAST_KEY], n->in[LENGTHS],
                                        o->window };
    fac_value *bias = fac_attention_bias(&masks, q, k, &dead);
    stage[FAC_SCORES_MASKED] = bias ? fac_add(s, bias) : s;
    stage[FAC_SCORES_SOFTMAX] = probabilities(stage[FAC_SCORES_MASKED], dead, o->precision);
    y[3] = stage[o->scores];
    y[0] = fac_attention_product(stage[FAC_SCORES_SOFTMAX], v);
    if (n->in[Q]->type.dims.n == 3) y[0] = fac_attention_flat(y[0]);
    y[4] = log_sum_exp(stage[FAC_SCORES_MASKED], dead, n->out[4]->type.dtype);
}

/* Only where attention_grad says the same as the expansion: gradients of the output alone, by q, k
 * and v, without a past. */
static bool grads(const fac_node *n, fac_value *const dy[]) {
    const fac_attention_opts *o = n->attrs;
    for (int k = 1; k < n->nout; k++)
        if (dy[k]) return false;
    if (n->in[MASK] &&
        (fac_needs(n, MASK) || fac_differ(n->in[MASK]->type.dims.d[n->in[MASK]->type.dims.n - 1],
                                          n->out[3]->type.dims.d[3])))
        return false;
    return !o->window && !n->in[PAST_KEY] && !n->in[LENGTHS] && o->softcap <= 0 &&
           o->precision == FAC_NONE;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const fac_attention_opts *o = n->attrs;
    const fac_attention_grad_opts how = { o->q_heads, o->kv_heads, o->scale, o->causal };
    fac_value *dq = fac_attention_grad(n->in[Q], n->in[K], n->in[V], n->out[0], dy[0], n->out[4],
                                       n->in[MASK], &how);
    for (int i = Q; i <= V; i++) dx[i] = fac_value_other(dq, i);
}

/* The two products. */
static void cost(const fac_node *n, fac_cost *to) {
    const fac_dims *k = &n->out[1]->type.dims, *v = &n->out[2]->type.dims;
    const double scores = fac_cost_count(n->out[3]);
    fac_cost_bytes(n, to);
    to->macs = scores * ((k->d[3] > 0 ? (double)k->d[3] : 0) + (v->d[3] > 0 ? (double)v->d[3] : 0));
    to->other = 6 * scores;
}

/* ---- ONNX ---- */

extern const fac_op fac_op_attention;

/* Keys j of a query at p with p - left <= j <= p + right; bool, broadcasting to scores. */
static fac_value *within(const fac_attention_opts *o, fac_value *const x[], int64_t left,
                         int64_t right) {
    fac_value *q = fac_attention_heads(x[Q], o->q_heads);
    fac_value *keys = fac_attention_heads(x[K], o->kv_heads);
    fac_value *lengths = x[LENGTHS] ? each_sequence(x[LENGTHS]) : NULL, *seen = NULL;
    if (x[PAST_KEY]) keys = fac_concat((fac_value *[]){ x[PAST_KEY], keys }, 2, 2);
    fac_value *j = count_up(keys, 2), *p = fac_unsqueeze(count_up(q, 2), fac_shape(1));
    if (x[PAST_KEY]) p = fac_add(p, size_of(x[PAST_KEY], 2));
    if (lengths) p = fac_add(p, fac_sub(lengths, size_of(q, 2)));
    fac_value *first = fac_sub(p, fac_number(p->graph, FAC_I64, (double)left));
    fac_value *last = fac_add(p, fac_number(p->graph, FAC_I64, (double)right));
    if (left >= 0) seen = fac_less_or_equal(first, j);
    return right >= 0 ? both(seen, fac_less_or_equal(j, last)) : seen;
}

/* A window to the left of causal queries is the op's own; any other goes into the mask. */
static fac_value *windowed(fac_attention_opts *o, fac_value *const x[], int64_t left,
                           int64_t right) {
    fac_value *mask = x[MASK];
    if (right == 0) o->causal = true;
    if (o->causal && left >= 0) o->window = left + 1;
    const fac_dims *k = &x[K]->type.dims;
    if (o->causal || (left < 0 && right < 0) || k->n < 3) return mask;
    fac_value *seen = within(o, x, left, right);
    const int64_t past = x[PAST_KEY] ? x[PAST_KEY]->type.dims.d[2] : 0;
    mask = fill_up(mask, fac_size_sum(seen->graph, past, k->d[k->n - 2]));
    if (!mask || mask->type.dtype == FAC_BOOL) return both(seen, mask);
    return fac_where(seen, mask, number(mask, -INFINITY));
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_attention_opts o = { .q_heads = fac_onnx_int(n, "q_num_heads", 0),
                             .kv_heads = fac_onnx_int(n, "kv_num_heads", 0),
                             .scale = fac_onnx_real(n, "scale", 0),
                             .softcap = fac_onnx_real(n, "softcap", 0),
                             .causal = fac_onnx_int(n, "is_causal", 0) != 0,
                             .precision = fac_onnx_dtype(n, "softmax_precision", FAC_NONE) };
    const int64_t mode = fac_onnx_int(n, "qk_matmul_output_mode", 0);
    const int64_t left = fac_onnx_int(n, "left_window_size", -1);
    const int64_t right = fac_onnx_int(n, "right_window_size", -1);
    fac_value *with[FAC_ONNX_ROOM] = { NULL };
    for (int k = 0; k < n->nin && k < FAC_ONNX_ROOM; k++) with[k] = x[k];
    if (left < -1 || right < -1)
        y[0] = fac_fail_graph(g, FAC_E_FORMAT,
                              "Attention: a window of %lld and %lld: expected -1 or more",
                              (long long)left, (long long)right);
    else if (mode < 0 || mode > FAC_SCORES_SOFTMAX)
        y[0] = fac_fail_graph(g, FAC_E_FORMAT, "Attention: qk_matmul_output_mode is %lld",
                              (long long)mode);
    else if (fac_onnx_has(n, "scale") && o.scale == 0)
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "Attention: a scale of 0");
    else {
        o.scores = (int)mode;
        with[MASK] = windowed(&o, with, left, right);
        y[0] =
            fac_emit(&fac_op_attention, &o, with[MASK] && n->nin <= MASK ? MASK + 1 : n->nin, with);
    }
    for (int k = 1; k < n->nout; k++) y[k] = fac_value_other(y[0], k);
}

static const fac_onnx onnx[] = { { "", "Attention", 23, 0, NULL, load, 0 },
                                 { "ai.onnx.preview", "FlexAttention", 1, 0,
                                   fac_names_flex_attention, fac_load_flex_attention, 3 },
                                 { "com.microsoft", "Attention", 1, 0, fac_names_ms_attention,
                                   fac_load_ms_attention, 2 },
                                 { "com.microsoft", "MultiHeadAttention", 1, 0,
                                   fac_names_ms_attention, fac_load_multi_head_attention, 1 },
                                 { 0 } };
/* ONNX has it since opset 23, with lengths and short masks since 24; before, it is expanded. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_attention_opts *o = n->attrs;
    const fac_dims *mask = n->in[MASK] ? &n->in[MASK]->type.dims : NULL;
    const bool short_mask = mask && fac_differ(mask->d[mask->n - 1], n->out[3]->type.dims.d[3]);
    const char *ins[INPUTS], *outs[4];
    if (fac_onnx_name(w, n->out[4]) || (o->window && w->opset < 25)) return false;
    if (w->opset < 23 || ((short_mask || n->in[LENGTHS]) && w->opset < 24)) return false;
    for (int k = 0; k < INPUTS; k++) ins[k] = fac_onnx_name(w, n->in[k]);
    for (int k = 0; k < 4; k++) outs[k] = fac_onnx_name(w, n->out[k]);
    fac_onnx_put(w, "Attention", INPUTS, ins, outs[0] ? outs[0] : "");
    for (int k = 1; k < 4; k++) fac_onnx_put_out(w, outs[k]);
    if (o->window) fac_onnx_put_int(w, "left_window_size", o->window - 1);
    if (o->q_heads) fac_onnx_put_int(w, "q_num_heads", o->q_heads);
    if (o->kv_heads) fac_onnx_put_int(w, "kv_num_heads", o->kv_heads);
    if (o->scale != 0) fac_onnx_put_real(w, "scale", o->scale);
    if (o->softcap > 0) fac_onnx_put_real(w, "softcap", o->softcap);
    if (o->causal) fac_onnx_put_int(w, "is_causal", 1);
    if (o->scores) fac_onnx_put_int(w, "qk_matmul_output_mode", o->scores);
    if (o->precision) fac_onnx_put_dtype(w, "softmax_precision", o->precision);
    return true;
}

static const fac_case cases[] = {
    { "attention(f32[2,3,4,5], f32[2,3,6,5], f32[2,3,6,2])", -1, 1, 1e-5 },
    { "attention(f32[1,4,3,2], f32[1,2,3,2], f32[1,2,3,3], bool[3,3]) causal softcap=2", -1, 1,
      1e-5 },
    { "attention(f32[2,3,4], f32[2,5,2], f32[2,5,6], f32[2,1,3,4]) q_heads=2 kv_heads=1 scale=0.7",
      -1, 1, 1e-5 },
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
    .save = save,
    .cases = cases,
    .torch = "Attention",
    .mixed = FAC_MIXED_PRODUCT,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_attention(fac_value *q, fac_value *k, fac_value *v, fac_value *mask,
                         fac_value *past_key, fac_value *past_value, fac_value *lengths,
                         const fac_attention_opts *opts) {
    return fac_emit(&fac_op_attention, opts, INPUTS,
                    (fac_value *[]){ q, k, v, mask, past_key, past_value, lengths });
}
