/* QONNX's MultiThreshold as a node of its own, for files: see fac_qonnx_thresholds.
 *   x N,C,... or N,C   thresholds C,T or 1,T in rising order.   Has no prototype. */
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/qonnx.h"
#include "ops/shape.h"

#define AT(field) offsetof(fac_multi_threshold_attrs, field)
static const fac_attr table[] = {
    { "out_scale", FAC_A_REAL, AT(out_scale), 0, 1, 0, 0, NULL, "of the count" },
    { "out_bias", FAC_A_REAL, AT(out_bias), 0, 0, 0, 0, NULL, "added to it" },
    { 0 }
};
#undef AT

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims, *t = &n->in[1]->type.dims;
    n->out[0]->type = n->in[0]->type;
    if (n->in[0]->type.dtype != n->in[1]->type.dtype)
        return fac_fail(n, FAC_E_DTYPE, "x and thresholds differ in dtype");
    if (x->n < 2 || t->n != 2 || t->d[0] < 1 || t->d[1] < 1)
        return fac_fail(n, FAC_E_SHAPE, "x must have 2 dims or more, thresholds be C,T");
    if (t->d[0] != 1 && x->d[1] >= 0 && t->d[0] != x->d[1])
        return fac_fail(n, FAC_E_SHAPE, "thresholds are for %lld channels, x has %lld",
                        (long long)t->d[0], (long long)x->d[1]);
    return true;
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_multi_threshold_attrs *a = n->attrs;
    y[0] = fac_qonnx_thresholds(n->in[0], n->in[1], 1, a->out_scale, a->out_bias);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_multi_threshold_attrs *a = n->attrs;
    const char *in[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]) };
    const bool put =
        fac_onnx_put(w, FAC_QONNX ":MultiThreshold", 2, in, fac_onnx_name(w, n->out[0])) != NULL;
    const int rank = n->in[0]->type.dims.n;
    fac_onnx_put_real(w, "out_scale", a->out_scale);
    fac_onnx_put_real(w, "out_bias", a->out_bias);
    fac_onnx_put_text(w, "out_dtype", "FLOAT32");
    if (rank == 2) fac_onnx_put_text(w, "data_layout", "NC");
    if (rank == 4) fac_onnx_put_text(w, "data_layout", "NCHW");
    return put;
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 4, to); }

static const fac_port in[] = { { "x", FAC_FLOATS, 0 }, { "thresholds", FAC_FLOATS, 0 }, { 0 } };
static const fac_case cases[] = {
    { "multi_threshold(f32[2,5], f32[5,3]) out_scale=0.5", -1, 1, 0 },
    { "multi_threshold(f32[2,3,4,4], f32[1,3]) out_scale=2 out_bias=-1", -1, 1, 0 },
    { 0 }
};

const fac_op fac_op_multi_threshold = {
    .name = "multi_threshold",
    .doc = "MultiThreshold of QONNX: how many thresholds lie below",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_multi_threshold_attrs),
    .infer = infer,
    .expand = expand,
    .cost = cost,
    .save = save,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .rounding = { .rule = FAC_ROUND_NONE },
};
