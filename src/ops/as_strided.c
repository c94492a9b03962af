/* Views by numbers, as PyTorch's and NumPy's as_strided: windows that may overlap. */
#include <string.h>
#include "ops/shape.h"
#include "ops/strided.h"

#if FAC_INTERFACE
/* y[i, j..] = element offset + i strides[0] + j strides[1] + .. of x in row-major order; a view
 * where x lies so.  Sizes, strides and offset are not negative and stay inside of x, whose dims
 * are numbers.  What is a reshape, a transpose or a slice becomes that. */
fac_value *fac_as_strided(fac_value *x, fac_dims sizes, fac_dims strides, int64_t offset);
#endif

extern const fac_op fac_op_as_strided;

static bool infer(fac_node *n) {
    if (!fac_strided_check(n)) return false;
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, ((const fac_strided *)n->attrs)->sizes };
    return true;
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const fac_strided *w = m->attrs;
    const fac_dims *x = &m->in[0].type.dims;
    int64_t at = w->offset;
    for (int k = 0; k < m->out.n; k++) at += to[k] * w->strides.d[k];
    for (int k = x->n - 1; k >= 0; k--) {
        from[k] = at % x->d[k];
        at /= x->d[k];
    }
    *input = 0;
    return true;
}

/* Of what lies in row-major order without gaps. */
static bool view(const fac_node *n, const fac_layout *in, fac_layout *out) {
    const fac_strided *w = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims;
    int64_t step = 1;
    if (in->block || n->in[0]->type.dtype == FAC_BIT) return false;
    for (int k = x->n - 1; k >= 0; k--) {
        if (x->d[k] != 1 && in->stride[k] != step) return false;
        step *= x->d[k];
    }
    *out = (fac_layout){ .offset = in->offset + w->offset };
    memcpy(out->stride, w->strides.d, sizeof w->strides.d);
    return true;
}

/* By indices: gradients of what is read more than once add up. */
static void expand(const fac_node *n, fac_value *out[]) {
    const fac_strided *w = n->attrs;
    fac_value *flat = fac_reshape(n->in[0], fac_shape(-1));
    fac_value *places = fac_strided_places(n->graph, w);
    out[0] = fac_reshape_sizes(fac_gather(flat, places, 0), w->sizes);
}

static const fac_case cases[] = {
    { "as_strided(f32[4,5]) sizes=3,2 strides=5,2 offset=1", -4, 4, 0 },
    { "as_strided(f32[10]) sizes=4,3 strides=2,1", -4, 4, 0 }, /* overlapping */
    { "as_strided(i64[2,3]) sizes=3,2 strides=1,3", -9, 9, 0 },
    { "as_strided(f16[6]) sizes=2,2 strides=0,1", -4, 4, 0 },
    { "as_strided(bool[6]) sizes=0,2 strides=3,1", 0, 1, 0 },
    { "as_strided(f32[7]) offset=3", -4, 4, 0 },
    { 0 }
};

const fac_op fac_op_as_strided = {
    .name = "as_strided",
    .doc = "a window of any strides",
    .in = fac_ports_any_x,
    .out = fac_ports_y,
    .attrs = fac_strided_table,
    .attrs_size = sizeof(fac_strided),
    .infer = infer,
    .move = move,
    .view = view,
    .expand = expand,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

/* ---- what is simpler ---- */

static bool row_major(const fac_strided *w) {
    int64_t step = 1;
    for (int k = w->sizes.n - 1; k >= 0; k--) {
        if (w->sizes.d[k] != 1 && w->strides.d[k] != step) return false;
        step *= w->sizes.d[k];
    }
    return true;
}

/* The dims of x in another order: which one comes k-th. */
static bool permuted(const fac_dims *x, const fac_strided *w, fac_dims *order) {
    int64_t step[FAC_DIMS], size = 1;
    bool used[FAC_DIMS] = { false };
    if (x->n != w->sizes.n) return false;
    for (int k = x->n - 1; k >= 0; k--) {
        step[k] = size;
        size *= x->d[k];
    }
    order->n = x->n;
    for (int k = 0; k < x->n; k++) {
        int from = 0;
        while (from < x->n &&
               (used[from] || x->d[from] != w->sizes.d[k] || step[from] != w->strides.d[k]))
            from++;
        if (from == x->n) return false;
        used[from] = true;
        order->d[k] = from;
    }
    return true;
}

fac_value *fac_as_strided(fac_value *x, fac_dims sizes, fac_dims strides, int64_t offset) {
    const fac_strided w = { sizes, strides, offset };
    const fac_dims dims = fac_value_type(x).dims;
    const int64_t count = fac_dims_count(&sizes), all = fac_dims_count(&dims);
    fac_dims order;
    if (sizes.n == strides.n && all > 0 && !offset && count == all) {
        if (row_major(&w)) return fac_reshape_sizes(x, sizes);
        if (permuted(&dims, &w, &order)) return fac_transpose(x, order);
    }
    if (sizes.n == strides.n && count > 0 && offset >= 0 && offset < all && count <= all - offset &&
        row_major(&w)) {
        fac_value *flat = fac_reshape(x, fac_shape(-1));
        fac_value *part = fac_slice(flat, 0, offset, offset + count, 1);
        return fac_reshape_sizes(part, sizes);
    }
    return fac_emit(&fac_op_as_strided, &w, 1, &x);
}
