/* Gradients over a history: what they were made from, newest first. */
#include <stdlib.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "grad/reverse.h"
#include "lazy/lazy_internal.h"
#include "op_list.h"

/* What a walk knows of a cell.  It lies outside of the cell, since walks may go on within walks. */
typedef struct place {
    fac_lazy *gradient;
    bool asked;
} place;

typedef struct walk {
    fac_recorder *r;
    fac_keys places; /* by cell                                  */
    fac_keys found;  /* mades on a path: by made                 */
    fac_made **made; /* those with a history, newest first       */
    size_t n, room;
    fac_reverse reverse;
    uint64_t epoch; /* that `reverse` belongs to                */
    unsigned flags;
} walk;

static fac_hash key_of(const void *p) {
    const uint64_t x = (uint64_t)(uintptr_t)p;
    return (fac_hash){ (x >> 4) * 0x9e3779b97f4a7c15u >> 20, x };
}

static place *place_of(const walk *w, const fac_lazy *x) {
    return fac_keys_get(&w->places, key_of(x));
}

static fac_status place_for(walk *w, fac_lazy *x, place **out, fac_error *err) {
    place *p = place_of(w, x);
    if (!p) {
        p = fac_alloc(1, sizeof *p);
        if (!p || !fac_keys_put(&w->places, key_of(x), p)) {
            fac_release(p);
            return fac_raise_memory(err, "gradients");
        }
    }
    *out = p;
    return FAC_OK;
}

/* ---- what there is ---- */

static fac_status add_made(walk *w, fac_made *m, fac_error *err) {
    if (!fac_made_has_history(m) || fac_keys_get(&w->found, key_of(m))) return FAC_OK;
    if (!fac_reserve(&w->made, &w->room, w->n + 1, sizeof *w->made) ||
        !fac_keys_put(&w->found, key_of(m), m))
        return fac_raise_memory(err, "gradients");
    fac_made_retain(m);
    w->made[w->n++] = m;
    return FAC_OK;
}

static int newest_first(const void *a, const void *b) {
    const fac_made *x = *(fac_made *const *)a, *y = *(fac_made *const *)b;
    return x->serial < y->serial ? 1 : -(x->serial > y->serial);
}

static fac_status find_all(walk *w, int ny, fac_lazy *const y[], fac_error *err) {
    for (int k = 0; k < ny; k++) FAC_TRY(add_made(w, y[k]->made, err));
    for (size_t at = 0; at < w->n; at++) {
        const fac_made *m = w->made[at];
        for (int i = 0; i < m->nin; i++)
            if (m->in[i] && m->in[i]->requires) FAC_TRY(add_made(w, m->in[i]->made, err));
    }
    if (w->n) qsort(w->made, w->n, sizeof *w->made, newest_first);
    return FAC_OK;
}

/* Does a gradient have to reach this input? */
static bool leads_on(const walk *w, const fac_lazy *x) {
    if (!x || !x->requires) return false;
    const place *p = place_of(w, x);
    return (p && p->asked) || fac_keys_get(&w->found, key_of(x->made));
}

/* Leaves in `found` only those after which there is something asked for. */
static fac_status keep_paths(walk *w, int n, fac_lazy *const x[], fac_error *err) {
    for (int i = 0; i < n; i++) {
        place *p;
        FAC_TRY(place_for(w, x[i], &p, err));
        p->asked = true;
    }
    for (size_t at = w->n; at-- > 0;) { /* oldest first: all inputs were judged before */
        const fac_made *m = w->made[at];
        bool any = false;
        for (int i = 0; i < m->nin && !any; i++) any = leads_on(w, m->in[i]);
        if (!any) fac_keys_put(&w->found, key_of(m), NULL);
    }
    return FAC_OK;
}

/* ---- adding up ---- */

/* Takes the reference of dx. */
static fac_status add_gradient(walk *w, fac_lazy *x, fac_lazy *dx, fac_error *err) {
    place *p;
    fac_status status = place_for(w, x, &p, err);
    if (!status && p->gradient) {
        fac_lazy *sum, *both[2] = { p->gradient, dx };
        const unsigned flags = w->flags & FAC_BACKWARD_RECORD ? 0 : FAC_RECORD_NO_GRAD;
        status = fac_record_held(w->r, &fac_op_add, 2, both, flags, &sum, err);
        fac_lazy_unuse(dx);
        if (status) return status;
        fac_lazy_unuse(p->gradient);
        dx = sum;
    }
    if (status)
        fac_lazy_unuse(dx);
    else
        p->gradient = dx;
    return status;
}

