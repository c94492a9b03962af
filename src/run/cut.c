/* See flow.h: plans that are cut where sizes, or what is to run at all, come from computed data.
 *
 *   front   what needs none of it                             a program
 *   flow    loops and ifs whose inputs the front makes        bodies, run as data says
 *   rest    what reads their results, and nodes whose shapes  a program, with a plan for each set
 *           follow from contents that the front computes      of sizes; cut again if need be
 *           (those are inputs that steer shapes there) */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "run/flow.h"
#include "run/program_internal.h"

typedef enum origin { FROM_NOTHING, FROM_INPUT, FROM_FRONT, FROM_FLOW, FROM_LEAF } origin;
typedef struct source {
    origin from;
    int index, output;
    fac_tensor *leaf;
} source;

typedef struct flow {
    fac_bodies bodies;
    source *in;
} flow;

struct fac_cut {
    fac_arena memory;
    fac_graph *graph; /* a copy: flow nodes and leaves are its own */
    fac_program *front, *rest;
    source *front_in, *rest_in;
    int nfront, nrest; /* results of the front, inputs of the rest */
    flow *flows;
    int nflows, most; /* most: inputs or outputs of a program or node */
};

/* ---- who has to wait ---- */

enum { EARLY, MADE, LATE }; /* MADE: by a flow node whose inputs are early */

typedef struct cutter {
    const fac_graph *g, *original;
    fac_cut *c;
    uint8_t *state;       /* by value id */
    int *cross;           /* by value id: its place among the results of the front, from 1 */
    source *of;           /* by value id, of MADE ones */
    fac_value **crossing; /* these results */
    fac_error *err;
} cutter;

static bool open_size(const fac_node *n) {
    for (int k = 0; k < n->nout; k++)
        for (int j = 0; j < n->out[k]->type.dims.n; j++)
            if (n->out[k]->type.dims.d[j] < 0) return true;
    return false;
}

static bool is_late(const cutter *s, const fac_node *n) {
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && s->state[n->in[i]->id] != EARLY) return true;
    return false;
}

/* Will its contents say more when they are there? */
static bool waits_for_contents(const fac_node *n) {
    fac_contents c;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && n->in[i]->node && (fac_port_flags(n, i) & FAC_HOST) &&
            !fac_known_numbers(n->in[i], &c))
            return true;
    return false;
}

/* Sorts the nodes; *found: there is something to cut. */
static fac_status sort(cutter *s, bool *found) {
    for (const fac_node *n = s->g->first; n; n = n->next) {
        const bool bodies = fac_cuts(n->op), late = is_late(s, n), open = open_size(n);
        if (!bodies && !late && !open) continue;
        if (!bodies && !late && !waits_for_contents(n)) {
            char label[200];
            return fac_raise(s->err, FAC_E_UNSUPPORTED,
                             "%s: the shape that %s makes depends on computed data",
                             fac_node_label(n, label, sizeof label), n->op->name);
        }
        *found = true;
        for (int k = 0; k < n->nout; k++) s->state[n->out[k]->id] = bodies && !late ? MADE : LATE;
        s->c->nflows += bodies && !late;
    }
    return FAC_OK;
}

/* ---- where values come from ---- */

static source source_of(cutter *s, fac_value *v) {
    int index = 0;
    if (!v) return (source){ .from = FROM_NOTHING };
    if (s->state[v->id] == MADE) return s->of[v->id];
    if (v->tensor) return (source){ FROM_LEAF, 0, 0, v->tensor };
    if (v->leaf == FAC_INPUT) {
        while (strcmp(s->original->inputs[index]->name, v->name)) index++;
        return (source){ FROM_INPUT, index, 0, NULL };
    }
    if (!s->cross[v->id]) {
        s->crossing[s->c->nfront] = v;
        s->cross[v->id] = ++s->c->nfront;
    }
    return (source){ FROM_FRONT, s->cross[v->id] - 1, 0, NULL };
}

