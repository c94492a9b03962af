/* The gradient of attention. */
#include <limits.h>
#include "ops/attention.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/shape.h"

#if FAC_INTERFACE
typedef struct fac_attention_grad_opts {
    int64_t q_heads, kv_heads; /* of operands with three dims */
    double scale;              /* 0 = 1 / sqrt(D) */
    bool causal;
} fac_attention_grad_opts;

/* With P = exp(scale q k^T + mask - lse), dP = dy v^T and dS = P (dP - sum over a row of dy y):
 *   dq = scale dS k,  dk = scale dS^T q,  dv = P^T dy,  the latter two summed over the heads of q
 *                     that share one of k and v
 * q, k, v, y, mask and the options as of attention(), dy as y, lse B,H,Q its output 4: so no matrix
 * of scores is kept from the forward pass.  Outputs 1 and 2 are dk and dv. */
fac_value *fac_attention_grad(fac_value *q, fac_value *k, fac_value *v, fac_value *y, fac_value *dy,
                              fac_value *lse, fac_value *mask, const fac_attention_grad_opts *opts);
#endif

#define AT(field) offsetof(fac_attention_grad_opts, field)
static const fac_attr table[] = {
    { "q_heads", FAC_A_INT, AT(q_heads), 0, 0, 0, INT_MAX, NULL, "of a q with three dims" },
    { "kv_heads", FAC_A_INT, AT(kv_heads), 0, 0, 0, INT_MAX, NULL, "of k and v with three dims" },
    { "scale", FAC_A_REAL, AT(scale), 0, 0, 0, 0, NULL,
      "of the products; 0: 1 / sqrt(size of a head)" },
    { "causal", FAC_A_FLAG, AT(causal), 0, 0, 0, 0, NULL, "no query sees what follows it" },
    { 0 }
};
#undef AT
enum { Q, K, V, Y, DY, LSE, MASK, INPUTS };
static const fac_port in[] = { { "q", FAC_FLOATS, 0 },
                               { "k", FAC_FLOATS, 0 },
                               { "v", FAC_FLOATS, 0 },
                               { "y", FAC_FLOATS, 0 },
                               { "dy", FAC_FLOATS, 0 },
                               { "lse", FAC_FLOATS, 0 },
                               { "mask", FAC_FLOATS | FAC_BOOLS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = {
    { "dq", FAC_FLOATS, 0 }, { "dk", FAC_FLOATS, 0 }, { "dv", FAC_FLOATS, 0 }, { 0 }
};

static bool same(const fac_dims *a, const fac_dims *b) {
    for (int k = 0; k < b->n; k++)
        if (a->n != b->n || fac_differ(a->d[k], b->d[k])) return false;
    return true;
}

static bool infer(fac_node *n) {
    const fac_attention_grad_opts *o = n->attrs;
    const fac_dtype dtype = n->in[Q]->type.dtype;
    fac_dims q, k, v, y, dy;
    for (int i = K; i < INPUTS; i++) {
        const fac_dtype t = n->in[i] ? n->in[i]->type.dtype : dtype;
        if (t != dtype && i != LSE && (i != MASK || t != FAC_BOOL))
            return fac_fail(n, FAC_E_DTYPE,
                            "all operands must have one dtype, but for lse and a mask of bools");
        if (i < LSE && n->in[i]->type.dims.n != n->in[Q]->type.dims.n)
            return fac_fail(n, FAC_E_SHAPE, "q, k, v, y and dy must have as many dims");
    }
    if (!fac_attention_dims(n, Q, o->q_heads, &q) || !fac_attention_dims(n, K, o->kv_heads, &k))
        return false;
    if (!fac_attention_dims(n, V, o->kv_heads, &v) || !fac_attention_dims(n, Y, o->q_heads, &y))
        return false;
    if (!fac_attention_dims(n, DY, o->q_heads, &dy) || !fac_attention_fits(n, &q, &k, &v))
        return false;
    const fac_dims result = fac_shape(q.d[0], q.d[1], q.d[2], v.d[3]),
                   scores = fac_shape(q.d[0], q.d[1], q.d[2], k.d[2]);
    const fac_dims rows = fac_shape(q.d[0], q.d[1], q.d[2]);
    if (!same(&y, &result) || !same(&dy, &result))
        return fac_fail(n, FAC_E_SHAPE, "y and dy must have the queries of q and the size of v");
    if (!same(&n->in[LSE]->type.dims, &rows))
        return fac_fail(n, FAC_E_SHAPE, "lse must be batch, heads, queries");
    if (!fac_attention_mask_fits(n, n->in[MASK], &scores)) return false;
    for (int i = Q; i <= V; i++) n->out[i]->type = n->in[i]->type;
    return true;
}

static void expand(const fac_node *n, fac_value *to[]) {
    const fac_attention_grad_opts *o = n->attrs;
    const bool flat = n->in[Q]->type.dims.n == 3;
    fac_value *q = fac_attention_heads(n->in[Q], o->q_heads),
              *k = fac_attention_heads(n->in[K], o->kv_heads);
    fac_value *v = fac_attention_heads(n->in[V], o->kv_heads),
              *dy = fac_attention_heads(n->in[DY], o->q_heads), *dead;
    fac_value *y = fac_attention_heads(n->in[Y], o->q_heads),
              *lse = fac_unsqueeze(n->in[LSE], fac_shape(-1));
    const fac_attention_masks masks = { o->causal, n->in[MASK], NULL, NULL, 0 };
    const fac_dtype dtype = q->type.dtype;
    const int64_t groups = k->type.dims.d[1];
    fac_value *scores = fac_attention_product(fac_attention_scaled(q, o->scale), fac_grad_swap(k));
    fac_value *bias = fac_attention_bias(&masks, q, k, &dead);
    if (bias) scores = fac_add(scores, bias);
    fac_value *p = fac_grad_as(fac_exp(fac_sub(fac_grad_as(scores, lse->type.dtype), lse)), dtype);
    fac_value *dp = fac_attention_product(dy, fac_grad_swap(v)),
              *along = fac_sum(fac_mul(dy, y), fac_shape(-1), true);
    fac_value *ds = fac_mul(p, fac_sub(dp, along));
    to[Q] = fac_attention_product(ds, k);
    to[K] = fac_matmul(fac_grad_swap(fac_attention_grouped(ds, groups)),
                       fac_attention_grouped(q, groups));
    to[V] = fac_matmul(fac_grad_swap(fac_attention_grouped(p, groups)),
                       fac_attention_grouped(dy, groups));
    for (int i = Q; i <= K; i++) to[i] = fac_attention_scaled(to[i], o->scale);
    for (int i = Q; i <= V && flat; i++) to[i] = fac_attention_flat(to[i]);
}

/* The five products. */
static void cost(const fac_node *n, fac_cost *to) {
    const fac_type *q = &n->in[Q]->type, *k = &n->in[K]->type;
    const int64_t keys = k->dims.d[k->dims.n - 2], last = q->dims.d[q->dims.n - 1],
                  wide = n->in[V]->type.dims.d[q->dims.n - 1];
    const bool flat = q->dims.n == 3;
    const fac_attention_grad_opts *o = n->attrs;
    const double scores = fac_cost_count(n->in[LSE]) * fac_cost_size(keys);
    const double size = fac_cost_size(last) / (flat ? (double)o->q_heads : 1);
    const double size_v = fac_cost_size(wide) / (flat ? (double)o->kv_heads : 1);
    fac_cost_bytes(n, to);
    to->macs = scores * (3 * size + 2 * size_v);
    to->other = 6 * scores;
}

static const fac_case cases[] = { { "attention_grad(f32[2,3,4,5], f32[2,3,6,5], f32[2,3,6,2], "
                                    "f32[2,3,4,2], f32[2,3,4,2], f32[2,3,4])",
                                    -1, 1, 3e-5 },
                                  { "attention_grad(f32[1,4,3,2], f32[1,2,3,2], f32[1,2,3,3], "
                                    "f32[1,4,3,3], f32[1,4,3,3], f32[1,4,3], bool[3,3]) causal",
                                    -1, 1, 3e-5 },
                                  { "attention_grad(f32[2,3,4], f32[2,5,2], f32[2,5,6], "
                                    "f32[2,3,12], f32[2,3,12], f32[2,2,3], f32[2,1,3,5]) q_heads=2 "
                                    "kv_heads=1 scale=0.7",
                                    -1, 1, 3e-5 },
                                  { "attention_grad(f32[4,2,3,4], f32[4,2,5,4], f32[4,2,5,6], "
                                    "f32[4,2,3,6], f32[4,2,3,6], f32[4,2,3], f32[1,2,2,3,5])",
                                    -1, 1, 3e-5 },
                                  { "attention_grad(f32[1,2,0,4], f32[1,2,3,4], f32[1,2,3,4], "
                                    "f32[1,2,0,4], f32[1,2,0,4], f32[1,2,0])",
                                    -1, 1, 0 },
                                  { 0 } };

extern const fac_op fac_op_attention_grad;
const fac_op fac_op_attention_grad = {
    .name = "attention_grad",
    .doc = "the gradient of attention",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_attention_grad_opts),
    .infer = infer,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_attention_grad(fac_value *q, fac_value *k, fac_value *v, fac_value *y, fac_value *dy,
                              fac_value *lse, fac_value *mask,
                              const fac_attention_grad_opts *opts) {
    return fac_emit(&fac_op_attention_grad, opts, INPUTS,
                    (fac_value *[]){ q, k, v, y, dy, lse, mask });
}
