/* Signs between values, and slices, as Python has them. */
#include <math.h>
#include <string.h>
#include "text/jinja/jinja.h"
#include "text/tokenizer.h"

typedef fac_jinja_run run;
typedef fac_jinja_value value;

static value real(double x) { return (value){ .kind = FAC_JINJA_FLOAT, .f = x }; }

static bool is_list(value v) { return v.kind == FAC_JINJA_LIST || v.kind == FAC_JINJA_TUPLE; }
static bool is_whole(value v) { return v.kind == FAC_JINJA_INT || v.kind == FAC_JINJA_BOOL; }

/* Rounded down, as Python divides. */
static int64_t divide(int64_t a, int64_t b, int64_t *rest) {
    int64_t q = -a, m = 0;
    if (b != -1) {
        q = a / b;
        m = a % b;
    }
    if (m && (m < 0) != (b < 0)) {
        m += b;
        q--;
    }
    *rest = m;
    return q;
}

static value wholes(run *r, char sign, int64_t a, int64_t b) {
    int64_t x = 0, rest = 0;
    bool over = false;
    switch (sign) {
    case '+':
        over = __builtin_add_overflow(a, b, &x);
        break;
    case '-':
        over = __builtin_sub_overflow(a, b, &x);
        break;
    case '*':
        over = __builtin_mul_overflow(a, b, &x);
        break;
    default:
        over = a == INT64_MIN;
        if (!over) x = divide(a, b, &rest);
        if (sign == '%') x = rest;
    }
    if (over) return fac_jinja_fail(r, FAC_E_ARGUMENT, "a number that is too large");
    return fac_jinja_int(x);
}

static value reals(run *r, const char *sign, double a, double b) {
    const double rest = b != 0 ? a - b * floor(a / b) : 0;
    if (!strcmp(sign, "**")) return real(pow(a, b));
    switch (*sign) {
    case '+':
        return real(a + b);
    case '-':
        return real(a - b);
    case '*':
        return real(a * b);
    case '%':
        return real(rest);
    default:
        break;
    }
    (void)r;
    return real(sign[1] ? floor(a / b) : a / b);
}

static value power(run *r, value a, value b) {
    double x, y;
    fac_jinja_number(a, &x);
    fac_jinja_number(b, &y);
    const double to = pow(x, y);
    if (!is_whole(a) || !is_whole(b) || b.i < 0) return real(to);
    if (!(fabs(to) < 9007199254740992.0))
        return fac_jinja_fail(r, FAC_E_ARGUMENT, "a number that is too large");
    return fac_jinja_int((int64_t)to);
}

static value numbers(run *r, const char *sign, value a, value b) {
    double x, y;
    fac_jinja_number(a, &x);
    fac_jinja_number(b, &y);
    if (strchr("/%", *sign) && y == 0) return fac_jinja_fail(r, FAC_E_ARGUMENT, "a division by 0");
    if (!strcmp(sign, "**")) return power(r, a, b);
    if (is_whole(a) && is_whole(b) && strcmp(sign, "/")) return wholes(r, *sign, a.i, b.i);
    return reals(r, sign, x, y);
}

static value joined(run *r, value a, value b) {
    fac_jinja_out o = { 0 };
    fac_jinja_print(r, &o, a);
    fac_jinja_print(r, &o, b);
    return fac_jinja_written(&o);
}

static value both(run *r, value a, value b) {
    const value v = fac_jinja_new_list(r, a.kind);
    for (size_t k = 0; !r->status && k < a.list->n; k++) fac_jinja_add(r, v.list, a.list->at[k]);
    for (size_t k = 0; !r->status && k < b.list->n; k++) fac_jinja_add(r, v.list, b.list->at[k]);
    return v;
}

static value repeated(run *r, value a, int64_t times) {
    fac_jinja_out o = { 0 };
    value v = fac_jinja_string("");
    if (is_list(a)) v = fac_jinja_new_list(r, a.kind);
    for (int64_t k = 0; k < times && fac_jinja_step(r); k++) {
        if (is_list(a))
            v = both(r, v, a);
        else
            fac_jinja_print(r, &o, a);
    }
    return is_list(a) ? v : fac_jinja_written(&o);
}