static fac_status make_flows(cutter *s, fac_device *d, const fac_program_opts *o) {
    fac_cut *c = s->c;
    const int count = c->nflows;
    c->flows = fac_arena_alloc(&c->memory, (size_t)count + 1, sizeof *c->flows);
    if (!c->flows) return fac_raise_memory(s->err, "a plan");
    c->nflows = 0;
    for (fac_node *n = s->g->first; n; n = n->next) {
        if (s->state[n->out[0]->id] != MADE) continue;
        flow *f = &c->flows[c->nflows++];
        f->in = fac_arena_alloc(&c->memory, (size_t)n->nin + 1, sizeof *f->in);
        if (!f->in) return fac_raise_memory(s->err, "a plan");
        for (int i = 0; i < n->nin; i++) f->in[i] = source_of(s, n->in[i]);
        for (int k = 0; k < n->nout; k++)
            s->of[n->out[k]->id] = (source){ FROM_FLOW, c->nflows - 1, k, NULL };
        if (n->nin > c->most) c->most = n->nin;
        if (n->nout > c->most) c->most = n->nout;
        FAC_TRY(fac_bodies_new(n, d, o, &f->bodies, s->err));
    }
    return FAC_OK;
}

/* ---- the rest ---- */

/* A node after the cut waits for the contents of one of these results. */
static bool is_waited_for(const cutter *s, const fac_node *n) {
    fac_contents c;
    for (int k = 0; k < n->nout; k++)
        for (const fac_use *u = n->out[k]->uses; u; u = u->next)
            if (s->state[u->node->out[0]->id] == LATE &&
                (fac_port_flags(u->node, u->input) & FAC_HOST) && !fac_known_numbers(n->out[k], &c))
                return true;
    return false;
}

/* An input instead of a value; what is cut again has inputs of such names already. */
static fac_value *stand_in(fac_graph *to, const fac_value *v) {
    char name[32];
    snprintf(name, sizeof name, "cut.%u", (unsigned)v->id);
    return fac_input(to, fac_graph_fresh(to, name), v->type.dtype, v->type.dims);
}

/* Results of the run before the cut are inputs; what parameters alone make is computed where it is
 * read, before any run, but for what the cut is there for. */
static bool rest_node(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                      fac_value *out[]) {
    cutter *s = self;
    (void)in;
    const bool early = s->state[n->out[0]->id] == EARLY && n->out[0]->time != FAC_RUN;
    if (s->state[n->out[0]->id] == LATE || (early && !is_waited_for(s, n))) return false;
    for (int k = 0; k < n->nout; k++) {
        fac_value *v = n->out[k];
        out[k] = to->poison;
        bool read = v->roots > 0;
        for (const fac_use *u = v->uses; u && !read; u = u->next)
            read = s->state[u->node->out[0]->id] == LATE;
        if (!read) continue;
        out[k] = stand_in(to, v);
        if (out[k] && out[k]->leaf == FAC_INPUT) out[k]->guess = v->guess;
        s->c->rest_in[s->c->nrest++] = source_of(s, v);
    }
    return true;
}

static fac_status make_rest(cutter *s, fac_device *d, const fac_program_opts *o) {
    fac_cut *c = s->c;
    c->rest_in = fac_arena_alloc(&c->memory, s->g->ids, sizeof *c->rest_in);
    if (!c->rest_in) return fac_raise_memory(s->err, "a plan");
    for (size_t i = 0; i < s->g->ninputs; i++)
        c->rest_in[c->nrest++] = source_of(s, s->g->inputs[i]);
    fac_graph *g = fac_graph_rebuild(
        s->g, &(fac_rebuild){ .self = s, .visit = rest_node, .blind = true }, NULL);
    fac_status status = fac_graph_check(g, s->err);
    if (!status) status = fac_program_new(g, d, o, &c->rest, s->err);
    fac_graph_free(g);
    if (c->nrest > c->most) c->most = c->nrest;
    return status;
}

