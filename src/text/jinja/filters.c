/* Filters of chat templates: value | name(arguments). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "text/jinja/jinja.h"

typedef fac_jinja_run run;
typedef fac_jinja_value value;
typedef fac_jinja_arguments arguments;

static bool flag(const arguments *a, int place, const char *name) {
    const value *v = fac_jinja_argument(a, place, name);
    return v && fac_jinja_truth(*v);
}

/* ---- of any value ---- */

static value otherwise(run *r, value v, const arguments *a) {
    const value *other = fac_jinja_argument(a, 0, "default_value");
    const bool empty = flag(a, 1, "boolean") && !fac_jinja_truth(v);
    (void)r;
    if (v.kind != FAC_JINJA_UNDEFINED && !empty) return v;
    return other ? *other : fac_jinja_string("");
}

static value as_json(run *r, value v, const arguments *a) {
    const value *given = fac_jinja_argument(a, 1, "indent"), none = { .kind = FAC_JINJA_NONE };
    fac_jinja_out o = { 0 };
    int64_t indent = -1;
    for (int k = 0; k < a->n; k++)
        if (a->names[k] && strcmp(a->names[k], "indent") && strcmp(a->names[k], "ensure_ascii"))
            return fac_jinja_fail(r, FAC_E_UNSUPPORTED, "tojson(%.60s=) is not known here",
                                  a->names[k]);
    if (flag(a, 0, "ensure_ascii"))
        return fac_jinja_fail(r, FAC_E_UNSUPPORTED, "tojson(ensure_ascii) is not known here");
    if (given && given->kind != none.kind) indent = fac_jinja_count(r, a, 1, "indent", -1);
    if (indent > 64) return fac_jinja_fail(r, FAC_E_ARGUMENT, "tojson by an indent beyond 64");
    fac_jinja_json(r, &o, v, (int)(indent < 0 ? -1 : indent));
    return fac_jinja_written(&o);
}

static value length(run *r, value v, const arguments *a) {
    (void)a;
    return fac_jinja_int((int64_t)fac_jinja_length(r, v));
}

static value string(run *r, value v, const arguments *a) {
    (void)a;
    return (value){ .kind = FAC_JINJA_TEXT, .text = fac_jinja_as_text(r, v) };
}

static value list_of(run *r, fac_jinja_list all) {
    const value v = fac_jinja_new_list(r, FAC_JINJA_LIST);
    for (size_t k = 0; k < all.n && !r->status; k++) fac_jinja_add(r, v.list, all.at[k]);
    return v;
}

static value list(run *r, value v, const arguments *a) {
    (void)a;
    return list_of(r, fac_jinja_each(r, v));
}

/* ---- numbers ---- */

static double parsed(run *r, value v, double other) {
    double x;
    char text[64] = { 0 }, *end;
    if (fac_jinja_number(v, &x)) return x;
    if (v.kind != FAC_JINJA_TEXT || !v.text.n || v.text.n >= sizeof text || r->status) return other;
    memcpy(text, v.text.s, v.text.n);
    x = strtod(text, &end);
    return *end ? other : x;
}

static value whole(run *r, value v, const arguments *a) {
    const double x = parsed(r, v, (double)fac_jinja_count(r, a, 0, "default", 0));
    if (!(fabs(x) < 9007199254740992.0)) return fac_jinja_int(0);
    return fac_jinja_int((int64_t)x);
}

static value real(run *r, value v, const arguments *a) {
    const value *other = fac_jinja_argument(a, 0, "default");
    double x = 0;
    if (other) fac_jinja_number(*other, &x);
    return (value){ .kind = FAC_JINJA_FLOAT, .f = parsed(r, v, x) };
}

static value absolute(run *r, value v, const arguments *a) {
    (void)a;
    if (v.kind == FAC_JINJA_FLOAT) return (value){ .kind = FAC_JINJA_FLOAT, .f = fabs(v.f) };
    if (v.kind == FAC_JINJA_BOOL) return fac_jinja_int(v.i);
    return v.kind == FAC_JINJA_INT && v.i < 0 ? fac_jinja_math(r, "-", fac_jinja_int(0), v) : v;
}

/* ---- lists ---- */

