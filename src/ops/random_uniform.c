#include "ops/fusions.h"
#include "ops/random.h"

#if FAC_INTERFACE
/* Numbers in [0, 1), each multiple of 2^-24 (f64: 2^-53, f16: 2^-11, bf16: 2^-8) as likely as
 * any other; bit for bit the same on every device.  counter, stream, shape: see
 * fac_random_words. */
fac_value *fac_uniform(fac_value *counter, int64_t stream, fac_value *shape, fac_dtype dtype);
#endif

static const fac_attr table[] = { { "stream", FAC_A_INT, offsetof(fac_random_attrs, stream), 0, 0,
                                    0, 0, NULL, "which of the noises of a counter" },
                                  { "dtype", FAC_A_DTYPE, offsetof(fac_random_attrs, dtype), 0, 0,
                                    0, 0, NULL, "floats; f32 when it is not said" },
                                  { 0 } };

static void expand(const fac_node *n, fac_value *out[]) {
    const int64_t stream = ((const fac_random_attrs *)n->attrs)->stream;
    out[0] = fac_random_unit(fac_random_noise(n, stream), fac_random_type(n));
}

static const fac_onnx onnx[] = {
    { "", "RandomUniform", 1, 0, fac_names_random, fac_load_uniform, -1 },
    { "", "RandomUniformLike", 1, 0, fac_names_random, fac_load_uniform, 1 },
    { "", "Multinomial", 7, 0, fac_names_random, fac_load_multinomial, 1 },
    { 0 }
};
static const fac_case cases[] = { { "random_uniform(i64[], i64{3,37})", -9, 9, 0 },
                                  { "random_uniform(i32[], i64{5}) stream=3 dtype=f64", 0, 99, 0 },
                                  { "random_uniform(i64[], i64{9}) dtype=f16", 0, 9, 0 },
                                  { "random_uniform(i64[], i64{9}) dtype=bf16", 0, 9, 0 },
                                  { "random_uniform(i64[], i64{0,3})", 0, 9, 0 },
                                  { 0 } };

const fac_op fac_op_random_uniform = {
    .name = "random_uniform",
    .doc = "random numbers in [0, 1)",
    .in = fac_random_ports,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_random_attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = fac_random_infer_floats,
    .expand = expand,
    .onnx = onnx,
    .save = fac_save_uniform,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_uniform(fac_value *counter, int64_t stream, fac_value *shape, fac_dtype dtype) {
    return fac_emit(&fac_op_random_uniform, &(fac_random_attrs){ stream, dtype }, 2,
                    (fac_value *[]){ counter, shape });
}
