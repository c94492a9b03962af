/* The graph of a training step: a model, a loss, its gradients. */
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "studio/model/model.h"

static fac_value *loss_of(fac_value *y) {
    const fac_type t = fac_value_type(y);
    if (t.dims.n == 2 && t.dims.d[1] > 1) {
        fac_value *first = fac_slice(fac_log_softmax(y, 1), 1, 0, 1, 1);
        return fac_neg(fac_mean(first, (fac_dims){ 0 }, false));
    }
    return fac_mean(fac_mul(y, y), (fac_dims){ 0 }, false);
}

fac_status fac_model_gradients(fac_graph *g, fac_error *err) {
    const int n = fac_graph_params(g);
    fac_value *y = fac_graph_output(g, 0);
    if (!n || fac_value_type(y).dtype != FAC_F32)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "gradients need parameters, and a first output of type f32");
    fac_value **of = fac_alloc(2 * (size_t)n, sizeof(fac_value *));
    if (!of) return fac_raise_memory(err, "gradients");
    fac_value **slope = of + n;
    for (int k = 0; k < n; k++) of[k] = fac_graph_param(g, k);
    fac_value *loss = loss_of(y);
    fac_grad(loss, n, of, slope);
    fac_output(g, "loss", loss);
    for (int k = 0; k < n; k++) {
        char name[256];
        snprintf(name, sizeof name, "d %s", fac_value_name(of[k]));
        fac_output(g, name, slope[k]);
    }
    fac_release(of);
    return fac_graph_check(g, err);
}
