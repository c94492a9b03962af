/* Calls in chat templates: functions, macros, methods. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "text/jinja/jinja.h"

typedef fac_jinja_run run;
typedef fac_jinja_value value;
typedef fac_jinja_node node;
typedef fac_jinja_arguments arguments;

enum { MOST_RANGE = 100000 };

/* ---- functions ---- */

/* The conversation is none that the template takes. */
static value refuse(run *r, const arguments *a) {
    char text[200] = "";
    const value *why = fac_jinja_argument(a, 0, "message");
    const fac_jinja_text t = why ? fac_jinja_as_text(r, *why) : (fac_jinja_text){ "", NULL, 0 };
    snprintf(text, sizeof text, "%.*s", (int)(t.n < 190 ? t.n : 190), t.s);
    r->refused = !r->status;
    return fac_jinja_fail(r, FAC_E_ARGUMENT, "it refuses the conversation: %s", text);
}

static value range(run *r, const arguments *a) {
    const int64_t first = fac_jinja_count(r, a, 0, NULL, 0);
    const int64_t from = a->n > 1 ? first : 0;
    const int64_t to = a->n > 1 ? fac_jinja_count(r, a, 1, NULL, 0) : first;
    const int64_t step = fac_jinja_count(r, a, 2, NULL, 1);
    const value v = fac_jinja_new_list(r, FAC_JINJA_LIST);
    if (!step && !r->status) fac_jinja_fail(r, FAC_E_ARGUMENT, "range() by steps of 0");
    for (int64_t k = from; !r->status && (step > 0 ? k < to : k > to);) {
        if (v.list->n >= MOST_RANGE)
            return fac_jinja_fail(r, FAC_E_UNSUPPORTED, "range() of more than 100000");
        fac_jinja_add(r, v.list, fac_jinja_int(k));
        if (__builtin_add_overflow(k, step, &k)) break;
    }
    return v;
}

static value fields(run *r, const arguments *a, fac_jinja_kind kind) {
    const value v = fac_jinja_new_dict(r, kind);
    for (int k = 0; k < a->n && !r->status; k++) {
        if (a->names[k])
            fac_jinja_put(r, v.dict, fac_jinja_string(a->names[k]), a->at[k]);
        else
            fac_jinja_fail(r, FAC_E_UNSUPPORTED, "a field without a name");
    }
    return v;
}

static value now(run *r, const arguments *a) {
    const value *given = fac_jinja_argument(a, 0, "format");
    const time_t seconds = time(NULL);
    struct tm day;
    char form[128] = "%d %b %Y", *text = fac_jinja_alloc(r, 512, 1);
    if (given && given->kind == FAC_JINJA_TEXT && given->text.n < sizeof form)
        snprintf(form, sizeof form, "%.*s", (int)given->text.n, given->text.s);
    else
        fac_jinja_fail(r, FAC_E_UNSUPPORTED, "a date of no short form");
    if (r->status || !localtime_r(&seconds, &day)) return (value){ 0 };
    const size_t n = strftime(text, 512, form, &day);
    return fac_jinja_part((fac_jinja_text){ text, NULL, n }, 0, n);
}

static const char *const functions[] = { "range", "namespace", "dict", "raise_exception",
                                         "strftime_now" };

bool fac_jinja_is_function(const char *name) {
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (!strcmp(name, functions[k])) return true;
    return false;
}

static value function(run *r, const char *name, const arguments *a) {
    if (!strcmp(name, "range")) return range(r, a);
    if (!strcmp(name, "namespace")) return fields(r, a, FAC_JINJA_NAMESPACE);
    if (!strcmp(name, "dict")) return fields(r, a, FAC_JINJA_DICT);
    if (!strcmp(name, "raise_exception")) return refuse(r, a);
    if (!strcmp(name, "strftime_now")) return now(r, a);
    return fac_jinja_fail(r, FAC_E_UNSUPPORTED, "%.60s is called", name);
}

/* ---- macros ---- */

static value parameter(run *r, const node *p, int place, const arguments *a) {
    const value *given = fac_jinja_argument(a, place, p->name);
    if (given) return *given;
    return p->a ? fac_jinja_evaluate(r, p->a) : fac_jinja_undefined(p->name);
}

static void check_names(run *r, const node *macro, const arguments *a) {
    int places = 0, given = 0;
    for (const node *p = macro->items; p; p = p->next) places++;
    for (int k = 0; k < a->n; k++) {
        bool known = !a->names[k];
        given += known;
        for (const node *p = macro->items; p && !known; p = p->next)
            known = !strcmp(p->name, a->names[k]);
        if (!known)
            fac_jinja_fail(r, FAC_E_ARGUMENT, "%.60s takes no %.60s", macro->name, a->names[k]);
    }
    if (given > places)
        fac_jinja_fail(r, FAC_E_ARGUMENT, "%.60s takes %d values, not %d", macro->name, places,
                       given);
}

