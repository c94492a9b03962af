/* The segment: a graph that grows, the cells of its values, and the key that grows with it. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/build.h"
#include "lazy/lazy_internal.h"

static void free_tensor(void *t) { fac_tensor_free(t); }

fac_status fac_segment_open(fac_recorder *r, fac_error *err) {
    if (r->g) return FAC_OK;
    r->g = r->spare ? fac_graph_clear(r->spare) : fac_graph_new();
    r->spare = NULL;
    if (!r->g) return fac_raise_memory(err, "a graph");
    r->key = fac_hash_start(31);
    if (!r->nleaves && !r->ncalls) return FAC_OK;
    fac_error why = { 0 };
    const fac_status status = fac_calls_write_out(r, &why);
    if (status) {
        fac_segment_close(r, &why);
        if (err) *err = why;
    }
    return status;
}

/* ---- the end ---- */

static fac_failure *failure_of(const fac_error *why) {
    fac_failure *f = why ? fac_alloc(1, sizeof *f) : NULL;
    if (!f) return NULL;
    f->error = *why;
    atomic_init(&f->refs, 1);
    return f;
}

static void settle(fac_made *m, fac_failure *f) {
    bool lost = false;
    for (int k = 0; k < m->nout; k++) lost |= !m->cell[k].tensor;
    if (lost && f && !m->failure) {
        atomic_fetch_add(&f->refs, 1);
        m->failure = f;
    }
    m->node = NULL;
    atomic_store(&m->pending, false);
}

void fac_segment_close(fac_recorder *r, const fac_error *why) {
    fac_failure *f = failure_of(why);
    for (size_t i = 0; i < r->npending; i++)
        if (r->pending[i]) settle(r->pending[i], f);
    fac_failure_free(f);
    r->npending = 0;
    if (r->g && r->room_by_id)
        memset(r->by_id, 0,
               (r->g->ids < r->room_by_id ? r->g->ids : r->room_by_id) * sizeof *r->by_id);
    r->epoch++;
    for (size_t i = 0; i < r->nassigned; i++) {
        if (r->assigned[i]->made->next) fac_lazy_unassign(r->assigned[i]->made);
        fac_lazy_unuse(r->assigned[i]);
    }
    for (size_t i = 0; i < r->nleaves; i++) fac_lazy_unuse(r->leaves[i]);
    r->nassigned = r->nleaves = 0;
    fac_calls_drop(r);
    r->ids = 0;
    r->key = fac_hash_start(31);
    fac_room_forget_counts(r);
    for (size_t i = 0; r->g && i < r->g->nconsts; i++) {
        fac_recorder_later(r, r->g->consts[i]->tensor, free_tensor);
        r->g->consts[i]->tensor = NULL;
    }
    if (r->g) r->spare = r->g;
    r->g = NULL;
}

/* ---- leaves ---- */

fac_status fac_segment_name(fac_recorder *r, fac_lazy *x, fac_value *v, fac_error *err) {
    const size_t before = r->room_by_id;
    if (!fac_reserve(&r->by_id, &r->room_by_id, (size_t)v->id + 1, sizeof *r->by_id))
        return fac_raise_memory(err, "a value");
    if (r->room_by_id > before)
        memset(r->by_id + before, 0, (r->room_by_id - before) * sizeof *r->by_id);
    if (!r->by_id[v->id]) r->by_id[v->id] = x;
    x->value = v;
    x->epoch = r->epoch;
    return FAC_OK;
}

static fac_hash hash_type(fac_hash h, const fac_type *type) {
    h = fac_hash_int(h, (uint64_t)type->dtype << 32 | (uint64_t)type->dims.n);
    for (int k = 0; k < type->dims.n; k++) h = fac_hash_int(h, (uint64_t)type->dims.d[k]);
    return h;
}

fac_status fac_segment_error(fac_recorder *r, fac_error *err) {
    const fac_error e = r->g->error;
    r->g->error = (fac_error){ 0 };
    if (err) *err = e;
    return e.status;
}

