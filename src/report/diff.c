/* Tells how two models differ, from the pairs of match.c: see facula/diff.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/diff.h"
#include "report/diff.h"

struct fac_differences {
    fac_arena   memory;
    fac_change *changes;
    size_t      n, room;
    fac_diff_totals totals;
};

typedef struct teller {
    fac_match        m;
    fac_diff_opts    o;
    fac_differences *d;
    const fac_value **real[2];      /* by id of a value that a removed or added node makes: what it was made from */
    bool            *moved;         /* by place in b */
    fac_error       *err;
} teller;

static fac_status no_memory(fac_error *err) { return fac_raise(err, FAC_E_NOMEM, "no memory to compare two models"); }

/* ---- changes -------------------------------------------------------------------------------------------------------- */

/* Takes the text. */
static fac_status tell(teller *t, fac_change c, fac_text *text) {
    fac_differences *d = t->d;
    const bool two = c.a && c.b;
    c.a = fac_arena_text(&d->memory, c.a);
    c.b = fac_arena_text(&d->memory, c.b);
    c.text = fac_arena_text(&d->memory, text->s ? text->s : "");
    const bool room = !text->failed && c.text && (two ? c.a && c.b : c.a || c.b)
                      && fac_reserve(&d->changes, &d->room, d->n + 1, sizeof *d->changes);
    fac_text_free(text);
    if (!room) return no_memory(t->err);
    d->changes[d->n++] = c;
    (c.of == FAC_OF_NODE ? d->totals.nodes : d->totals.leaves)[c.kind]++;
    return FAC_OK;
}

static void say(fac_text *to, const char *what) {
    if (to->n) fac_text_add(to, "; ");
    fac_text_add(to, what);
}

/* ---- types ---------------------------------------------------------------------------------------------------------- */

/* Symbols are the same when their names are; nameless ones always. */
static bool same_size(const fac_graph *a, int64_t x, const fac_graph *b, int64_t y) {
    const char *p = fac_symbol_name(a, x), *q = fac_symbol_name(b, y);
    if (!p || !q) return x == y;
    return (*p == '?' && *q == '?') || !strcmp(p, q);
}

static bool same_type(const fac_value *x, const fac_value *y) {
    if (x->type.dtype != y->type.dtype || x->type.dims.n != y->type.dims.n) return false;
    for (int k = 0; k < x->type.dims.n; k++)
        if (!same_size(x->graph, x->type.dims.d[k], y->graph, y->type.dims.d[k])) return false;
    return true;
}

static void say_types(fac_text *to, const fac_value *x, const fac_value *y) {
    say(to, "");
    fac_type_print(x->graph, &x->type, to);
    fac_text_add(to, " -> ");
    fac_type_print(y->graph, &y->type, to);
}

/* ---- where a value comes from, added and removed nodes left out ------------------------------------------------------ */

static const fac_value *first_data(const fac_node *n) {
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && (n->in[i]->node || n->in[i]->leaf == FAC_INPUT)) return n->in[i];
    return NULL;
}

/* In the order of the nodes, so that what the first input really is has been found before. */
static void find_real(const fac_side *s, const fac_value **real) {
    for (int p = 0; p < s->n; p++) {
        const fac_value *from = s->mate[p] < 0 ? first_data(s->nodes[p]) : NULL;
        for (int k = 0; from && k < s->nodes[p]->nout; k++)
            real[s->nodes[p]->out[k]->id] = real[from->id] ? real[from->id] : from;
    }
}

static const fac_value *really(const teller *t, int side, const fac_value *v) {
    return v && t->real[side][v->id] ? t->real[side][v->id] : v;
}

static void value_name(const fac_value *v, fac_text *to) {
    char label[200];
    if (!v) fac_text_add(to, "nothing");
    else if (!v->node && v->leaf == FAC_CONST) fac_text_add(to, "a constant");
    else if (!v->node) fac_text_add(to, v->name);
    else fac_text_add(to, fac_node_label(v->node, label, sizeof label));
    if (v && v->node && v->index) fac_text_print(to, ".%d", v->index);
}

