/* Reshapes and transposes after each other become one reshape that splits dims and one transpose:
 * a dim that is merged and split again, such as batch and heads, would have to be copied between.
 *
 * Dims are made of atoms, parts of the dims of what the chain begins with.  A reshape splits atoms
 * and groups them anew, a transpose moves groups. */
#include "facula/backend.h"
#include "facula/ops.h"
#include "ops/reshapes.h"
#include "op_list.h"
#include "passes/views/row_moves.h"

enum { ATOMS = 16, DEPTH = 32 };

typedef struct atom {
    int64_t size, stride; /* in the elements that the chain begins with */
    int dim;              /* of those that it is a part of              */
} atom;

/* Dim k is made of atoms first[k] to first[k + 1]. */
typedef struct atoms {
    atom of[ATOMS];
    int n, first[FAC_DIMS + 1], rank;
} atoms;

bool fac_is_reordered(const fac_value *v) {
    const fac_node *n = v->node;
    return n && n->nout == 1 && !n->body[0] && v->time == FAC_RUN &&
           fac_node_guess(n) == FAC_CERTAIN && (fac_node_reshapes(n) || FAC_IS(n, transpose));
}

/* ---- atoms ---- */

static void begin(const fac_dims *d, atoms *a) {
    int64_t stride = 1;
    *a = (atoms){ .rank = d->n };
    for (int k = 0; k < d->n; k++) {
        a->first[k] = a->n;
        if (d->d[k] != 1) a->of[a->n++] = (atom){ d->d[k], 0, k };
    }
    a->first[d->n] = a->n;
    for (int i = a->n - 1; i >= 0; stride *= a->of[i--].size) a->of[i].stride = stride;
}

/* Dim k is dim from[k] of before. */
static void permute(const fac_node *n, atoms *a) {
    fac_layout x = { 0 }, y;
    const atoms was = *a;
    for (int k = 0; k < was.rank; k++) x.stride[k] = k;
    if (!n->op->view(n, &x, &y)) return;
    a->n = 0;
    for (int k = 0; k < was.rank; k++) {
        const int from = (int)y.stride[k];
        a->first[k] = a->n;
        for (int i = was.first[from]; i < was.first[from + 1]; i++) a->of[a->n++] = was.of[i];
    }
    a->first[was.rank] = a->n;
}

/* The same atoms under other dims; false: sizes have no such parts. */
static bool regroup(const fac_dims *d, atoms *a) {
    atom left[ATOMS + 1] = { { 0 } };
    int at = 0;
    const int count = a->n;
    for (int i = 0; i < count; i++) left[i] = a->of[i];
    a->n = 0;
    a->rank = d->n;
    for (int k = 0; k < d->n; k++) {
        a->first[k] = a->n;
        for (int64_t need = d->d[k]; need > 1;) {
            if (at == count || a->n == ATOMS) return false;
            atom *p = &left[at];
            if (need % p->size == 0) {
                need /= p->size;
                a->of[a->n++] = *p;
                at++;
            } else if (p->size % need == 0) {
                p->size /= need;
                a->of[a->n++] = (atom){ need, p->stride * p->size, p->dim };
                need = 1;
            } else {
                return false;
            }
        }
    }
    a->first[d->n] = a->n;
    return at == count;
}

/* Neighbours in a dim that are neighbours in one dim of before, too. */
static void join(atoms *a) {
    const atoms was = *a;
    a->n = 0;
    for (int k = 0; k < was.rank; k++) {
        a->first[k] = a->n;
        for (int i = was.first[k]; i < was.first[k + 1]; i++) {
            const atom *p = &was.of[i];
            atom *last = a->n > a->first[k] ? &a->of[a->n - 1] : NULL;
            if (last && last->dim == p->dim && last->stride == p->stride * p->size) {
                last->size *= p->size;
                last->stride = p->stride;
            } else {
                a->of[a->n++] = *p;
            }
        }
    }
    a->first[was.rank] = a->n;
}

/* ---- copies ---- */

/* Where v lies when what is no view lies in its own order; *copies: how many of the reshapes and
 * transposes down to it cannot be views. */
static fac_layout lies(const fac_value *v, int depth, int *copies) {
    const fac_node *n = v->node;
    fac_layout y;
    if (n && depth && n->nout == 1 && n->op->view && n->in[0] && v->time == FAC_RUN) {
        const fac_layout x = lies(n->in[0], depth - 1, copies);
        if (n->op->view(n, &x, &y)) return y;
        (*copies)++;
    }
    return fac_layout_plain(&v->type.dims);
}

static int copies_to(const fac_value *v) {
    int copies = 0;
    lies(v, DEPTH, &copies);
    return copies;
}

/* ---- the chain ---- */

static bool follow(fac_value *v, const fac_value *root, int depth, atoms *a) {
    if (v == root) {
        if (v->type.dims.n > FAC_DIMS) return false;
        begin(&v->type.dims, a);
        return true;
    }
    if (!depth || !follow(v->node->in[0], root, depth - 1, a)) return false;
    if (FAC_IS(v->node, transpose))
        permute(v->node, a);
    else
        return regroup(&v->type.dims, a);
    return true;
}

static fac_value *build(fac_value *root, const atoms *a, const fac_dims *dims) {
    fac_dims split = { .n = a->n }, perm = { .n = a->n };
    bool stays = true;
    for (int i = 0; i < a->n; i++) {
        int place = 0;
        for (int j = 0; j < a->n; j++) place += a->of[j].stride > a->of[i].stride;
        split.d[place] = a->of[i].size;
        perm.d[i] = place;
        stays = stays && place == i;
    }
    if (stays) return fac_reshape_sizes(root, *dims);
    fac_value *v = fac_transpose(fac_reshape_sizes(root, split), perm);
    return fac_dims_equal(&v->type.dims, dims) ? v : fac_reshape_sizes(v, *dims);
}

fac_value *fac_reordered_once(fac_value *v) {
    fac_value *root = v;
    atoms a;
    int length = 0;
    for (; fac_is_reordered(root) && length < DEPTH; length++) root = root->node->in[0];
    if (length < 2 || fac_dims_count(&v->type.dims) <= 0 || !follow(v, root, length, &a)) return v;
    join(&a);
    const int before = copies_to(v);
    if (a.n > FAC_DIMS || a.n < 2 || !before) return v;
    fac_value *made = build(root, &a, &v->type.dims);
    return copies_to(made) < before ? made : v;
}
