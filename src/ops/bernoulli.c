#include "ops/fusions.h"
#include "ops/random.h"

#if FAC_INTERFACE
/* bool, of p's shape: true with probability p, which is below 0 never and from 1 on always; NaN
 * is never. p: f32 f64 f16 bf16.  The same on every device.  counter, stream: see
 * fac_random_words. */
fac_value *fac_bernoulli(fac_value *p, fac_value *counter, int64_t stream);
#endif

typedef struct attrs {
    int64_t stream;
} attrs;
static const fac_attr table[] = { { "stream", FAC_A_INT, offsetof(attrs, stream), 0, 0, 0, 0, NULL,
                                    "which of the noises of a counter" },
                                  { 0 } };
static const fac_port in[] = { { "p", FAC_FLOATS, 0 }, { "counter", FAC_INTS, 0 }, { 0 } };
static const fac_port out[] = { { "y", FAC_BOOLS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const fac_type *counter = &n->in[1]->type;
    if (counter->dims.n || (counter->dtype != FAC_I64 && counter->dtype != FAC_I32))
        return fac_fail(n, FAC_E_SHAPE, "the counter must be a scalar, i32 or i64");
    n->out[0]->type = (fac_type){ FAC_BOOL, n->in[0]->type.dims };
    return true;
}

/* A unit number below p.  16 bits are too few for one. */
static void expand(const fac_node *n, fac_value *y[]) {
    const fac_dtype t = n->in[0]->type.dtype, as = t == FAC_F64 ? FAC_F64 : FAC_F32;
    fac_value *p = t == as ? n->in[0] : fac_cast(n->in[0], as);
    fac_value *bits =
        fac_random_words(n->in[1], ((const attrs *)n->attrs)->stream, fac_shape_of(p));
    y[0] = fac_less(fac_random_unit(bits, as), p);
}

static const fac_onnx onnx[] = {
    { "", "Bernoulli", 15, 0, fac_names_random, fac_load_bernoulli, 1 }, { 0 }
};
static const fac_case cases[] = {
    { "bernoulli(f32[3,37], i64[])", 0, 1, 0 }, { "bernoulli(f64[5], i32[]) stream=3", 0, 1, 0 },
    { "bernoulli(f16[9], i64[])", -1, 2, 0 },   { "bernoulli(bf16[], i64[])", 0, 1, 0 },
    { "bernoulli(f32[0,3], i64[])", 0, 1, 0 },  { 0 }
};

const fac_op fac_op_bernoulli = {
    .name = "bernoulli",
    .doc = "true with probability p",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .expand = expand,
    .onnx = onnx,
    .save = fac_save_bernoulli,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_bernoulli(fac_value *p, fac_value *counter, int64_t stream) {
    return fac_emit(&fac_op_bernoulli, &(attrs){ stream }, 2, (fac_value *[]){ p, counter });
}