/* Does y still come from where x came from? */
static bool same_source(const teller *t, const fac_value *x, const fac_value *y) {
    if (fac_match_same(&t->m, x, y)) return true;
    if (!x || !y || (!x->node && x->leaf == FAC_CONST) || (!y->node && y->leaf == FAC_CONST)) return false;
    const fac_value *p = really(t, 0, x), *q = really(t, 1, y);
    return (p != x || q != y) && fac_match_same(&t->m, p, q);
}

static void say_source(fac_text *to, const fac_value *x, const fac_value *y) {
    fac_text_add(to, "from ");
    value_name(x, to);
    fac_text_add(to, " -> ");
    value_name(y, to);
}

/* ---- leaves --------------------------------------------------------------------------------------------------------- */

static void say_contents(fac_text *to, double largest, double share) {
    say(to, "");
    fac_text_print(to, "%.3g %% of its numbers differ, by at most %.3g", 100 * share, largest);
}

static fac_status compare_contents(const teller *t, const fac_value *x, const fac_value *y, fac_text *to, fac_change *c) {
    if (t->o.structure || !x->tensor || !y->tensor || !fac_dims_equal(&x->type.dims, &y->type.dims)) return FAC_OK;
    FAC_TRY(fac_contents_compare(x->tensor, y->tensor, &c->largest, &c->share, t->err));
    if (c->share > 0) say_contents(to, c->largest, c->share);
    return FAC_OK;
}

/* A leaf with its mate, or alone on one side. */
static fac_status tell_leaf(teller *t, fac_change_of of, const fac_value *x, const fac_value *y) {
    fac_text text = { 0 };
    fac_change c = { .of = of, .a = x ? x->name : NULL, .b = y ? y->name : NULL };
    c.kind = !x ? FAC_ADDED : !y ? FAC_REMOVED : FAC_CHANGED;
    if (!x || !y) {
        fac_type_print((x ? x : y)->graph, &(x ? x : y)->type, &text);
        return tell(t, c, &text);
    }
    if (!same_type(x, y)) say_types(&text, x, y);
    if (x->leaf != y->leaf) say(&text, x->leaf == FAC_PARAM ? "trained -> a state" : "a state -> trained");
    if (!x->next != !y->next) say(&text, x->next ? "no longer updated" : "updated now");
    else if (x->next && !same_source(t, x->next, y->next)) say(&text, "updated "), say_source(&text, x->next, y->next);
    fac_status status = compare_contents(t, x, y, &text, &c);
    const bool renamed = strcmp(x->name, y->name) != 0;
    if (!text.n && renamed) c.kind = FAC_RENAMED;
    if (!status && (text.n || text.failed || renamed)) return tell(t, c, &text);
    fac_text_free(&text);
    return status;
}

static fac_status tell_leaves(teller *t, fac_change_of of, size_t na, fac_value *const *a, size_t nb, fac_value *const *b) {
    for (size_t i = 0; i < na; i++) FAC_TRY(tell_leaf(t, of, a[i], t->m.a.leaf[a[i]->id]));
    for (size_t i = 0; i < nb; i++)
        if (!t->m.b.leaf[b[i]->id]) FAC_TRY(tell_leaf(t, of, NULL, b[i]));
    return FAC_OK;
}

/* ---- nodes ---------------------------------------------------------------------------------------------------------- */

/* "conv2d(x, conv1.weight) stride=2,2 -> f32[1,64,112,112]" */
static void describe(const fac_node *n, fac_text *to) {
    fac_text_print(to, "%s(", n->op->name);
    for (int i = 0; i < n->nin; i++) {
        if (i) fac_text_add(to, ", ");
        value_name(n->in[i], to);
    }
    fac_text_add(to, ")");
    fac_attrs_print(n->op, n->attrs, to);
    fac_text_add(to, " -> ");
    fac_type_print(n->graph, &n->out[0]->type, to);
}

