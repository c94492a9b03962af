/* See flow.h: bodies put in place of the node. */
#include <string.h>
#include "base/memory.h"
#include "graph/build.h"
#include "op_list.h"
#include "ops/shape.h"
#include "ops/flow.h"

typedef struct inlining {
    const fac_node *n;
    const fac_graph *body;
    fac_graph *to;
    const char *path;         /* of the node, and the part */
    const char *from, *scope; /* neighbours mostly share their scope: joined once */
    fac_value **map;          /* by id of a value of the body */
} inlining;

static const char *join(fac_graph *g, const char *a, const char *b) {
    if (!a || !b) return a ? a : b;
    const char *both = fac_arena_print(&g->arena, "%s.%s", a, b);
    if (!both) fac_graph_raise(g, FAC_E_NOMEM, "no memory for the scope '%s'", b);
    return both;
}

/* A list of numbers and symbols: those of the body are sizes of what its inputs became. */
static fac_value *symbols_of(const inlining *s, const fac_value *v) {
    fac_contents c = *v->known;
    c.symbolic = 0;
    for (int k = 0; k < c.n; k++) {
        if (!(v->known->symbolic >> k & 1)) continue;
        for (size_t i = 0; i < s->body->ninputs; i++)
            for (int j = 0; j < s->body->inputs[i]->type.dims.n; j++)
                if (s->body->inputs[i]->type.dims.d[j] == v->known->v[k])
                    c.v[k] = s->map[s->body->inputs[i]->id]->type.dims.d[j];
        if (c.v[k] == v->known->v[k] && !fac_is_symbol(s->to, c.v[k]))
            c.v[k] = fac_symbol(s->to, NULL);
        if (fac_is_symbol(s->to, c.v[k])) c.symbolic |= 1u << k;
    }
    return c.symbolic ? fac_symbols_const(s->to, &c) : fac_ints_long(s->to, c.v, c.n);
}

static void put_node(inlining *s, const fac_node *m, fac_value **args) {
    fac_value **made = args + m->nin;
    for (int i = 0; i < m->nin; i++) args[i] = m->in[i] ? s->map[m->in[i]->id] : NULL;
    if (!s->scope || s->from != m->scope) {
        s->from = m->scope;
        s->scope = join(s->to, s->path, m->scope);
    }
    fac_node moved = *m;
    moved.scope = s->scope;
    fac_node_copy(s->to, &moved, args, made);
    for (int k = 0; k < m->nout; k++) s->map[m->out[k]->id] = made[k];
}

static void run(inlining *s, fac_value *const in[], fac_value *out[]) {
    const fac_graph *b = s->body;
    size_t most = 0;
    for (size_t i = 0; i < b->ninputs; i++) s->map[b->inputs[i]->id] = in[i];
    for (size_t i = 0; i < b->nconsts; i++)
        s->map[b->consts[i]->id] = b->consts[i]->tensor ? fac_const(s->to, b->consts[i]->tensor)
                                                        : symbols_of(s, b->consts[i]);
    for (const fac_node *m = b->first; m; m = m->next)
        if ((size_t)(m->nin + m->nout) > most) most = (size_t)(m->nin + m->nout);
    fac_value **args = fac_alloc(most + 1, sizeof *args);
    if (!args)
        fac_graph_raise(s->to, FAC_E_NOMEM, "%s: no memory for its expansion", s->n->op->name);
    for (const fac_node *m = b->first; m && !s->to->error.status; m = m->next) put_node(s, m, args);
    fac_release(args);
    for (size_t k = 0; k < b->noutputs && !s->to->error.status; k++)
        out[k] = s->map[b->outputs[k].value->id];
}

void fac_flow_inline(const fac_node *n, const fac_graph *body, const char *part,
                     fac_value *const in[], fac_value *out[]) {
    fac_graph *g = n->graph;
    for (size_t k = 0; k < body->noutputs; k++) out[k] = g->poison;
    if (g->error.status) return;
    inlining s = {
        .n = n, .body = body, .to = g, .map = fac_alloc((size_t)body->ids + 1, sizeof *s.map)
    };
    const char *name = n->name;
    if (!name && part) name = n->op->name;
    s.path = join(g, join(g, n->scope, name), part);
    if (!s.map)
        fac_graph_raise(g, FAC_E_NOMEM, "%s: no memory for its expansion", n->op->name);
    else if (!g->error.status)
        run(&s, in, out);
    fac_release(s.map);
}

int64_t fac_flow_nodes(const fac_graph *body) {
    int64_t count = 0;
    for (const fac_node *m = body->first; m; m = m->next) {
        const int64_t own = m->op->is & FAC_OP_FLOW ? fac_node_expands(m) : 1;
        count += own ? own : 1;
        if (count > FAC_FLOW_MOST) break;
    }
    return count;
}

void fac_flow_cost(const fac_graph *body, double times, fac_cost *cost) {
    for (const fac_node *m = body->first; m; m = m->next) {
        fac_cost own = { 0 };
        if (m->op->cost && fac_node_guess(m) != FAC_RANKLESS) m->op->cost(m, &own);
        cost->macs += times * own.macs;
        cost->other += times * own.other;
    }
}
