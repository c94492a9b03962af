/* What becomes of the parameters, in few steps.
 *
 * The tail of a graph is every elementwise node whose results serve nothing but updates and other nodes of the tail: the rules of
 * an optimizer, its scalars, clipping, the choice between new and old contents.
 *   Parts      Nodes of the tail of one shape that pass a value of that shape on to each other, or read the same parameter or
 *              state of that shape, become one `fused` node with several results: Adam reads p, g, m, v and writes p, m, v in
 *              one pass over memory.
 *   Products   A large gradient that is a matrix product, and which only its part reads, becomes the beginning of the part, one
 *              `fused_matmul` node: it is used up tile by tile and never stored.
 *   Groups     Other independent parts become one `group`: all parameters are updated in one parallel region.
 * Values only ever grow along elementwise nodes, so parts of one shape never feed each other through another shape, and the parts
 * have levels: those of the scalars come before those that read them.
 *   Places     A group stands where all that it reads is there and all other readers of the parameters that it changes have run:
 *              then it may write over them, and gradients go away early.  So that they do, a group is no larger than BYTES.
 * Bits are preserved: every element is computed by the same operations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "facula/ops.h"
#include "op_list.h"
#include "graph/build.h"
#include "passes/passes.h"

enum { INPUTS = 16, OUTPUTS = 16, NODES = 64, BYTES = 16 << 20 };      /* bytes: of what a group reads that was computed */

typedef struct part {
    fac_graph  *body;
    fac_value  *in[INPUTS], *out[OUTPUTS];      /* of the graph: what it reads and what others read of it */
    int         nin, nout, nodes, level, number;
    size_t      bytes;                          /* of what it reads that is no leaf */
    fac_node   *behind;                         /* the node behind which it may stand; NULL: anywhere */
    bool        refused;
} part;

typedef struct tail {
    fac_graph  *g;
    fac_accept *accept;
    void       *self;
    unsigned char *excluded;        /* by node id: belongs to a part that was refused    */
    uint32_t    ids;                /* of the graph before anything was emitted          */
    int        *part_of;            /* by node id: number of its part + 1; 0: not in it  */
    int        *leader;             /* by node id: while parts are found, of a forest    */
    uint32_t   *updates;            /* by value id: how many parameters become it        */
    fac_value **owner;              /* by value id: the parameter that becomes it        */
    fac_value **became;             /* by value id: what stands for it now               */
    fac_node  **by_id;              /* nodes of the tail                                 */
    part       *parts;
    int         nparts;
} tail;

/* ---- which nodes ---- */

static bool elementwise(const fac_node *n) {
    return n->nout == 1 && !n->body[0] && n->out[0]->time == FAC_RUN && (n->op->map || n->op == &fac_op_cast);
}

static bool in_tail(const tail *t, const fac_node *n) { return n && t->by_id[n->id]; }

static void find_tail(tail *t) {
    memset(t->by_id, 0, t->g->ids * sizeof *t->by_id);
    for (fac_node *n = t->g->last; n; n = n->prev) {
        if (!elementwise(n) || t->excluded[n->id]) continue;
        const fac_value *y = n->out[0];
        bool serves = y->roots == t->updates[y->id] && (y->roots || y->uses);
        for (const fac_use *u = y->uses; u && serves; u = u->next) serves = in_tail(t, u->node);
        if (serves) t->by_id[n->id] = n;
    }
}

/* ---- parts ---- */

static int root_of(tail *t, int i) {
    while (t->leader[i] != i) i = t->leader[i] = t->leader[t->leader[i]];
    return i;
}

static bool is_number(const fac_value *v) { return v->leaf == FAC_CONST && v->tensor && fac_dims_count(&v->type.dims) == 1; }

/* n belongs together with the others that read or make v.  first: by value id, one such node. */
static void join(tail *t, const fac_node *n, const fac_value *v, int *first) {
    const bool own = in_tail(t, v->node) || v->leaf == FAC_PARAM || v->leaf == FAC_STATE;
    if (!own || !fac_dims_equal(&v->type.dims, &n->out[0]->type.dims)) return;
    if (!first[v->id]) first[v->id] = (int)n->id;
    else t->leader[root_of(t, (int)n->id)] = root_of(t, first[v->id]);
}

