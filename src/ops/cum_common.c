/* What cum_sum and cum_prod share, see cum.h. */
#include "base/error.h"
#include "ops/cost.h"
#include "ops/cum.h"
#include "ops/host_list.h"
#include "ops/lines.h"
#include "ops/shape.h"

const fac_attr fac_cum_table[] = { { "exclusive", FAC_A_FLAG, offsetof(fac_cum_attrs, exclusive), 0,
                                     0, 0, 0, NULL, "without the element itself" },
                                   { "reverse", FAC_A_FLAG, offsetof(fac_cum_attrs, reverse), 0, 0,
                                     0, 0, NULL, "from the last element to the first" },
                                   { 0 } };
const fac_port fac_cum_in[] = { { "x", FAC_NUMBERS, 0 }, { "axis", FAC_INTS, FAC_HOST }, { 0 } };

bool fac_cum_infer(fac_node *n) {
    fac_contents axis;
    if (!fac_may_be_one(n->in[1])) return fac_fail(n, FAC_E_SHAPE, "axis must be one number");
    if (fac_host_numbers(n, 1, &axis) && fac_axis(axis.v[0], n->in[0]->type.dims.n) < 0)
        return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims", (long long)axis.v[0],
                        n->in[0]->type.dims.n);
    n->out[0]->type = n->in[0]->type;
    return true;
}

fac_status fac_cum_ref(const fac_ref *r, const fac_cum_rule *rule, fac_error *err) {
    const fac_cum_attrs *a = r->attrs;
    const fac_array *x = &r->in[0], *y = &r->out[0];
    const int rank = x->type.dims.n, axis = fac_axis(r->in[1].i[0], rank);
    if (axis < 0)
        return fac_raise(err, FAC_E_SHAPE, "axis %lld of %d dims", (long long)r->in[1].i[0], rank);
    const fac_lines l = fac_lines_of(&x->type.dims, axis);
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t i = 0; i < l.inner; i++) {
            double real = rule->start_real;
            uint64_t whole = rule->start_whole;
            for (int64_t k = 0; k < l.size; k++) {
                const int64_t at = (o * l.size + (a->reverse ? l.size - 1 - k : k)) * l.inner + i;
                if (y->f) {
                    const double before = real;
                    real = rule->real(real, x->f[at]);
                    y->f[at] = a->exclusive ? before : real;
                } else {
                    const uint64_t before = whole;
                    whole = rule->whole(whole, (uint64_t)x->i[at]);
                    y->i[at] = (int64_t)(a->exclusive ? before : whole);
                }
            }
        }
    return FAC_OK;
}

void fac_cum_cost(const fac_node *n, fac_cost *cost) { fac_cost_each(n, 1, cost); }

bool fac_cum_save(const fac_onnx_writer *w, const fac_node *n, const char *type) {
    const fac_cum_attrs *a = n->attrs;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_ranked(w, n->in[1], 0) };
    fac_onnx_put(w, type, 2, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "exclusive", a->exclusive);
    fac_onnx_put_int(w, "reverse", a->reverse);
    return true;
}

fac_value *fac_cum_emit(const fac_op *op, fac_value *x, int axis, bool exclusive, bool reverse) {
    fac_value *in[] = { x, fac_ints(fac_value_graph(x), fac_shape(axis)) };
    return fac_emit(op, &(fac_cum_attrs){ exclusive, reverse }, 2, in);
}