/* ---- the front ---- */

/* What comes after the cut is left out; what would be a result or an update keeps its place until
 * those are dropped. */
static bool front_node(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                       fac_value *out[]) {
    const cutter *s = self;
    (void)in;
    if (s->state[n->out[0]->id] == EARLY) return false;
    for (int k = 0; k < n->nout; k++) {
        out[k] = n->out[k]->roots ? stand_in(to, n->out[k]) : to->poison;
    }
    return true;
}

static void front_results(cutter *s, fac_graph *g, fac_value *const *map) {
    while (g->noutputs) g->outputs[--g->noutputs].value->roots--;
    for (size_t i = 0; i < g->nparams; i++) {
        if (g->params[i]->next) g->params[i]->next->roots--;
        g->params[i]->next = NULL;
    }
    g->ninputs = s->g->ninputs; /* the others stood for what is left out */
    for (int k = 0; k < s->c->nfront; k++) {
        char name[32];
        snprintf(name, sizeof name, "cut.%d", k);
        fac_output(g, fac_graph_fresh(g, name), map[s->crossing[k]->id]);
    }
    fac_graph_sweep(g);
}

static fac_status make_front(cutter *s, fac_device *d, const fac_program_opts *o) {
    fac_cut *c = s->c;
    fac_value **map = NULL;
    if (!c->nfront) return FAC_OK;
    c->front_in = fac_arena_alloc(&c->memory, s->g->ninputs + 1, sizeof *c->front_in);
    if (!c->front_in) return fac_raise_memory(s->err, "a plan");
    for (size_t i = 0; i < s->g->ninputs; i++) c->front_in[i] = source_of(s, s->g->inputs[i]);
    const fac_rebuild how = { .self = s, .visit = front_node, .keep_dead = true, .blind = true };
    fac_graph *g = fac_graph_rebuild(s->g, &how, &map);
    if (g && !g->error.status) front_results(s, g, map);
    fac_status status = fac_graph_check(g, s->err);
    if (!status) status = fac_program_new(g, d, o, &c->front, s->err);
    fac_graph_free(g);
    if (c->nfront > c->most) c->most = c->nfront;
    return status;
}

/* ---- making ---- */

static fac_status make(cutter *s, fac_device *d, const fac_program_opts *o, bool *found) {
    const size_t ids = (size_t)s->g->ids + 1;
    s->state = fac_alloc(ids, sizeof *s->state);
    s->cross = fac_alloc(ids, sizeof *s->cross);
    s->of = fac_alloc(ids, sizeof *s->of);
    s->crossing = fac_alloc(ids, sizeof *s->crossing);
    if (!s->state || !s->cross || !s->of || !s->crossing) return fac_raise_memory(s->err, "a plan");
    FAC_TRY(sort(s, found));
    if (!*found) return FAC_OK;
    FAC_TRY(make_flows(s, d, o));
    FAC_TRY(make_rest(s, d, o));
    return make_front(s, d, o);
}

fac_status fac_cut_new(const fac_graph *g, const fac_graph *original, fac_device *device,
                       const fac_program_opts *opts, fac_cut **out, fac_error *err) {
    fac_cut *c = fac_alloc(1, sizeof *c);
    bool found = false;
    if (!c) return fac_raise_memory(err, "a plan");
    c->graph = fac_graph_rebuild(g, &(fac_rebuild){ 0 }, NULL);
    fac_status status = fac_graph_check(c->graph, err);
    cutter s = { .g = c->graph, .original = original, .c = c, .err = err };
    if (!status) status = make(&s, device, opts, &found);
    fac_release(s.state);
    fac_release(s.cross);
    fac_release(s.of);
    fac_release(s.crossing);
    if (status || !found)
        fac_cut_free(c);
    else
        *out = c;
    return status;
}

