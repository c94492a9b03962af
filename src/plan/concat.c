/* Concat without a copy: whoever makes an input of a concat along the channels writes it where the
 * result will lie.
 *
 * A value that a concat reads is a *part* of its result, the *whole*; wholes may be parts
 * themselves, as in the growing concats of a DenseNet.  When a maker of a part has said how its
 * output would lie, the whole gets a root of the same kind, blocked or plain, and the part is a
 * slice of it: the same strides, another beginning.  What could not be made there (inputs of the
 * run, parts of two wholes, results that a solver lays otherwise) is copied when the turn of the
 * concat comes.
 *
 * Which cases have slices: blocked along the axis of the concat, all parts but the last being whole
 * blocks (lanes after a last channel may be written to); plain with nothing outside of the axis,
 * so that a slice is contiguous.  Solvers of devices out of sight know steps: there any plain
 * result has slices, and one with channels last has slices of its channels. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "graph/attr.h"
#include "backends/transfer.h"
#include "ref/ref.h"
#include "plan/schedule.h"

static int axis_of(const fac_node *n) {
    return fac_axis(fac_attr_int(n, "axis", 0), n->out[0]->type.dims.n);
}

static bool is_concat(const fac_scheduler *s, const fac_node *n) {
    const char *only = s->plan->only;
    if (n->op != &fac_op_concat || n->out[0]->time != FAC_RUN || n->body[0] || s->plan->observed)
        return false;
    if (only && (!strcmp(only, n->op->name) || !strcmp(only, fac_solver_ref.name))) return false;
    return axis_of(n) >= 0 && fac_dims_count(&n->out[0]->type.dims) > 0;
}

void fac_parts(fac_scheduler *s) {
    const fac_graph *g = s->plan->graph;
    for (const fac_node *n = g->last; n;
         n = n->prev) { /* from the end, so that growing concats make a chain */
        int64_t start = 0;
        if (!is_concat(s, n)) continue;
        for (int i = 0; i < n->nin; i++) {
            const fac_value *v = n->in[i];
            fac_part *p = &s->part[v->id];
            if (v->time == FAC_RUN && v->node && !p->whole) *p = (fac_part){ n->out[0], start };
            start += v->type.dims.d[axis_of(n)];
        }
    }
    /* one halo for all that lies together */
    for (const fac_node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->nin && is_concat(s, n); i++)
            if (s->part[n->in[i]->id].whole == n->out[0] &&
                s->wish[n->in[i]->id] > s->wish[n->out[0]->id])
                s->wish[n->out[0]->id] = s->wish[n->in[i]->id];
    for (const fac_node *n = g->last; n; n = n->prev)
        for (int i = 0; i < n->nin && is_concat(s, n); i++)
            if (s->part[n->in[i]->id].whole == n->out[0])
                s->wish[n->in[i]->id] = s->wish[n->out[0]->id];
}

/* How a value lies, whatever it is a slice of: in blocks, with its last dim or its channels as
 * neighbours, or otherwise. */
typedef enum kind { BLOCKED, PLAIN, LAST, OTHER } kind;

static kind kind_of(const fac_layout *l, const fac_dims *d) {
    if (l->block) return BLOCKED;
    if (fac_layout_is_plain(l, d)) return PLAIN;
    const fac_layout last = d->n >= 3 ? fac_layout_channels_last(d) : *l;
    return d->n >= 3 && fac_layout_equal(l, &last, d) ? LAST : OTHER;
}

/* Can the result of concat n have slices when a part of it lies like this? */
static bool sliceable(const fac_scheduler *s, const fac_node *n, const fac_layout *like,
                      const fac_dims *part) {
    const fac_dims *d = &n->out[0]->type.dims;
    const int axis = axis_of(n);
    if (!like->block) {
        int64_t outside = 1;
        const kind lies = kind_of(like, part);
        if (lies == LAST) return axis == 1;
        if (!fac_in_sight(s->plan->device)) return lies == PLAIN;
        for (int k = 0; k < axis; k++) outside *= d->d[k];
        return outside == 1;
    }
    if (like->axis != axis || axis >= d->n - 2) return false;
    for (int i = 0; i + 1 < n->nin; i++)
        if (n->in[i]->type.dims.d[axis] % like->block) return false;
    return true;
}

