/* Expressions of chat templates get their values. */
#include <string.h>
#include "text/jinja/jinja.h"
#include "text/tokenizer.h"

typedef fac_jinja_run run;
typedef fac_jinja_value value;
typedef fac_jinja_node node;

/* ---- names and items ---- */

static value look(run *r, const char *name) {
    for (const fac_jinja_scope *s = r->scope; s; s = s->up) {
        const value *v = fac_jinja_field(r, &s->names, name);
        if (v) return *v;
    }
    if (fac_jinja_is_function(name)) return (value){ .kind = FAC_JINJA_FUNCTION, .name = name };
    return fac_jinja_undefined(name);
}

static value at(const fac_jinja_list *l, int64_t i) {
    if (i < 0) i += (int64_t)l->n;
    return i >= 0 && i < (int64_t)l->n ? l->at[i] : fac_jinja_undefined("an item beyond the last");
}

static value character(run *r, value of, int64_t i) {
    const int64_t n = (int64_t)fac_jinja_length(r, of);
    if (i < 0) i += n;
    if (i < 0 || i >= n) return fac_jinja_undefined("an item beyond the last");
    const value none = { .kind = FAC_JINJA_NONE };
    const value part[3] = { fac_jinja_int(i), fac_jinja_int(i + 1), none };
    return fac_jinja_slice(r, of, part);
}

fac_jinja_value fac_jinja_item(run *r, value of, value key) {
    const bool counts = key.kind == FAC_JINJA_INT || key.kind == FAC_JINJA_BOOL;
    if (of.kind == FAC_JINJA_UNDEFINED)
        return fac_jinja_fail(r, FAC_E_ARGUMENT, "%.80s is undefined", of.name ? of.name : "it");
    if (of.kind == FAC_JINJA_DICT || of.kind == FAC_JINJA_NAMESPACE) {
        const value *v = fac_jinja_get(r, of.dict, key);
        return v ? *v : fac_jinja_undefined("an item");
    }
    if ((of.kind == FAC_JINJA_LIST || of.kind == FAC_JINJA_TUPLE) && counts)
        return at(of.list, key.i);
    if (of.kind == FAC_JINJA_TEXT && counts) return character(r, of, key.i);
    return fac_jinja_undefined("an item");
}

static value attribute(run *r, const node *n) {
    const value of = fac_jinja_evaluate(r, n->a);
    if (r->status) return of;
    if (of.kind == FAC_JINJA_TEXT && fac_jinja_find_method(n->name))
        return (value){ .kind = FAC_JINJA_FUNCTION, .name = n->name };
    const value v = fac_jinja_item(r, of, fac_jinja_string(n->name));
    return v.kind == FAC_JINJA_UNDEFINED ? fac_jinja_undefined(n->name) : v;
}

static value slice(run *r, const node *n) {
    const value of = fac_jinja_evaluate(r, n->a), none = { .kind = FAC_JINJA_NONE };
    value part[3] = { none, none, none };
    if (n->b) part[0] = fac_jinja_evaluate(r, n->b);
    if (n->c) part[1] = fac_jinja_evaluate(r, n->c);
    if (n->d) part[2] = fac_jinja_evaluate(r, n->d);
    return r->status ? none : fac_jinja_slice(r, of, part);
}

/* ---- lists ---- */

static value items(run *r, const node *n) {
    const value v = fac_jinja_new_list(r, n->tuple ? FAC_JINJA_TUPLE : FAC_JINJA_LIST);
    for (const node *k = n->items; k && !r->status; k = k->next)
        fac_jinja_add(r, v.list, fac_jinja_evaluate(r, k->a));
    return v;
}

static value pairs(run *r, const node *n) {
    const value v = fac_jinja_new_dict(r, FAC_JINJA_DICT);
    for (const node *k = n->items; k && k->next && !r->status; k = k->next->next) {
        const value key = fac_jinja_evaluate(r, k->a);
        fac_jinja_put(r, v.dict, key, fac_jinja_evaluate(r, k->next->a));
    }
    return v;
}

static void arguments(run *r, const node *items_, fac_jinja_arguments *to) {
    to->n = 0;
    for (const node *k = items_; k && !r->status; k = k->next) {
        if (to->n == FAC_JINJA_ARGUMENTS) {
            fac_jinja_fail(r, FAC_E_UNSUPPORTED, "more than 16 arguments");
            return;
        }
        to->names[to->n] = k->name;
        to->at[to->n++] = fac_jinja_evaluate(r, k->a);
    }
}

/* ---- filters and tests ---- */

/* A chain of filters over a value that is there already. */
fac_jinja_value fac_jinja_filtered(run *r, const node *n, value v) {
    fac_jinja_arguments a;
    if (!fac_jinja_deeper(r)) return v;
    if (n->a) v = fac_jinja_filtered(r, n->a, v);
    r->depth--;
    arguments(r, n->items, &a);
    if (r->status) return v;
    fac_jinja_filter *f = n->what == FAC_JINJA_FILTER ? fac_jinja_find_filter(n->name) : NULL;
    if (f) return f(r, v, &a);
    return fac_jinja_fail(r, FAC_E_UNSUPPORTED, "the filter %.60s is not known here",
                          n->name ? n->name : "is");
}