void fac_cut_free(fac_cut *c) {
    if (!c) return;
    fac_program_free(c->front);
    fac_program_free(c->rest);
    for (int k = 0; c->flows && k < c->nflows; k++) fac_bodies_free(&c->flows[k].bodies);
    fac_graph_free(c->graph);
    fac_arena_free(&c->memory);
    fac_release(c);
}

/* ---- running ---- */

typedef struct running {
    const fac_cut *c;
    fac_tensor *const *in;
    fac_tensor **front, ***made, **args;
    const fac_within *within;
    fac_error *err;
} running;

static fac_tensor *bring(const running *r, const source *s) {
    switch (s->from) {
    case FROM_INPUT:
        return r->in[s->index];
    case FROM_FRONT:
        return r->front[s->index];
    case FROM_FLOW:
        return r->made[s->index][s->output];
    case FROM_LEAF:
        return s->leaf;
    default:
        return NULL;
    }
}

static void bring_all(const running *r, const source *s, int n) {
    for (int i = 0; i < n; i++) r->args[i] = bring(r, &s[i]);
}

static fac_status run(running *r, fac_tensor *out[]) {
    const fac_cut *c = r->c;
    if (c->front) {
        bring_all(r, c->front_in, (int)c->graph->ninputs);
        FAC_TRY(fac_program_run_within(c->front, r->args, r->front, r->within, r->err));
    }
    for (int k = 0; k < c->nflows; k++) {
        const flow *f = &c->flows[k];
        bring_all(r, f->in, f->bodies.n->nin);
        FAC_TRY(fac_bodies_run(&f->bodies, r->args, r->made[k], r->within, r->err));
    }
    bring_all(r, c->rest_in, c->nrest);
    return fac_program_run_within(c->rest, r->args, out, r->within, r->err);
}

fac_status fac_cut_run(const fac_cut *c, fac_tensor *const in[], fac_tensor *out[],
                       const fac_within *within, fac_error *err) {
    size_t results = 0, at = 0;
    for (int k = 0; k < c->nflows; k++) results += (size_t)c->flows[k].bodies.n->nout;
    const size_t tensors = (size_t)c->nfront + results, args = (size_t)c->most + c->graph->ninputs;
    fac_tensor **all = fac_alloc(tensors + args + 1, sizeof *all),
               ***made = fac_alloc((size_t)c->nflows + 1, sizeof *made);
    fac_status status = FAC_OK;
    if (!all || !made)
        status = fac_raise_memory(err, "%zu values", tensors);
    else {
        running r = { c, in, all, made, all + tensors, within, err };
        for (int k = 0; k < c->nflows; k++) {
            made[k] = all + c->nfront + at;
            at += (size_t)c->flows[k].bodies.n->nout;
        }
        status = run(&r, out);
        for (size_t k = 0; k < tensors; k++) fac_tensor_free(all[k]);
    }
    fac_release(all);
    fac_release(made);
    return status;
}

/* ---- what it did ---- */

static size_t add_steps(fac_program *p, fac_step_stat *to, size_t max, size_t n) {
    if (!p) return n;
    if (n >= max) return n + fac_program_steps(p, NULL, 0);
    return n + fac_program_steps(p, to ? to + n : NULL, max - n);
}

size_t fac_cut_steps(const fac_cut *c, fac_step_stat *to, size_t max) {
    size_t n = add_steps(c->front, to, max, 0);
    for (int k = 0; k < c->nflows; k++)
        for (int b = 0; b < 2; b++) n = add_steps(c->flows[k].bodies.program[b], to, max, n);
    return add_steps(c->rest, to, max, n);
}

void fac_cut_profile(const fac_cut *c, bool on) {
    if (c->front) fac_program_profile(c->front, on);
    for (int k = 0; k < c->nflows; k++)
        for (int b = 0; b < 2; b++)
            if (c->flows[k].bodies.program[b])
                fac_program_profile(c->flows[k].bodies.program[b], on);
    fac_program_profile(c->rest, on);
}
