/* Large batches in slices: all steps for some images, then all steps for the next ones.
 *
 * Step by step a batch goes to memory and back between any two layers; slice by slice what one
 * layer writes is still near when the next one reads it, while the weights come once for every
 * slice.  An image of a batch must not see another one: every value of the run is then *by image*,
 * its first dim the batch, and the graph for b images says all there is to say of each slice. How
 * many: slice_size.c.  Later layers may do more at once than earlier ones: stages.c. */
#include "base/error.h"
#include "base/memory.h"
#include "graph/attr.h"
#include "op_list.h"
#include "plan/schedule.h"
#include "tensor/mirror.h"

/* ---- does an image see only itself? ---- */

typedef struct batch {
    const fac_graph *g;
    bool *by_image;
    int64_t images;
} batch;

static bool by_image(const batch *b, const fac_value *v) { return v && b->by_image[v->id]; }

/* in[0] by image, and nothing else of the run. */
static bool first_only(const batch *b, const fac_node *n) {
    for (int i = 1; i < n->nin; i++)
        if (!fac_early(n->in[i])) return false;
    return n->nin > 0 && by_image(b, n->in[0]);
}

/* Elementwise: what is of the run has the batch as the first dim of the result, what is not has
 * none there. */
static bool elementwise(const batch *b, const fac_node *n) {
    const fac_dims *y = &n->out[0]->type.dims;
    for (int i = 0; i < n->nin; i++) {
        const fac_value *v = n->in[i];
        if (!v) continue;
        const bool whole = v->type.dims.n == y->n && v->type.dims.d[0] != 1;
        if (fac_early(v) ? whole : !by_image(b, v) || v->type.dims.n != y->n) return false;
    }
    return true;
}

static bool along_another_axis(const fac_node *n, int64_t missing) {
    return fac_axis(fac_attr_int(n, "axis", missing), n->in[0]->type.dims.n) > 0;
}

static bool reduces_images(const fac_node *n) {
    fac_contents axes;
    if (n->nin < 2 || !fac_known_numbers(n->in[1], &axes) || axes.n == 0) return true;
    for (int k = 0; k < axes.n; k++)
        if (fac_axis(axes.v[k], n->in[0]->type.dims.n) <= 0) return true;
    return false;
}

/* Along the first dim the result is the operand: its own view says so. */
static bool keeps_images(const fac_node *n) {
    fac_layout x = { 0 }, y[1];
    x.stride[0] = 1;
    if (n->nout != 1 || !n->op->view || !n->op->view(n, &x, y) || y[0].offset ||
        y[0].stride[0] != 1)
        return false;
    for (int k = 1; k < n->out[0]->type.dims.n; k++)
        if (y[0].stride[k]) return false;
    return true;
}

static bool all_by_image(const batch *b, const fac_node *n) {
    for (int i = 0; i < n->nin; i++)
        if (!by_image(b, n->in[i])) return false;
    return true;
}

static bool rows_apart(const fac_node *n) {
    const fac_dims *c = n->in[2] ? &n->in[2]->type.dims : NULL;
    return !fac_attr_flag(n, "trans_a") && (!c || c->n < 2 || c->d[0] == 1);
}

static bool one_matrix(const fac_node *n) {
    const int x = n->in[0]->type.dims.n, w = n->in[1]->type.dims.n;
    return x >= w && w <= 2;
}

static bool separate(const batch *b, const fac_node *n) {
    if (n->body[0] || (n->op->is & (FAC_OP_BARRIER | FAC_OP_DYNAMIC))) return false;
    if (n->op->map) return elementwise(b, n);
    if (fac_attr_flag(n, "training_mode") || fac_attr_flag(n, "training")) return false;
    switch (n->op->images) {
    case FAC_IMAGES_FIRST:
        return first_only(b, n);
    case FAC_IMAGES_UNREDUCED:
        return first_only(b, n) && !reduces_images(n);
    case FAC_IMAGES_AXIS:
        return first_only(b, n) && along_another_axis(n, 0);
    case FAC_IMAGES_LAST_AXIS:
        return first_only(b, n) && along_another_axis(n, -1);
    case FAC_IMAGES_VIEW:
        return first_only(b, n) && keeps_images(n);
    case FAC_IMAGES_JOINED:
        return along_another_axis(n, 0) && all_by_image(b, n);
    case FAC_IMAGES_ROWS:
        return first_only(b, n) && rows_apart(n);
    case FAC_IMAGES_MATRICES:
        return first_only(b, n) && one_matrix(n);
    default:
        return false;
    }
}

static bool has_images(const fac_value *v, int64_t images) {
    return v->type.dims.n > 0 && v->type.dims.d[0] == images;
}

bool fac_by_image(const fac_graph *g, int64_t images, bool *seen) {
    const batch b = { g, seen, images };
    bool convolves = false;
    for (size_t i = 0; i < g->ninputs; i++) {
        if (!has_images(g->inputs[i], images)) return false;
        seen[g->inputs[i]->id] = true;
    }
    for (const fac_node *n = g->first; n; n = n->next) {
        if (n->out[0]->time != FAC_RUN) continue;
        if (!separate(&b, n)) return false;
        for (int k = 0; k < n->nout; k++) {
            if (!has_images(n->out[k], images) && fac_reads_of(n->out[k])) return false;
            seen[n->out[k]->id] = true;
        }
        convolves |= FAC_IS(n, conv2d);
    }
    for (size_t i = 0; i < g->noutputs; i++)
        if (!by_image(&b, g->outputs[i].value)) return false;
    for (size_t i = 0; i < g->nparams; i++)
        if (g->params[i]->next) return false;
    return convolves && g->ninputs > 0 && g->noutputs > 0;
}

static bool fits(const fac_graph *slice, const fac_graph *whole, int64_t images) {
    bool *seen = fac_alloc(slice->ids + 1, sizeof *seen),
         same = seen && fac_by_image(slice, images, seen);
    for (size_t i = 0; i < whole->noutputs && same; i++) {
        fac_type a = slice->outputs[i].value->type, b = whole->outputs[i].value->type;
        a.dims.d[0] = b.dims.d[0];
        same = a.dtype == b.dtype && fac_dims_equal(&a.dims, &b.dims);
    }
    fac_release(seen);
    return same;
}

fac_status fac_batch_cut(const fac_graph *original, const fac_graph *whole, fac_tensor *const in[],
                         int64_t images, fac_graph **out, fac_error *err) {
    const size_t n = original->ninputs;
    fac_tensor **part = fac_alloc(n + 1, sizeof *part);
    bool *steers = fac_alloc(n + 1, sizeof *steers);
    fac_status status = part && steers ? FAC_OK : fac_raise_memory(err, "%zu inputs", n);
    fac_graph *g = NULL;
    for (size_t i = 0; i < n && !status; i++) {
        fac_type type = fac_tensor_type(in[i]);
        type.dims.d[0] = images;
        status = fac_tensor_new_aside(type, &part[i], err);
    }
    if (!status && !(g = fac_specialize(original, steers, part, NULL)))
        status = FAC_OK; /* then the batch stays whole */
    for (size_t i = 0; part && i < n; i++) fac_tensor_free(part[i]);
    if (g && !fits(g, whole, images)) {
        fac_graph_free(g);
        g = NULL;
    }
    fac_release(part);
    fac_release(steers);
    *out = g;
    return status;
}
