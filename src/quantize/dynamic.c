/* int8:dynamic: weights are bytes; each run finds the range of what a layer reads.
 *
 *     q, s, z = dynamic_quantize_linear(x)
 *     y = f32(matmul_integer(q, w, z, w_zero)) (s w_scale) + b        and the same of conv_integer
 *
 * as ONNX Runtime's tool writes it. */
#include "base/error.h"
#include "op_list.h"
#include "quantize/quantize.h"

/* Products of bytes have their columns last. */
static bool is_conv(const fac_node *n) { return FAC_IS(n, conv2d); }

/* One number for each channel, as y has them. */
static fac_value *by_channel(const fac_node *n, fac_value *v) {
    const bool single = fac_dims_count(&v->type.dims) == 1;
    return is_conv(n) && !single ? fac_reshape(v, fac_shape(1, -1, 1, 1)) : v;
}

static fac_value *product(const fac_node *n, fac_value *q, fac_value *w, fac_value *zero,
                          fac_value *w_zero) {
    if (is_conv(n)) return fac_conv_integer(q, w, NULL, zero, w_zero, n->attrs);
    return fac_matmul_integer(q, w, zero, w_zero);
}

static void emit(fac_integer_work *l, const fac_bytes_weight *p, fac_graph *to,
                 fac_value *const in[], fac_value *out[]) {
    const fac_node *n = l->node;
    const char *name = fac_weight_name(l);
    fac_value *w = fac_quantize_const(to, p->q, name, "quantized");
    fac_value *scale = fac_quantize_const(to, p->scale, name, "scale");
    fac_value *w_zero = fac_number(to, FAC_I8, 0); /* of ConvInteger others take only one */
    fac_value *q = fac_dynamic_quantize_linear(in[0]);
    fac_value *sums = product(n, q, w, fac_value_other(q, 2), w_zero);
    fac_value *both = fac_mul(fac_value_other(q, 1), by_channel(n, scale));
    out[0] = fac_mul(fac_cast(sums, FAC_F32), both);
    if (n->nin > 2 && in[2]) out[0] = fac_add(out[0], by_channel(n, in[2]));
}

static bool put(fac_calibrator *c, fac_integer_work *l, fac_graph *to, fac_value *const in[],
                fac_value *out[]) {
    fac_bytes_weight w;
    const fac_node *n = l->node;
    const bool conv = is_conv(n),
               last = FAC_IS(n, matmul) ||
                      (FAC_IS(n, gemm) && !((const fac_gemm_opts *)n->attrs)->trans_b);
    if (n->nin > 3 || fac_bytes_weight_new(&c->how, n, NULL, !conv && !last, &w, &c->wrong))
        return false;
    emit(l, &w, to, in, out);
    l->is.weight_sqnr = w.sqnr;
    l->is.bytes = (double)fac_type_bytes(&(fac_type){ FAC_I8, n->in[1]->type.dims });
    fac_bytes_weight_free(&w);
    return true;
}

const fac_scheme_row fac_scheme_dynamic = {
    .name = "int8:dynamic",
    .about = "weights are bytes; each run finds the ranges of activations",
    .takes = fac_is_weighted,
    .put = put,
};