static value filter(run *r, const node *n) {
    const value v = fac_jinja_evaluate(r, n->a);
    node alone = *n;
    alone.a = NULL;
    return r->status ? v : fac_jinja_filtered(r, &alone, v);
}

static value test(run *r, const node *n) {
    fac_jinja_arguments a;
    const value v = fac_jinja_evaluate(r, n->a);
    arguments(r, n->items, &a);
    return r->status ? v : fac_jinja_bool(fac_jinja_test(r, n->name, v, &a));
}

static value call(run *r, const node *n) {
    fac_jinja_arguments a;
    arguments(r, n->items, &a);
    return r->status ? (value){ 0 } : fac_jinja_call(r, n, &a);
}

/* ---- signs ---- */

static value compare(run *r, const node *n) {
    const value a = fac_jinja_evaluate(r, n->a), b = fac_jinja_evaluate(r, n->b);
    const char *s = n->name;
    if (r->status) return a;
    if (!strcmp(s, "==")) return fac_jinja_bool(fac_jinja_equal(r, a, b));
    if (!strcmp(s, "!=")) return fac_jinja_bool(!fac_jinja_equal(r, a, b));
    if (!strcmp(s, "in")) return fac_jinja_bool(fac_jinja_has(r, b, a));
    if (!strcmp(s, "not in")) return fac_jinja_bool(!fac_jinja_has(r, b, a));
    const int order = fac_jinja_order(r, a, b);
    if (!strcmp(s, "<")) return fac_jinja_bool(order < 0);
    if (!strcmp(s, "<=")) return fac_jinja_bool(order <= 0);
    if (!strcmp(s, ">")) return fac_jinja_bool(order > 0);
    return fac_jinja_bool(order >= 0);
}

static value negated(run *r, value v) {
    if (v.kind == FAC_JINJA_FLOAT) return (value){ .kind = FAC_JINJA_FLOAT, .f = -v.f };
    return fac_jinja_math(r, "-", fac_jinja_int(0), v);
}

static value binary(run *r, const node *n) {
    const value a = fac_jinja_evaluate(r, n->a);
    const value b = r->status ? a : fac_jinja_evaluate(r, n->b);
    return r->status ? a : fac_jinja_math(r, n->name, a, b);
}

static value either(run *r, const node *n) {
    const value a = fac_jinja_evaluate(r, n->a);
    const bool is = fac_jinja_truth(a);
    if (r->status || is == (n->what == FAC_JINJA_OR)) return a;
    return fac_jinja_evaluate(r, n->b);
}

static value choice(run *r, const node *n) {
    const bool is = fac_jinja_truth(fac_jinja_evaluate(r, n->a));
    const node *taken = is ? n->b : n->c;
    if (r->status || !taken) return fac_jinja_undefined("a value without else");
    return fac_jinja_evaluate(r, taken);
}

static value of_node(run *r, const node *n) {
    switch (n->what) {
    case FAC_JINJA_CONST:
        return n->value;
    case FAC_JINJA_NAME:
        return look(r, n->name);
    case FAC_JINJA_ITEMS:
        return items(r, n);
    case FAC_JINJA_PAIRS:
        return pairs(r, n);
    case FAC_JINJA_ATTRIBUTE:
        return attribute(r, n);
    case FAC_JINJA_INDEX: {
        const value of = fac_jinja_evaluate(r, n->a), key = fac_jinja_evaluate(r, n->b);
        return r->status ? of : fac_jinja_item(r, of, key);
    }
    case FAC_JINJA_SLICE:
        return slice(r, n);
    case FAC_JINJA_CALL:
        return call(r, n);
    case FAC_JINJA_FILTER:
        return filter(r, n);
    case FAC_JINJA_TEST:
        return test(r, n);
    case FAC_JINJA_AND:
    case FAC_JINJA_OR:
        return either(r, n);
    case FAC_JINJA_NOT:
        return fac_jinja_bool(!fac_jinja_truth(fac_jinja_evaluate(r, n->a)));
    case FAC_JINJA_NEGATE:
        return negated(r, fac_jinja_evaluate(r, n->a));
    case FAC_JINJA_MATH:
        return binary(r, n);
    case FAC_JINJA_COMPARE:
        return compare(r, n);
    default:
        return choice(r, n);
    }
}

fac_jinja_value fac_jinja_evaluate(run *r, const node *n) {
    if (!fac_jinja_step(r) || !fac_jinja_deeper(r)) return (value){ 0 };
    r->line = n->line;
    const value v = of_node(r, n);
    r->depth--;
    return r->status ? (value){ 0 } : v;
}