static value macro(run *r, value m, const arguments *a) {
    fac_jinja_out inner = { 0 }, *outer = r->out;
    const node *body = m.macro.node;
    int place = 0;
    check_names(r, body, a);
    if (!fac_jinja_deeper(r)) return (value){ 0 };
    fac_jinja_scope *before = fac_jinja_enter(r, m.macro.scope);
    for (const node *p = body->items; p && !r->status; p = p->next)
        fac_jinja_define(r, p->name, parameter(r, p, place++, a));
    r->out = &inner;
    if (!r->status) fac_jinja_execute(r, body->body);
    r->leaves = 0;
    r->out = outer;
    r->scope = before;
    r->depth--;
    return fac_jinja_written(&inner);
}

/* ---- methods ---- */

static value pairs_of(run *r, const fac_jinja_dict *d) {
    const value v = fac_jinja_new_list(r, FAC_JINJA_LIST);
    for (size_t k = 0; k < d->values.n && !r->status; k++) {
        const value pair = fac_jinja_new_list(r, FAC_JINJA_TUPLE);
        if (r->status) break;
        fac_jinja_add(r, pair.list, d->keys.at[k]);
        fac_jinja_add(r, pair.list, d->values.at[k]);
        fac_jinja_add(r, v.list, pair);
    }
    return v;
}

static value copy(run *r, const fac_jinja_list *l) {
    const value v = fac_jinja_new_list(r, FAC_JINJA_LIST);
    for (size_t k = 0; k < l->n && !r->status; k++) fac_jinja_add(r, v.list, l->at[k]);
    return v;
}

static value of_dict(run *r, value of, const char *name, const arguments *a) {
    if (!strcmp(name, "items")) return pairs_of(r, of.dict);
    if (!strcmp(name, "keys")) return copy(r, &of.dict->keys);
    if (!strcmp(name, "values")) return copy(r, &of.dict->values);
    const value *key = fac_jinja_argument(a, 0, "key"), none = { .kind = FAC_JINJA_NONE };
    if (strcmp(name, "get") || !key)
        return fac_jinja_fail(r, FAC_E_UNSUPPORTED, "a dict's %.60s() is not known here", name);
    const value *v = fac_jinja_get(r, of.dict, *key);
    const value *otherwise = fac_jinja_argument(a, 1, "default");
    if (v) return *v;
    return otherwise ? *otherwise : none;
}

static value of_list(run *r, value of, const char *name, const arguments *a) {
    const value *what = fac_jinja_argument(a, 0, "value");
    int64_t n = 0, first = -1;
    if (!what || (strcmp(name, "count") && strcmp(name, "index")))
        return fac_jinja_fail(r, FAC_E_UNSUPPORTED, "a list's %.60s() is not known here", name);
    for (size_t k = 0; k < of.list->n; k++) {
        if (!fac_jinja_equal(r, of.list->at[k], *what)) continue;
        if (!n++) first = (int64_t)k;
    }
    if (!strcmp(name, "count")) return fac_jinja_int(n);
    if (first < 0) return fac_jinja_fail(r, FAC_E_ARGUMENT, "what is looked for is not listed");
    return fac_jinja_int(first);
}

static value method(run *r, value of, const char *name, const arguments *a) {
    if (of.kind == FAC_JINJA_TEXT) {
        fac_jinja_filter *f = fac_jinja_find_method(name);
        if (f) return f(r, of, a);
        return fac_jinja_fail(r, FAC_E_UNSUPPORTED, "a text's %.60s() is not known here", name);
    }
    if (of.kind == FAC_JINJA_DICT || of.kind == FAC_JINJA_NAMESPACE) {
        const value *field = fac_jinja_field(r, of.dict, name);
        if (field && field->kind == FAC_JINJA_MACRO) return macro(r, *field, a);
        return of_dict(r, of, name, a);
    }
    if (of.kind == FAC_JINJA_LIST || of.kind == FAC_JINJA_TUPLE) return of_list(r, of, name, a);
    if (of.kind == FAC_JINJA_UNDEFINED)
        return fac_jinja_fail(r, FAC_E_ARGUMENT, "%.80s is undefined", of.name ? of.name : "it");
    return fac_jinja_fail(r, FAC_E_ARGUMENT, "%s has no %.60s()", fac_jinja_kind_name(of), name);
}

fac_jinja_value fac_jinja_call(run *r, const node *n, const arguments *a) {
    const node *what = n->a;
    if (what->what == FAC_JINJA_ATTRIBUTE) {
        const value of = fac_jinja_evaluate(r, what->a);
        return r->status ? of : method(r, of, what->name, a);
    }
    const value f = fac_jinja_evaluate(r, what);
    if (r->status) return f;
    if (f.kind == FAC_JINJA_MACRO) return macro(r, f, a);
    if (f.kind == FAC_JINJA_FUNCTION) return function(r, f.name, a);
    if (f.kind == FAC_JINJA_UNDEFINED)
        return fac_jinja_fail(r, FAC_E_UNSUPPORTED, "the function %.60s is not known here",
                              f.name ? f.name : "it");
    return fac_jinja_fail(r, FAC_E_ARGUMENT, "%s is called", fac_jinja_kind_name(f));
}
