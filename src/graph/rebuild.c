/* Rebuilding: a graph copied node by node into a new one, with whatever a pass puts in place of its
 * nodes and leaves. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/spare.h"
#include "graph/build.h"

typedef struct rebuild {
    const fac_graph *from;
    const fac_rebuild *how;
    fac_graph *to;
    fac_value **map;       /* old value id -> new value                           */
    unsigned char *live;   /* by id of a value: an output or update needs it      */
    fac_value **in, **out; /* of the node at hand                                 */
    size_t room_in, room_out;
    bool changed;                      /* something took another's place: new nodes may be dead */
    const char *scope_from, *scope_to; /* neighbours mostly share their scope: copied once */
} rebuild;

/* ---- copying one node ---- */

static bool same_inputs(const fac_node *n, fac_value *const in[]) {
    for (int i = 0; i < n->nin; i++) {
        const fac_value *a = n->in[i], *b = in[i];
        if (!a || !b) {
            if (a != b) return false;
            continue;
        }
        if (a->type.dtype != b->type.dtype || !fac_dims_equal(&a->type.dims, &b->type.dims) ||
            !fac_contents_equal(a->known, b->known))
            return false;
        if (a->guess != b->guess) return false;
    }
    return true;
}

/* With the node's own scope and stage, which the graph has for the nodes to come. */
static void copy(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[],
                 bool same_symbols) {
    fac_graph *body[2] = { NULL, NULL };
    fac_node *node = NULL;
    bool ok = !to->error.status;
    for (int k = 0; k < 2 && ok; k++)
        if (n->body[k]) {
            body[k] =
                n->op->is & FAC_OP_FLOW ? fac_graph_share(n->body[k]) : fac_graph_clone(n->body[k]);
            ok = body[k] && !body[k]->error.status;
            if (!ok && body[k])
                fac_graph_raise(to, body[k]->error.status, "%s: body: %s", n->op->name,
                                body[k]->error.text);
            else if (!ok)
                fac_graph_raise(to, FAC_E_NOMEM, "%s: no memory for a body", n->op->name);
        }
    if (ok) {
        const fac_node *like = same_symbols && same_inputs(n, in) ? n : NULL;
        const uint16_t stage = to->stage;
        to->stage = n->stage;
        node = fac_node_build(
            to,
            &(fac_emission){ n->op, n->attrs, n->nin, n->nports, in, { body[0], body[1] }, like });
        to->stage = stage;
        if (node) memcpy(body, node->body, sizeof body);
    }
    if (node && n->name && !(node->name = fac_arena_text(&to->arena, n->name))) {
        fac_graph_raise(to, FAC_E_NOMEM, "%s: no memory for a name", n->op->name);
        node = NULL;
    }
    if (node && n->origin && !(node->origin = fac_arena_text(&to->arena, n->origin))) {
        fac_graph_raise(to, FAC_E_NOMEM, "%s: no memory for a name", n->op->name);
        node = NULL;
    }
    if (node && node->nout != n->nout) {
        fac_fail(node, FAC_E_INTERNAL, "its copy has %d outputs instead of %d", node->nout,
                 n->nout);
        node = NULL;
    }
    if (node)
        fac_node_link(node);
    else
        for (int k = 0; k < 2; k++) fac_graph_free(body[k]);
    for (int k = 0; k < n->nout; k++) out[k] = node ? node->out[k] : to->poison;
}

void fac_node_copy(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    const char *scope = to->scope;
    if (n->scope && !(scope && !strcmp(scope, n->scope)) && !to->error.status) {
        to->scope = fac_arena_text(&to->arena, n->scope);
        if (!to->scope) fac_graph_raise(to, FAC_E_NOMEM, "%s: no memory for a scope", n->op->name);
    }
    copy(to, n, in, out, false);
    to->scope = scope;
}