fac_jinja_value fac_jinja_math(run *r, const char *sign, value a, value b) {
    double x, y;
    const bool text = a.kind == FAC_JINJA_TEXT;
    if (*sign == '~') return joined(r, a, b);
    if (fac_jinja_number(a, &x) && fac_jinja_number(b, &y)) return numbers(r, sign, a, b);
    if (*sign == '+' && text && b.kind == FAC_JINJA_TEXT) return joined(r, a, b);
    if (*sign == '+' && is_list(a) && a.kind == b.kind) return both(r, a, b);
    if (!strcmp(sign, "*") && (text || is_list(a)) && is_whole(b)) return repeated(r, a, b.i);
    if (!strcmp(sign, "*") && (b.kind == FAC_JINJA_TEXT || is_list(b)) && is_whole(a))
        return repeated(r, b, a.i);
    if (!strcmp(sign, "%") && text)
        return fac_jinja_fail(r, FAC_E_UNSUPPORTED, "a text is formatted by %%");
    if (a.kind == FAC_JINJA_UNDEFINED || b.kind == FAC_JINJA_UNDEFINED) {
        const value u = a.kind == FAC_JINJA_UNDEFINED ? a : b;
        return fac_jinja_fail(r, FAC_E_ARGUMENT, "%.80s is undefined", u.name ? u.name : "it");
    }
    return fac_jinja_fail(r, FAC_E_ARGUMENT, "%s %s %s", fac_jinja_kind_name(a), sign,
                          fac_jinja_kind_name(b));
}

/* ---- slices ---- */

/* A bound within 0..n, or -1..n-1 backwards; what is not given: that end. */
static int64_t bound(value v, int64_t n, bool back, bool begin) {
    int64_t i;
    if (v.kind == FAC_JINJA_NONE) {
        if (begin) return back ? n - 1 : 0;
        return back ? -1 : n;
    }
    i = v.i < 0 ? v.i + n : v.i;
    if (i < 0) return back ? -1 : 0;
    if (i >= n) return back ? n - 1 : n;
    return i;
}

/* The bytes of so many characters from at on. */
static size_t bytes_of(fac_jinja_text t, size_t at, int64_t characters) {
    const size_t from = at;
    for (size_t used; characters > 0 && at < t.n; characters--, at += used)
        fac_code_point(t.s + at, t.n - at, &used);
    return at - from;
}

/* A piece of a text, without a list of its characters. */
static value piece(run *r, value of, const value part[2]) {
    const fac_jinja_text t = of.text;
    const int64_t n = (int64_t)fac_jinja_length(r, of);
    const int64_t begin = bound(part[0], n, false, true), end = bound(part[1], n, false, false);
    const size_t from = bytes_of(t, 0, begin);
    return fac_jinja_part(t, from, from + bytes_of(t, from, end - begin));
}

fac_jinja_value fac_jinja_slice(run *r, value of, const value part[3]) {
    for (int k = 0; k < 3; k++)
        if (part[k].kind != FAC_JINJA_NONE && !is_whole(part[k]))
            return fac_jinja_fail(r, FAC_E_ARGUMENT, "a slice's bound is %s",
                                  fac_jinja_kind_name(part[k]));
    if (of.kind == FAC_JINJA_UNDEFINED) return fac_jinja_item(r, of, fac_jinja_int(0)); /* fails */
    if (of.kind != FAC_JINJA_TEXT && !is_list(of)) return fac_jinja_undefined("a slice");
    const int64_t step = part[2].kind == FAC_JINJA_NONE ? 1 : part[2].i;
    if (!step || step == INT64_MIN) return fac_jinja_fail(r, FAC_E_ARGUMENT, "steps of no length");
    if (of.kind == FAC_JINJA_TEXT && step == 1) return piece(r, of, part);
    const fac_jinja_list all = fac_jinja_each(r, of);
    const int64_t n = (int64_t)all.n;
    int64_t k = bound(part[0], n, step < 0, true);
    const int64_t end = bound(part[1], n, step < 0, false);
    const value to = fac_jinja_new_list(r, is_list(of) ? of.kind : FAC_JINJA_LIST);
    fac_jinja_out o = { 0 };
    while (!r->status && (step > 0 ? k < end : k > end)) {
        if (is_list(of))
            fac_jinja_add(r, to.list, all.at[k]);
        else
            fac_jinja_print(r, &o, all.at[k]);
        if (__builtin_add_overflow(k, step, &k)) break;
    }
    return is_list(of) ? to : fac_jinja_written(&o);
}
