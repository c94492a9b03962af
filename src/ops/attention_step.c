/* Attention of one new row whose key and value go into caches first: a step of decoding in one
 * node.  Made by src/passes/fusion/decoding.c.  Has no prototype. */
#include <limits.h>
#include "op_list.h"
#include "facula/ops.h"
#include "ops/attention_step.h"
#include "ops/cost.h"
#include "ops/shape.h"

#define AT(field) offsetof(fac_attention_step_opts, field)
static const fac_attr table[] = {
    { "q_heads", FAC_A_INT, AT(q_heads), 0, 0, 0, INT_MAX, NULL, "of a q with three dims" },
    { "scale", FAC_A_REAL, AT(scale), 0, 0, 0, 0, NULL,
      "of the products; 0: 1 / sqrt(size of a head)" },
    { "softcap", FAC_A_REAL, AT(softcap), 0, 0, 0, 0, NULL, "limit of the scores" },
    { "window", FAC_A_INT, AT(window), 0, 0, 0, INT_MAX, NULL,
      "how many keys are seen at most; 0: all" },
    { "width", FAC_A_INT, AT(width), 0, 0, 0, INT_MAX, NULL,
      "elements of a head that are rotated; 0: all" },
    { "interleaved", FAC_A_FLAG, AT(interleaved), 0, 0, 0, 0, NULL,
      "rotated pairs are neighbours" },
    { 0 }
};
#undef AT

