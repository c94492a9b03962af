/* Recording: ops, builders, assignments, results in the caller's memory. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "lazy/lazy_internal.h"
#include "op_list.h"

enum { FEW = FAC_FEW_OPERANDS };

/* ---- results ---- */

/* Sizes that depend on data are looked at now. */
static fac_status settle_sizes(fac_lazy *out[], int nout, fac_error *err) {
    fac_tensor *t;
    for (int k = 0; k < nout; k++)
        if (fac_dims_count(&out[k]->type.dims) < 0) FAC_TRY(fac_lazy_fetch(out[k], &t, err));
    return FAC_OK;
}

static void give_back(fac_lazy *out[], int nout) {
    for (int k = 0; k < nout; k++) fac_lazy_unuse(out[k]);
}

/* What a long segment loses when it is flushed is told to those who read it. */
static void flush_long(fac_recorder *r) {
    if (r->g && r->g->nodes >= r->opts.most_nodes && !r->walking) fac_flush_held(r, NULL);
}

static fac_status record(fac_recorder *r, const fac_op *op, const void *attrs, int n,
                         fac_lazy *const in[], unsigned flags, int nout, fac_lazy *out[],
                         fac_error *err) {
    fac_operands o;
    fac_made *m = NULL;
    bool done = false;
    if (fac_room_concerns(n, in, flags))
        FAC_TRY(fac_room_record(r, op, attrs, n, in, nout, out, &done, err));
    if (done) {
        r->stat.recorded++;
        return FAC_OK;
    }
    fac_status status = fac_operands_begin(&o, op, n, in, err);
    if (!status) status = fac_operands_values(&o, err);
    if (!status) status = fac_segment_open(r, err);
    if (!status) {
        fac_value *y = fac_emit_body(r->g, op, attrs, n, n, o.value, NULL, NULL);
        if (r->g->error.status)
            status = fac_segment_error(r, err);
        else if (nout > y->node->nout)
            status = fac_raise(err, FAC_E_ARGUMENT, "%s has %d results, %d were asked for",
                               op->name, y->node->nout, nout);
        else
            status = fac_segment_adopt(r, y->node, n, o.cell, flags, &m, err);
    }
    for (int k = 0; k < nout && !status; k++) out[k] = fac_lazy_use(&m->cell[k]);
    fac_made_free(m);
    fac_operands_end(&o);
    if (status) return status;
    r->stat.recorded++;
    if ((status = settle_sizes(out, nout, err)))
        give_back(out, nout);
    else
        flush_long(r);
    return status;
}

fac_status fac_record_held(fac_recorder *r, const fac_op *op, int n, fac_lazy *const in[],
                           unsigned flags, fac_lazy **out, fac_error *err) {
    return record(r, op, NULL, n, in, flags, 1, out, err);
}

fac_status fac_record(fac_recorder *r, const fac_op *op, const void *attrs, int n,
                      fac_lazy *const in[], unsigned flags, int nout, fac_lazy *out[],
                      fac_error *err) {
    FAC_TRY(fac_operands_check(r, "fac_record", n, in, nout, out, err));
    if (!op) return fac_raise(err, FAC_E_ARGUMENT, "fac_record: there is no such op");
    if ((flags & FAC_RECORD_NOW) || fac_recorder_eager(r))
        return fac_eager(r, op, attrs, n, in, flags, nout, out, err);
    fac_recorder_hold(r);
    const fac_status status = record(r, op, attrs, n, in, flags, nout, out, err);
    fac_recorder_let_go(r);
    return status;
}