static fac_status one_like(fac_recorder *r, const fac_lazy *y, fac_lazy **out, fac_error *err) {
    FAC_TRY(fac_segment_open(r, err));
    fac_value *one = fac_number(r->g, y->type.dtype, 1);
    return r->g->error.status ? fac_segment_error(r, err) : fac_segment_take(r, one, out, err);
}

static fac_status seed(walk *w, int ny, fac_lazy *const y[], fac_lazy *const dy[], fac_error *err) {
    for (int k = 0; k < ny; k++) {
        fac_lazy *d;
        if (dy && dy[k])
            d = fac_lazy_use(dy[k]);
        else
            FAC_TRY(one_like(w->r, y[k], &d, err));
        FAC_TRY(add_gradient(w, y[k], d, err));
    }
    return FAC_OK;
}

/* ---- one op ---- */

static fac_status no_gradient(const fac_made *m, fac_error *err) {
    return fac_raise(err, FAC_E_UNSUPPORTED, "%s has no gradient", m->op->name);
}

/* The new nodes have a history where gradients of gradients are wanted; all of them stay until
 * their results were taken. */
static fac_status remember(walk *w, const fac_node *skip, fac_node *before, fac_error *err) {
    fac_made *m;
    if (!(w->flags & FAC_BACKWARD_RECORD)) return FAC_OK;
    fac_node *n = before ? before->next : w->r->g->first;
    for (; n; n = n->next)
        if (n != skip) FAC_TRY(fac_segment_adopt(w->r, n, 0, NULL, 0, &m, err));
    return FAC_OK;
}

static fac_status take_all(walk *w, fac_made *m, const bool needs[], fac_value *const dx[],
                           fac_error *err) {
    for (int i = 0; i < m->nin; i++) {
        fac_lazy *d;
        if (!dx[i] || !needs[i]) continue;
        FAC_TRY(fac_segment_take(w->r, dx[i], &d, err));
        FAC_TRY(add_gradient(w, m->in[i], d, err));
    }
    return FAC_OK;
}

static fac_status through_op(walk *w, fac_made *m, const bool needs[], fac_lazy *const d[],
                             fac_error *err) {
    fac_recorder *r = w->r;
    fac_node *n, *before = r->g ? r->g->last : NULL;
    FAC_TRY(fac_history_node(m, &n, err));
    if (w->epoch != r->epoch) fac_reverse_end(&w->reverse);
    w->epoch = r->epoch;
    w->reverse.g = r->g;
    fac_value **dy = fac_arena_alloc(&r->g->arena, (size_t)n->nout + (size_t)n->nin, sizeof *dy);
    bool *all = fac_arena_alloc(&r->g->arena, (size_t)n->nin + 1, sizeof *all);
    if (!dy || !all) return fac_raise_memory(err, "gradients");
    fac_value **dx = dy + n->nout;
    for (int i = 0; i < m->nin && i < n->nin; i++) all[i] = needs[i];
    for (int k = 0; k < n->nout; k++)
        if (d[k]) FAC_TRY(fac_segment_value(d[k], &dy[k], err));
    const char *scope = r->g->scope;
    const bool known = fac_reverse_node(&w->reverse, n, all, dy, dx);
    r->g->scope = scope;
    if (r->g->error.status) return fac_segment_error(r, err);
    if (!known) return no_gradient(m, err);
    FAC_TRY(fac_history_done(m, n, err));
    const size_t first = r->npending;
    fac_status status = remember(w, n == m->node ? NULL : n, before, err);
    const size_t last = r->npending;
    if (!status) status = take_all(w, m, needs, dx, err);
    for (size_t i = first; i < last; i++) fac_made_free(r->pending[i]);
    return status;
}