void fac_body_inline(fac_graph *to, const fac_graph *body, fac_value *const in[],
                     fac_value *out[]) {
    for (size_t i = 0; i < body->ninputs; i++) body->inputs[i]->mark = in[i];
    for (size_t i = 0; i < body->nconsts; i++)
        body->consts[i]->mark = fac_const(to, body->consts[i]->tensor);
    for (const fac_node *m = body->first; m; m = m->next) {
        fac_value **args =
                      fac_arena_alloc(&to->arena, (size_t)m->nin + (size_t)m->nout, sizeof *args),
                  **made = args + m->nin;
        if (!args) {
            fac_value *poison = fac_graph_raise(
                to, FAC_E_NOMEM, "%s: no memory for a body written out", m->op->name);
            for (size_t k = 0; k < body->noutputs; k++) out[k] = poison;
            return;
        }
        for (int i = 0; i < m->nin; i++) args[i] = m->in[i] ? m->in[i]->mark : NULL;
        fac_node_copy(to, m, args, made);
        for (int k = 0; k < m->nout; k++) {
            if (made[k]->node)
                made[k]->node->stage = to->stage; /* that of the node whose body it is */
            m->out[k]->mark = made[k];
        }
    }
    for (size_t k = 0; k < body->noutputs; k++) out[k] = body->outputs[k].value->mark;
}

/* The expansion reads types and attributes from a node of the new graph, which has no epilogue:
 * that comes after what it made. An output that nothing uses need not be expanded. */
void fac_node_expand(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    enum { FEW = 64 };
    const int operands = n->nin - n->nports;
    const bool epilogue = n->body[0] && !(n->op->is & FAC_OP_BODIES);
    fac_value *then[FEW];
    fac_node bare = *n;
    if (epilogue) {
        bare.body[0] = NULL;
        bare.nin = n->nports;
    }
    fac_node_copy(to, &bare, in, out);
    if (out[0]->leaf == FAC_POISON) return;
    fac_node *copied = out[0]->node;
    for (int k = 0; k < n->nout; k++) out[k] = NULL;
    n->op->expand(copied, out);
    for (int k = 0; k < n->nout; k++)
        if (!out[k]) out[k] = copied->out[k];
    if (!epilogue) return;
    if (operands >= FEW) {
        out[0] = fac_graph_raise(to, FAC_E_UNSUPPORTED, "%s: an epilogue with %d operands",
                                 n->op->name, operands);
        return;
    }
    then[0] = out[0];
    for (int i = 0; i < operands; i++) then[1 + i] = in[n->nports + i];
    fac_body_inline(to, n->body[0], then, out);
}

/* ---- what is needed ---- */

static void find_live(rebuild *r) {
    const fac_graph *g = r->from;
    for (size_t i = 0; i < g->noutputs; i++) r->live[g->outputs[i].value->id] = 1;
    for (size_t i = 0; i < g->nparams; i++)
        if (g->params[i]->next) r->live[g->params[i]->id] = r->live[g->params[i]->next->id] = 1;
    for (const fac_node *n = g->last; n; n = n->prev) {
        bool live = r->how->keep_dead;
        for (int k = 0; k < n->nout; k++) live = live || r->live[n->out[k]->id];
        for (int k = 0; k < n->nout && live; k++)
            r->live[n->out[k]->id] |= 2; /* its node is live */
        for (int i = 0; i < n->nin && live; i++)
            if (n->in[i]) r->live[n->in[i]->id] |= 1;
    }
}

/* ---- leaves ---- */

static fac_value *copy_leaf(fac_graph *to, const fac_value *v) {
    fac_value *copy = NULL;
    switch (v->leaf) {
    case FAC_INPUT:
        copy = fac_leaf_new(to, FAC_INPUT, v->name, v->type, NULL);
        if (copy && v->known) fac_knows(copy, v->known);
        if (copy) copy->guess = v->guess;
        return copy;
    case FAC_CONST:
        if (!v->tensor)
            copy = fac_symbols_const(to, v->known);
        else if ((copy = fac_leaf_new(to, FAC_CONST, NULL, v->type, v->tensor)) && v->known)
            fac_knows(copy, v->known);
        if (copy && v->name) fac_value_name_set(copy, v->name);
        return copy;
    default:
        copy = fac_leaf_new(to, v->leaf, v->name, v->type, v->tensor);
        if (copy && v->next)
            copy->time = FAC_RUN; /* its update follows, after its readers were built */
        return copy;
    }
}

