/* Stages of a sliced batch (slices.c): later steps do more images at once than earlier ones.
 *
 * A step in the middle of the graph gathers images: what the nodes before it make of several
 * slices, one after the other, is one value to the nodes after it.  The nodes before it are a
 * *stage*, which runs as many times as slices are gathered before the next one runs once.  In the
 * graph that is a node of an op of its own, `gather_slices`, whose result has more images than its
 * operand; it has no step: its operand is made in its place, a part of the result that moves on
 * from slice to slice, or copied there. */
#include <stddef.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/attr.h"
#include "plan/schedule.h"

typedef struct attrs {
    int64_t times;
} attrs;

static bool infer(fac_node *n) {
    n->out[0]->type = n->in[0]->type;
    n->out[0]->type.dims.d[0] *= ((const attrs *)n->attrs)->times;
    return true;
}
static const fac_port one[] = { { "x", FAC_ANY, 0 }, { 0 } },
                      result[] = { { "y", FAC_ANY, 0 }, { 0 } };
static const fac_attr attr_table[] = { { "times", FAC_A_INT, offsetof(attrs, times), 0, 1, 1,
                                         1 << 16, NULL, "slices that are gathered" },
                                       { 0 } };
static const fac_op gather_slices = { .name = "gather_slices",
                                      .doc = "images of several slices of a batch",
                                      .in = one,
                                      .out = result,
                                      .attrs = attr_table,
                                      .attrs_size = sizeof(attrs),
                                      .is = FAC_OP_BARRIER | FAC_OP_NO_GRAD,
                                      .infer = infer };

bool fac_gathers(const fac_node *n) { return n->op == &gather_slices; }
static int64_t times_of(const fac_node *n) { return fac_attr_int(n, "times", 1); }

/* ---- the graph ---- */

typedef struct stager {
    const int64_t *after;
    int64_t images;
    int node;
} stager;

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    stager *s = self;
    const int64_t images = s->after[s->node++];
    if (!images) return false;
    const attrs a = { images / s->images };
    s->images = images;
    fac_node_copy(to, n, in, out);
    for (int k = 0; k < n->nout; k++)
        if (n->out[k]->uses) out[k] = fac_emit(&gather_slices, &a, 1, &out[k]);
    return true;
}

/* Is every value what it was, of as many images as its stage does at once? */
static bool alike(const fac_graph *g, fac_value *const *map, const int64_t *after, int64_t images) {
    const int64_t slice = images;
    int node = 0;
    for (const fac_node *n = g->first; n; n = n->next) {
        if (after[node++]) images = after[node - 1];
        for (int k = 0; k < n->nout && n->out[0]->time == FAC_RUN; k++) {
            if (!fac_reads_of(n->out[k])) continue;
            fac_type was = n->out[k]->type;
            was.dims.d[0] *= images / slice;
            const fac_type is = map[n->out[k]->id]->type;
            if (is.dtype != was.dtype || !fac_dims_equal(&is.dims, &was.dims)) return false;
        }
    }
    return true;
}

fac_graph *fac_stages(const fac_graph *g, const int64_t *after, int64_t images) {
    stager s = { after, images, 0 };
    bool any = false;
    for (int k = 0; k < g->nodes; k++) any |= after[k] > 0;
    if (!any) return NULL;
    fac_value **map;
    fac_error err = { 0 };
    fac_graph *staged =
        fac_graph_rebuild(g, &(fac_rebuild){ .self = &s, .visit = visit, .keep_dead = true }, &map);
    if (staged && (fac_graph_check(staged, &err) || !alike(g, map, after, images))) {
        fac_graph_free(staged);
        staged = NULL;
    }
    return staged;
}

/* ---- the plan ---- */

fac_status fac_stages_begin(fac_scheduler *s) {
    fac_plan *p = s->plan;
    int count = 1;
    for (const fac_node *n = p->graph->first; n; n = n->next) count += fac_gathers(n);
    p->stages = fac_arena_alloc(&p->memory, (size_t)count, sizeof *p->stages);
    if (!p->stages) return fac_raise_memory(s->err, "a plan of %d stages", count);
    s->runs = p->slices;
    for (const fac_node *n = p->graph->last; n;
         n = n->prev) /* the last one runs once for each slice of the batch */
        if (fac_gathers(n))
            p->stages[--count - 1] = (fac_stage){ .times = times_of(n) }, s->runs *= times_of(n),
                                p->nstages++;
    p->stages[p->nstages++] = (fac_stage){ .times = p->slices, .part = -1 };
    return FAC_OK;
}

fac_status fac_stage_end(fac_scheduler *s, const fac_node *n) {
    fac_plan *p = s->plan;
    const fac_value *v = n->in[0];
    fac_stage *stage = &p->stages[s->stage++];
    fac_slot part = s->at[v->id].slot;
    /* all that lies in its root must fit into the place of its images */
    const bool there = p->roots[part.root].kind == FAC_ROOT_ARENA &&
                       p->roots[part.root].bytes <= fac_layout_bytes(&part.layout, &v->type);
    if (!there) part.layout = fac_layout_plain(&v->type.dims);
    const int whole = fac_arena_root(s, &n->out[0]->type, &part.layout);
    if (whole < 0) return FAC_E_NOMEM;
    p->roots[whole].first =
        0; /* whatever runs before the last slice has come must not write there */
    if (!there) {
        part.root = fac_root_new(s, (fac_root){ 0 });
        if (part.root < 0) return FAC_E_NOMEM;
        FAC_TRY(fac_copy_to(s, v, &part));
    }
    fac_root *r = &p->roots[part.root];
    const fac_dtype_info *t = fac_dtype_get(v->type.dtype);
    r->kind = FAC_ROOT_PART;
    r->index = whole;
    r->bytes = (size_t)(v->type.dims.d[0] * part.layout.stride[0]) / (size_t)t->block_elements *
               (size_t)t->block_bytes;
    stage->part = part.root;
    stage[1].first = p->nsteps;
    s->runs /= stage->times;
    fac_lay(s, n->out[0], whole, &part.layout);
    return FAC_OK;
}
