/* ONNX's TensorScatter: an update written into a cache along one axis, from another place on for
 * each sample. */
#include <string.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/shape.h"

/* Place by place along the axis, [B, S]: write_indices + 0, 1, 2... */
static fac_value *places(fac_value *cache, fac_value *update, fac_value *from, int axis,
                         bool around) {
    fac_graph *g = fac_value_graph(cache);
    fac_value *size = fac_gather(fac_shape_of(update), fac_number(g, FAC_I64, axis), 0);
    fac_value *at = fac_arange(fac_number(g, FAC_I64, 0), size, fac_number(g, FAC_I64, 1));
    at = fac_unsqueeze(at, fac_shape(0));
    if (from) at = fac_add(fac_unsqueeze(fac_cast(from, FAC_I64), fac_shape(1)), at);
    return around ? fac_mod(at, fac_gather(fac_shape_of(cache), fac_number(g, FAC_I64, axis), 0))
                  : at;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const char *mode = fac_onnx_text(n, "mode", "linear");
    const int rank = x[0]->type.dims.n, axis = fac_axis(fac_onnx_int(n, "axis", -2), rank);
    const bool around = !strcmp(mode, "circular");
    fac_dims ones = { 0 };
    if (axis < 1 || x[1]->type.dims.n != rank || (!around && strcmp(mode, "linear"))) {
        fac_fail_graph(
            g, FAC_E_FORMAT,
            "TensorScatter needs a cache and an update of as many dims, an axis behind the batch, "
            "and a mode that is linear or circular");
        return;
    }
    for (int k = 1; k < rank; k++)
        if (k != axis) ones.d[ones.n++] = k;
    fac_value *at = places(x[0], x[1], n->nin > 2 ? x[2] : NULL, axis, around);
    at = fac_expand_to(fac_unsqueeze(at, ones), fac_shape_of(x[1]));
    y[0] = fac_scatter_elements(x[0], at, x[1], axis, FAC_SCATTER_NONE);
}

const fac_onnx fac_reads_tensor_scatter[] = { { "", "TensorScatter", 24, 0, NULL, load, 2 },
                                              { 0 } };