static fac_status tell_alone(teller *t, const fac_node *n, bool added) {
    char label[200];
    fac_text text = { 0 };
    fac_node_label(n, label, sizeof label);
    describe(n, &text);
    return tell(t, (fac_change){ .of = FAC_OF_NODE, .kind = added ? FAC_ADDED : FAC_REMOVED, .a = added ? NULL : label,
                                 .b = added ? label : NULL }, &text);
}

/* Bodies are compared as models of their own; the first thing that differs in them is told. */
static fac_status tell_bodies(teller *t, const fac_node *x, const fac_node *y, fac_text *to) {
    for (int k = 0; k < 2; k++) {
        fac_differences *inner = NULL;
        if (!x->body[k] && !y->body[k]) continue;
        if (!x->body[k] || !y->body[k]) {
            say(to, x->body[k] ? "a body less" : "a body more");
            continue;
        }
        FAC_TRY(fac_diff(x->body[k], y->body[k], &t->o, &inner, t->err));
        const fac_change *c = inner->totals.same ? NULL : fac_differences_get(inner, 0);
        if (c) {
            say(to, "in its body: ");
            fac_text_print(to, "%s %s", c->b ? c->b : c->a, c->text);
            if (inner->n > 1) fac_text_print(to, " and %zu more", inner->n - 1);
        }
        fac_differences_free(inner);
    }
    return FAC_OK;
}

static void say_literal(const fac_value *v, fac_text *to) {
    enum { FEW = 8 };
    fac_tensor *wide = NULL;
    const int64_t n = fac_dims_count(&v->type.dims);
    const bool small = v->tensor && n >= 0 && n <= FEW && v->type.dtype != FAC_TEXT;
    if (small && !fac_tensor_convert(v->tensor, FAC_F64, &wide, NULL))
        for (int64_t i = 0; i < n; i++) fac_text_print(to, i ? ",%.9g" : "%.9g", ((const double *)fac_tensor_data(wide))[i]);
    else if (v->known)
        for (int i = 0; i < v->known->n; i++) fac_text_print(to, i ? ",%lld" : "%lld", (long long)v->known->v[i]);
    else fac_type_print(v->graph, &v->type, to);
    fac_tensor_free(wide);
}

static bool is_const(const fac_value *v) { return v && !v->node && v->leaf == FAC_CONST; }

/* Inputs: constants that changed are like attributes; other sources are another wiring. */
static fac_status tell_inputs(teller *t, const fac_node *x, const fac_node *y, fac_text *changed, fac_text *rewired,
                              fac_change *c) {
    const int n = x->nin > y->nin ? x->nin : y->nin;
    for (int i = 0; i < n; i++) {
        const fac_value *u = i < x->nin ? x->in[i] : NULL, *v = i < y->nin ? y->in[i] : NULL;
        if (same_source(t, u, v)) continue;
        if (is_const(u) && is_const(v)) {
            say(changed, "");
            fac_text_print(changed, "input %d: ", i);
            say_literal(u, changed);
            fac_text_add(changed, " -> ");
            say_literal(v, changed);
            if (u->tensor && v->tensor && fac_dims_count(&u->type.dims) > 1) FAC_TRY(compare_contents(t, u, v, changed, c));
        } else {
            say(rewired, "");
            fac_text_print(rewired, "input %d ", i);
            say_source(rewired, u, v);
        }
    }
    return FAC_OK;
}

/* A type that is another although nothing that it follows from is another is news; else it is counted. */
static void tell_types(teller *t, const fac_node *x, const fac_node *y, bool other, fac_text *to) {
    bool inputs = true;
    for (int i = 0; i < x->nin && i < y->nin; i++) inputs &= !x->in[i] || !y->in[i] || same_type(x->in[i], y->in[i]);
    for (int k = 0; k < x->nout && k < y->nout; k++) {
        if (same_type(x->out[k], y->out[k])) continue;
        if (other || inputs) say_types(to, x->out[k], y->out[k]);
        else t->d->totals.sizes++;
    }
}

static bool same_name(const char *x, const char *y) { return x == y || (x && y && !strcmp(x, y)); }

