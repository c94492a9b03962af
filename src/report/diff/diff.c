/* Tells how two models differ, from the pairs of match.c: see facula/report/diff.h.  The whole
 * comparison, and nodes. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/diff/diff.h"

/* ---- changes ---- */

fac_status fac_tell(fac_teller *t, fac_change c, fac_text *text) {
    fac_differences *d = t->d;
    const bool two = c.a && c.b;
    c.a = fac_arena_text(&d->memory, c.a);
    c.b = fac_arena_text(&d->memory, c.b);
    c.text = fac_arena_text(&d->memory, text->s ? text->s : "");
    const bool room = !text->failed && c.text && (two ? c.a && c.b : c.a || c.b) &&
                      fac_reserve(&d->changes, &d->room, d->n + 1, sizeof *d->changes);
    fac_text_free(text);
    if (!room) return fac_raise_memory(t->err, "a comparison of two models");
    d->changes[d->n++] = c;
    (c.of == FAC_OF_NODE ? d->totals.nodes : d->totals.leaves)[c.kind]++;
    return FAC_OK;
}

/* ---- nodes ---- */

/* "conv2d(x, conv1.weight) stride=2,2 -> f32[1,64,112,112]" */
static void describe(const fac_node *n, fac_text *to) {
    fac_text_print(to, "%s(", n->op->name);
    for (int i = 0; i < n->nin; i++) {
        if (i) fac_text_add(to, ", ");
        fac_say_value(n->in[i], to);
    }
    fac_text_add(to, ")");
    fac_attrs_print(n->op, n->attrs, to);
    fac_text_add(to, " -> ");
    fac_type_print(n->graph, &n->out[0]->type, to);
}

static fac_status tell_alone(fac_teller *t, const fac_node *n, bool added) {
    char label[200];
    fac_text text = { 0 };
    fac_node_label(n, label, sizeof label);
    describe(n, &text);
    return fac_tell(t,
                    (fac_change){ .of = FAC_OF_NODE,
                                  .kind = added ? FAC_ADDED : FAC_REMOVED,
                                  .a = added ? NULL : label,
                                  .b = added ? label : NULL },
                    &text);
}

/* Bodies are compared as models of their own; the first thing that differs in them is told. */
static fac_status tell_bodies(fac_teller *t, const fac_node *x, const fac_node *y, fac_text *to) {
    for (int k = 0; k < 2; k++) {
        fac_differences *inner = NULL;
        if (!x->body[k] && !y->body[k]) continue;
        if (!x->body[k] || !y->body[k]) {
            fac_say(to, x->body[k] ? "a body less" : "a body more");
            continue;
        }
        FAC_TRY(fac_diff(x->body[k], y->body[k], &t->o, &inner, t->err));
        const fac_change *c = inner->totals.same ? NULL : fac_differences_get(inner, 0);
        if (c) {
            fac_say(to, "in its body: ");
            fac_text_print(to, "%s %s", c->b ? c->b : c->a, c->text);
            if (inner->n > 1) fac_text_print(to, " and %zu more", inner->n - 1);
        }
        fac_differences_free(inner);
    }
    return FAC_OK;
}

/* Element i of f64 or i64 numbers, as its type d has it. */
static void say_number(fac_dtype d, const fac_tensor *wide, int64_t i, fac_text *to) {
    const void *data = fac_tensor_data(wide);
    if (i) fac_text_add(to, ",");
    if (fac_tensor_type(wide).dtype == FAC_F64)
        fac_text_print(to, "%.9g", ((const double *)data)[i]);
    else if (d == FAC_U64)
        fac_text_print(to, "%llu", (unsigned long long)((const int64_t *)data)[i]);
    else
        fac_text_print(to, "%lld", (long long)((const int64_t *)data)[i]);
}

