/* A network becomes a classifier of other classes: its last layer with weights is drawn anew, what
 * comes after it gives logits.
 *
 * The head is found from the first output backwards: through what has no weights (softmax, pooling,
 * reshapes, a bias that is added) to the last linear, gemm, matmul or convolution.  Everything in
 * front of it stays, weights included. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "facula/data/image.h"
#include "facula/ops.h"
#include "graph/attr.h"
#include "graph/graph_internal.h"
#include "nn/nn_internal.h"
#include "op_list.h"
#include "train/train_internal.h"

enum { PATH = 16, NONE = -1 };

typedef struct plan {
    int64_t classes, had, fan_in;
    const fac_node *head, *path[PATH]; /* the head; what is after it, last first */
    int n, axis;                       /* of path; the dim of the weight that is the classes */
    bool fresh;                        /* the head is drawn anew */
    int64_t batch,
        symbol; /* a fixed first dim of the input (NONE: as it is), the symbol that it becomes */
} plan;

static bool is(const fac_node *n, const fac_op *const *ops) { return fac_op_is_one_of(n->op, ops); }

static const fac_op *const layers[] = { &fac_op_linear, &fac_op_gemm, &fac_op_matmul,
                                        &fac_op_conv2d, NULL };
static const fac_op *const soft[] = { &fac_op_softmax, &fac_op_log_softmax, NULL };
static const fac_op *const shapes[] = { &fac_op_flatten, &fac_op_reshape, &fac_op_squeeze, NULL };
static const fac_op *const others[] = {
    &fac_op_relu, &fac_op_mean, &fac_op_avg_pool2d, &fac_op_identity, &fac_op_dropout,
    &fac_op_add,  NULL
};

static bool fixed(const fac_value *v) { return v && v->time < FAC_RUN; } /* made of weights alone */

/* ---- finding ---- */

/* Which dim of its weight are the classes, and how many numbers each is made from; NONE: this layer
 * cannot be a head. */
static int classes_axis(const fac_node *n, int64_t *fan_in) {
    const fac_value *w = n->in[1];
    if (!fixed(w) || w->type.dims.n < 2 || fac_dims_count(&w->type.dims) < 1) return NONE;
    int axis = w->type.dims.n == 2 ? 1 : NONE;
    if (FAC_IS(n, linear) || FAC_IS(n, conv2d)) axis = 0;
    if (fac_attr_int(n, "groups", 1) != 1 || fac_attr_flag(n, "trans_a"))
        axis = NONE;
    else if (fac_attr_flag(n, "trans_b"))
        axis = 0;
    if (axis != NONE) *fan_in = fac_dims_count(&w->type.dims) / w->type.dims.d[axis];
    return axis;
}

static bool find(const fac_graph *g, plan *p) {
    for (const fac_value *v = g->outputs[0].value; v->node && p->n < PATH;) {
        const fac_node *n = v->node;
        if (is(n, layers)) {
            p->head = n;
            p->axis = classes_axis(n, &p->fan_in);
            if (p->axis != NONE) p->had = n->in[1]->type.dims.d[p->axis];
            return p->axis != NONE;
        }
        if (!is(n, soft) && !is(n, shapes) && !is(n, others)) return false;
        const bool second = FAC_IS(n, add) && fixed(n->in[0]);
        if (FAC_IS(n, add) && !fixed(n->in[0]) && !fixed(n->in[1])) return false;
        p->path[p->n++] = n;
        v = n->in[second];
    }
    return false;
}

static bool on_path(const plan *p, const fac_node *n) {
    for (int k = 0; k < p->n; k++)
        if (p->path[k] == n) return true;
    return false;
}

/* ---- fresh weights ---- */

/* Is input i of n a weight whose size is the number of classes? */
static bool belongs(const plan *p, const fac_node *n, int i) {
    if (n == p->head) return i == 1 || (i == 2 && n->in[2]);
    return on_path(p, n) && FAC_IS(n, add) && fixed(n->in[i]);
}

