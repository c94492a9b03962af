/* What grows by concat, a few rows in each segment: keys and values of attention, above all.
 *
 * From the second concat on, contents lie in a tensor with room for more rows, and the rows that
 * come are written to a place that is data.  So segments differ in numbers that are inputs and not
 * in sizes, and one program serves them until the room is used up.  Ops that can do without the
 * exact size read the room (room_ops.c); for all others the exact value is recorded as a slice
 * of it. */
#include <string.h>
#include "base/error.h"
#include "facula/ops.h"
#include "graph/attr.h"
#include "graph/build.h"
#include "lazy/lazy_internal.h"
#include "op_list.h"

/* ---- values with room ---- */

fac_status fac_room_new(fac_recorder *r, fac_value *room, int axis, int64_t rows, bool zeros,
                        fac_lazy **out, fac_error *err) {
    fac_lazy *cell;
    FAC_TRY(fac_segment_take(r, room, &cell, err));
    fac_made *m = fac_made_new(r, FAC_MADE_ROOM, 1);
    if (!m) {
        fac_lazy_unuse(cell);
        return fac_raise_memory(err, "a value");
    }
    m->serial = ++r->serials;
    m->room = cell;
    m->axis = axis;
    m->zeros = zeros;
    m->cell[0].type = cell->type;
    m->cell[0].type.dims.d[axis] = rows;
    *out = fac_lazy_use(&m->cell[0]);
    return FAC_OK;
}

fac_status fac_room_settle(fac_lazy *x, fac_error *err) {
    fac_made *m = x->made;
    fac_recorder *r = m->r;
    fac_value *room, *y;
    FAC_TRY(fac_segment_open(r, err));
    FAC_TRY(fac_segment_value(m->room, &room, err));
    y = fac_slice(room, m->axis, 0, x->type.dims.d[m->axis], 1);
    if (r->g->error.status) return fac_segment_error(r, err);
    FAC_TRY(fac_segment_name(r, x, y, err));
    FAC_TRY(fac_made_list(m, err));
    m->kind = FAC_MADE_OP;
    m->op = y->node->op;
    m->node = y->node;
    m->epoch = r->epoch;
    m->grows = FAC_GROWS_NEVER; /* read as a whole, it is cheaper without room */
    fac_lazy_unuse(m->room);
    m->room = NULL;
    return FAC_OK;
}

/* ---- counts: inputs, so that their numbers are no part of a key ---- */

static fac_status count_leaf(fac_recorder *r, int n, int64_t number, fac_lazy **out,
                             fac_error *err) {
    fac_tensor *t;
    FAC_TRY(fac_tensor_new(NULL, FAC_I64, fac_shape(n), &t, err));
    int64_t *to = fac_tensor_memory(t);
    for (int i = 0; i < n; i++) to[i] = number;
    const fac_status status = fac_lazy_of(r, t, out, err);
    fac_tensor_free(t);
    return status;
}

/* i64[n], all of them number; those that a segment asks for again are the same leaf. */
fac_status fac_room_count(fac_recorder *r, int n, int64_t number, fac_value **out, fac_error *err) {
    fac_count *free_one = &r->counts[0];
    for (int i = 0; i < FAC_COUNTS; i++) {
        fac_count *c = &r->counts[i];
        if (c->cell && c->n == n && c->number == number) return fac_segment_leaf(c->cell, out, err);
        if (!c->cell) free_one = c;
    }
    fac_lazy_unuse(free_one->cell);
    *free_one = (fac_count){ 0 };
    FAC_TRY(count_leaf(r, n, number, &free_one->cell, err));
    free_one->n = n;
    free_one->number = number;
    return fac_segment_leaf(free_one->cell, out, err);
}

void fac_room_forget_counts(fac_recorder *r) {
    for (int i = 0; i < FAC_COUNTS; i++) {
        fac_lazy_unuse(r->counts[i].cell);
        r->counts[i] = (fac_count){ 0 };
    }
}

/* ---- what is looked at ---- */

void fac_room_note(fac_recorder *r, fac_made *m, const fac_node *n) {
    if (n->op != &fac_op_concat || n->nin != 2 || !n->in[0] || !n->in[1]) return;
    const fac_lazy *first = n->in[0]->id < r->room_by_id ? r->by_id[n->in[0]->id] : NULL;
    m->axis = (int)fac_attr_int(n, "axis", 0);
    if (m->axis < 0) m->axis += n->out[0]->type.dims.n;
    m->grows = first && first->made->grows == FAC_GROWS_NEVER ? FAC_GROWS_NEVER : FAC_GROWS_MAYBE;
}

/* A concat of the segment before, or something with room already. */
static bool is_roomy(const fac_lazy *x) {
    const fac_made *m = x->made;
    return m->kind == FAC_MADE_ROOM || (m->grows == FAC_GROWS_MAYBE && x->tensor);
}

bool fac_room_concerns(int n, fac_lazy *const in[], unsigned flags) {
    bool any = false;
    for (int i = 0; i < n && !any; i++) any = in[i] && is_roomy(in[i]);
    return any && !fac_history_wanted(n, in, flags);
}

/* ---- builders ---- */

enum { MOST_INPUTS = 8 };

static fac_value *stand_in(fac_graph *g, const fac_lazy *x) {
    if (!x) return NULL;
    if (x->made->kind == FAC_MADE_INTS) return fac_const(g, x->tensor);
    return fac_leaf_new(g, FAC_INPUT, NULL, x->type, NULL);
}

/* What the node reads, as cells; false: something that the builder made. */
static bool operands_of(const fac_node *node, int n, fac_value *const v[], fac_lazy *const in[],
                        fac_lazy *cell[]) {
    for (int k = 0; k < node->nin; k++) {
        int i = 0;
        while (i < n && v[i] != node->in[k]) i++;
        if (k >= MOST_INPUTS || (node->in[k] && i == n)) return false;
        cell[k] = node->in[k] ? in[i] : NULL;
    }
    return true;
}

fac_status fac_room_record_graph(fac_recorder *r, fac_lazy_build *build, void *self, int n,
                                 fac_lazy *const in[], int nout, fac_lazy *out[], bool *done,
                                 fac_error *err) {
    fac_value *v[MOST_INPUTS] = { NULL }, *y = NULL;
    fac_lazy *cell[MOST_INPUTS];
    *done = false;
    if (nout != 1 || n > MOST_INPUTS) return FAC_OK;
    fac_graph *g = fac_graph_new();
    if (!g) return fac_raise_memory(err, "a graph");
    for (int i = 0; i < n; i++) v[i] = stand_in(g, in[i]);
    if (!g->error.status) build(self, g, v, &y);
    const fac_node *node = g->error.status ? NULL : g->first;
    fac_status status = FAC_OK;
    if (node && !node->next && !node->body[0] && y == node->out[0] &&
        operands_of(node, n, v, in, cell))
        status = fac_room_record(r, node->op, node->attrs, node->nin, cell, 1, out, done, err);
    fac_graph_free(g);
    return status;
}