static bool is_renamed(const fac_node *x, const fac_node *y) {
    bool renamed = !same_name(x->name, y->name) || (!x->name && !same_name(x->scope, y->scope));
    for (int k = 0; k < x->nout && k < y->nout; k++) renamed |= !same_name(x->out[k]->name, y->out[k]->name);
    return renamed;
}

static fac_status tell_pair(teller *t, const fac_node *x, const fac_node *y) {
    char p[200], q[200];
    fac_text changed = { 0 }, rewired = { 0 };
    fac_change c = { .of = FAC_OF_NODE, .a = fac_node_label(x, p, sizeof p), .b = fac_node_label(y, q, sizeof q) };
    fac_diff_attrs(x, y, &changed);
    fac_status status = tell_bodies(t, x, y, &changed);
    if (!status) status = tell_inputs(t, x, y, &changed, &rewired, &c);
    if (!status) tell_types(t, x, y, changed.n || rewired.n, &changed);
    c.kind = rewired.n ? FAC_REWIRED : changed.n ? FAC_CHANGED : is_renamed(x, y) ? FAC_RENAMED : FAC_MOVED;
    if (rewired.n && changed.n) say(&rewired, changed.s);
    const bool news = rewired.n || changed.n || c.kind == FAC_RENAMED || t->moved[t->m.b.place[y->id]];
    fac_text *text = rewired.n ? &rewired : &changed;
    if (!status && changed.failed) status = no_memory(t->err);
    if (!status && news) status = tell(t, c, text);
    fac_text_free(&changed);
    fac_text_free(&rewired);
    return status;
}

static fac_status tell_removed(teller *t, int *next, int behind) {
    for (; *next < behind; ++*next)
        if (t->m.a.mate[*next] < 0) FAC_TRY(tell_alone(t, t->m.a.nodes[*next], false));
    return FAC_OK;
}

/* As in a listing of code: what was removed stands where it was, and before what was added there. */
static fac_status tell_nodes(teller *t) {
    const fac_side *b = &t->m.b;
    int removed = 0, paired = 0;                        /* paired: the first node from q on that has a mate */
    for (int q = 0; q < b->n; q++) {
        if (paired < q) paired = q;
        while (paired < b->n && b->mate[paired] < 0) paired++;
        FAC_TRY(tell_removed(t, &removed, paired < b->n ? b->mate[paired] : t->m.a.n));
        FAC_TRY(b->mate[q] < 0 ? tell_alone(t, b->nodes[q], true) : tell_pair(t, t->m.a.nodes[b->mate[q]], b->nodes[q]));
    }
    return tell_removed(t, &removed, t->m.a.n);
}

/* ---- outputs -------------------------------------------------------------------------------------------------------- */

static bool name_outputs(const fac_graph *g, fac_table *to) {
    for (size_t i = 0; i < g->noutputs; i++)
        if (!fac_table_put(to, g->outputs[i].name, &g->outputs[i])) return false;
    return true;
}

/* Of output i of a: that of the same name, else at the same place when neither name is anywhere in the other model. */
static const fac_graph_out *output_mate(const teller *t, size_t i, const fac_table *of_a, const fac_table *of_b) {
    const fac_graph *b = t->m.b.g;
    const fac_graph_out *named = fac_table_get(of_b, t->m.a.g->outputs[i].name);
    if (named || i >= b->noutputs || fac_table_get(of_a, b->outputs[i].name)) return named;
    return &b->outputs[i];
}