static value first(run *r, value v, const arguments *a) {
    const fac_jinja_list all = fac_jinja_each(r, v);
    (void)a;
    return all.n ? all.at[0] : fac_jinja_undefined("the first of nothing");
}

static value last(run *r, value v, const arguments *a) {
    const fac_jinja_list all = fac_jinja_each(r, v);
    (void)a;
    return all.n ? all.at[all.n - 1] : fac_jinja_undefined("the last of nothing");
}

/* The field a.b of a value. */
static value field(run *r, value v, const value *path) {
    if (!path) return v;
    if (path->kind != FAC_JINJA_TEXT) return fac_jinja_item(r, v, *path);
    size_t from = 0;
    for (size_t k = 0; k <= path->text.n && !r->status; k++) {
        if (k < path->text.n && path->text.s[k] != '.') continue;
        v = fac_jinja_item(r, v, fac_jinja_part(path->text, from, k));
        from = k + 1;
    }
    return v;
}

static value join(run *r, value v, const arguments *a) {
    const value *between = fac_jinja_argument(a, 0, "d");
    const value *path = fac_jinja_argument(a, 1, "attribute");
    const fac_jinja_list all = fac_jinja_each(r, v);
    fac_jinja_out o = { 0 };
    for (size_t k = 0; k < all.n && !r->status; k++) {
        if (k && between) fac_jinja_print(r, &o, *between);
        fac_jinja_print(r, &o, field(r, all.at[k], path));
    }
    return fac_jinja_written(&o);
}

static value reversed(run *r, value v, const arguments *a) {
    const value none = { .kind = FAC_JINJA_NONE }, back[3] = { none, none, fac_jinja_int(-1) };
    (void)a;
    if (v.kind == FAC_JINJA_TEXT) return fac_jinja_slice(r, v, back);
    const value all = list_of(r, fac_jinja_each(r, v));
    return r->status ? all : fac_jinja_slice(r, all, back);
}

static value unique(run *r, value v, const arguments *a) {
    const fac_jinja_list all = fac_jinja_each(r, v);
    const value to = fac_jinja_new_list(r, FAC_JINJA_LIST);
    (void)a;
    for (size_t k = 0; k < all.n && fac_jinja_step(r); k++)
        if (!fac_jinja_has(r, to, all.at[k])) fac_jinja_add(r, to.list, all.at[k]);
    return to;
}

/* Texts are in order without their case, unless it is said. */
static value sort_key(run *r, value v, const value *path, bool cased) {
    const arguments none = { .n = 0 };
    const value key = field(r, v, path);
    if (key.kind != FAC_JINJA_TEXT || cased) return key;
    return fac_jinja_find_method("lower")(r, key, &none);
}

static value sorted_by(run *r, value all, const value *path, bool back, bool cased) {
    for (size_t k = 1; !r->status && k < all.list->n; k++) {
        const value one = all.list->at[k], key = sort_key(r, one, path, cased);
        size_t at = k;
        for (; at && fac_jinja_step(r); at--) {
            const value before = sort_key(r, all.list->at[at - 1], path, cased);
            const int order = fac_jinja_order(r, before, key);
            if (r->status || (back ? order >= 0 : order <= 0)) break;
            all.list->at[at] = all.list->at[at - 1];
        }
        all.list->at[at] = one;
    }
    return all;
}

static value sort(run *r, value v, const arguments *a) {
    return sorted_by(r, list_of(r, fac_jinja_each(r, v)), fac_jinja_argument(a, 2, "attribute"),
                     flag(a, 0, "reverse"), flag(a, 1, "case_sensitive"));
}

static value items(run *r, value v, const arguments *a) {
    const value to = fac_jinja_new_list(r, FAC_JINJA_LIST);
    (void)a;
    if (v.kind != FAC_JINJA_DICT && v.kind != FAC_JINJA_UNDEFINED)
        return fac_jinja_fail(r, FAC_E_ARGUMENT, "items of %s", fac_jinja_kind_name(v));
    for (size_t k = 0; v.kind == FAC_JINJA_DICT && k < v.dict->values.n && !r->status; k++) {
        const value pair = fac_jinja_new_list(r, FAC_JINJA_TUPLE);
        if (r->status) break;
        fac_jinja_add(r, pair.list, v.dict->keys.at[k]);
        fac_jinja_add(r, pair.list, v.dict->values.at[k]);
        fac_jinja_add(r, to.list, pair);
    }
    return to;
}

