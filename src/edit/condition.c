/* Conditions of rules.
 *
 *   once(d, e)                 each has one reader and is no output
 *   constant(w)                known before the run: a constant, a parameter, or made of these
 *   same(x, y)                 types are equal
 *   cancels($p, $q)            transposing by $p and then by $q leaves everything where it was
 *   A = B, != < <= > >=        of numbers, {1,2}, $attribute, rank(x), dim(x,1), dims(x), count(x),
 *       uses(x), value(c),
 *                              type(x), f32
 *   A in [0, 6]                every number of A is
 *   not ...                    the contrary; what is not known (an open size) makes neither true */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "edit/rules.h"

/* ---- reading ---- */

static const char *const tests[] = { "once", "constant", "same", "cancels", NULL };
static const char *const functions[] = { "rank", "dim",   "dims", "count",
                                         "uses", "value", "type", NULL };

static const char *one_of(const char *const *list, const char *name) {
    for (; *list; list++)
        if (!strcmp(*list, name)) return *list;
    return NULL;
}

static fac_status read_slot(fac_cursor *c, const fac_rule *r, bool attr, int *slot) {
    const char *name;
    const fac_place at = fac_cursor_place(c);
    if (attr) FAC_TRY(fac_cursor_need(c, '$'));
    FAC_TRY(fac_cursor_name(c, &name));
    if (!name) return fac_cursor_fail(c, "a name of the pattern is missing");
    *slot = attr ? fac_rule_attr(r, name) : fac_rule_value(r, name);
    return *slot >= 0 ? FAC_OK
                      : fac_cursor_fail_at(c, at, "there is no %s '%s' in the pattern",
                                           attr ? "variable" : "value", name);
}

static fac_status read_list(fac_cursor *c, fac_rule_side *s, char close) {
    while (!fac_cursor_is(c, close)) {
        if (s->n) FAC_TRY(fac_cursor_need(c, ','));
        if (s->n == FAC_EDIT_NUMBERS)
            return fac_cursor_fail(c, "at most %d numbers", FAC_EDIT_NUMBERS);
        if (!fac_cursor_number(c, &s->v[s->n])) return fac_cursor_fail(c, "a number is missing");
        s->n++;
    }
    return FAC_OK;
}

/* name: a word that has been read, or NULL. */
static fac_status read_side(fac_cursor *c, const fac_rule *r, const char *name, fac_place at,
                            fac_rule_side *s) {
    if (!name && fac_cursor_ahead(c, '$')) {
        s->function = "$";
        return read_slot(c, r, true, &s->slot);
    }
    if (!name && fac_cursor_is(c, '{')) return read_list(c, s, '}');
    if (!name && fac_cursor_number(c, &s->v[0])) return s->n = 1, FAC_OK;
    if (!name) FAC_TRY(fac_cursor_name(c, &name));
    if (!name) return fac_cursor_fail_at(c, at, "a number, $variable or function is missing");
    const fac_dtype dtype = fac_dtype_find(name);
    if (dtype) {
        s->n = 1;
        s->v[0] = dtype;
        return FAC_OK;
    }
    s->function = one_of(functions, name);
    if (!s->function)
        return fac_cursor_fail_at(
            c, at, "there is no function '%s': rank, dim, dims, count, uses, value, type", name);
    FAC_TRY(fac_cursor_need(c, '('));
    FAC_TRY(read_slot(c, r, false, &s->slot));
    if (!strcmp(name, "dim")) {
        FAC_TRY(fac_cursor_need(c, ','));
        if (!fac_cursor_number(c, &s->v[0]) || s->v[0] != floor(s->v[0]) ||
            fabs(s->v[0]) > FAC_DIMS)
            return fac_cursor_fail(c, "which dim?");
    }
    return fac_cursor_need(c, ')');
}

static fac_status read_test(fac_cursor *c, const fac_rule *r, fac_condition *d) {
    const bool attrs = !strcmp(d->left.function, "cancels");
    const int wants = attrs || !strcmp(d->left.function, "same") ? 2 : 0;
    FAC_TRY(fac_cursor_need(c, '('));
    do {
        if (d->nslots == (int)(sizeof d->slots / sizeof *d->slots))
            return fac_cursor_fail(c, "too many names");
        FAC_TRY(read_slot(c, r, attrs, &d->slots[d->nslots]));
        d->nslots++;
    } while (fac_cursor_is(c, ','));
    if (wants && d->nslots != wants)
        return fac_cursor_fail_at(c, d->at, "%s needs %d names", d->left.function, wants);
    return fac_cursor_need(c, ')');
}