static bool find_parts(tail *t) {
    int *first = fac_alloc(t->g->ids, sizeof *first);       /* no node has id 0: that is a leaf's */
    if (!first) return false;
    for (uint32_t i = 0; i < t->g->ids; i++) t->leader[i] = (int)i, t->part_of[i] = 0;
    for (const fac_node *n = t->g->first; n; n = n->next) {
        if (!in_tail(t, n)) continue;
        join(t, n, n->out[0], first);
        for (int i = 0; i < n->nin; i++)
            if (n->in[i]) join(t, n, n->in[i], first);
    }
    fac_release(first);
    t->nparts = 0;
    for (const fac_node *n = t->g->first; n; n = n->next) {
        if (!in_tail(t, n)) continue;
        int root = root_of(t, (int)n->id);
        if (!t->part_of[root]) t->part_of[root] = ++t->nparts;
        t->part_of[n->id] = t->part_of[root];
    }
    t->parts = fac_alloc((size_t)t->nparts + 1, sizeof *t->parts);
    return t->parts != NULL;
}

static void free_parts(tail *t) {
    for (int i = 0; t->parts && i < t->nparts; i++) fac_graph_free(t->parts[i].body);
    fac_release(t->parts);
    t->parts = NULL;
}

static part *part_with(const tail *t, const fac_value *v) {
    return in_tail(t, v->node) ? &t->parts[t->part_of[v->node->id] - 1] : NULL;
}

/* What stands for v inside the body of p. */
static fac_value *inside(tail *t, part *p, fac_value *v) {
    if (!v || p->refused) return NULL;
    if (p->body->error.status) return p->body->poison;      /* an input that could not be made is none to find */
    if (part_with(t, v) == p) return v->mark;
    if (p->body->error.status) {            /* no memory: an input that could not be made is none to find */
        p->refused = true;
        return NULL;
    }
    if (is_number(v)) return fac_const(p->body, v->tensor);
    for (int i = 0; i < p->nin; i++)
        if (p->in[i] == v) return p->body->inputs[i];
    if (p->nin == INPUTS) {
        p->refused = true;
        return NULL;
    }
    char name[16];
    snprintf(name, sizeof name, "x%d", p->nin);
    p->in[p->nin++] = v;
    return fac_input(p->body, name, v->type.dtype, v->type.dims);
}

/* Somebody outside of p reads it, or a parameter becomes it. */
static bool leaves(const tail *t, const part *p, const fac_value *v) {
    bool out = v->roots > 0;
    for (const fac_use *u = v->uses; u && !out; u = u->next) out = part_with(t, u->node->out[0]) != p;
    return out;
}

static void fill_part(tail *t, fac_node *n) {
    part *p = part_with(t, n->out[0]);
    fac_value *args[4], *made[1];
    if (p->refused) return;
    if (!p->body && !(p->body = fac_graph_new())) p->refused = true;
    if (p->nodes++ == NODES || n->nin > (int)(sizeof args / sizeof *args)) p->refused = true;
    for (int i = 0; i < n->nin && !p->refused; i++) args[i] = inside(t, p, n->in[i]);
    if (p->refused) return;
    fac_node_copy(p->body, n, args, made);
    n->out[0]->mark = made[0];
    if (!leaves(t, p, n->out[0])) return;
    if (p->nout == OUTPUTS) {
        p->refused = true;
        return;
    }
    char name[16];
    snprintf(name, sizeof name, "y%d", p->nout);
    p->out[p->nout++] = n->out[0];
    fac_output(p->body, name, made[0]);
}

/* One step behind whatever it reads; false when the parts are not ordered, which broadcasting rules out. */
static bool level_parts(tail *t) {
    bool changed = true;
    for (int round = 0; changed; round++) {
        if (round > t->nparts) return false;
        changed = false;
        for (int i = 0; i < t->nparts; i++)
            for (int k = 0; k < t->parts[i].nin; k++) {
                const part *from = part_with(t, t->parts[i].in[k]);
                if (!from || from->level < t->parts[i].level) continue;
                t->parts[i].level = from->level + 1;
                changed = true;
            }
    }
    return true;
}