static fac_dims resized(const plan *p, const fac_node *n, int i) {
    fac_dims d = n->in[i]->type.dims;
    if (n == p->head && i == 1) {
        d.d[p->axis] = p->classes;
        return d;
    }
    for (int k = d.n - 1; k >= 0; k--)
        if (d.d[k] == p->had) {
            d.d[k] = p->classes;
            break;
        }
    return d;
}

/* As torch draws a layer: weight and bias within 1 / sqrt(fan_in). */
static fac_value *draw(const plan *p, fac_graph *to, const fac_node *n, int i, const char *name) {
    const fac_init init = fac_init_within(1 / sqrt((double)p->fan_in));
    return fac_nn_leaf(to, FAC_PARAM, name, n->in[i]->type.dtype, resized(p, n, i), init);
}

/* ---- rebuilding ---- */

/* Bounds of a clip are no weights, though an importer cannot tell; they would be trained. */
static bool bounds(const fac_value *v) {
    for (const fac_use *u = v->uses; u; u = u->next)
        if (!FAC_IS(u->node, clip) || !u->input) return false;
    return v->uses != NULL;
}

static fac_value *leaf(void *self, fac_graph *to, const fac_value *v) {
    const plan *p = self;
    if (v->leaf == FAC_INPUT && p->batch != NONE) {
        fac_dims d = v->type.dims;
        d.d[0] = p->symbol;
        return fac_input(to, v->name, v->type.dtype, d);
    }
    if (v->leaf != FAC_PARAM) return NULL;
    if (bounds(v)) return fac_const(to, v->tensor);
    return p->fresh && fac_used_once(v) && belongs(p, v->uses->node, v->uses->input)
               ? draw(p, to, v->uses->node, v->uses->input, v->name)
               : NULL;
}

/* The head with what is not fresh yet: weights that the graph computes, or shares, get names of
 * their own. */
static void put_head(const plan *p, fac_graph *to, const fac_node *n, fac_value *const in[],
                     fac_value *out[]) {
    fac_value *with[3] = { in[0], in[1], n->nin > 2 ? in[2] : NULL };
    for (int i = 0; i < n->nin && i < 3; i++) {
        if (!in[i] || !belongs(p, n, i)) continue;
        const fac_dims want = resized(p, n, i);
        if (fac_dims_equal(&with[i]->type.dims, &want)) continue;
        with[i] = draw(p, to, n, i, n == p->head && i == 1 ? "head.weight" : "head.bias");
    }
    fac_node_copy(to, n, with, out);
}

static bool ones_after(const fac_dims *d) {
    for (int k = 2; k < d->n; k++)
        if (d->d[k] != 1) return false;
    return d->n >= 2;
}

/* A reshape to a fixed batch copies the batch instead. */
static bool reshape_batch(const plan *p, const fac_node *n, fac_value *const in[],
                          fac_value *out[]) {
    fac_contents c;
    if (p->batch == NONE || !FAC_IS(n, reshape) || !fac_known(n->in[1], &c) || c.n < 1 ||
        c.n > FAC_DIMS || c.symbolic)
        return false;
    const fac_dims *old = &n->in[0]->type.dims, *now = &in[0]->type.dims;
    if (now->n < 1 || now->d[0] != p->symbol || old->d[0] != p->batch || c.v[0] != p->batch)
        return false;
    fac_dims d = { .n = c.n };
    memcpy(d.d, c.v, (size_t)c.n * sizeof *d.d);
    d.d[0] = 0;
    out[0] = fac_reshape(in[0], d);
    return true;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    const plan *p = self;
    const bool in_path = on_path(p, n);
    if (in_path && is(n, soft)) {
        out[0] = in[0];
        return true;
    }
    if (in_path && is(n, shapes) && ones_after(&in[0]->type.dims)) {
        out[0] = in[0]->type.dims.n == 2 ? in[0] : fac_flatten(in[0], 1);
        return true;
    }
    if (p->fresh && (n == p->head || (in_path && FAC_IS(n, add)))) {
        put_head(p, to, n, in, out);
        return true;
    }
    return reshape_batch(p, n, in, out);
}

