#include <math.h>
#include "ops/host_list.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* start, start + delta, start + 2 delta .. before limit; scalars of one dtype, delta is not 0. */
fac_value *fac_arange(fac_value *start, fac_value *limit, fac_value *delta);
#endif

static const fac_port in[] = { { "start", FAC_NUMBERS, FAC_HOST },
                               { "limit", FAC_NUMBERS, FAC_HOST },
                               { "delta", FAC_NUMBERS, FAC_HOST },
                               { 0 } };

static bool infer(fac_node *n) {
    const fac_dtype dtype = n->in[0]->type.dtype;
    int64_t count = -1;
    fac_contents c[3], r = { 0 };
    double x[3];
    bool known = true, constants = true;
    for (int i = 0; i < 3; i++) {
        const fac_type *t = &n->in[i]->type;
        if (t->dtype != dtype)
            return fac_fail(n, FAC_E_DTYPE, "start, limit and delta must have one dtype");
        if (t->dims.n > 1 || !fac_may_be_one(n->in[i]))
            return fac_fail(n, FAC_E_SHAPE, "start, limit and delta must be scalars");
        known &= fac_known(n->in[i], &c[i]);
    }
    if (known && !c[0].symbolic && !c[1].symbolic && !c[2].symbolic) {
        const int64_t delta = c[2].v[0], from = c[0].v[0], to = c[1].v[0];
        if (delta == 0) return fac_fail(n, FAC_E_ARGUMENT, "delta is 0");
        const uint64_t span =
            delta > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
        const uint64_t pace = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
        const bool any = delta > 0 ? from < to : from > to;
        uint64_t steps = any ? (span - 1) / pace + 1 : 0;
        if (steps > INT64_MAX / 64)
            return fac_fail(n, FAC_E_SHAPE, "%llu elements", (unsigned long long)steps);
        count = (int64_t)steps;
        if (count <= FAC_KNOWN)
            for (r.n = 0; r.n < count; r.n++) r.v[r.n] = from + r.n * delta;
    } else if (known) { /* 0 .. N */
        bool simple = !c[0].symbolic && c[0].v[0] == 0 && !c[2].symbolic && c[2].v[0] == 1;
        count = simple ? c[1].v[0] : fac_symbol(n->graph, NULL);
    } else {
        for (int i = 0; i < 3; i++)
            constants &= fac_dtype_get(dtype)->kind == 'f' && fac_scalar_known(n->in[i], &x[i]);
        if (constants) {
            const double steps = ceil((x[1] - x[0]) / x[2]);
            if (!(steps < 4e18))
                return fac_fail(n, FAC_E_ARGUMENT, "the range from %g to %g by %g has no end", x[0],
                                x[1], x[2]);
            count = steps > 0 ? (int64_t)steps : 0;
        } else {
            count = fac_symbol(n->graph, NULL);
        }
    }
    n->out[0]->type = (fac_type){ dtype, fac_shape(count) };
    return r.n == 0 || fac_knows_items(n, &r);
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_array *start = &r->in[0], *delta = &r->in[2];
    fac_array *y = &r->out[0];
    int64_t n = fac_dims_count(&y->type.dims);
    (void)err;
    for (int64_t k = 0; k < n; k++) {
        if (y->f)
            y->f[k] = start->f[0] + (double)k * delta->f[0];
        else
            y->i[k] = (int64_t)((uint64_t)start->i[0] + (uint64_t)k * (uint64_t)delta->i[0]);
    }
    return FAC_OK;
}

static const fac_onnx_attr names[] = { { "stash_type", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Range", 11, 0, names, NULL, 0 },
                                 { "com.microsoft", "Range", 1, 0, names, NULL, 0 },
                                 { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *ins[3];
    for (int k = 0; k < 3; k++) ins[k] = fac_onnx_ranked(w, n->in[k], 0);
    fac_onnx_put(w, "Range", 3, ins, fac_onnx_name(w, n->out[0]));
    return true;
}

static const fac_case cases[] = { { "range(i64{2}, i64{11}, i64{3})", 0, 0, 0 },
                                  { "range(i64{5}, i64{-1}, i64{-2})", 0, 0, 0 },
                                  { "range(i64{3}, i64{3}, i64{1})", 0, 0, 0 },
                                  { "range(i64{0}, i64{40}, i64{1})", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_range = {
    .name = "range",
    .doc = "start, start + delta, .. before limit",
    .in = in,
    .out = fac_ports_y,
    .is = FAC_OP_NO_GRAD | FAC_OP_KNOWS,
    .infer = infer,
    .ref = ref,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_arange(fac_value *start, fac_value *limit, fac_value *delta) {
    return fac_emit(&fac_op_range, NULL, 3, (fac_value *[]){ start, limit, delta });
}