static void put_leaf(rebuild *r, const fac_value *v) {
    if (r->to->error.status) return;
    if (!r->how->keep_dead && v->leaf != FAC_INPUT && !r->live[v->id]) return;
    fac_value *with = r->how->leaf ? r->how->leaf(r->how->self, r->to, v) : NULL;
    r->changed |= with != NULL;
    r->map[v->id] = with ? with : copy_leaf(r->to, v);
}

/* ---- nodes ---- */

static bool enter_scope(rebuild *r, const char *scope) {
    if (scope != r->scope_from) {
        r->scope_from = scope;
        r->scope_to = fac_arena_text(&r->to->arena, scope);
        if (scope && !r->scope_to) {
            r->to->scope = NULL;
            fac_graph_raise(r->to, FAC_E_NOMEM, "no memory for the scope '%s'", scope);
            return false;
        }
    }
    r->to->scope = r->scope_to;
    return true;
}

static bool put_node(rebuild *r, const fac_node *n) {
    fac_graph *to = r->to;
    if (!r->how->keep_dead && !(r->live[n->out[0]->id] & 2)) return true;
    if (!fac_reserve(&r->in, &r->room_in, (size_t)n->nin + 1, sizeof *r->in) ||
        !fac_reserve(&r->out, &r->room_out, (size_t)n->nout, sizeof *r->out)) {
        fac_graph_raise(to, FAC_E_NOMEM, "no memory to copy a graph");
        return false;
    }
    if (!enter_scope(r, n->scope)) return false;
    to->stage = n->stage;
    for (int i = 0; i < n->nin; i++) {
        r->in[i] = n->in[i] ? r->map[n->in[i]->id] : NULL;
        if (n->in[i] && !r->in[i]) {
            fac_graph_raise(to, FAC_E_INTERNAL, "%s: a pass left no value for input %d",
                            n->op->name, i);
            return false;
        }
    }
    memset(r->out, 0, (size_t)n->nout * sizeof *r->out);
    const bool seen = r->how->visit && (r->how->blind || fac_node_guess(n) == FAC_CERTAIN);
    if (seen && r->how->visit(r->how->self, to, n, r->in, r->out)) {
        r->changed = true;
    } else {
        enter_scope(r, n->scope);
        copy(to, n, r->in, r->out, true);
    }
    if (to->error.status) return false;
    for (int k = 0; k < n->nout; k++) {
        r->map[n->out[k]->id] = r->out[k];
        if (r->out[k] && n->out[k]->name) fac_value_name_set(r->out[k], n->out[k]->name);
    }
    return true;
}

/* ---- what comes out ---- */

static void put_results(rebuild *r) {
    const fac_graph *g = r->from;
    for (size_t i = 0; i < g->noutputs && !r->to->error.status; i++) {
        fac_value *v = r->map[g->outputs[i].value->id];
        if (v)
            fac_output(r->to, g->outputs[i].name, v);
        else
            fac_graph_raise(r->to, FAC_E_INTERNAL, "a pass left no value for output '%s'",
                            g->outputs[i].name);
    }
    for (size_t i = 0; i < g->nparams && !r->to->error.status; i++) {
        const fac_value *p = g->params[i];
        fac_value *to = r->map[p->id];
        if (!p->next || !to || (to->leaf != FAC_PARAM && to->leaf != FAC_STATE))
            continue; /* replaced: no state any more */
        if (r->map[p->next->id])
            fac_update(to, r->map[p->next->id]);
        else
            fac_graph_raise(r->to, FAC_E_INTERNAL, "a pass left no value for the update of '%s'",
                            p->name);
    }
}

/* With memory for everything there. */
static void run(rebuild *r) {
    const fac_graph *g = r->from;
    if (g->error.status) {
        r->to->error = g->error;
        return;
    }
    find_live(r);
    if (!fac_symbols_copy(r->to, g)) return;
    fac_notes_copy(r->to, g);
    fac_modules_copy(r->to, g);
    for (size_t i = 0; i < g->ninputs; i++) put_leaf(r, g->inputs[i]);
    for (size_t i = 0; i < g->nparams; i++) put_leaf(r, g->params[i]);
    for (size_t i = 0; i < g->nconsts; i++) put_leaf(r, g->consts[i]);
    for (const fac_node *n = g->first; n && !r->to->error.status; n = n->next)
        if (!put_node(r, n)) break;
    r->to->scope = NULL;
    r->to->stage = g->stage;
    if (!r->to->error.status) put_results(r);
    if (!r->to->error.status && !r->how->keep_dead && r->changed) fac_graph_sweep(r->to);
}