/* The first output as [N, classes]. */
static fac_status finish(const plan *p, fac_graph *g, fac_error *err) {
    FAC_TRY(fac_graph_check(g, err));
    fac_value *y = g->outputs[0].value, *flat = y;
    if (y->type.dims.n > 2 && ones_after(&y->type.dims)) flat = fac_flatten(y, 1);
    FAC_TRY(fac_graph_check(g, err));
    y->roots--;
    flat->roots++;
    g->outputs[0].value = flat;
    const fac_dims *d = &flat->type.dims;
    const bool batch = p->batch == NONE || d->d[0] == p->symbol;
    return d->n == 2 && d->d[1] == p->classes && batch
               ? FAC_OK
               : fac_raise(err, FAC_E_UNSUPPORTED,
                           "after its last layer the model does not give [N,%lld]",
                           (long long)p->classes);
}

static fac_status rebuild(const fac_graph *model, plan *p, uint64_t seed, fac_graph **out,
                          fac_error *err) {
    fac_graph *copy = fac_graph_clone(model); /* for the seed and the symbol of the batch */
    if (!copy) return fac_raise_memory(err, "a copy of the model");
    fac_nn_seed(copy, seed);
    fac_nn_source(copy, NULL, NULL);
    if (p->batch != NONE) p->symbol = fac_symbol(copy, "N");
    p->n = 0;
    fac_status copied = fac_graph_check(copy, err);
    if (!copied && !find(copy, p)) /* its nodes are others */
        copied = fac_raise(err, FAC_E_INTERNAL, "a copy of the model has another end");
    if (copied) {
        fac_graph_free(copy);
        return copied;
    }
    fac_graph *g =
        fac_graph_rebuild(copy, &(fac_rebuild){ .self = p, .visit = visit, .leaf = leaf }, NULL);
    fac_graph_free(copy);
    if (!g) return fac_raise_memory(err, "a copy of the model");
    fac_status status = finish(p, g, err);
    if (status)
        fac_graph_free(g);
    else
        *out = g;
    return status;
}

static void describe(const plan *p, fac_head *head) {
    char label[sizeof head->layer];
    const fac_value *w = p->head->in[1];
    const char *name =
        w->leaf == FAC_PARAM && w->name ? w->name : fac_node_label(p->head, label, sizeof label);
    *head = (fac_head){
        .features = p->fan_in, .had = p->had, .classes = p->classes, .replaced = p->fresh
    };
    const size_t end = strlen(name),
                 cut = end > 7 && !strcmp(name + end - 7, ".weight") ? end - 7 : end;
    memcpy(head->layer, name, cut < sizeof head->layer ? cut : sizeof head->layer - 1);
}

fac_status fac_graph_replace_head(const fac_graph *model, int64_t classes, uint64_t seed,
                                  fac_graph **out, fac_head *head, fac_error *err) {
    plan p = { .classes = classes, .batch = NONE };
    fac_head about;
    FAC_TRY(fac_graph_usable(model, "fac_graph_replace_head", err));
    if (classes < 1 || classes > 1 << 24)
        return fac_raise(err, FAC_E_ARGUMENT, "%lld classes", (long long)classes);
    if (!model->noutputs || !find(model, &p))
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "the model does not end in a linear layer, product or convolution that "
                         "could be replaced");
    p.fresh = p.had != classes;
    describe(&p, &about);
    const fac_dims *x = model->ninputs == 1 ? &model->inputs[0]->type.dims : NULL;
    fac_status status = FAC_E_UNSUPPORTED;
    if (x && x->n > 1 && x->d[0] >= 0) {
        p.batch = x->d[0];
        status = rebuild(model, &p, seed, out, NULL);
        about.batch_freed = !status;
        p.batch = NONE;
    }
    if (status) FAC_TRY(rebuild(model, &p, seed, out, err));
    if (p.fresh) fac_graph_set_note(*out, FAC_NOTE_LABELS, NULL); /* of the old classes */
    if (head) *head = about;
    return FAC_OK;
}
