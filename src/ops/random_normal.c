#include "ops/fusions.h"
#include "ops/random.h"

#if FAC_INTERFACE
/* Normal numbers of mean 0 and variance 1 (Box and Muller, 1958), of two noises.  The same on
 * every device but for rounding.  counter, stream, shape: see fac_random_words. */
fac_value *fac_normal(fac_value *counter, int64_t stream, fac_value *shape, fac_dtype dtype);
#endif

static const fac_attr table[] = { { "stream", FAC_A_INT, offsetof(fac_random_attrs, stream), 0, 0,
                                    0, 0, NULL, "which of the noises of a counter" },
                                  { "dtype", FAC_A_DTYPE, offsetof(fac_random_attrs, dtype), 0, 0,
                                    0, 0, NULL, "floats; f32 when it is not said" },
                                  { 0 } };

/* sqrt(-2 ln u) cos(2 pi v), u in (0, 1].  16 bits are too few for u: they are made from f32. */
static void expand(const fac_node *n, fac_value *out[]) {
    const fac_dtype as = fac_random_type(n) == FAC_F64 ? FAC_F64 : FAC_F32;
    const int64_t stream = ((const fac_random_attrs *)n->attrs)->stream;
    fac_graph *g = fac_value_graph(n->in[0]);
    fac_value *u = fac_sub(fac_number(g, as, 1), fac_random_unit(fac_random_noise(n, stream), as));
    fac_value *v = fac_random_unit(fac_random_noise(n, fac_random_second(stream)), as);
    fac_value *length = fac_sqrt(fac_mul(fac_log(u), fac_number(g, as, -2)));
    fac_value *y = fac_mul(length, fac_cos(fac_mul(v, fac_number(g, as, 6.28318530717958647693))));
    out[0] = as == fac_random_type(n) ? y : fac_cast(y, fac_random_type(n));
}

static const fac_onnx onnx[] = {
    { "", "RandomNormal", 1, 0, fac_names_random, fac_load_normal, -1 },
    { "", "RandomNormalLike", 1, 0, fac_names_random, fac_load_normal, 1 },
    { 0 }
};
static const fac_case cases[] = { { "random_normal(i64[], i64{3,37})", -9, 9, 4e-6 },
                                  { "random_normal(i32[], i64{5}) stream=3 dtype=f64", 0, 99,
                                    1e-11 },
                                  { "random_normal(i64[], i64{9}) dtype=f16", 0, 9, 8e-3 },
                                  { "random_normal(i64[], i64{9}) dtype=bf16", 0, 9, 4e-2 },
                                  { "random_normal(i64[], i64{0,3})", 0, 9, 0 },
                                  { 0 } };

const fac_op fac_op_random_normal = {
    .name = "random_normal",
    .doc = "random numbers of a normal distribution",
    .in = fac_random_ports,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_random_attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = fac_random_infer_floats,
    .expand = expand,
    .onnx = onnx,
    .save = fac_save_normal,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_normal(fac_value *counter, int64_t stream, fac_value *shape, fac_dtype dtype) {
    return fac_emit(&fac_op_random_normal, &(fac_random_attrs){ stream, dtype }, 2,
                    (fac_value *[]){ counter, shape });
}
