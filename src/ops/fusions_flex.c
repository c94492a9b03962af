/* ONNX's FlexAttention: attention with graphs of the model's own between its products. */
#include <math.h>
#include "graph/graph_internal.h"
#include "graph/onnx_flow.h"
#include "ops/attention.h"
#include "ops/fusions.h"
#include "ops/grad.h"
#include "ops/shape.h"

const fac_onnx_attr fac_names_flex_attention[] = { { "scale", NULL },
                                                   { "softmax_precision", NULL },
                                                   { "score_mod", NULL },
                                                   { "prob_mod", NULL },
                                                   { 0 } };

enum { OUTER = 64 };
/* The graph of the attribute, if there is one, applied to v. */
static fac_value *modified(const fac_onnx_node *n, fac_graph *g, const char *attr, fac_value *v) {
    fac_value *made[1] = { NULL }, *all[1 + OUTER];
    fac_onnx_outer outer = { 0 };
    if (!fac_onnx_has(n, attr)) return v;
    if (fac_onnx_body_inputs(n, attr) != 1)
        return fac_fail_graph(g, FAC_E_FORMAT, "FlexAttention: %s must have one input", attr);
    fac_graph *body = fac_onnx_body(n, attr, 1, &v->type, &outer);
    if (!body) return fac_fail_graph(g, FAC_E_FORMAT, "FlexAttention: %s cannot be read", attr);
    if (body->noutputs != 1 || outer.n > OUTER) {
        fac_graph_free(body);
        return fac_fail_graph(g, FAC_E_FORMAT,
                              "FlexAttention: %s must have one output and read at most %d others",
                              attr, OUTER);
    }
    all[0] = v;
    for (int k = 0; k < outer.n; k++) all[1 + k] = outer.v[k];
    fac_call(g, attr, body, 1 + outer.n, all, made);
    return made[0];
}

/* q and k are each scaled by the square root, rounded as their type is. */
void fac_load_flex_attention(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                             fac_value *y[]) {
    const fac_dtype dtype = x[0]->type.dtype;
    const fac_dtype precision = fac_onnx_dtype(n, "softmax_precision", fac_grad_wide(dtype));
    for (int k = 0; k < 3; k++)
        if (x[k]->type.dims.n != 4) {
            y[0] = fac_fail_graph(g, FAC_E_SHAPE, "FlexAttention: q, k and v must have 4 dims");
            return;
        }
    const int64_t size = x[0]->type.dims.d[3];
    double scale = fac_onnx_real(n, "scale", 0);
    const bool open = !fac_onnx_has(n, "scale") && size < 0;
    if (!fac_onnx_has(n, "scale") && size > 0) scale = 1 / sqrt((double)size);
    if (scale <= 0 && !open) {
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "FlexAttention: a scale of %g", scale);
        return;
    }
    fac_value *q = fac_grad_times(x[0], sqrt(scale)), *k = fac_grad_times(x[1], sqrt(scale));
    if (open) {
        fac_value *by = fac_sqrt(fac_sqrt(fac_cast(fac_dim_of(x[0], 3), precision)));
        q = fac_grad_as(fac_div(fac_grad_as(x[0], precision), by), dtype);
        k = fac_grad_as(fac_div(fac_grad_as(x[1], precision), by), dtype);
    }
    fac_value *scores = fac_grad_as(fac_attention_product(q, fac_grad_swap(k)), precision);
    scores = fac_grad_as(modified(n, g, "score_mod", scores), precision);
    fac_value *p = fac_grad_as(modified(n, g, "prob_mod", fac_softmax(scores, -1)), precision);
    y[0] = fac_grad_as(fac_attention_product(p, fac_grad_as(x[2], precision)), x[2]->type.dtype);
}
