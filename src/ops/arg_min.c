/* Where the smallest element lies along one axis. */
#include "ops/arg.h"
#include "ops/order.h"
#include "op_list.h"

#if FAC_INTERFACE
/* y = index of the smallest x along one axis (a negative one counts from the end), the first of
 * equals, NaN before all; the axis stays as 1 if `keep`.  Floats and integers -> i64.  The op has
 * an attribute select_last_index: the last of equals. FAC_E_SHAPE when the axis is empty. */
fac_value *fac_arg_min(fac_value *x, int64_t axis, bool keep);
#endif

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    fac_arg_ref(r, fac_below);
    return FAC_OK;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    out[0] = fac_arg_load(n, &fac_op_arg_min, in[0]);
}

static const fac_onnx onnx[] = { { "", "ArgMin", 1, 0, fac_arg_spellings, load, 0 }, { 0 } };
static const fac_case cases[] = { { "arg_min(f32[3,4,5]) axis=1 keep", -1, 1, 0 },
                                  { "arg_min(f32[3,4,5]) axis=-1", -1, 1, 0 },
                                  { "arg_min(i8[3,40]) axis=1 select_last_index", -3, 3, 0 },
                                  { "arg_min(u8[30,4]) axis=0", 0, 3, 0 },
                                  { "arg_min(f32[2,3,0]) axis=1", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_arg_min = {
    .name = "arg_min",
    .doc = "index of the smallest element along one axis",
    .in = fac_ports_num_x,
    .out = fac_ports_y,
    .attrs = fac_arg_table,
    .attrs_size = sizeof(fac_arg_attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = fac_arg_infer,
    .ref = ref,
    .cost = fac_arg_cost,
    .onnx = onnx,
    .save = fac_onnx_plain,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_arg_min(fac_value *x, int64_t axis, bool keep) {
    return fac_emit(&fac_op_arg_min, &(fac_arg_attrs){ axis, keep, false }, 1, &x);
}
