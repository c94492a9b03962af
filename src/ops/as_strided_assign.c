/* Writing through a view: what the pure graph has for it. */
#include "ops/shape.h"
#include "ops/strided.h"

#if FAC_INTERFACE
/* x, but in the window that fac_as_strided would read lies y, which is broadcast to it.  The
 * window's elements must lie in different places; x and y have one dtype. */
fac_value *fac_as_strided_assign(fac_value *x, fac_value *y, fac_dims sizes, fac_dims strides,
                                 int64_t offset);
#endif

static const fac_port in[] = { { "x", FAC_NUMBERS | FAC_BOOLS, 0 },
                               { "y", FAC_NUMBERS | FAC_BOOLS, 0 },
                               { 0 } };

/* Strides sorted by size: each reaches past all that is below it.  So windows of views lie, and
 * no two elements in one place. */
static bool apart(const fac_strided *w) {
    bool used[FAC_DIMS] = { false };
    int64_t reach = 0;
    for (int round = 0; round < w->sizes.n; round++) {
        int least = -1;
        for (int k = 0; k < w->sizes.n; k++)
            if (!used[k] && (least < 0 || w->strides.d[k] < w->strides.d[least])) least = k;
        used[least] = true;
        if (w->sizes.d[least] <= 1) continue;
        if (w->strides.d[least] <= reach) return false;
        reach += (w->sizes.d[least] - 1) * w->strides.d[least];
    }
    return true;
}

static bool infer(fac_node *n) {
    const fac_strided *w = n->attrs;
    const fac_type *x = &n->in[0]->type, *y = &n->in[1]->type;
    fac_dims both;
    if (!fac_strided_check(n)) return false;
    if (x->dtype != y->dtype) return fac_fail(n, FAC_E_DTYPE, "x and y must have one dtype");
    if (!fac_broadcast(n, &w->sizes, &y->dims, &both)) return false;
    if (!fac_dims_equal(&both, &w->sizes))
        return fac_fail(n, FAC_E_SHAPE, "y does not broadcast to the window");
    if (fac_dims_count(&w->sizes) > 0 && !apart(w))
        return fac_fail(n, FAC_E_ARGUMENT, "elements of the window may lie in one place");
    n->out[0]->type = *x;
    return true;
}

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_strided *w = n->attrs;
    fac_value *x = n->in[0], *flat = fac_reshape(x, fac_shape(-1));
    if (!fac_dims_count(&w->sizes)) {
        out[0] = x;
        return;
    }
    fac_value *y = fac_reshape(fac_expand(n->in[1], w->sizes), fac_shape(-1));
    fac_value *places = fac_strided_places(n->graph, w);
    out[0] = fac_reshape_like(fac_scatter_elements(flat, places, y, 0, FAC_SCATTER_NONE), x);
}

static const fac_case cases[] = {
    { "as_strided_assign(f32[4,5], f32[3,2]) sizes=3,2 strides=5,2 offset=1", -4, 4, 0 },
    { "as_strided_assign(i64[2,3], i64[2]) sizes=3,2 strides=1,3", -9, 9, 0 },
    { "as_strided_assign(f16[6], f16[]) sizes=2 strides=3", -4, 4, 0 },
    { "as_strided_assign(bool[6], bool[]) sizes=0,2 strides=3,1", 0, 1, 0 },
    { "as_strided_assign(f32[7], f32[]) offset=3", -4, 4, 0 },
    { 0 }
};

const fac_op fac_op_as_strided_assign = {
    .name = "as_strided_assign",
    .doc = "x with a window of any strides replaced",
    .in = in,
    .out = fac_ports_y,
    .attrs = fac_strided_table,
    .attrs_size = sizeof(fac_strided),
    .infer = infer,
    .expand = expand,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_as_strided_assign(fac_value *x, fac_value *y, fac_dims sizes, fac_dims strides,
                                 int64_t offset) {
    const fac_strided w = { sizes, strides, offset };
    return fac_emit(&fac_op_as_strided_assign, &w, 2, (fac_value *[]){ x, y });
}