static value dictsort(run *r, value v, const arguments *a) {
    const value key = fac_jinja_int(0), all = items(r, v, a);
    if (r->status) return all;
    return sorted_by(r, all, &key, flag(a, 2, "reverse"), flag(a, 0, "case_sensitive"));
}

static value extreme(run *r, value v, const arguments *a, bool largest) {
    const fac_jinja_list all = fac_jinja_each(r, v);
    const value *path = fac_jinja_argument(a, 1, "attribute");
    const bool cased = flag(a, 0, "case_sensitive");
    value best = fac_jinja_undefined("the extreme of nothing"), best_key = best;
    for (size_t k = 0; k < all.n && fac_jinja_step(r); k++) {
        const value key = sort_key(r, all.at[k], path, cased);
        const int order = k ? fac_jinja_order(r, key, best_key) : 0;
        if (k && (largest ? order <= 0 : order >= 0)) continue;
        best = all.at[k];
        best_key = key;
    }
    return best;
}

static value largest(run *r, value v, const arguments *a) { return extreme(r, v, a, true); }
static value smallest(run *r, value v, const arguments *a) { return extreme(r, v, a, false); }

static value sum(run *r, value v, const arguments *a) {
    const value *path = fac_jinja_argument(a, 0, "attribute");
    const fac_jinja_list all = fac_jinja_each(r, v);
    value s = fac_jinja_int(0);
    for (size_t k = 0; k < all.n && !r->status; k++)
        s = fac_jinja_math(r, "+", s, field(r, all.at[k], path));
    return s;
}

/* ---- filters with filters and tests ---- */

/* The arguments after the first `skip`. */
static arguments after(const arguments *a, int skip) {
    arguments to = { .n = 0 };
    for (int k = 0; k < a->n; k++) {
        if (!a->names[k] && skip-- > 0) continue;
        to.names[to.n] = a->names[k];
        to.at[to.n++] = a->at[k];
    }
    return to;
}

/* What is none or false has no items for these filters. */
static fac_jinja_list each_if_any(run *r, value v) {
    if (fac_jinja_truth(v)) return fac_jinja_each(r, v);
    return (fac_jinja_list){ 0 };
}

static const char *name_of(run *r, const value *v) {
    if (!v || v->kind != FAC_JINJA_TEXT) return "";
    char *name = fac_jinja_alloc(r, v->text.n + 1, 1);
    if (!name) return "";
    memcpy(name, v->text.s, v->text.n);
    name[v->text.n] = 0;
    return name;
}

static value map(run *r, value v, const arguments *a) {
    const value *path = fac_jinja_argument(a, -1, "attribute");
    const value *instead = fac_jinja_argument(a, -1, "default");
    const char *name = path ? "" : name_of(r, fac_jinja_argument(a, 0, NULL));
    fac_jinja_filter *f = path ? NULL : fac_jinja_find_filter(name);
    const arguments rest = after(a, 1);
    const fac_jinja_list all = each_if_any(r, v);
    const value to = fac_jinja_new_list(r, FAC_JINJA_LIST);
    if (!path && !f)
        return fac_jinja_fail(r, FAC_E_UNSUPPORTED, "the filter %.60s is not known here", name);
    for (size_t k = 0; k < all.n && fac_jinja_step(r); k++) {
        value one = f ? f(r, all.at[k], &rest) : field(r, all.at[k], path);
        if (one.kind == FAC_JINJA_UNDEFINED && path && instead) one = *instead;
        fac_jinja_add(r, to.list, one);
    }
    return to;
}