/* Is that the same graph, and nobody who would mind? */
static bool stays(const fac_graph *g, const fac_rebuild *how, fac_value ***map) {
    return g->passing && !how->visit && !how->leaf && !how->keep_dead && !map;
}

static void unmark(fac_value *const v[], size_t n) {
    for (size_t i = 0; i < n; i++) v[i]->mark = NULL;
}

/* A fresh copy has no marks. */
static fac_graph *swept(fac_graph *g) {
    if (g->error.status) return g;
    fac_graph_sweep(g);
    unmark(g->inputs, g->ninputs);
    unmark(g->params, g->nparams);
    unmark(g->consts, g->nconsts);
    for (fac_node *n = g->first; n; n = n->next) {
        n->mark = NULL;
        unmark(n->out, (size_t)n->nout);
    }
    return g;
}

fac_graph *fac_graph_rebuild(const fac_graph *from, const fac_rebuild *how, fac_value ***map) {
    if (stays(from, how, map)) return swept((fac_graph *)(uintptr_t)from);
    rebuild r = { .from = from, .how = how, .to = fac_graph_new() };
    if (!r.to) return NULL;
    fac_arena_pass_on(&r.to->arena, &((fac_graph *)(uintptr_t)from)->arena);
    r.map = map ? fac_arena_alloc(&r.to->arena, from->ids, sizeof *r.map)
                : fac_alloc(from->ids, sizeof *r.map);
    r.live = fac_alloc(from->ids, 1);
    r.to->source = from->source;
    r.to->source_self = from->source_self;
    r.to->seed = from->seed;
    r.to->streams = from->streams;
    const bool ok = r.map && r.live;
    if (ok) {
        run(&r);
        if (map)
            for (uint32_t k = 0; k < from->ids; k++) /* what the sweep dropped is gone */
                if (r.map[k] && r.map[k]->leaf == FAC_POISON && !r.to->error.status)
                    r.map[k] = NULL;
    }
    if (!map) fac_release(r.map);
    fac_release(r.live);
    fac_release(r.in);
    fac_release(r.out);
    if (!ok) {
        fac_graph_free(r.to);
        return NULL;
    }
    if (map) *map = r.map;
    return r.to;
}

fac_graph *fac_graph_clone(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .keep_dead = true }, NULL);
}

/* ---- inference ---- */

/* What trains says so by a flag: dropout by "training", batch norm by ONNX's "training_mode". */
static bool without_training(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                             fac_value *out[]) {
    (void)self;
    const fac_attr *a = n->op->attrs;
    while (a && a->name && (a->kind != FAC_A_FLAG || strncmp(a->name, "training", 8))) a++;
    if (!a || !a->name || !*((const bool *)n->attrs + a->at)) return false;
    void *attrs = fac_arena_alloc(&to->arena, 1, n->op->attrs_size);
    if (!attrs) {
        fac_graph_raise(to, FAC_E_NOMEM, "%s: no memory for attributes", n->op->name);
        return true;
    }
    memcpy(attrs, n->attrs, n->op->attrs_size);
    *((bool *)attrs + a->at) = false;
    fac_node quiet = *n;
    quiet.attrs = attrs;
    fac_node_copy(to, &quiet, in, out);
    return true;
}

fac_graph *fac_graph_inference(const fac_graph *g) {
    fac_graph *copy = fac_graph_rebuild(
        g, &(fac_rebuild){ .visit = without_training, .keep_dead = true, .blind = true }, NULL);
    if (!copy || copy->error.status) return copy;
    for (size_t i = 0; i < copy->nparams; i++) {
        fac_value *p = copy->params[i];
        if (p->next) p->next->roots--;
        p->next = NULL;
    }
    fac_graph_sweep(copy); /* the moments of an optimizer and all that made the updates; times are
                              found again */
    return copy;
}