fac_status fac_record_text(fac_recorder *r, const fac_op *op, const char *attrs, int n,
                           fac_lazy *const in[], unsigned flags, int nout, fac_lazy *out[],
                           fac_error *err) {
    enum { ROOM = 64 };
    uint64_t few[ROOM] = { 0 };
    fac_arena texts = { 0 };
    if (!op) return fac_raise(err, FAC_E_ARGUMENT, "fac_record: there is no such op");
    void *values = op->attrs_size <= sizeof few ? few : fac_arena_alloc(&texts, 1, op->attrs_size);
    if (!values) return fac_raise(err, FAC_E_NOMEM, "%s: no memory for attributes", op->name);
    fac_status status = fac_attrs_parse(op, attrs, &texts, values, err);
    if (status)
        fac_raise_in(err, status, "%s", op->name);
    else
        status = fac_record(r, op, values, n, in, flags, nout, out, err);
    fac_arena_free(&texts);
    return status;
}

/* ---- builders ---- */

/* The nodes after `before` get cells, those with a history theirs, and the builder's values
 * users. */
static fac_status adopt_built(fac_recorder *r, fac_node *before, unsigned flags, int nout,
                              fac_value *const y[], fac_lazy *out[], fac_error *err) {
    const size_t first = r->npending;
    fac_status status = FAC_OK;
    int taken = 0;
    fac_made *m;
    fac_node *n = before ? before->next : r->g->first;
    for (; n && !status && !(flags & FAC_RECORD_NO_GRAD); n = n->next)
        status = fac_segment_adopt(r, n, 0, NULL, flags, &m, err);
    const size_t last = r->npending;
    while (taken < nout && !status) {
        status = fac_segment_take(r, y[taken], &out[taken], err);
        taken += !status;
    }
    for (size_t i = first; i < last; i++) fac_made_free(r->pending[i]);
    if (status) give_back(out, taken);
    return status;
}

fac_status fac_record_graph_held(fac_recorder *r, fac_lazy_build *build, void *self, int n,
                                 fac_lazy *const in[], unsigned flags, int nout, fac_lazy *out[],
                                 fac_error *err) {
    fac_operands o;
    fac_value *few[FEW] = { NULL }, **y = few;
    bool done = false;
    if (fac_room_concerns(n, in, flags))
        FAC_TRY(fac_room_record_graph(r, build, self, n, in, nout, out, &done, err));
    if (done) {
        r->stat.recorded++;
        return FAC_OK;
    }
    if (nout > FEW && !(y = fac_alloc((size_t)nout, sizeof *y)))
        return fac_raise_memory(err, "%d results", nout);
    fac_status status = fac_operands_begin(&o, NULL, n, in, err);
    if (!status) status = fac_operands_values(&o, err);
    if (!status) status = fac_segment_open(r, err);
    if (!status) {
        fac_node *before = r->g->last;
        if (!fac_history_wanted(n, o.cell, flags)) flags |= FAC_RECORD_NO_GRAD;
        build(self, r->g, o.value, y);
        status = r->g->error.status ? fac_segment_error(r, err)
                                    : adopt_built(r, before, flags, nout, y, out, err);
    }
    fac_operands_end(&o);
    if (y != few) fac_release(y);
    if (status) return status;
    r->stat.recorded++;
    if ((status = settle_sizes(out, nout, err)))
        give_back(out, nout);
    else
        flush_long(r);
    return status;
}

fac_status fac_record_graph(fac_recorder *r, fac_lazy_build *build, void *self, int n,
                            fac_lazy *const in[], unsigned flags, int nout, fac_lazy *out[],
                            fac_error *err) {
    FAC_TRY(fac_operands_check(r, "fac_record_graph", n, in, nout, out, err));
    if (!build) return fac_raise(err, FAC_E_ARGUMENT, "fac_record_graph: build is NULL");
    fac_recorder_hold(r);
    fac_status status = fac_record_graph_held(r, build, self, n, in, flags, nout, out, err);
    if (!status && ((flags & FAC_RECORD_NOW) || fac_recorder_eager(r))) {
        status = fac_flush_held(r, err);
        if (status) give_back(out, nout);
    }
    fac_recorder_let_go(r);
    return status;
}

/* ---- states and the caller's memory ---- */

static bool same_type(const fac_type *a, const fac_type *b) {
    return a->dtype == b->dtype && fac_dims_equal(&a->dims, &b->dims);
}

