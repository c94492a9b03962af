/* See flow.h: types of bodies. */
#include "ops/flow.h"
#include "base/memory.h"
#include "graph/build.h"
#include "op_list.h"
#include "ops/shape.h"

#define FREE (FAC_FLOW_OPEN + 1) /* in fac_flow.bound: nothing is known of the symbol */

/* ---- what symbols of a body stand for ---- */

static bool is_number(int64_t d) { return d >= 0; }

static bool reserve(fac_flow *f, size_t symbols) {
    if (symbols <= f->nbound && f->bound) return true;
    int64_t *more = fac_alloc(symbols + 1, sizeof *more);
    if (!more) return fac_fail(f->n, FAC_E_NOMEM, "no memory for the sizes of a body");
    for (size_t k = 0; k < symbols; k++) more[k] = k < f->nbound && f->bound ? f->bound[k] : FREE;
    fac_release(f->bound);
    f->bound = more;
    f->nbound = symbols;
    return true;
}

/* A symbol that is two sizes outside is the number, if one of them is. */
static void bind(fac_flow *f, int64_t inside, int64_t outside) {
    if (!fac_is_symbol(f->body, inside)) return;
    int64_t *is = &f->bound[fac_symbol_index(inside)];
    if (*is == FREE || *is == FAC_FLOW_OPEN || (!is_number(*is) && is_number(outside)))
        *is = outside;
}

/* Known contents matter to a body only where they steer its shapes. */
static const fac_contents *known_of(const fac_flow_feed *feed, bool steers) {
    return steers && feed->known && !feed->known->symbolic ? feed->known : NULL;
}

/* How often a symbol stands in the inputs of the body. */
static int places(const fac_graph *body, int64_t symbol) {
    int count = 0;
    for (size_t i = 0; i < body->ninputs; i++)
        for (int k = 0; k < body->inputs[i]->type.dims.n; k++)
            count += body->inputs[i]->type.dims.d[k] == symbol;
    return count;
}

/* The size that a dim of an input gets inside; FAC_FLOW_OPEN: a symbol that is nothing else. */
static int64_t inside(const fac_flow *f, int64_t have, int64_t feed) {
    const bool symbol = fac_is_symbol(f->body, have);
    if (feed == FAC_FLOW_OPEN) return symbol && places(f->body, have) == 1 ? have : FAC_FLOW_OPEN;
    if (is_number(feed)) return feed;
    return symbol && is_number(f->bound[fac_symbol_index(have)]) ? f->bound[fac_symbol_index(have)]
                                                                 : have;
}

/* ---- a body with other types ---- */

typedef struct retype {
    const fac_flow *f;
    const fac_flow_feed *feed;
    const bool *steers;
} retype;

static fac_value *retype_input(const retype *r, fac_graph *to, size_t i) {
    const fac_value *v = r->f->body->inputs[i];
    const bool ranked = v->guess == r->feed[i].guess && v->type.dims.n == r->feed[i].type.dims.n;
    fac_dims d = ranked ? v->type.dims : r->feed[i].type.dims;
    for (int k = 0; k < d.n; k++) {
        if (ranked) d.d[k] = inside(r->f, d.d[k], r->feed[i].type.dims.d[k]);
        if (d.d[k] == FAC_FLOW_OPEN || (!ranked && d.d[k] < 0)) d.d[k] = fac_symbol(to, NULL);
    }
    fac_value *made = fac_input(to, v->name, v->type.dtype, d);
    if (made && made->leaf == FAC_INPUT) made->guess = r->feed[i].guess;
    const fac_contents *known = known_of(&r->feed[i], r->steers[i]);
    if (known) fac_knows(made, known);
    return made;
}

static fac_value *retype_leaf(void *self, fac_graph *to, const fac_value *v) {
    const retype *r = self;
    if (v->leaf == FAC_CONST && !v->tensor) {
        fac_contents c = *v->known;
        c.symbolic = 0;
        for (int k = 0; k < c.n; k++) {
            if (!fac_is_symbol(r->f->body, c.v[k])) continue;
            if (is_number(r->f->bound[fac_symbol_index(c.v[k])]))
                c.v[k] = r->f->bound[fac_symbol_index(c.v[k])];
            else
                c.symbolic |= 1u << k;
        }
        return c.symbolic ? fac_symbols_const(to, &c) : fac_ints_long(to, c.v, c.n);
    }
    for (size_t i = 0; v->leaf == FAC_INPUT && i < r->f->body->ninputs; i++)
        if (r->f->body->inputs[i] == v) return retype_input(r, to, i);
    return NULL;
}