static fac_status read_relation(fac_cursor *c, const fac_rule *r, fac_condition *d) {
    static const struct {
        const char *text;
        fac_relation is;
    } relations[] = { { "<=", FAC_REL_LE }, { ">=", FAC_REL_GE }, { "!=", FAC_REL_NE },
                      { "=", FAC_REL_EQ },  { "<", FAC_REL_LT },  { ">", FAC_REL_GT } };
    fac_cursor_space(c);
    if (fac_cursor_keyword(c, "in")) {
        d->relation = FAC_REL_IN;
        FAC_TRY(fac_cursor_need(c, '['));
        FAC_TRY(read_list(c, &d->right, ']'));
        return d->right.n == 2 ? FAC_OK : fac_cursor_fail(c, "a range is [lowest, highest]");
    }
    for (size_t k = 0; k < sizeof relations / sizeof *relations && !d->relation; k++) {
        const size_t n = strlen(relations[k].text);
        if ((size_t)(c->end - c->s) < n || memcmp(c->s, relations[k].text, n)) continue;
        d->relation = relations[k].is;
        c->s += n;
    }
    if (!d->relation) return fac_cursor_fail(c, "one of = != < <= > >= in is missing");
    return read_side(c, r, NULL, fac_cursor_place(c), &d->right);
}

static fac_status read_condition(fac_cursor *c, const fac_rule *r, fac_condition *d) {
    const char *name;
    d->at = fac_cursor_place(c);
    d->negated = fac_cursor_keyword(c, "not");
    const fac_place at = fac_cursor_place(c);
    FAC_TRY(fac_cursor_name(c, &name));
    if (name && (d->left.function = one_of(tests, name))) return read_test(c, r, d);
    FAC_TRY(read_side(c, r, name, at, &d->left));
    return read_relation(c, r, d);
}

fac_status fac_conditions_read(fac_cursor *c, fac_rule *r) {
    do {
        fac_condition d = { 0 };
        FAC_TRY(read_condition(c, r, &d));
        if (!fac_reserve(&r->where, &r->room_where, r->nwhere + 1, sizeof *r->where))
            return fac_raise(c->err, FAC_E_NOMEM, "%s: no memory for a condition", c->file);
        r->where[r->nwhere++] = d;
    } while (fac_cursor_is(c, ','));
    return fac_cursor_line_end(c) ? FAC_OK : fac_cursor_fail(c, "this was not expected");
}

/* ---- holding ---- */

typedef enum truth { NO, YES, UNKNOWN } truth;

/* Numbers of an attribute; -1: it has none. */
static int attr_numbers(const fac_attr *a, const void *at, double *to) {
    if (!a) return -1;
    const int count = a->count ? a->count : 1;
    switch (a->kind) {
    case FAC_A_FLAG:
        *to = *(const bool *)at;
        return 1;
    case FAC_A_ENUM:
        *to = *(const int *)at;
        return 1;
    case FAC_A_DTYPE:
        *to = *(const fac_dtype *)at;
        return 1;
    case FAC_A_DIMS: {
        const fac_dims *d = at;
        for (int k = 0; k < d->n; k++) to[k] = (double)d->d[k];
        return d->n;
    }
    case FAC_A_REALS: {
        const fac_reals *list = at;
        for (int k = 0; k < list->n && k < FAC_EDIT_NUMBERS; k++) to[k] = list->v[k];
        return list->n <= FAC_EDIT_NUMBERS ? list->n : -1;
    }
    case FAC_A_INT:
    case FAC_A_REAL:
        for (int k = 0; k < count && k < FAC_EDIT_NUMBERS; k++)
            to[k] =
                a->kind == FAC_A_INT ? (double)((const int64_t *)at)[k] : ((const double *)at)[k];
        return count <= FAC_EDIT_NUMBERS ? count : -1;
    default:
        return -1;
    }
}

static int dims_of(const fac_value *v, double *to) {
    for (int k = 0; k < v->type.dims.n; k++)
        to[k] = v->type.dims.d[k] < 0 ? NAN : (double)v->type.dims.d[k];
    return v->type.dims.n;
}

