/* Views of blocked values: slices and splits of whole blocks, rows and columns. */
#include "base/error.h"
#include "op_list.h"
#include "plan/schedule.h"

/* Where output k begins along one axis of x, and its step: the op's own view of a layout in which
 * nothing but that axis has a stride. */
static bool probe(const fac_node *n, int axis, int k, fac_layout *views, int64_t *start,
                  int64_t *step) {
    fac_layout x = { 0 };
    x.stride[axis] = 1;
    if (!n->op->view(n, &x, views)) return false;
    *start = views[k].offset;
    *step = views[k].stride[axis];
    return true;
}

bool fac_view_blocked(const fac_node *n, const fac_layout *x, fac_layout *out,
                      fac_layout *scratch) {
    const fac_dims *d = &n->in[0]->type.dims;
    if (n->op == &fac_op_identity || n->op == &fac_op_stop) {
        out[0] = *x;
        return n->nout == 1;
    }
    if (n->op != &fac_op_slice && n->op != &fac_op_split) return false;
    for (int k = 0; k < n->nout; k++) {
        const fac_dims *y = &n->out[k]->type.dims;
        fac_layout l = *x;
        for (int axis = 0; axis < d->n; axis++) {
            int64_t start, step;
            if (!probe(n, axis, k, scratch, &start, &step)) return false;
            if (step != 1 && y->d[axis] > 1) return false;
            if (axis == l.axis && start % l.block) return false;
            l.offset += (axis == l.axis ? start / l.block : start) * l.stride[axis];
            if (axis >= d->n - 2 && y->d[axis] != d->d[axis])
                l.halo = 0; /* what lies around it is more of x */
        }
        out[k] = l;
    }
    return true;
}