/* Those that pass a test, or fail it; by a field of theirs, where one is named first. */
static value chosen(run *r, value v, const arguments *a, bool wanted, bool by_field) {
    const value *path = by_field ? fac_jinja_argument(a, 0, NULL) : NULL;
    const value *test = fac_jinja_argument(a, by_field, NULL);
    const char *name = name_of(r, test);
    const arguments rest = after(a, 1 + by_field);
    const fac_jinja_list all = each_if_any(r, v);
    const value to = fac_jinja_new_list(r, FAC_JINJA_LIST);
    for (size_t k = 0; k < all.n && fac_jinja_step(r); k++) {
        const value one = field(r, all.at[k], path);
        const bool is = test ? fac_jinja_test(r, name, one, &rest) : fac_jinja_truth(one);
        if (is == wanted) fac_jinja_add(r, to.list, all.at[k]);
    }
    return to;
}

static value select_(run *r, value v, const arguments *a) { return chosen(r, v, a, true, false); }
static value reject(run *r, value v, const arguments *a) { return chosen(r, v, a, false, false); }
static value selectattr(run *r, value v, const arguments *a) { return chosen(r, v, a, true, true); }
static value rejectattr(run *r, value v, const arguments *a) {
    return chosen(r, v, a, false, true);
}

/* ---- texts ---- */

/* Lines after the first are moved in; empty ones are not, unless it is said. */
static value indent(run *r, value v, const arguments *a) {
    const value *width = fac_jinja_argument(a, 0, "width");
    const bool text = width && width->kind == FAC_JINJA_TEXT;
    const int64_t n = text ? 1 : fac_jinja_count(r, a, 0, "width", 4);
    const value by =
        text ? *width : fac_jinja_math(r, "*", fac_jinja_string(" "), fac_jinja_int(n));
    const bool begin = flag(a, 1, "first"), blank = flag(a, 2, "blank");
    const fac_jinja_text t = fac_jinja_as_text(r, v);
    fac_jinja_out o = { 0 };
    for (size_t at = 0; at < t.n && !r->status;) {
        const char *line = memchr(t.s + at, '\n', t.n - at);
        const size_t end = line ? (size_t)(line - t.s) : t.n;
        if (at ? blank || end > at : begin) fac_jinja_print(r, &o, by);
        fac_jinja_print(r, &o, fac_jinja_part(t, at, line ? end + 1 : end));
        at = end + 1;
    }
    return fac_jinja_written(&o);
}

/* Words begin after spaces, dashes and opening brackets; the method title() takes any letter after
 * what is none. */
static value title(run *r, value v, const arguments *a) {
    const fac_jinja_text t = fac_jinja_as_text(r, v);
    fac_jinja_out o = { 0 };
    size_t from = 0;
    for (size_t k = 0; k <= t.n && !r->status; k++) {
        if (k < t.n && !strchr("-({[< \t\n\r\v\f", t.s[k])) continue;
        fac_jinja_print(r, &o,
                        fac_jinja_find_method("capitalize")(r, fac_jinja_part(t, from, k), a));
        if (k < t.n) fac_jinja_print(r, &o, fac_jinja_part(t, k, k + 1));
        from = k + 1;
    }
    return fac_jinja_written(&o);
}

fac_jinja_filter *fac_jinja_find_filter(const char *name) {
    static const struct {
        const char *name;
        fac_jinja_filter *f;
    } all[] = { { "default", otherwise },
                { "d", otherwise },
                { "tojson", as_json },
                { "length", length },
                { "count", length },
                { "string", string },
                { "list", list },
                { "int", whole },
                { "float", real },
                { "abs", absolute },
                { "first", first },
                { "last", last },
                { "join", join },
                { "reverse", reversed },
                { "unique", unique },
                { "sort", sort },
                { "items", items },
                { "dictsort", dictsort },
                { "max", largest },
                { "min", smallest },
                { "sum", sum },
                { "map", map },
                { "select", select_ },
                { "reject", reject },
                { "selectattr", selectattr },
                { "rejectattr", rejectattr },
                { "indent", indent },
                { "safe", string },
                { "title", title } };
    static const char *const methods[] = { "lower", "upper", "capitalize", "replace" };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (!strcmp(name, all[k].name)) return all[k].f;
    for (size_t k = 0; k < sizeof methods / sizeof *methods; k++)
        if (!strcmp(name, methods[k])) return fac_jinja_find_method(name);
    return strcmp(name, "trim") ? NULL : fac_jinja_find_method("strip");
}