static fac_status tell_output(teller *t, const fac_graph_out *x, const fac_graph_out *y) {
    fac_text text = { 0 };
    fac_change c = { .of = FAC_OF_OUTPUT, .kind = !x ? FAC_ADDED : !y ? FAC_REMOVED : FAC_CHANGED, .a = x ? x->name : NULL,
                     .b = y ? y->name : NULL };
    if (!x || !y) {
        const fac_value *v = (x ? x : y)->value;
        fac_type_print(v->graph, &v->type, &text);
        return tell(t, c, &text);
    }
    if (!same_source(t, x->value, y->value)) {          /* else its type is that of its value, which was told */
        c.kind = FAC_REWIRED;
        if (!same_type(x->value, y->value)) say_types(&text, x->value, y->value);
        say(&text, "");
        say_source(&text, x->value, y->value);
    }
    const bool renamed = strcmp(x->name, y->name) != 0;
    if (!text.n && renamed) c.kind = FAC_RENAMED;
    if (text.n || renamed) return tell(t, c, &text);
    return FAC_OK;
}

static fac_status tell_outputs(teller *t) {
    const fac_graph *a = t->m.a.g, *b = t->m.b.g;
    fac_table of_a = { 0 }, of_b = { 0 };
    bool *seen = fac_alloc(b->noutputs + 1, sizeof *seen);
    const bool room = seen && name_outputs(a, &of_a) && name_outputs(b, &of_b);
    fac_status status = room ? FAC_OK : no_memory(t->err);
    for (size_t i = 0; i < a->noutputs && !status; i++) {
        const fac_graph_out *mate = output_mate(t, i, &of_a, &of_b);
        if (mate) seen[mate - b->outputs] = true;
        status = tell_output(t, &a->outputs[i], mate);
    }
    for (size_t i = 0; i < b->noutputs && !status; i++)
        if (!seen[i]) status = tell_output(t, NULL, &b->outputs[i]);
    fac_table_free(&of_a);
    fac_table_free(&of_b);
    fac_release(seen);
    return status;
}

/* ---- the calls ------------------------------------------------------------------------------------------------------ */

static void settle(teller *t) {
    fac_diff_totals *s = &t->d->totals;
    int real = 0;
    for (int k = 0; k < FAC_CHANGE_KINDS; k++)
        if ((k != FAC_RENAMED || t->o.names) && (k != FAC_MOVED || t->o.order)) real += s->nodes[k] + s->leaves[k];
    s->same = !real;
    s->nodes_a = t->m.a.n;
    s->nodes_b = t->m.b.n;
    s->params_a = (int)t->m.a.g->nparams;
    s->params_b = (int)t->m.b.g->nparams;
}

static fac_status tell_all(teller *t) {
    const fac_graph *a = t->m.a.g, *b = t->m.b.g;
    t->real[0] = fac_alloc((size_t)a->ids + 1, sizeof *t->real[0]);
    t->real[1] = fac_alloc((size_t)b->ids + 1, sizeof *t->real[1]);
    t->moved = fac_alloc((size_t)b->nodes + 1, sizeof *t->moved);
    if (!t->real[0] || !t->real[1] || !t->moved || !fac_diff_moved(&t->m, t->moved)) return no_memory(t->err);
    find_real(&t->m.a, t->real[0]);
    find_real(&t->m.b, t->real[1]);
    FAC_TRY(tell_leaves(t, FAC_OF_INPUT, a->ninputs, a->inputs, b->ninputs, b->inputs));
    FAC_TRY(tell_leaves(t, FAC_OF_PARAMETER, a->nparams, a->params, b->nparams, b->params));
    FAC_TRY(tell_nodes(t));
    FAC_TRY(tell_outputs(t));
    settle(t);
    return FAC_OK;
}

fac_status fac_diff(const fac_graph *a, const fac_graph *b, const fac_diff_opts *opts, fac_differences **out, fac_error *err) {
    FAC_TRY(fac_graph_check(a, err));
    FAC_TRY(fac_graph_check(b, err));
    teller t = { .d = fac_alloc(1, sizeof *t.d), .err = err };
    if (!t.d) return no_memory(err);
    if (opts) t.o = *opts;
    fac_status status = fac_match_graphs(a, b, t.o.structure, &t.m, err);
    if (!status) status = tell_all(&t);
    fac_match_free(&t.m);
    fac_release(t.real[0]);
    fac_release(t.real[1]);
    fac_release(t.moved);
    if (status) fac_differences_free(t.d);
    else *out = t.d;
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
