/* Tests of chat templates (value is name), and arguments of calls. */
#include <string.h>
#include "text/jinja/jinja.h"

typedef fac_jinja_run run;
typedef fac_jinja_value value;

const fac_jinja_value *fac_jinja_argument(const fac_jinja_arguments *a, int place,
                                          const char *name) {
    int at = 0;
    for (int k = 0; k < a->n; k++) {
        if (a->names[k] ? name && !strcmp(a->names[k], name) : at == place) return &a->at[k];
        at += !a->names[k];
    }
    return NULL;
}

int64_t fac_jinja_count(run *r, const fac_jinja_arguments *a, int place, const char *name,
                        int64_t otherwise) {
    const value *v = fac_jinja_argument(a, place, name);
    if (!v) return otherwise;
    if (v->kind == FAC_JINJA_INT || v->kind == FAC_JINJA_BOOL) return v->i;
    fac_jinja_fail(r, FAC_E_ARGUMENT, "a whole number was expected, not %s",
                   fac_jinja_kind_name(*v));
    return otherwise;
}

/* ---- tests of a value alone ---- */

static bool is_number(value v) {
    double x;
    return fac_jinja_number(v, &x);
}

static bool is_sequence(value v) { return v.kind >= FAC_JINJA_TEXT && v.kind <= FAC_JINJA_DICT; }

static bool of_kind(const char *name, value v, bool *known) {
    const struct {
        const char *name;
        bool is;
    } all[] = { { "defined", v.kind != FAC_JINJA_UNDEFINED },
                { "undefined", v.kind == FAC_JINJA_UNDEFINED },
                { "none", v.kind == FAC_JINJA_NONE },
                { "string", v.kind == FAC_JINJA_TEXT },
                { "boolean", v.kind == FAC_JINJA_BOOL },
                { "integer", v.kind == FAC_JINJA_INT },
                { "float", v.kind == FAC_JINJA_FLOAT },
                { "number", is_number(v) },
                { "mapping", v.kind == FAC_JINJA_DICT },
                { "sequence", is_sequence(v) || v.kind == FAC_JINJA_UNDEFINED },
                { "iterable", is_sequence(v) || v.kind == FAC_JINJA_UNDEFINED },
                { "callable", v.kind >= FAC_JINJA_MACRO },
                { "true", v.kind == FAC_JINJA_BOOL && v.i },
                { "false", v.kind == FAC_JINJA_BOOL && !v.i } };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (!strcmp(name, all[k].name)) return all[k].is;
    *known = false;
    return false;
}

/* ---- tests with another value ---- */

static const struct {
    const char *name, *sign;
} signs[] = {
    { "equalto", "==" }, { "eq", "==" },     { "==", "==" },      { "ne", "!=" },
    { "lt", "<" },       { "le", "<=" },     { "gt", ">" },       { "ge", ">=" },
    { "in", "in" },      { "sameas", "==" }, { "lessthan", "<" }, { "greaterthan", ">" }
};

static bool compared(run *r, const char *sign, value v, value w) {
    if (!strcmp(sign, "==")) return fac_jinja_equal(r, v, w);
    if (!strcmp(sign, "!=")) return !fac_jinja_equal(r, v, w);
    if (!strcmp(sign, "in")) return fac_jinja_has(r, w, v);
    const int order = fac_jinja_order(r, v, w);
    const bool equal = sign[1] && !order;
    return equal || (*sign == '<' ? order < 0 : order > 0);
}

static bool divides(run *r, value v, int64_t by) {
    const bool whole = v.kind == FAC_JINJA_INT || v.kind == FAC_JINJA_BOOL;
    if (whole && by && by != -1) return v.i % by == 0;
    if (!whole || !by)
        fac_jinja_fail(r, FAC_E_ARGUMENT, "%s is not divided by %lld", fac_jinja_kind_name(v),
                       (long long)by);
    return by == -1;
}

bool fac_jinja_test(run *r, const char *name, value v, const fac_jinja_arguments *a) {
    bool known = true;
    const value *other = fac_jinja_argument(a, 0, NULL);
    const bool is = of_kind(name, v, &known);
    if (known) return is;
    for (size_t k = 0; other && k < sizeof signs / sizeof *signs; k++)
        if (!strcmp(name, signs[k].name)) return compared(r, signs[k].sign, v, *other);
    if (!strcmp(name, "odd")) return !divides(r, v, 2);
    if (!strcmp(name, "even")) return divides(r, v, 2);
    if (!strcmp(name, "divisibleby")) return divides(r, v, fac_jinja_count(r, a, 0, NULL, 0));
    fac_jinja_fail(r, FAC_E_UNSUPPORTED, "the test %.60s is not known here", name);
    return false;
}
