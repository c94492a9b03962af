/* What arg_max and arg_min share, see arg.h. */
#include "ops/arg.h"
#include "ops/cost.h"
#include "ops/lines.h"

#define AT(field) offsetof(fac_arg_attrs, field)
const fac_attr fac_arg_table[] = {
    { "axis", FAC_A_INT, AT(axis), 0, 0, -FAC_DIMS, FAC_DIMS - 1, NULL, "the axis searched" },
    { "keep", FAC_A_FLAG, AT(keep), 0, 0, 0, 0, NULL, "the axis stays, as 1" },
    { "select_last_index", FAC_A_FLAG, AT(select_last_index), 0, 0, 0, 0, NULL,
      "the last of equals" },
    { 0 }
};
#undef AT
const fac_onnx_attr fac_arg_spellings[] = { { "keepdims", "keep" }, { 0 } };

bool fac_arg_infer(fac_node *n) {
    const fac_arg_attrs *a = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims;
    fac_type y = { FAC_I64, { 0 } };
    int axis = fac_lines_axis(n, a->axis);
    if (axis < 0) return false;
    if (x->n && x->d[axis] == 0) return fac_fail(n, FAC_E_SHAPE, "axis %d is empty", axis);
    for (int k = 0; k < x->n; k++) {
        if (k != axis)
            y.dims.d[y.dims.n++] = x->d[k];
        else if (a->keep)
            y.dims.d[y.dims.n++] = 1;
    }
    n->out[0]->type = y;
    return true;
}

void fac_arg_cost(const fac_node *n, fac_cost *cost) { fac_cost_each(n, 1, cost); }

void fac_arg_ref(const fac_ref *r, bool (*better)(const fac_array *x, int64_t a, int64_t b)) {
    const fac_arg_attrs *a = r->attrs;
    const fac_array *x = &r->in[0];
    fac_lines l =
        fac_lines_of(&x->type.dims, fac_axis(a->axis, x->type.dims.n ? x->type.dims.n : 1));
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t i = 0; i < l.inner; i++) {
            int64_t at = o * l.size * l.inner + i, best = 0;
            for (int64_t k = 1; k < l.size; k++) {
                int64_t here = at + k * l.inner, there = at + best * l.inner;
                if (a->select_last_index ? !better(x, there, here) : better(x, here, there))
                    best = k;
            }
            r->out[0].i[o * l.inner + i] = best;
        }
}

fac_value *fac_arg_load(const fac_onnx_node *n, const fac_op *op, fac_value *x) {
    fac_arg_attrs a = { fac_onnx_int(n, "axis", 0), fac_onnx_int(n, "keepdims", 1),
                        fac_onnx_int(n, "select_last_index", 0) };
    return fac_emit(op, &a, 1, &x);
}
