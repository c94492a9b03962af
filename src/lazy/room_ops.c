/* Ops of values with room: they read the room, and give something with room again, or the exact
 * result.  A rule that does not know what to do says so, and the op reads the exact value. */
#include <math.h>
#include "base/error.h"
#include "facula/ops.h"
#include "graph/attr.h"
#include "lazy/lazy_internal.h"
#include "op_list.h"
#include "ops/attention.h"
#include "ops/shape.h"

enum { ROWS = 64, MOST_PORTS = 8 };

typedef struct call {
    fac_recorder *r;
    const fac_op *op;
    const void *attrs;
    int n;
    fac_lazy *const *in;
    fac_lazy **out;
    fac_value *value[MOST_PORTS]; /* rooms instead of what lies in them; NULL: absent */
    bool done;
} call;

/* ---- operands ---- */

static const fac_made *room_of(const fac_lazy *x) {
    return x && x->made->kind == FAC_MADE_ROOM ? x->made : NULL;
}

static int rank_of(const fac_lazy *x) { return x->type.dims.n; }
static int64_t rows_of(const fac_made *m) { return m->cell[0].type.dims.d[m->axis]; }
static int64_t room_rows(const fac_made *m) { return m->room->type.dims.d[m->axis]; }

/* As many rows in as much room. */
static bool alike(const fac_made *a, const fac_made *b) {
    return rows_of(a) == rows_of(b) && room_rows(a) == room_rows(b);
}

static fac_status take_values(call *c, fac_error *err) {
    for (int i = 0; i < c->n; i++) {
        const fac_made *m = room_of(c->in[i]);
        c->value[i] = NULL;
        if (c->in[i]) FAC_TRY(fac_segment_value(m ? m->room : c->in[i], &c->value[i], err));
    }
    return FAC_OK;
}

static fac_value *emit(call *c) {
    return fac_emit_body(c->r->g, c->op, c->attrs, c->n, c->n, c->value, NULL, NULL);
}

/* What the graph refuses is no error of the user's: sizes of rooms are none that he knows. */
static bool refused(call *c) {
    if (!c->r->g->error.status) return false;
    fac_segment_error(c->r, NULL);
    return true;
}

static fac_status give(call *c, fac_value *y, fac_error *err) {
    if (refused(c)) return FAC_OK;
    c->done = true;
    return fac_segment_take(c->r, y, &c->out[0], err);
}

static fac_status give_room(call *c, fac_value *y, int axis, int64_t rows, bool zeros,
                            fac_error *err) {
    if (refused(c)) return FAC_OK;
    c->done = true;
    return fac_room_new(c->r, y, axis, rows, zeros, &c->out[0], err);
}

/* ---- growing ---- */

/* To the next multiple of 64, and a quarter of what there is. */
static int64_t room_for(int64_t rows) { return (rows / ROWS + 1 + rows / (4 * ROWS)) * ROWS; }

static bool can_grow(const fac_lazy *a, const fac_lazy *b, int axis) {
    const char kind = fac_dtype_get(a->type.dtype)->kind;
    const fac_dims *p = &a->type.dims, *q = &b->type.dims;
    if (a->type.dtype != b->type.dtype || (kind != 'f' && kind != 'i' && kind != 'u')) return false;
    if (p->n != q->n || axis < 0 || axis >= p->n || room_of(b)) return false;
    for (int k = 0; k < p->n; k++)
        if (p->d[k] < 1 || q->d[k] < 1 || (k != axis && p->d[k] != q->d[k])) return false;
    return q->d[axis] <= p->d[axis];
}

static fac_dims folded(const fac_dims *d, int axis) {
    fac_dims to = fac_shape(1, 1, d->d[axis], 1);
    for (int k = 0; k < d->n; k++)
        if (k != axis) to.d[k < axis ? 1 : 3] *= d->d[k];
    return to;
}

/* The rows that come, at a place that is an input. */
static fac_status write_rows(call *c, const fac_made *m, fac_error *err) {
    fac_value *at, *room = c->value[0];
    const fac_dims dims = room->type.dims, rows = c->in[1]->type.dims;
    FAC_TRY(fac_room_count(c->r, 1, rows_of(m), &at, err));
    fac_value *y = fac_cache_write(fac_reshape(room, folded(&dims, m->axis)),
                                   fac_reshape(c->value[1], folded(&rows, m->axis)), at);
    return give_room(c, fac_reshape(y, dims), m->axis, rows_of(m) + rows.d[m->axis], m->zeros, err);
}

