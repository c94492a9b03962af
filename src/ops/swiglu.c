/* ONNX's SwiGLU: a sigmoid(alpha a) b. */
#include "facula/op.h"
#include "facula/ops.h"

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const double alpha = fac_onnx_real(n, "alpha", 1);
    fac_value *gate =
        alpha == 1
            ? fac_silu(x[0])
            : fac_mul(x[0], fac_sigmoid(fac_mul(x[0], fac_number(g, x[0]->type.dtype, alpha))));
    y[0] = fac_mul(gate, x[1]);
}

const fac_onnx fac_reads_swiglu[] = { { "", "SwiGLU", 28, 0, NULL, load, 2 }, { 0 } };