/* A value that stays what it is when states change: a user of it. */
static fac_status frozen(fac_lazy *x, fac_lazy **out, fac_error *err) {
    while (x->made->kind == FAC_MADE_ALIAS) x = x->made->in[0];
    if (x->made->next)
        x = x->made->next;
    else if (x->made->kind == FAC_MADE_STATE)
        return record(x->made->r, &fac_op_identity, NULL, 1, &x, FAC_RECORD_NO_GRAD, 1, out, err);
    *out = fac_lazy_use(x);
    return FAC_OK;
}

static fac_status assign(fac_lazy *state, fac_lazy *next, fac_error *err) {
    fac_recorder *r = state->made->r;
    fac_lazy *value;
    FAC_TRY(fac_segment_open(r, err));
    if (!fac_reserve(&r->assigned, &r->room_assigned, r->nassigned + 1, sizeof *r->assigned))
        return fac_raise_memory(err, "an assignment");
    FAC_TRY(frozen(next, &value, err));
    if (state->made->next)
        fac_lazy_unassign(state->made);
    else
        r->assigned[r->nassigned++] = fac_lazy_use(state);
    state->made->next = value;
    state->made->assigned++;
    value->nexts++;
    return FAC_OK;
}

fac_status fac_lazy_assign(fac_lazy *state, fac_lazy *next, fac_error *err) {
    if (!state || !next)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_lazy_assign: %s is NULL",
                         state ? "next" : "the state");
    if (state->made->kind == FAC_MADE_ALIAS) state = state->made->in[0];
    if (state->made->kind != FAC_MADE_STATE)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_lazy_assign: this value is no state");
    if (next->made->r != state->made->r)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_lazy_assign: next belongs to another recorder");
    if (!same_type(&state->type, &next->type))
        return fac_raise(err, FAC_E_SHAPE,
                         "fac_lazy_assign: the state and next have different types");
    fac_recorder *r = state->made->r;
    fac_recorder_hold(r);
    const fac_status status = assign(state, next, err);
    fac_recorder_let_go(r);
    return status;
}

static bool overlaps(const fac_tensor *a, const fac_tensor *b) {
    const char *x = a->storage->host, *y = b->storage->host;
    if (a->storage == b->storage) return true;
    return x && y && x < y + b->storage->bytes && y < x + a->storage->bytes;
}

/* Does the segment read memory that it would write? */
static bool is_read(const fac_recorder *r, const fac_tensor *to) {
    for (size_t i = 0; i < r->nleaves; i++)
        if (r->leaves[i]->tensor && overlaps(r->leaves[i]->tensor, to)) return true;
    return false;
}

/* Contents that are there are copied; what is not computed yet is computed there. */
static fac_status write_to(fac_lazy *x, fac_tensor *to, fac_error *err) {
    fac_tensor *t, *copy = NULL;
    const bool fresh = fac_lazy_recorded(x) && !is_read(x->made->r, to);
    if (fresh) x->target = to;
    fac_status status = fac_lazy_fetch(x, &t, err);
    x->target = NULL;
    if (status || t == to) return status;
    FAC_TRY(fac_tensor_copy_contiguous(t, &copy, err));
    const fac_type type = fac_tensor_type(copy);
    status = fac_tensor_write(to, fac_tensor_data(copy), fac_type_bytes(&type), err);
    fac_tensor_free(copy);
    return status;
}

fac_status fac_lazy_write(fac_lazy *x, fac_tensor *to, fac_error *err) {
    if (!x || !to)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_lazy_write: %s is NULL",
                         x ? "the tensor" : "the value");
    const fac_type type = fac_tensor_type(to);
    if (!same_type(&x->type, &type) || !fac_tensor_contiguous(to))
        return fac_raise(err, FAC_E_SHAPE,
                         "fac_lazy_write: the tensor has another type than the value, "
                         "or is not contiguous");
    fac_recorder *r = x->made->r;
    fac_recorder_hold(r);
    const fac_status status = write_to(x, to, err);
    fac_recorder_let_go(r);
    return status;
}