static fac_status concat(call *c, fac_error *err) {
    const fac_lazy *a = c->in[0], *b = c->in[1];
    const fac_made *m = room_of(a);
    const int64_t *given = fac_attr_of(c->op, c->attrs, "axis", FAC_A_INT);
    if (c->n != 2 || !a || !b || !given || (!m && a->made->grows != FAC_GROWS_MAYBE)) return FAC_OK;
    const int axis = fac_axis(*given, rank_of(a));
    if (axis != a->made->axis || !can_grow(a, b, axis)) return FAC_OK;
    const int64_t rows = a->type.dims.d[axis] + b->type.dims.d[axis];
    FAC_TRY(take_values(c, err));
    if (m && rows <= room_rows(m)) return write_rows(c, m, err);
    if (m) c->value[0] = fac_slice(c->value[0], axis, 0, rows_of(m), 1);
    fac_dims pads = { .n = 2 * rank_of(a) };
    pads.d[rank_of(a) + axis] = room_for(rows) - rows;
    fac_value *y = fac_concat(c->value, 2, axis);
    y = fac_pad(y, fac_ints(c->r->g, pads), NULL, NULL, FAC_PAD_CONSTANT);
    return give_room(c, y, axis, rows, true, err);
}

/* ---- what reads rooms ---- */

/* Keys and values with room: attention gives what is not there a probability of 0.  A product with
 * it is 0 only where the room has no infinite numbers: there must be zeros in it. */
static fac_status attention(call *c, fac_error *err) {
    const fac_attention_opts *o = c->attrs;
    const fac_made *k = c->n > FAC_ATTENTION_V ? room_of(c->in[FAC_ATTENTION_K]) : NULL,
                   *v = k ? room_of(c->in[FAC_ATTENTION_V]) : NULL;
    const fac_lazy *q = c->in[FAC_ATTENTION_Q];
    if (!v || !q || room_of(q) || o->causal || !alike(k, v) || !k->zeros || !v->zeros)
        return FAC_OK;
    const int axis = rank_of(&k->cell[0]) - 2;
    if (k->axis != axis || v->axis != axis || rank_of(q) < 3) return FAC_OK;
    for (int i = FAC_ATTENTION_MASK; i < c->n; i++)
        if (c->in[i]) return FAC_OK;
    FAC_TRY(take_values(c, err));
    for (int i = c->n; i <= FAC_ATTENTION_LENGTHS; i++) c->value[i] = NULL;
    FAC_TRY(fac_room_count(c->r, (int)q->type.dims.d[0], rows_of(k),
                           &c->value[FAC_ATTENTION_LENGTHS], err));
    c->n = FAC_ATTENTION_LENGTHS + 1;
    return give(c, emit(c), err);
}

static fac_status transpose(call *c, fac_error *err) {
    const fac_made *m = room_of(c->in[0]);
    const fac_dims *perm = fac_attr_of(c->op, c->attrs, "perm", FAC_A_DIMS);
    if (!m || !perm || perm->n != rank_of(c->in[0])) return FAC_OK;
    int axis = 0;
    while (axis < perm->n && perm->d[axis] != m->axis) axis++;
    if (axis == perm->n) return FAC_OK;
    FAC_TRY(take_values(c, err));
    return give_room(c, emit(c), axis, rows_of(m), m->zeros, err);
}

/* Rows of a and columns of b may have room; where both have room along what is summed, there must
 * be zeros in it. */
static fac_status matmul(call *c, fac_error *err) {
    const fac_made *a = room_of(c->in[0]), *b = room_of(c->in[1]);
    if (!c->in[0] || !c->in[1]) return FAC_OK;
    const int na = rank_of(c->in[0]), nb = rank_of(c->in[1]);
    if ((!a && !b) || na < 2 || nb < 2) return FAC_OK;
    const bool sum = a && b && a->axis == na - 1 && b->axis == nb - 2;
    if (sum ? !a->zeros || !b->zeros || !alike(a, b) : a && b) return FAC_OK;
    if (!sum && (a ? a->axis != na - 2 : b->axis != nb - 1)) return FAC_OK;
    FAC_TRY(take_values(c, err));
    fac_value *y = emit(c);
    if (sum) return give(c, y, err);
    const fac_made *m = a ? a : b;
    const int n = na > nb ? na : nb, from_end = m->cell[0].type.dims.n - m->axis;
    return give_room(c, y, n - from_end, rows_of(m), false, err);
}