/* The slice of a whole that begins at `start` of the concat's axis. */
static fac_slot slice(const fac_node *n, const fac_slot *whole, int64_t start) {
    fac_slot part = *whole;
    const int axis = axis_of(n);
    part.layout.offset +=
        (part.layout.block ? start / part.layout.block : start) * part.layout.stride[axis];
    return part;
}

bool fac_part_alike(const fac_scheduler *s, const fac_value *v, const fac_layout *like) {
    const fac_value *whole = s->part[v->id].whole;
    if (!whole || !sliceable(s, whole->node, like, &v->type.dims)) return false;
    const fac_slot *room = &s->room[whole->id];
    if (room->root < 0) return true;
    if (like->block || room->layout.block)
        return room->layout.block == like->block && room->layout.axis == like->axis;
    const int last = whole->type.dims.n - 1;
    return (room->layout.stride[last] != 1) == (kind_of(like, &v->type.dims) == LAST);
}

/* What lies like a part, for the whole that it is one of. */
static fac_layout grown(const fac_layout *like, const fac_dims *part, const fac_dims *whole) {
    const kind k = kind_of(like, part);
    return k == BLOCKED ? *like
           : k == LAST  ? fac_layout_channels_last(whole)
                        : fac_layout_plain(whole);
}

/* Where v lies, or will lie, when it is a whole.  like: a layout of it. */
static fac_status room_of(fac_scheduler *s, const fac_value *v, const fac_layout *like,
                          fac_slot *out) {
    fac_slot *room = &s->room[v->id];
    const fac_part *up = &s->part[v->id];
    if (room->root < 0) {
        fac_slot slot = { -1, { 0 } };
        if (fac_part_alike(s, v, like)) {
            const fac_layout more = grown(like, &v->type.dims, &up->whole->type.dims);
            FAC_TRY(room_of(s, up->whole, &more, &slot));
            slot = slice(up->whole->node, &slot, up->start);
        } else {
            slot.layout = like->block ? fac_layout_blocked(&v->type.dims, like->axis, like->block,
                                                           s->wish[v->id])
                                      : *like;
            slot.root = fac_arena_root(s, &v->type, &slot.layout);
            if (slot.root < 0) return FAC_E_NOMEM;
        }
        *room = slot;
    }
    *out = *room;
    return FAC_OK;
}

fac_status fac_part_slot(fac_scheduler *s, const fac_value *v, const fac_layout *like,
                         fac_slot *out) {
    const fac_part *p = &s->part[v->id];
    const fac_layout more = grown(like, &v->type.dims, &p->whole->type.dims);
    fac_slot whole;
    FAC_TRY(room_of(s, p->whole, &more, &whole));
    *out = slice(p->whole->node, &whole, p->start);
    return FAC_OK;
}

bool fac_joins_last(const fac_scheduler *s, const fac_node *n) {
    bool parts = is_concat(s, n) && n->out[0]->type.dims.n >= 4 && axis_of(n) == 1;
    for (int i = 0; parts && i < n->nin; i++) parts = s->part[n->in[i]->id].whole == n->out[0];
    return parts;
}

/* Else one concat is cheaper than a copy of each. */
static bool any_there(const fac_scheduler *s, const fac_node *n, int room) {
    bool any = false;
    for (int i = 0; i < n->nin; i++) any |= s->at[n->in[i]->id].slot.root == room;
    return any;
}

fac_status fac_join_parts(fac_scheduler *s, const fac_node *n, bool *joined) {
    const fac_slot *room = &s->room[n->out[0]->id];
    int64_t start = 0;
    *joined = n->op == &fac_op_concat && room->root >= 0 && any_there(s, n, room->root);
    for (int i = 0; *joined && i < n->nin; i++) {
        const fac_value *v = n->in[i];
        const fac_slot to = slice(n, room, start), *at = &s->at[v->id].slot;
        start += v->type.dims.d[axis_of(n)];
        if (at->root != to.root || !fac_layout_equal(&at->layout, &to.layout, &v->type.dims))
            FAC_TRY(fac_copy_to(s, v, &to));
    }
    if (*joined) fac_lay(s, n->out[0], room->root, &room->layout);
    return FAC_OK;
}