fac_status fac_segment_place(fac_recorder *r, fac_lazy *x, fac_value **out, fac_error *err) {
    const bool fixed = x->made->kind == FAC_MADE_INTS;
    fac_value *v =
        fixed ? fac_const(r->g, x->tensor) : fac_leaf_new(r->g, FAC_INPUT, NULL, x->type, NULL);
    if (r->g->error.status) return fac_segment_error(r, err);
    FAC_TRY(fac_segment_name(r, x, v, err));
    if (!fixed) r->key = hash_type(fac_hash_int(r->key, v->id), &x->type);
    *out = v;
    return FAC_OK;
}

fac_hash fac_segment_leaf_key(fac_hash h, const fac_lazy *x) {
    enum { BY_CONTENTS = 64 };
    h = hash_type(h, &x->type);
    if (x->made->kind != FAC_MADE_INTS) return h;
    const size_t bytes = fac_type_bytes(&x->type);
    if (bytes > BY_CONTENTS) return fac_hash_int(h, (uint64_t)(uintptr_t)x->tensor->storage);
    return fac_hash_bytes(h, fac_tensor_data(x->tensor), bytes);
}

fac_status fac_segment_leaf(fac_lazy *x, fac_value **out, fac_error *err) {
    fac_recorder *r = x->made->r;
    if (!r->g && r->nleaves) FAC_TRY(fac_segment_open(r, err));
    if (x->value && x->epoch == r->epoch) {
        *out = x->value;
        return FAC_OK;
    }
    const fac_made_kind kind = x->made->kind;
    if (kind == FAC_MADE_ROOM) {
        FAC_TRY(fac_room_settle(x, err));
        *out = x->value;
        return FAC_OK;
    }
    if (!x->tensor && kind != FAC_MADE_NUMBER) return fac_lazy_lost(x, err);
    FAC_TRY(fac_segment_open(r, err));
    if (!fac_reserve(&r->leaves, &r->room_leaves, r->nleaves + 1, sizeof *r->leaves))
        return fac_raise_memory(err, "a value");
    FAC_TRY(fac_segment_place(r, x, out, err));
    r->leaves[r->nleaves++] = fac_lazy_use(x);
    return FAC_OK;
}

fac_status fac_segment_value(fac_lazy *x, fac_value **out, fac_error *err) {
    if (x->made->kind == FAC_MADE_ALIAS) return fac_segment_value(x->made->in[0], out, err);
    if (x->made->next) return fac_segment_value(x->made->next, out, err);
    return fac_segment_leaf(x, out, err);
}

/* ---- the key ---- */

static fac_hash fold(fac_hash h, const fac_node *n) {
    h = fac_hash_int(h, (uint64_t)(uintptr_t)n->op);
    h = fac_hash_int(h, (uint64_t)n->nin << 32 | (uint64_t)n->nports << 16 | (uint64_t)n->nout);
    if (n->op->attrs_size) h = fac_attrs_hash(h, n->op, n->attrs);
    for (int k = 0; k < 2; k++)
        if (n->body[k]) h = fac_hash_join(h, fac_graph_hash(n->body[k]));
    for (int i = 0; i < n->nin; i++) {
        const fac_value *v = n->in[i];
        if (v && v->leaf == FAC_CONST)
            h = fac_const_hash(h, v);
        else
            h = fac_hash_int(h, v ? v->id : 0);
    }
    return h;
}

void fac_segment_fold(fac_recorder *r) {
    for (const fac_node *n = r->g->first; n; n = n->next) r->key = fold(r->key, n);
}

/* ---- cells of results ---- */

/* A constant that a builder made: its history holds it as a leaf. */
static fac_status cell_of(fac_recorder *r, fac_value *v, fac_lazy **out, fac_error *err) {
    if (v->id < r->room_by_id && r->by_id[v->id]) {
        *out = r->by_id[v->id];
        return FAC_OK;
    }
    if (v->leaf != FAC_CONST || !v->tensor)
        return fac_raise(err, FAC_E_INTERNAL, "a recorded op reads a value that nothing recorded");
    fac_made *m = fac_made_new(r, FAC_MADE_INTS, 1);
    if (!m) return fac_raise_memory(err, "a value");
    fac_lazy *x = &m->cell[0];
    x->type = v->type;
    x->tensor = fac_tensor_retain(v->tensor);
    if (!fac_reserve(&r->leaves, &r->room_leaves, r->nleaves + 1, sizeof *r->leaves) ||
        fac_segment_name(r, x, v, NULL)) {
        fac_tensor_free(x->tensor);
        fac_release(m);
        return fac_raise_memory(err, "a value");
    }
    r->leaves[r->nleaves++] = fac_lazy_use(x);
    *out = x;
    return FAC_OK;
}