static void say_literal(const fac_value *v, fac_text *to) {
    enum { FEW = 8 };
    fac_tensor *wide = NULL;
    const fac_dtype d = v->type.dtype;
    const int64_t n = fac_dims_count(&v->type.dims);
    const bool small = v->tensor && n >= 0 && n <= FEW && d != FAC_TEXT;
    const char kind = fac_dtype_get(d)->kind;
    const bool whole = kind == 'i' || kind == 'u' || kind == 'b';
    if (small && !fac_tensor_convert(v->tensor, whole ? FAC_I64 : FAC_F64, &wide, NULL))
        for (int64_t i = 0; i < n; i++) say_number(d, wide, i, to);
    else if (v->known)
        for (int i = 0; i < v->known->n; i++)
            fac_text_print(to, i ? ",%lld" : "%lld", (long long)v->known->v[i]);
    else
        fac_type_print(v->graph, &v->type, to);
    fac_tensor_free(wide);
}

static bool is_const(const fac_value *v) { return v && !v->node && v->leaf == FAC_CONST; }

/* Inputs: constants that changed are like attributes; other sources are another wiring. */
static fac_status tell_inputs(fac_teller *t, const fac_node *x, const fac_node *y,
                              fac_text *changed, fac_text *rewired, fac_change *c) {
    const int n = x->nin > y->nin ? x->nin : y->nin;
    for (int i = 0; i < n; i++) {
        const fac_value *u = i < x->nin ? x->in[i] : NULL;
        const fac_value *v = i < y->nin ? y->in[i] : NULL;
        if (fac_same_source(t, u, v)) continue;
        if (is_const(u) && is_const(v)) {
            fac_say(changed, "");
            fac_text_print(changed, "input %d: ", i);
            say_literal(u, changed);
            fac_text_add(changed, " -> ");
            say_literal(v, changed);
            if (u->tensor && v->tensor && fac_dims_count(&u->type.dims) > 1)
                FAC_TRY(fac_tell_contents(t, u, v, changed, c));
        } else {
            fac_say(rewired, "");
            fac_text_print(rewired, "input %d ", i);
            fac_say_source(rewired, u, v);
        }
    }
    return FAC_OK;
}

/* A type that is another although nothing that it follows from is another is news; else it is
 * counted. */
static void tell_types(fac_teller *t, const fac_node *x, const fac_node *y, bool other,
                       fac_text *to) {
    bool inputs = true;
    for (int i = 0; i < x->nin && i < y->nin; i++)
        inputs &= !x->in[i] || !y->in[i] || fac_same_type(x->in[i], y->in[i]);
    for (int k = 0; k < x->nout && k < y->nout; k++) {
        if (fac_same_type(x->out[k], y->out[k])) continue;
        if (other || inputs)
            fac_say_types(to, x->out[k], y->out[k]);
        else
            t->d->totals.sizes++;
    }
}

static bool same_name(const char *x, const char *y) { return x == y || (x && y && !strcmp(x, y)); }

static bool is_renamed(const fac_node *x, const fac_node *y) {
    bool renamed = !same_name(x->name, y->name) || (!x->name && !same_name(x->scope, y->scope));
    for (int k = 0; k < x->nout && k < y->nout; k++)
        renamed |= !same_name(x->out[k]->name, y->out[k]->name);
    return renamed;
}

static fac_status tell_pair(fac_teller *t, const fac_node *x, const fac_node *y) {
    char p[200], q[200];
    fac_text changed = { 0 }, rewired = { 0 };
    fac_change c = { .of = FAC_OF_NODE,
                     .a = fac_node_label(x, p, sizeof p),
                     .b = fac_node_label(y, q, sizeof q) };
    fac_diff_attrs(x, y, &changed);
    fac_status status = tell_bodies(t, x, y, &changed);
    if (!status) status = tell_inputs(t, x, y, &changed, &rewired, &c);
    if (!status) tell_types(t, x, y, changed.n || rewired.n, &changed);
    c.kind = rewired.n          ? FAC_REWIRED
             : changed.n        ? FAC_CHANGED
             : is_renamed(x, y) ? FAC_RENAMED
                                : FAC_MOVED;
    if (rewired.n && changed.n) fac_say(&rewired, changed.s);
    const bool news =
        rewired.n || changed.n || c.kind == FAC_RENAMED || t->moved[t->m.b.place[y->id]];
    fac_text *text = rewired.n ? &rewired : &changed;
    if (!status && changed.failed) status = fac_raise_memory(t->err, "a comparison of two models");
    if (!status && news) status = fac_tell(t, c, text);
    fac_text_free(&changed);
    fac_text_free(&rewired);
    return status;
}