/* 0, 1, ... along an axis, beside dims of size 1. */
static fac_value *places(fac_graph *g, int64_t rows, int after) {
    fac_dims dims = { .n = 1 + after, .d = { rows } };
    for (int k = 1; k < dims.n; k++) dims.d[k] = 1;
    return fac_reshape(fac_arange(fac_number(g, FAC_I64, 0), fac_number(g, FAC_I64, (double)rows),
                                  fac_number(g, FAC_I64, 1)),
                       dims);
}

static fac_status softmax(call *c, fac_error *err) {
    const fac_made *m = room_of(c->in[0]);
    const int64_t *given = fac_attr_of(c->op, c->attrs, "axis", FAC_A_INT);
    fac_value *rows;
    if (!m || !given) return FAC_OK;
    const bool along = fac_axis(*given, rank_of(c->in[0])) == m->axis;
    FAC_TRY(take_values(c, err));
    if (along) {
        fac_value *x = c->value[0];
        FAC_TRY(fac_room_count(c->r, 1, rows_of(m), &rows, err));
        fac_value *there =
            fac_less(places(c->r->g, room_rows(m), rank_of(c->in[0]) - 1 - m->axis), rows);
        c->value[0] = fac_where(there, x, fac_number_as(x, -INFINITY));
    }
    return give_room(c, emit(c), m->axis, rows_of(m), along, err);
}

/* Elementwise ops with what has one row there, or as many in as much room. */
static fac_status map(call *c, fac_error *err) {
    const fac_made *m = NULL;
    int rank = 0;
    for (int i = 0; i < c->n; i++) {
        const fac_made *one = room_of(c->in[i]);
        if (one && (!m || rank_of(c->in[i]) > rank_of(&m->cell[0]))) m = one;
        if (c->in[i] && rank_of(c->in[i]) > rank) rank = rank_of(c->in[i]);
    }
    if (!m || rank_of(&m->cell[0]) != rank) return FAC_OK;
    for (int i = 0; i < c->n; i++) {
        if (!c->in[i]) continue;
        const fac_made *one = room_of(c->in[i]);
        const int k = m->axis - (rank - rank_of(c->in[i]));
        if (one ? one->axis != k || !alike(one, m) : k >= 0 && c->in[i]->type.dims.d[k] != 1)
            return FAC_OK;
    }
    const bool same = c->op == &fac_op_cast || c->op == &fac_op_identity;
    FAC_TRY(take_values(c, err));
    return give_room(c, emit(c), m->axis, rows_of(m), same && m->zeros, err);
}

/* ---- by op ---- */

static const struct {
    const fac_op *op;
    int least;
    fac_status (*rule)(call *c, fac_error *err);
} rules[] = { { &fac_op_concat, 2, concat },       { &fac_op_attention, 3, attention },
              { &fac_op_transpose, 1, transpose }, { &fac_op_matmul, 2, matmul },
              { &fac_op_softmax, 1, softmax },     { &fac_op_cast, 1, map },
              { &fac_op_identity, 1, map } };

fac_status fac_room_record(fac_recorder *r, const fac_op *op, const void *attrs, int n,
                           fac_lazy *const in[], int nout, fac_lazy *out[], bool *done,
                           fac_error *err) {
    call c = { r, op, attrs, n, in, out, { NULL }, false };
    fac_status (*rule)(call *, fac_error *) = op->map ? map : NULL;
    *done = false;
    if (nout != 1 || n > MOST_PORTS - 1 || (op->attrs_size && !attrs)) return FAC_OK;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].op == op) rule = n >= rules[i].least ? rules[i].rule : NULL;
    if (!rule) return FAC_OK;
    FAC_TRY(fac_segment_open(r, err));
    const fac_status status = rule(&c, err);
    *done = c.done;
    return status;
}