/* ---- emission ---- */

/* A part as a node of `to`, whose inputs are in[]; the node takes the body. */
static fac_node *emit_part(fac_graph *to, part *p, fac_value *const in[]) {
    fac_graph *body = p->body;
    p->body = NULL;
    return fac_emit_body(to, &fac_op_fused, NULL, p->nin, p->nin, in, body, NULL)->node;
}

static fac_value *now(const tail *t, fac_value *v) { return t->became[v->id] ? t->became[v->id] : v; }

/* Would a kernel take this part?  Asked of a node in a graph of its own. */
static bool accepted(tail *t, part *p) {
    fac_graph *trial = fac_graph_new();
    part copy = *p;
    fac_value *in[INPUTS];
    bool ok = false;
    if (trial && (copy.body = fac_graph_clone(p->body))) {
        for (int i = 0; i < p->nin; i++) {
            char name[16];
            snprintf(name, sizeof name, "x%d", i);
            in[i] = fac_input(trial, name, p->in[i]->type.dtype, p->in[i]->type.dims);
        }
        const fac_node *n = emit_part(trial, &copy, in);
        ok = n && t->accept(t->self, n);
    }
    fac_graph_free(trial);
    return ok;
}

static void later(fac_node **behind, fac_node *n) {
    if (n && (!*behind || n->order > (*behind)->order)) *behind = n;
}

/* Everybody else who reads v, or a view of it. */
static void behind_readers(const tail *t, part *p, const fac_value *v) {
    for (const fac_use *u = v->uses; u; u = u->next) {
        if (u->node->id < t->ids && in_tail(t, u->node)) continue;
        later(&p->behind, u->node);
        for (int k = 0; k < u->node->nout && u->node->op->view && u->input == 0; k++) behind_readers(t, p, u->node->out[k]);
    }
}

/* What is known of a part when those of the levels below are placed. */
static void find_place(const tail *t, part *p) {
    p->behind = NULL;
    p->bytes = 0;
    for (int i = 0; i < p->nin; i++) {
        const fac_value *v = now(t, p->in[i]);
        later(&p->behind, v->node);
        if (v->node) p->bytes += fac_type_bytes(&v->type);
    }
    for (int k = 0; k < p->nout; k++)
        if (t->owner[p->out[k]->id]) behind_readers(t, p, t->owner[p->out[k]->id]);
}

static int by_place(const void *a, const void *b) {
    const part *x = *(part *const *)a, *y = *(part *const *)b;
    const uint64_t i = x->behind ? x->behind->order : 0, k = y->behind ? y->behind->order : 0;
    return i != k ? (i > k) - (i < k) : (x->number > y->number) - (x->number < y->number);
}

/* The node and its values are what the parts' outputs are from now on; it stands behind the last of what they wait for. */
static void take_over(tail *t, fac_node *n, part *const *of, int count) {
    fac_node *behind = NULL;
    int k = 0;
    n->name = "update";
    for (int i = 0; i < count; i++) {
        later(&behind, of[i]->behind);
        for (int j = 0; j < of[i]->nout; j++) t->became[of[i]->out[j]->id] = n->out[k++];
    }
    if (behind) fac_node_move(n, behind);
}

static void emit_alone(tail *t, part *p) {
    fac_value *in[INPUTS];
    for (int i = 0; i < p->nin; i++) in[i] = now(t, p->in[i]);
    fac_node *n = emit_part(t->g, p, in);
    if (n) take_over(t, n, &p, 1);
}

/* The parts inside the body of a group; outer[] receives what its inputs stand for.  How many those are, or -1. */
static int fill_group(tail *t, fac_graph *body, part *const *of, int count, fac_value **outer) {
    int n = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < of[i]->nin; k++) of[i]->in[k]->mark = NULL;
    for (int i = 0; i < count; i++) {
        part copy = *of[i];
        fac_value *in[INPUTS];
        char name[24];
        for (int k = 0; k < copy.nin; k++) {
            fac_value *v = copy.in[k];
            if (!v->mark) {
                snprintf(name, sizeof name, "x%d", n);
                v->mark = fac_input(body, name, v->type.dtype, v->type.dims);
                outer[n++] = now(t, v);
            }
            in[k] = v->mark;
        }
        copy.body = fac_graph_clone(copy.body);
        const fac_node *m = copy.body ? emit_part(body, &copy, in) : NULL;
        if (!m) return -1;
        for (int k = 0; k < m->nout; k++) {
            snprintf(name, sizeof name, "y%zu", body->noutputs);
            fac_output(body, name, m->out[k]);
        }
    }
    return n;
}