/* The binding's function runs without the lock. */
static fac_status through_custom(walk *w, fac_made *m, const bool needs[], fac_lazy *const d[],
                                 fac_error *err) {
    fac_lazy **dx = fac_alloc((size_t)m->nin + (size_t)m->nout, sizeof *dx), **dy = dx + m->nin;
    if (!dx) return fac_raise_memory(err, "gradients");
    const int nin = m->nin;
    for (int k = 0; k < m->nout; k++) dy[k] = d[k];
    fac_recorder_let_go(w->r);
    fac_status status = m->grad(m->self, m->nout, dy, nin, dx, err);
    fac_recorder_hold(w->r);
    for (int i = 0; i < nin; i++) {
        if (!dx[i]) continue;
        const fac_lazy *x = m->nin ? m->in[i] : NULL;
        if (!status && x && dx[i]->made->r != w->r)
            status =
                fac_raise(err, FAC_E_ARGUMENT, "a custom gradient belongs to another recorder");
        if (!status && x &&
            (dx[i]->type.dtype != x->type.dtype ||
             !fac_dims_equal(&dx[i]->type.dims, &x->type.dims)))
            status =
                fac_raise(err, FAC_E_SHAPE,
                          "the custom gradient of input %d has another type than the input", i);
        if (!status && x && needs[i])
            status = add_gradient(w, m->in[i], dx[i], err);
        else
            fac_lazy_unuse(dx[i]);
    }
    fac_release(dx);
    return status;
}

static fac_status step(walk *w, fac_made *m, fac_error *err) {
    enum { FEW = 32 };
    bool few[FEW], *needs = few, any = false;
    fac_lazy *few_d[FEW], **d = few_d;
    void *many = NULL;
    const size_t n = (size_t)m->nin + (size_t)m->nout;
    if (n > FEW) {
        if (!(many = fac_alloc(n, sizeof *needs + sizeof *d)))
            return fac_raise_memory(err, "gradients");
        d = many;
        needs = (bool *)(d + n);
    }
    for (int i = 0; i < m->nin; i++) needs[i] = leads_on(w, m->in[i]);
    for (int k = 0; k < m->nout; k++) {
        const place *p = place_of(w, &m->cell[k]);
        d[k] = p && p->gradient ? fac_lazy_use(p->gradient) : NULL;
        any |= d[k] != NULL;
    }
    fac_status status = FAC_OK;
    const int nout = m->nout;
    if (any)
        status = m->kind == FAC_MADE_CUSTOM ? through_custom(w, m, needs, d, err)
                                            : through_op(w, m, needs, d, err);
    for (int k = 0; k < nout; k++) fac_lazy_unuse(d[k]);
    fac_release(many);
    return status;
}

/* ---- the walk ---- */

static void drop_place(void *at) {
    place *p = at;
    fac_lazy_unuse(p->gradient);
    fac_release(p);
}

static void end_walk(walk *w, bool used) {
    for (size_t at = 0; at < w->n; at++) {
        if (used) fac_made_forget(w->made[at]);
        fac_made_free(w->made[at]);
    }
    fac_keys_clear(&w->places, drop_place);
    fac_keys_free(&w->found);
    fac_reverse_end(&w->reverse);
    fac_release(w->made);
}

static fac_status check_result(const fac_lazy *y, const fac_lazy *dy, int k, fac_error *err) {
    if (!y->requires)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_lazy_backward: y[%d] requires no gradient", k);
    if (y->made->used_up)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "fac_lazy_backward: the history of y[%d] was used up; "
                         "keep it (FAC_BACKWARD_KEEP)",
                         k);
    if (!dy && y->type.dims.n)
        return fac_raise(err, FAC_E_SHAPE,
                         "fac_lazy_backward: y[%d] is no scalar, so it needs a weight", k);
    if (dy && (dy->type.dtype != y->type.dtype || !fac_dims_equal(&dy->type.dims, &y->type.dims)))
        return fac_raise(err, FAC_E_SHAPE, "fac_lazy_backward: dy[%d] has another type than y[%d]",
                         k, k);
    return FAC_OK;
}

/* Some of the history may have been used up by another result. */
static fac_status check_whole(const walk *w, fac_error *err) {
    for (size_t at = 0; at < w->n; at++) {
        const fac_made *m = w->made[at];
        for (int i = 0; i < m->nin; i++)
            if (m->in[i] && m->in[i]->requires && m->in[i]->made->used_up)
                return fac_raise(err, FAC_E_ARGUMENT,
                                 "fac_lazy_backward: a part of the history was used up; "
                                 "keep it (FAC_BACKWARD_KEEP)");
    }
    return FAC_OK;
}

