/* See shape.h. */
#include "ops/shape.h"
#include "base/error.h"

bool fac_move_flat(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const fac_dims *d = &m->in[0].type.dims;
    int64_t at = 0;
    for (int k = 0; k < m->out.n; k++) at = at * m->out.d[k] + to[k];
    for (int k = d->n - 1; k >= 0; k--) {
        from[k] = at % d->d[k];
        at /= d->d[k];
    }
    *input = 0;
    return true;
}

bool fac_move_same(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    for (int k = 0; k < m->out.n; k++) from[k] = to[k];
    *input = 0;
    return true;
}

bool fac_view_same(const fac_node *n, const fac_layout *in, fac_layout *out) {
    (void)n;
    *out = *in;
    return true;
}

/* Walks both shapes from the front; whenever the products meet, one group of old dims has become
 * one group of new dims.  A group of several old dims must be evenly spaced: stride_k = d_k+1
 * stride_k+1. */
bool fac_view_flat(const fac_node *n, const fac_layout *in, fac_layout *out) {
    const fac_dims *from = &n->in[0]->type.dims, *to = &n->out[0]->type.dims;
    int64_t size[FAC_DIMS], stride[FAC_DIMS];
    int old = 0, i = 0, j = 0;
    fac_layout y = { .offset = in->offset };
    if (in->block || fac_dims_count(from) < 0 || fac_dims_count(to) < 0) return false;
    for (int k = 0; k < from->n; k++)
        if (from->d[k] != 1) {
            size[old] = from->d[k];
            stride[old++] = in->stride[k];
        }
    if (fac_dims_count(from) == 0) { /* nothing lies anywhere */
        int64_t step = 1;
        for (int k = to->n - 1; k >= 0; k--) {
            y.stride[k] = step;
            step *= to->d[k] ? to->d[k] : 1;
        }
        *out = y;
        return true;
    }
    while (i < old && j < to->n) {
        int i1 = i + 1, j1 = j + 1;
        int64_t a = size[i], b = to->d[j];
        while (a != b) {
            if (a < b) {
                if (i1 == old) return false;
                a *= size[i1++];
            } else {
                if (j1 == to->n) return false;
                b *= to->d[j1++];
            }
        }
        for (int k = i; k + 1 < i1; k++)
            if (stride[k] != size[k + 1] * stride[k + 1]) return false;
        int64_t step = stride[i1 - 1];
        for (int k = j1 - 1; k >= j; k--) {
            y.stride[k] = step;
            step *= to->d[k];
        }
        i = i1;
        j = j1;
    }
    for (; j < to->n; j++) y.stride[j] = 1; /* dims of size 1 at the end */
    *out = y;
    return true;
}

bool fac_knows_same(fac_node *n) {
    fac_contents c;
    return !fac_known(n->in[0], &c) || fac_knows_items(n, &c);
}

bool fac_axes_set(fac_node *n, const fac_contents *axes, int rank, bool set[FAC_DIMS]) {
    for (int k = 0; k < FAC_DIMS; k++) set[k] = false;
    for (int k = 0; k < axes->n; k++) {
        int axis = fac_axis(axes->v[k], rank);
        if (axis < 0)
            return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims", (long long)axes->v[k], rank);
        if (set[axis])
            return fac_fail(n, FAC_E_ARGUMENT, "axis %lld is given twice", (long long)axes->v[k]);
        set[axis] = true;
    }
    return true;
}

bool fac_scalar_known(const fac_value *v, double *x) {
    fac_tensor *t = v->leaf == FAC_CONST && fac_dims_count(&v->type.dims) == 1 ? v->tensor : NULL,
               *wide = NULL;
    bool ok = t && !fac_tensor_convert(t, FAC_F64, &wide, NULL) &&
              !fac_tensor_read(wide, x, sizeof *x, NULL);
    fac_tensor_free(wide);
    return ok;
}

fac_value *fac_ints_long(fac_graph *g, const int64_t *numbers, int n) {
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    fac_status s = fac_tensor_new(NULL, FAC_I64, fac_shape(n), &t, &err);
    if (!s) s = fac_tensor_write(t, numbers, (size_t)n * sizeof *numbers, &err);
    fac_value *v = s ? fac_fail_graph(g, s, "%s", err.text) : fac_const(g, t);
    fac_tensor_free(t);
    return v;
}