/* The matrix product that only p reads, and whose result has the shape of its parts; NULL.  *input: which input of p that is. */
static fac_node *product_of(const tail *t, const part *p, int *input) {
    enum { LEAST = 128 << 10 };
    for (int i = 0; i < p->nin; i++) {
        const fac_value *v = p->in[i];
        fac_node *n = v->node;
        if (!n || n->op != &fac_op_matmul || n->body[0] || v->roots || fac_type_bytes(&v->type) < LEAST) continue;
        bool own = fac_dims_equal(&v->type.dims, &p->out[0]->type.dims);
        for (const fac_use *u = v->uses; u && own; u = u->next) own = u->node->id >= t->ids || part_with(t, u->node->out[0]) == p;
        for (int k = 0; k < 2 && own; k++)
            own = n->in[k]->type.dims.n == 2 && !fac_dims_equal(&n->in[k]->type.dims, &v->type.dims);
        *input = i;
        if (own) return n;
    }
    return NULL;
}

/* A part with the product that it begins with, as one node; false when there is none, or no kernel takes it. */
static bool emit_product(tail *t, part *p) {
    int input, n = 2;
    const fac_node *product = product_of(t, p, &input);
    fac_graph *trial = product ? fac_graph_new() : NULL, *body = product ? fac_graph_new() : NULL;
    fac_value *outer[INPUTS + 1], *in[INPUTS], *args[INPUTS], *made[OUTPUTS], *operand[2];
    part copy = *p;
    copy.body = product ? fac_graph_clone(p->body) : NULL;
    if (!trial || !body || !copy.body) {
        fac_graph_free(trial);
        fac_graph_free(body);
        fac_graph_free(copy.body);
        return false;
    }
    char name[16];
    for (int k = 0; k < 2; k++) {
        outer[k] = now(t, product->in[k]);
        snprintf(name, sizeof name, "x%d", k);
        operand[k] = fac_input(body, name, outer[k]->type.dtype, outer[k]->type.dims);
    }
    fac_value *result = fac_matmul(operand[0], operand[1]);
    for (int i = 0; i < p->nin; i++) {
        snprintf(name, sizeof name, "x%d", i);
        in[i] = fac_input(trial, name, p->in[i]->type.dtype, p->in[i]->type.dims);
        snprintf(name, sizeof name, "x%d", n);
        args[i] = i == input ? result : fac_input(body, name, p->in[i]->type.dtype, p->in[i]->type.dims);
        if (i != input) outer[n++] = now(t, p->in[i]);
    }
    const fac_node *m = emit_part(trial, &copy, in);
    if (m) fac_node_expand(body, m, args, made);
    for (int k = 0; m && k < m->nout; k++) {
        snprintf(name, sizeof name, "y%d", k);
        fac_output(body, name, made[k]);
    }
    fac_graph_sweep(body);                                              /* what was expanded */
    fac_graph_free(trial);
    fac_node *node = NULL;
    if (!m || body->error.status) fac_graph_free(body);
    else node = fac_emit_body(t->g, &fac_op_fused_matmul, NULL, n, n, outer, body, NULL)->node;
    if (!node || !t->accept(t->self, node)) return false;               /* what nobody reads is swept away */
    take_over(t, node, &p, 1);
    return true;
}

/* Parts of one level as one node; false when no kernel takes it, or memory is gone. */
static bool emit_group(tail *t, part *const *of, int count) {
    fac_graph *body = fac_graph_new();
    fac_value **outer = fac_alloc((size_t)count * INPUTS, sizeof *outer);
    int n = body && outer ? fill_group(t, body, of, count, outer) : -1;
    fac_node *group = NULL;
    if (n < 0) fac_graph_free(body);
    else group = fac_emit_body(t->g, &fac_op_group, NULL, n, n, outer, body, NULL)->node;
    fac_release(outer);
    if (!group || !t->accept(t->self, group)) return false;             /* what nobody reads is swept away */
    take_over(t, group, of, count);
    return true;
}