static fac_status tell_removed(fac_teller *t, int *next, int end) {
    for (; *next < end; ++*next)
        if (t->m.a.mate[*next] < 0) FAC_TRY(tell_alone(t, t->m.a.nodes[*next], false));
    return FAC_OK;
}

/* As in a listing of code: what was removed stands where it was, and before what was added there.
 */
static fac_status tell_nodes(fac_teller *t) {
    const fac_diff_side *b = &t->m.b;
    int removed = 0, paired = 0; /* paired: the first node from q on that has a mate */
    for (int q = 0; q < b->n; q++) {
        if (paired < q) paired = q;
        while (paired < b->n && b->mate[paired] < 0) paired++;
        FAC_TRY(tell_removed(t, &removed, paired < b->n ? b->mate[paired] : t->m.a.n));
        FAC_TRY(b->mate[q] < 0 ? tell_alone(t, b->nodes[q], true)
                               : tell_pair(t, t->m.a.nodes[b->mate[q]], b->nodes[q]));
    }
    return tell_removed(t, &removed, t->m.a.n);
}

/* ---- the calls ---- */

static void settle(fac_teller *t) {
    fac_diff_totals *s = &t->d->totals;
    int real = 0;
    for (int k = 0; k < FAC_CHANGE_KINDS; k++)
        if ((k != FAC_RENAMED || t->o.names) && (k != FAC_MOVED || t->o.order))
            real += s->nodes[k] + s->leaves[k];
    s->same = !real;
    s->nodes_a = t->m.a.n;
    s->nodes_b = t->m.b.n;
    s->params_a = (int)t->m.a.g->nparams;
    s->params_b = (int)t->m.b.g->nparams;
}

static fac_status tell_all(fac_teller *t) {
    const fac_graph *a = t->m.a.g, *b = t->m.b.g;
    t->real[0] = fac_alloc((size_t)a->ids + 1, sizeof *t->real[0]);
    t->real[1] = fac_alloc((size_t)b->ids + 1, sizeof *t->real[1]);
    t->moved = fac_alloc((size_t)b->nodes + 1, sizeof *t->moved);
    if (!t->real[0] || !t->real[1] || !t->moved || !fac_diff_moved(&t->m, t->moved))
        return fac_raise_memory(t->err, "a comparison of two models");
    fac_find_real(&t->m.a, t->real[0]);
    fac_find_real(&t->m.b, t->real[1]);
    FAC_TRY(fac_tell_leaves(t, FAC_OF_INPUT, a->ninputs, a->inputs, b->ninputs, b->inputs));
    FAC_TRY(fac_tell_leaves(t, FAC_OF_PARAMETER, a->nparams, a->params, b->nparams, b->params));
    FAC_TRY(tell_nodes(t));
    FAC_TRY(fac_tell_outputs(t));
    settle(t);
    return FAC_OK;
}

fac_status fac_diff(const fac_graph *a, const fac_graph *b, const fac_diff_opts *opts,
                    fac_differences **out, fac_error *err) {
    FAC_TRY(fac_graph_usable(a, "fac_diff", err));
    FAC_TRY(fac_graph_usable(b, "fac_diff", err));
    fac_teller t = { .d = fac_alloc(1, sizeof *t.d), .err = err };
    if (!t.d) return fac_raise_memory(err, "a comparison of two models");
    if (opts) t.o = *opts;
    fac_status status = fac_match_graphs(a, b, t.o.structure, &t.m, err);
    if (!status) status = tell_all(&t);
    fac_match_free(&t.m);
    fac_release(t.real[0]);
    fac_release(t.real[1]);
    fac_release(t.moved);
    if (status)
        fac_differences_free(t.d);
    else
        *out = t.d;
    return status;
}

void fac_differences_free(fac_differences *d) {
    if (!d) return;
    fac_release(d->changes);
    fac_arena_free(&d->memory);
    fac_release(d);
}

const fac_change *fac_differences_get(const fac_differences *d, int i) {
    return i >= 0 && (size_t)i < d->n ? &d->changes[i] : NULL;
}

fac_diff_totals fac_differences_totals(const fac_differences *d) { return d->totals; }
