/* ONNX's SoftmaxCrossEntropyLoss: nll_loss of log_softmax, and the latter as a second result. */
#include "facula/ops.h"
#include "ops/nll_loss.h"

static const fac_port out[] = { { "loss", FAC_FLOATS, 0 },
                                { "log_probs", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) {
    n->out[1]->type = n->in[0]->type;
    return fac_nll_type(n, &n->out[0]->type);
}

extern const fac_op fac_op_nll_loss, fac_op_softmax_cross_entropy;
static void expand(const fac_node *n, fac_value *y[]) {
    y[1] = fac_log_softmax(n->in[0], 1);
    y[0] = fac_emit(&fac_op_nll_loss, n->attrs, 3, (fac_value *[]){ y[1], n->in[1], n->in[2] });
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *y[]) {
    fac_nll_attrs a;
    if (!fac_nll_load(n, g, &a)) return;
    y[0] = fac_emit(&fac_op_softmax_cross_entropy, &a, n->nin, in);
    if (n->nout > 1) y[1] = y[0]->node ? fac_value_other(y[0], 1) : y[0];
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *in[] = { fac_onnx_name(w, n->in[0]), fac_onnx_indices(w, n->in[1]),
                         fac_onnx_name(w, n->in[2]) };
    const char *loss = fac_onnx_name(w, n->out[0]), *second = fac_onnx_name(w, n->out[1]);
    fac_onnx_put(w, "SoftmaxCrossEntropyLoss", 3, in, loss ? loss : "");
    if (second) fac_onnx_put_out(w, second);
    fac_nll_put(w, n->attrs);
    return true;
}

static const fac_onnx_attr names[] = { { "reduction", NULL }, { "ignore_index", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "SoftmaxCrossEntropyLoss", 12, 0, names, load, 0 }, { 0 } };
static const fac_case cases[] = {
    { "softmax_cross_entropy(f32[2,3], i64{2,0})", -2, 2, 1e-6 },
    { "softmax_cross_entropy(f64[2,3], i64{2,1}, f64[3]) reduction=sum", -2, 2, 1e-6 },
    { "softmax_cross_entropy(f32[2,4,2], i64[2,2]{0,3,1,2}, f32[4]) ignore=1 ignore_index=3", 0.5,
      2, 1e-6 },
    { 0 }
};

const fac_op fac_op_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .doc = "nll_loss of log_softmax along axis 1",
    .in = fac_nll_ports,
    .out = out,
    .attrs = fac_nll_table,
    .attrs_size = sizeof(fac_nll_attrs),
    .infer = infer,
    .expand = expand,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
