/* ONNX's TensorScatter: new rows in a cache of keys or values. */
#include <string.h>
#include "ops/fusions.h"
#include "ops/shape.h"

const fac_onnx_attr fac_names_tensor_scatter[] = { { "axis", NULL }, { "mode", NULL }, { 0 } };

/* Numbers along one axis of a value of so many dims. */
static fac_value *along(fac_value *v, int axis, int rank) {
    fac_dims others = { 0 };
    for (int k = 0; k < rank; k++)
        if (k != axis) others.d[others.n++] = k;
    return fac_unsqueeze(v, others);
}

/* Four dims, along the third, without wrapping: what a decoder writes has an op of its own. */
static fac_value *as_cache(const fac_onnx_node *n, fac_value *const x[]) {
    fac_value *zero = fac_number(fac_value_graph(x[0]), FAC_I64, 0);
    fac_value *batch = fac_slice(fac_shape_of(x[0]), 0, 0, 1, 1);
    return fac_cache_write(x[0], x[1], n->nin > 2 && x[2] ? x[2] : fac_expand_to(zero, batch));
}

/* Row i of the update goes to row first[b] + i of the cache, modulo its rows in mode circular. */
void fac_load_tensor_scatter(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                             fac_value *y[]) {
    const int rank = x[0]->type.dims.n, axis = fac_axis(fac_onnx_int(n, "axis", -2), rank);
    const char *mode = fac_onnx_text(n, "mode", "linear");
    const bool circular = !strcmp(mode, "circular");
    if (axis < 1 || x[1]->type.dims.n != rank || (!circular && strcmp(mode, "linear"))) {
        y[0] = fac_fail_graph(g, FAC_E_FORMAT, "TensorScatter: mode \"%s\" and axis %d of %d dims",
                              mode, axis, rank);
        return;
    }
    const fac_dtype dtype = fac_value_type(x[0]).dtype;
    const bool moves = dtype == FAC_TEXT || dtype == FAC_BOOL || fac_dtype_is_stored(dtype);
    if (rank == 4 && axis == 2 && !circular && !moves) {
        y[0] = as_cache(n, x);
        return;
    }
    fac_value *one = fac_number(g, FAC_I64, 1), *zero = fac_number(g, FAC_I64, 0),
              *place = fac_number(g, FAC_I64, axis);
    fac_value *shape = fac_shape_of(x[1]), *rows = fac_gather(shape, place, 0);
    fac_value *at = along(fac_arange(zero, rows, one), axis, rank);
    if (n->nin > 2 && x[2]) at = fac_add(at, along(fac_cast(x[2], FAC_I64), 0, rank));
    if (circular) at = fac_mod(at, fac_gather(fac_shape_of(x[0]), place, 0));
    y[0] = fac_scatter_elements(x[0], fac_expand_to(at, shape), x[1], axis, FAC_SCATTER_NONE);
}