static fac_status remember(fac_made *m, fac_node *n, int nin, fac_lazy *const in[], unsigned flags,
                           fac_error *err) {
    enum { FEW = 32 };
    fac_lazy *few[FEW], **cells = few;
    if ((flags & FAC_RECORD_NO_GRAD) || (n->op->is & FAC_OP_NO_GRAD) || !n->nin) return FAC_OK;
    if (!in) {
        if (n->nin > FEW && !(cells = fac_alloc((size_t)n->nin, sizeof *cells)))
            return fac_raise_memory(err, "a history");
        fac_status status = FAC_OK;
        for (int i = 0; i < n->nin && !status; i++) {
            cells[i] = NULL;
            if (n->in[i]) status = cell_of(m->r, n->in[i], &cells[i], err);
        }
        if (!status && fac_history_wanted(n->nin, cells, flags))
            status = fac_history_note(m, n->op, n->attrs, n, n->nin, cells, err);
        if (cells != few) fac_release(cells);
        return status;
    }
    if (!fac_history_wanted(nin, in, flags)) return FAC_OK;
    return fac_history_note(m, n->op, n->attrs, NULL, nin, in, err);
}

static void undo(fac_made *m) {
    fac_made_forget(m);
    for (int k = 0; k < m->nout; k++) {
        fac_lazy *x = &m->cell[k];
        if (x->value && m->r->by_id[x->value->id] == x) m->r->by_id[x->value->id] = NULL;
    }
    fac_release(m);
}

fac_status fac_segment_adopt(fac_recorder *r, fac_node *n, int nin, fac_lazy *const in[],
                             unsigned flags, fac_made **out, fac_error *err) {
    fac_made *m = fac_made_again(r, FAC_MADE_OP, n->nout);
    if (!m || !fac_reserve(&r->pending, &r->room_pending, r->npending + 1, sizeof *r->pending)) {
        fac_release(m);
        return fac_raise_memory(err, "a value");
    }
    m->op = n->op;
    m->node = n;
    fac_room_note(r, m, n);
    m->epoch = r->epoch;
    m->serial = ++r->serials;
    fac_status status = remember(m, n, nin, in, flags, err);
    for (int k = 0; k < n->nout && !status; k++) {
        m->cell[k].type = n->out[k]->type;
        m->cell[k].requires = m->nin && fac_dtype_get(n->out[k]->type.dtype)->kind == 'f';
        status = fac_segment_name(r, &m->cell[k], n->out[k], err);
    }
    if (status) {
        undo(m);
        return status;
    }
    atomic_store(&m->pending, true);
    m->place = r->npending;
    r->pending[r->npending++] = m;
    atomic_init(&m->refs, 1);
    *out = m;
    return FAC_OK;
}

fac_status fac_segment_take(fac_recorder *r, fac_value *v, fac_lazy **out, fac_error *err) {
    if (!v || v->leaf == FAC_POISON || v->graph != r->g)
        return fac_raise(err, FAC_E_ARGUMENT, "a builder gave no value of the segment");
    if (v->id < r->room_by_id && r->by_id[v->id]) {
        *out = fac_lazy_use(r->by_id[v->id]);
        return FAC_OK;
    }
    if (!v->node) {
        fac_lazy *x;
        FAC_TRY(cell_of(r, v, &x, err));
        *out = fac_lazy_use(x);
        return FAC_OK;
    }
    fac_made *m;
    FAC_TRY(fac_segment_adopt(r, v->node, 0, NULL, FAC_RECORD_NO_GRAD, &m, err));
    *out = fac_lazy_use(&m->cell[v->index]);
    fac_made_free(m);
    return FAC_OK;
}