static fac_status go(walk *w, int ny, fac_lazy *const y[], fac_lazy *const dy[], int n,
                     fac_lazy *const x[], fac_lazy *grads[], fac_error *err) {
    for (int k = 0; k < ny; k++) FAC_TRY(check_result(y[k], dy ? dy[k] : NULL, k, err));
    FAC_TRY(fac_segment_open(w->r, err));
    FAC_TRY(find_all(w, ny, y, err));
    FAC_TRY(check_whole(w, err));
    FAC_TRY(keep_paths(w, n, x, err));
    FAC_TRY(seed(w, ny, y, dy, err));
    for (size_t at = 0; at < w->n; at++)
        if (fac_keys_get(&w->found, key_of(w->made[at]))) FAC_TRY(step(w, w->made[at], err));
    for (int i = 0; i < n; i++) {
        const place *p = place_of(w, x[i]);
        grads[i] = p && p->gradient ? fac_lazy_use(p->gradient) : NULL;
    }
    return FAC_OK;
}

static fac_status check_call(int ny, fac_lazy *const y[], fac_lazy *const dy[], int n,
                             fac_lazy *const x[], fac_lazy *grads[], fac_error *err) {
    const char *who = "fac_lazy_backward";
    if (ny < 1 || n < 0 || !y || (n && (!x || !grads)))
        return fac_raise(err, FAC_E_ARGUMENT, "%s: %d results, %d values", who, ny, n);
    for (int k = 0; k < ny + n; k++) {
        const fac_lazy *v = k < ny ? y[k] : x[k - ny];
        if (!v) return fac_raise(err, FAC_E_ARGUMENT, "%s: a value is NULL", who);
        if (v->made->r != y[0]->made->r)
            return fac_raise(err, FAC_E_ARGUMENT, "%s: the values belong to different recorders",
                             who);
    }
    for (int k = 0; dy && k < ny; k++)
        if (dy[k] && dy[k]->made->r != y[0]->made->r)
            return fac_raise(err, FAC_E_ARGUMENT, "%s: dy[%d] belongs to another recorder", who, k);
    return FAC_OK;
}

fac_status fac_lazy_backward(int ny, fac_lazy *const y[], fac_lazy *const dy[], int n,
                             fac_lazy *const x[], fac_lazy *grads[], unsigned flags,
                             fac_error *err) {
    FAC_TRY(check_call(ny, y, dy, n, x, grads, err));
    fac_recorder *r = y[0]->made->r;
    walk w = { .r = r, .flags = flags };
    fac_recorder_hold(r);
    r->walking++;
    fac_status status = go(&w, ny, y, dy, n, x, grads, err);
    r->walking--;
    const bool keep = flags & (FAC_BACKWARD_KEEP | FAC_BACKWARD_RECORD);
    end_walk(&w, !status && !keep);
    if (!status && fac_recorder_eager(r)) {
        status = fac_flush_held(r, err);
        for (int i = 0; i < n && status; i++) fac_lazy_unuse(grads[i]);
    }
    fac_recorder_let_go(r);
    return status;
}

/* ---- leaves ---- */

static int by_address(const void *a, const void *b) {
    const uintptr_t x = (uintptr_t) * (fac_lazy *const *)a, y = (uintptr_t) * (fac_lazy *const *)b;
    return (x > y) - (x < y);
}

size_t fac_lazy_leaves(int ny, fac_lazy *const y[], size_t most, fac_lazy *leaves[]) {
    if (ny < 1 || !y) return 0;
    walk w = { .r = y[0]->made->r };
    fac_lazy **found = NULL;
    size_t n = 0, room = 0, count = 0;
    fac_recorder_hold(w.r);
    bool ok = !find_all(&w, ny, y, NULL);
    for (size_t at = w.n; at-- > 0 && ok;)
        for (int i = 0; i < w.made[at]->nin && ok; i++) {
            fac_lazy *x = w.made[at]->in[i];
            if (!x || !x->requires || fac_made_has_history(x->made)) continue;
            ok = fac_reserve(&found, &room, n + 1, sizeof *found);
            if (ok) found[n++] = x;
        }
    if (n) qsort(found, n, sizeof *found, by_address);
    for (size_t i = 0; i < n; i++) {
        if (i && found[i] == found[i - 1]) continue;
        if (count < most) leaves[count] = fac_lazy_use(found[i]);
        count++;
    }
    end_walk(&w, false);
    fac_recorder_let_go(w.r);
    fac_release(found);
    return count;
}