/* All parts of one level, which do not read each other, in groups by their places. */
static void emit_level(tail *t, part **of, int count) {
    int left = 0;
    for (int i = 0; i < count; i++) {
        find_place(t, of[i]);
        if (!emit_product(t, of[i])) of[left++] = of[i];
    }
    count = left;
    qsort(of, (size_t)count, sizeof *of, by_place);
    for (int first = 0, last; first < count; first = last) {
        size_t bytes = 0;
        for (last = first; last < count && (last == first || bytes + of[last]->bytes <= BYTES); last++) bytes += of[last]->bytes;
        if (last - first > 1 && emit_group(t, of + first, last - first)) continue;
        for (int i = first; i < last; i++) emit_alone(t, of[i]);
    }
}

static bool emit_levels(tail *t) {
    part **of = fac_alloc((size_t)t->nparts + 1, sizeof *of);
    if (!of) return false;
    for (int level = 0, left = t->nparts; left > 0; level++) {
        int count = 0;
        for (int i = 0; i < t->nparts; i++)
            if (t->parts[i].level == level) of[count++] = &t->parts[i];
        left -= count;
        emit_level(t, of, count);
    }
    fac_release(of);
    return true;
}

static void relink(tail *t) {
    for (size_t i = 0; i < t->g->nparams; i++) {
        fac_value *p = t->g->params[i], *with = p->next ? t->became[p->next->id] : NULL;
        if (!with) continue;
        p->next->roots--;
        with->roots++;
        p->next = with;
    }
}

/* ---- the pass ---- */

/* Parts that no kernel takes leave the tail, and with them what only they read. */
static bool settle(tail *t) {
    for (bool again = true; again;) {
        free_parts(t);
        find_tail(t);
        if (!find_parts(t)) return false;
        for (fac_node *n = t->g->first; n; n = n->next)
            if (in_tail(t, n)) fill_part(t, n);
        again = false;
        for (int i = 0; i < t->nparts; i++) {
            part *p = &t->parts[i];
            p->number = i;
            p->refused = p->refused || p->body->error.status || !accepted(t, p);
            again |= p->refused;
        }
        for (uint32_t i = 0; again && i < t->g->ids; i++)
            if (t->by_id[i] && t->parts[t->part_of[i] - 1].refused) t->excluded[i] = 1;
    }
    return level_parts(t);
}

fac_graph *fac_pass_updates(const fac_graph *g, fac_accept *accept, void *self) {
    tail t = { .g = fac_graph_rebuild(g, &(fac_rebuild){ 0 }, NULL), .accept = accept, .self = self };
    if (!t.g || t.g->error.status) return t.g;
    const size_t ids = t.ids = t.g->ids;
    t.excluded = fac_alloc(ids, 1);
    t.part_of = fac_alloc(ids, sizeof *t.part_of);
    t.leader = fac_alloc(ids, sizeof *t.leader);
    t.updates = fac_alloc(ids, sizeof *t.updates);
    t.owner = fac_alloc(ids, sizeof *t.owner);
    t.became = fac_alloc(ids, sizeof *t.became);
    t.by_id = fac_alloc(ids, sizeof *t.by_id);
    bool ok = t.excluded && t.part_of && t.leader && t.updates && t.owner && t.became && t.by_id;
    for (size_t i = 0; ok && i < t.g->nparams; i++) {
        fac_value *p = t.g->params[i];
        if (!p->next) continue;
        t.updates[p->next->id]++;
        t.owner[p->next->id] = p;
    }
    if (ok) ok = settle(&t) && emit_levels(&t);
    if (ok) relink(&t);
    free_parts(&t);
    fac_release(t.excluded);
    fac_release(t.part_of);
    fac_release(t.leader);
    fac_release(t.updates);
    fac_release(t.owner);
    fac_release(t.became);
    fac_release(t.by_id);
    if (!ok) fac_graph_raise(t.g, FAC_E_NOMEM, "no memory to fuse updates");
    else fac_graph_sweep(t.g);
    return t.g;
}