static bool needs_retype(const fac_flow *f, const fac_flow_feed *feed, const bool *steers) {
    for (size_t i = 0; i < f->body->ninputs; i++) {
        const fac_value *v = f->body->inputs[i];
        if (!fac_contents_equal(v->known, known_of(&feed[i], steers[i])) ||
            v->guess != feed[i].guess)
            return true;
        for (int k = 0; k < v->type.dims.n; k++)
            if (inside(f, v->type.dims.d[k], feed[i].type.dims.d[k]) != v->type.dims.d[k])
                return true;
    }
    return false;
}

static bool put_types(fac_flow *f, const fac_flow_feed *feed, const bool *steers) {
    if (!needs_retype(f, feed, steers)) return true;
    retype r = { f, feed, steers };
    f->own = fac_graph_rebuild(f->body, &(fac_rebuild){ .self = &r, .leaf = retype_leaf }, NULL);
    if (!f->own) return fac_fail(f->n, FAC_E_NOMEM, "no memory for its body");
    if (f->own->error.status)
        return fac_fail(f->n, f->own->error.status, "body: %s", f->own->error.text);
    f->body = f->own;
    if (!reserve(f, f->own->nsymbols)) return false;
    for (size_t i = 0; i < f->body->ninputs; i++) /* new symbols stand where sizes are open */
        for (int k = 0; k < f->body->inputs[i]->type.dims.n; k++)
            bind(f, f->body->inputs[i]->type.dims.d[k], feed[i].type.dims.d[k]);
    return true;
}

/* ---- a body and what feeds it ---- */

static bool check(fac_node *n, const fac_graph *body, int count, const fac_flow_feed *feed) {
    if (!body || !body->noutputs)
        return fac_fail(n, FAC_E_ARGUMENT, "it is what its body says, and has none with an output");
    if (body->nparams)
        return fac_fail(n, FAC_E_ARGUMENT,
                        "its body has parameters; they must be inputs of the node");
    if (body->ninputs != (size_t)count)
        return fac_fail(n, FAC_E_ARGUMENT, "its body has %zu inputs, it needs %d", body->ninputs,
                        count);
    for (int i = 0; i < count; i++) {
        const fac_type *want = &body->inputs[i]->type, *have = &feed[i].type;
        if (want->dtype != have->dtype)
            return fac_fail(n, FAC_E_DTYPE, "input %d of its body is %s, what feeds it is %s", i,
                            fac_dtype_get(want->dtype)->name, fac_dtype_get(have->dtype)->name);
        if (want->dims.n != have->dims.n && body->inputs[i]->guess == FAC_CERTAIN)
            return fac_fail(n, FAC_E_SHAPE,
                            "input %d of its body has %d dims, what feeds it has %d", i,
                            want->dims.n, have->dims.n);
    }
    return true;
}

bool fac_flow_open(fac_flow *f, fac_node *n, int k, int count, const fac_flow_feed *feed) {
    *f = (fac_flow){ .n = n, .k = k, .body = n->body[k] };
    if (!check(n, f->body, count, feed) || !reserve(f, f->body->nsymbols)) return false;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < feed[i].type.dims.n && f->body->inputs[i]->guess == FAC_CERTAIN; j++)
            bind(f, f->body->inputs[i]->type.dims.d[j], feed[i].type.dims.d[j]);
    bool *steers = fac_alloc((size_t)count + 1, sizeof *steers);
    bool ok = steers && fac_graph_steering(f->body, steers);
    if (!ok) fac_fail(n, FAC_E_NOMEM, "no memory for its body");
    ok = ok && put_types(f, feed, steers);
    fac_release(steers);
    return ok;
}

void fac_flow_close(fac_flow *f, bool keep) {
    if (keep && f->own)
        f->n->body[f->k] = f->own;
    else
        fac_graph_free(f->own);
    fac_release(f->bound);
    f->own = NULL;
    f->bound = NULL;
}

fac_type fac_flow_type(fac_flow *f, size_t j) {
    fac_type type = f->body->outputs[j].value->type;
    for (int k = 0; k < type.dims.n; k++) {
        if (is_number(type.dims.d[k])) continue;
        int64_t *is = &f->bound[fac_symbol_index(type.dims.d[k])];
        if (*is == FREE || *is == FAC_FLOW_OPEN) *is = fac_symbol(f->n->graph, NULL);
        type.dims.d[k] = *is;
    }
    return type;
}

void fac_flow_outputs(fac_value *y, int n, fac_value *out[]) {
    for (int k = 0; k < n; k++) out[k] = y && y->node && k < y->node->nout ? y->node->out[k] : y;
}

bool fac_flow_always(const fac_value *v, bool *is) {
    fac_contents c;
    while (v->node && v->node->op == &fac_op_identity) v = v->node->in[0];
    if (!fac_known_numbers(v, &c) || c.n != 1) return false;
    *is = c.v[0] != 0;
    return true;
}