static int side(const fac_match *m, const fac_rule_side *s, double *to) {
    if (!s->function) return memcpy(to, s->v, sizeof s->v), s->n;
    if (*s->function == '$') return attr_numbers(m->attr[s->slot], m->at[s->slot], to);
    const fac_value *v = m->value[s->slot];
    if (!v) return -1;
    if (!strcmp(s->function, "value")) return fac_edit_numbers(v, to);
    if (!strcmp(s->function, "dims")) return dims_of(v, to);
    const int n = v->type.dims.n, k = s->v[0] < 0 ? (int)s->v[0] + n : (int)s->v[0];
    const int64_t count = fac_dims_count(&v->type.dims);
    if (!strcmp(s->function, "dim")) {
        if (k < 0 || k >= n || v->type.dims.d[k] < 0) return -1;
        *to = (double)v->type.dims.d[k];
    } else if (!strcmp(s->function, "count")) {
        if (count < 0) return -1;
        *to = (double)count;
    } else
        *to = !strcmp(s->function, "rank")   ? n
              : !strcmp(s->function, "uses") ? (double)fac_rule_uses(v)
                                             : v->type.dtype;
    return 1;
}

static bool related(fac_relation r, double a, double b) {
    const double near = 1e-6 * fmax(fabs(a), fabs(b)); /* f32 of a file and decimals of a rule */
    switch (r) {
    case FAC_REL_EQ:
        return a == b || fabs(a - b) <= near;
    case FAC_REL_LT:
        return a < b;
    case FAC_REL_LE:
        return a <= b + near;
    case FAC_REL_GT:
        return a > b;
    default:
        return a >= b - near;
    }
}

static truth compare(const fac_match *m, const fac_condition *d) {
    double a[FAC_EDIT_NUMBERS], b[FAC_EDIT_NUMBERS];
    const int n = side(m, &d->left, a), o = side(m, &d->right, b);
    const fac_relation r = d->relation == FAC_REL_NE ? FAC_REL_EQ : d->relation;
    if (n < 0 || o < 0) return UNKNOWN;
    bool holds = r == FAC_REL_IN || n == o || n == 1 || o == 1;
    for (int k = 0; k < n || (r != FAC_REL_IN && k < o); k++) {
        const double x = a[n == 1 ? 0 : k];
        const double y = b[o == 1 ? 0 : k];
        if (!holds) break;
        if (isnan(x) || (r != FAC_REL_IN && isnan(y))) return UNKNOWN;
        holds = r == FAC_REL_IN ? related(FAC_REL_GE, x, b[0]) && related(FAC_REL_LE, x, b[1])
                                : related(r, x, y);
    }
    return (d->relation == FAC_REL_NE) != holds ? YES : NO;
}

/* Dim k of the result is dim p[q[k]] of what came first.  No perm at all turns the order round. */
static truth cancels(const fac_match *m, const fac_condition *d) {
    double p[FAC_EDIT_NUMBERS], q[FAC_EDIT_NUMBERS];
    const int np = attr_numbers(m->attr[d->slots[0]], m->at[d->slots[0]], p);
    const int nq = attr_numbers(m->attr[d->slots[1]], m->at[d->slots[1]], q);
    const int n = np > nq ? np : nq;
    if (np < 0 || nq < 0) return UNKNOWN;
    for (int k = 0; k < n; k++) {
        const int i = nq ? (int)q[k] : n - 1 - k;
        if (i < 0 || i >= n || (np ? (int)p[i] : n - 1 - i) != k) return NO;
    }
    return YES;
}

static truth test(const fac_match *m, const fac_condition *d) {
    const char *f = d->left.function;
    if (!strcmp(f, "cancels")) return cancels(m, d);
    for (int k = 0; k < d->nslots; k++) {
        const fac_value *v = m->value[d->slots[k]], *first = m->value[d->slots[0]];
        if (!v || !first) return UNKNOWN;
        const bool holds = !strcmp(f, "once") ? fac_rule_uses(v) == 1 && !v->roots
                           : !strcmp(f, "constant")
                               ? v->time != FAC_RUN
                               : v->type.dtype == first->type.dtype &&
                                     fac_dims_equal(&v->type.dims, &first->type.dims);
        if (!holds) return NO;
    }
    return YES;
}

bool fac_rule_holds(const fac_match *m) {
    for (size_t k = 0; k < m->rule->nwhere; k++) {
        const fac_condition *d = &m->rule->where[k];
        const truth t = d->relation == FAC_REL_TEST ? test(m, d) : compare(m, d);
        if (t == UNKNOWN || (t == YES) == d->negated) return false;
    }
    return true;
}
