/* The gradient of a value by others, which are named: xs, y; the inputs are those of xs and zs. */
#include "base/error.h"
#include "graph/graph_internal.h"
#include "ops/ml/ml.h"
#include "ops/training/training.h"

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_ml_texts xs = fac_ml_texts_of(n, g, "xs"), zs = fac_ml_texts_of(n, g, "zs");
    const char *name = fac_onnx_text(n, "y", NULL);
    fac_value *y = name ? fac_onnx_named(n, name) : NULL;
    (void)zs;
    if (xs.n < 1 || xs.n > n->nin || n->nout > xs.n || !y) {
        fac_fail_graph(g, FAC_E_FORMAT, "Gradient: xs and y do not name values that are there");
        return;
    }
    fac_value **wrt = fac_arena_alloc(&g->arena, 2 * (size_t)xs.n, sizeof *wrt), **dx = wrt + xs.n;
    if (!wrt) {
        fac_fail_graph(g, FAC_E_NOMEM, "no memory for gradients");
        return;
    }
    for (int k = 0; k < xs.n; k++) wrt[k] = in[k];
    fac_value *loss = y->type.dims.n ? fac_sum(y, (fac_dims){ 0 }, false) : y;
    fac_grad(loss, xs.n, wrt, dx);
    for (int k = 0; k < n->nout; k++) out[k] = dx[k];
}

const fac_onnx fac_reads_gradient[] = { { FAC_TRAINING, "Gradient", 1, 0, NULL, load, 1 }, { 0 } };
