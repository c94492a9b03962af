/* Statements of chat templates are run. */
#include <string.h>
#include "text/jinja/jinja.h"

typedef fac_jinja_run run;
typedef fac_jinja_value value;
typedef fac_jinja_node node;

/* ---- names ---- */

fac_jinja_scope *fac_jinja_enter(run *r, fac_jinja_scope *up) {
    fac_jinja_scope *before = r->scope, *s = fac_jinja_alloc(r, 1, sizeof *s);
    if (s) {
        s->up = up;
        r->scope = s;
    }
    return before;
}

void fac_jinja_define(run *r, const char *name, value v) {
    fac_jinja_put(r, &r->scope->names, fac_jinja_string(name), v);
}

/* A field of a namespace: the only thing that outlives the scope it is set in. */
static void set_field(run *r, const node *target, value v) {
    const value of = fac_jinja_evaluate(r, target->a);
    if (r->status) return;
    if (of.kind == FAC_JINJA_NAMESPACE)
        fac_jinja_put(r, of.dict, fac_jinja_string(target->name), v);
    else
        fac_jinja_fail(r, FAC_E_ARGUMENT, "%s of %s is set, which is no namespace", target->name,
                       target->a->name);
}

static void assign(run *r, const node *target, value v) {
    if (target->what == FAC_JINJA_NAME) {
        fac_jinja_define(r, target->name, v);
    } else if (target->what == FAC_JINJA_ATTRIBUTE) {
        set_field(r, target, v);
    } else {
        const fac_jinja_list all = fac_jinja_each(r, v);
        size_t k = 0;
        for (const node *n = target->items; n && k < all.n; n = n->next)
            assign(r, n->a, all.at[k++]);
        size_t want = 0;
        for (const node *n = target->items; n; n = n->next) want++;
        if (want != all.n)
            fac_jinja_fail(r, FAC_E_ARGUMENT, "%zu values for %zu names", all.n, want);
    }
}

/* ---- loops ---- */

/* Those items that pass the loop's condition. */
static fac_jinja_list chosen(run *r, const node *n, fac_jinja_list all) {
    fac_jinja_list to = { 0 };
    if (!n->c) return all;
    for (size_t k = 0; k < all.n && !r->status; k++) {
        fac_jinja_scope *outer = fac_jinja_enter(r, r->scope);
        assign(r, n->a, all.at[k]);
        const bool kept = fac_jinja_truth(fac_jinja_evaluate(r, n->c));
        r->scope = outer;
        if (kept) fac_jinja_add(r, &to, all.at[k]);
    }
    return to;
}

static void tell_loop(run *r, value loop, const fac_jinja_list *all, size_t k) {
    const int64_t i = (int64_t)k, n = (int64_t)all->n;
    const value none = fac_jinja_undefined("a neighbour in a loop");
    const struct {
        const char *name;
        value v;
    } fields[] = { { "index0", fac_jinja_int(i) },
                   { "index", fac_jinja_int(i + 1) },
                   { "first", fac_jinja_bool(!i) },
                   { "last", fac_jinja_bool(i + 1 == n) },
                   { "length", fac_jinja_int(n) },
                   { "revindex", fac_jinja_int(n - i) },
                   { "revindex0", fac_jinja_int(n - i - 1) },
                   { "previtem", i ? all->at[k - 1] : none },
                   { "nextitem", i + 1 < n ? all->at[k + 1] : none } };
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
        fac_jinja_put(r, loop.dict, fac_jinja_string(fields[f].name), fields[f].v);
}

static void run_for(run *r, const node *n) {
    const value over = fac_jinja_evaluate(r, n->b);
    const fac_jinja_list all = chosen(r, n, fac_jinja_each(r, over));
    const value loop = fac_jinja_new_dict(r, FAC_JINJA_DICT);
    for (size_t k = 0; k < all.n && fac_jinja_step(r); k++) {
        fac_jinja_scope *outer = fac_jinja_enter(r, r->scope);
        if (r->status) return;
        tell_loop(r, loop, &all, k);
        fac_jinja_define(r, "loop", loop);
        assign(r, n->a, all.at[k]);
        fac_jinja_execute(r, n->body);
        r->scope = outer;
        const bool ends = r->leaves == FAC_JINJA_BREAK;
        r->leaves = 0;
        if (ends) break;
    }
    if (!all.n) fac_jinja_execute(r, n->other);
}

/* ---- the others ---- */

static void run_if(run *r, const node *n) {
    for (;;) {
        const bool is = fac_jinja_truth(fac_jinja_evaluate(r, n->a));
        if (r->status) return;
        if (is || !n->elif) {
            fac_jinja_execute(r, is ? n->body : n->other);
            return;
        }
        n = n->other;
    }
}

/* What is written meanwhile is kept: as a variable, or filtered and printed. */
static void run_capture(run *r, const node *n) {
    fac_jinja_out inner = { 0 }, *outer = r->out;
    r->out = &inner;
    fac_jinja_execute(r, n->body);
    r->out = outer;
    value v = fac_jinja_written(&inner);
    if (n->b) v = fac_jinja_filtered(r, n->b, v);
    if (n->a)
        assign(r, n->a, v);
    else
        fac_jinja_print(r, r->out, v);
}

static void run_one(run *r, const node *n) {
    switch (n->what) {
    case FAC_JINJA_PLAIN:
        fac_jinja_print(r, r->out, n->value);
        break;
    case FAC_JINJA_PRINT:
        fac_jinja_print(r, r->out, fac_jinja_evaluate(r, n->a));
        break;
    case FAC_JINJA_FOR:
        run_for(r, n);
        break;
    case FAC_JINJA_IF:
        run_if(r, n);
        break;
    case FAC_JINJA_SET:
        assign(r, n->a, fac_jinja_evaluate(r, n->b));
        break;
    case FAC_JINJA_CAPTURE:
        run_capture(r, n);
        break;
    case FAC_JINJA_DEFINE:
        fac_jinja_define(
            r, n->name,
            (value){ .kind = FAC_JINJA_MACRO, .macro = { .node = n, .scope = r->scope } });
        break;
    case FAC_JINJA_GROUP:
        fac_jinja_execute(r, n->body);
        break;
    default:
        r->leaves = n->what;
        break;
    }
}

void fac_jinja_execute(run *r, const node *body) {
    if (!fac_jinja_deeper(r)) return;
    for (const node *n = body; n && !r->leaves && fac_jinja_step(r); n = n->next) {
        r->line = n->line;
        run_one(r, n);
    }
    r->depth--;
}