static const fac_port in[] = { { "key_cache", FAC_FLOATS, 0 },
                               { "value_cache", FAC_FLOATS, 0 },
                               { "at", FAC_INTS, 0 },
                               { "q", FAC_FLOATS, 0 },
                               { "k", FAC_FLOATS, 0 },
                               { "v", FAC_FLOATS, 0 },
                               { "lengths", FAC_INTS, 0 },
                               { "cos", FAC_FLOATS, FAC_OPTIONAL },
                               { "sin", FAC_FLOATS, FAC_OPTIONAL },
                               { "positions", FAC_INTS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = {
    { "keys", FAC_FLOATS, 0 }, { "values", FAC_FLOATS, 0 }, { "y", FAC_FLOATS, 0 }, { 0 }
};

/* B,heads,1,size or B,1,heads size. */
static bool is_row(const fac_dims *d, int64_t batch, int64_t heads, int64_t size) {
    if (d->n == 4) return d->d[0] == batch && d->d[1] == heads && d->d[2] == 1 && d->d[3] == size;
    return d->n == 3 && d->d[0] == batch && d->d[1] == 1 && d->d[2] == heads * size;
}

static bool is_one_each(const fac_value *x, int64_t batch) {
    return x && x->type.dims.n == 1 && x->type.dims.d[0] == batch;
}

/* As rotary has them: P,width/2 and positions B,1, or B,1,width/2. */
static bool tables_fit(fac_node *n, int64_t batch, int64_t size) {
    const fac_attention_step_opts *o = n->attrs;
    const fac_dims *c = &n->in[STEP_COS]->type.dims;
    const fac_value *positions = n->in[STEP_POSITIONS];
    const int64_t width = o->width ? o->width : size;
    if (width % 2 || width > size)
        return fac_fail(n, FAC_E_SHAPE, "a width of %lld, heads have %lld", (long long)width,
                        (long long)size);
    if (!fac_dims_equal(c, &n->in[STEP_SIN]->type.dims) || c->n != (positions ? 2 : 3) ||
        c->d[c->n - 1] != width / 2)
        return fac_fail(n, FAC_E_SHAPE, "cos and sin must be P,%lld with positions, else B,1,%lld",
                        (long long)width / 2, (long long)width / 2);
    const fac_dims *rows = positions ? &positions->type.dims : c;
    if (rows->d[0] == batch && rows->d[1] == 1 && (!positions || rows->n == 2)) return true;
    if (positions) return fac_fail(n, FAC_E_SHAPE, "positions must be B,1 of the batch");
    return fac_fail(n, FAC_E_SHAPE, "cos and sin must be B,1,width/2 of the batch");
}

/* Sizes are numbers: the pass that makes these nodes looks at settled graphs. */
static bool infer(fac_node *n) {
    const fac_attention_step_opts *o = n->attrs;
    const fac_dims *k = &n->in[STEP_KEYS]->type.dims, *v = &n->in[STEP_VALUES]->type.dims;
    const fac_dims *q = &n->in[STEP_Q]->type.dims;
    for (int i = 0; i < STEP_INPUTS; i++)
        for (int d = 0; n->in[i] && d < n->in[i]->type.dims.n; d++)
            if (n->in[i]->type.dims.d[d] < 0)
                return fac_fail(n, FAC_E_SHAPE, "sizes must be numbers");
    if (k->n != 4 || v->n != 4 || (q->n != 4 && (q->n != 3 || o->q_heads < 1)) ||
        !n->in[STEP_COS] != !n->in[STEP_SIN])
        return fac_fail(n, FAC_E_SHAPE, "caches must have four dims, q three and q_heads, or four");
    const int64_t heads = q->n == 4 ? q->d[1] : o->q_heads;
    if (k->d[2] < 1 || v->d[0] != k->d[0] || v->d[1] != k->d[1] || v->d[2] != k->d[2])
        return fac_fail(n, FAC_E_SHAPE,
                        "caches must have equally many heads and rows, a row or more");
    if (!k->d[1] || heads % k->d[1] || !is_row(q, k->d[0], heads, k->d[3]))
        return fac_fail(n, FAC_E_SHAPE, "q must have one row, and heads that share those of keys");
    if (!is_row(&n->in[STEP_K]->type.dims, k->d[0], k->d[1], k->d[3]) ||
        !is_row(&n->in[STEP_V]->type.dims, k->d[0], k->d[1], v->d[3]))
        return fac_fail(n, FAC_E_SHAPE, "the new key and value must be a row of the caches");
    for (int i = 0; i < 2; i++)
        if (!is_one_each(n->in[i ? STEP_LENGTHS : STEP_AT], k->d[0]))
            return fac_fail(n, FAC_E_SHAPE, "at and lengths have a number for each sequence");
    if (n->in[STEP_COS] && !tables_fit(n, k->d[0], k->d[3])) return false;
    n->out[0]->type = n->in[STEP_KEYS]->type;
    n->out[1]->type = n->in[STEP_VALUES]->type;
    n->out[2]->type =
        (fac_type){ n->in[STEP_Q]->type.dtype, q->n == 4 ? fac_shape(q->d[0], heads, 1, v->d[3])
                                                         : fac_shape(q->d[0], 1, heads * v->d[3]) };
    return true;
}

/* Of three dims as heads: B,G,1,D. */
static fac_value *by_heads(fac_value *x, int64_t heads) {
    if (x->type.dims.n == 4) return x;
    return fac_transpose(fac_reshape(x, fac_shape(0, 0, heads, -1)), fac_shape(0, 2, 1, 3));
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_attention_step_opts *o = n->attrs;
    fac_value *q = n->in[STEP_Q], *k = n->in[STEP_K], *cos = n->in[STEP_COS];
    const int64_t groups = n->in[STEP_KEYS]->type.dims.d[1];
    const fac_rotary_opts of_q = { o->q_heads, o->width, o->interleaved };
    const fac_rotary_opts of_k = { groups, o->width, o->interleaved };
    if (cos) q = fac_rotary(q, cos, n->in[STEP_SIN], n->in[STEP_POSITIONS], &of_q);
    if (cos) k = fac_rotary(k, cos, n->in[STEP_SIN], n->in[STEP_POSITIONS], &of_k);
    y[0] = fac_cache_write(n->in[STEP_KEYS], by_heads(k, groups), n->in[STEP_AT]);
    y[1] = fac_cache_write(n->in[STEP_VALUES], by_heads(n->in[STEP_V], groups), n->in[STEP_AT]);
    const fac_attention_opts how = { .q_heads = o->q_heads,
                                     .scale = o->scale,
                                     .softcap = o->softcap,
                                     .causal = true,
                                     .window = o->window };
    y[2] = fac_attention(q, y[0], y[1], NULL, NULL, NULL, n->in[STEP_LENGTHS], &how);
}

static void cost(const fac_node *n, fac_cost *to) {
    const fac_dims *k = &n->out[0]->type.dims, *v = &n->out[1]->type.dims;
    const fac_dims *y = &n->out[2]->type.dims;
    const double scores = v->d[3] ? (double)(fac_dims_count(y) / v->d[3] * k->d[2]) : 0;
    fac_cost_bytes(n, to);
    to->macs = scores * (double)(k->d[3] + v->d[3]);
    to->other = 6 * scores;
}

static const fac_case cases[] = {
    { "attention_step(f32[2,3,6,8], f32[2,3,6,4], i64[2], f32[2,6,1,8], f32[2,3,1,8], "
      "f32[2,3,1,4], "
      "i64[2])",
      0, 4, 1e-5 },
    /* angles whose parts are up to 8 make scores of thousands: scaled, or rounding decides */
    { "attention_step(f32[1,2,9,8], f32[1,2,9,8], i64[1], f32[1,1,32], f32[1,1,16], f32[1,2,1,8], "
      "i64[1], f32[9,4], f32[9,4], i64[1,1]) q_heads=4 interleaved scale=0.001",
      0, 8, 1e-5 },
    { "attention_step(f32[2,1,7,6], f32[2,1,7,6], i32[2], f32[2,1,12], f32[2,1,6], f32[2,1,1,6], "
      "i64[2], f32[9,2], f32[9,2], i64[2,1]) q_heads=2 width=4 window=3 softcap=2 scale=0.5",
      0, 6, 1e-5 },
    { 0 }
};

extern const fac_op fac_op_attention_step;
const fac_op fac_op_attention_step = {
    .name = "attention_step",
    .doc = "attention of one row after its key and value went into caches",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_attention_step_opts),
    .is = FAC_OP_PARTS | FAC_OP_NO_GRAD,
    .infer = infer,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
