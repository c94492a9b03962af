/* Options by table. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cli.h"

bool precision_parse(const char *name, numerics *out) {
    *out = (numerics){ FAC_PRECISION_DEFAULT, FAC_NONE };
    if (!name || fac_precision_parse(name, &out->products)) return true;
    if (!strcmp(name, "bf16")) out->mixed = FAC_BF16;
    if (!strcmp(name, "f16")) out->mixed = FAC_F16;
    return out->mixed != FAC_NONE;
}

int precision_read(const verb *v, const char *name, numerics *out) {
    if (precision_parse(name, out)) return EXIT_OK;
    return usage_error(v, "--precision is " PRECISION_NAMES ", not \"%s\"", name);
}

int precision_apply(const numerics *p, fac_graph **g) {
    fac_error err = { 0 };
    if (p->mixed == FAC_NONE) return EXIT_OK;
    fac_graph *mixed = fac_graph_autocast(*g, p->mixed);
    if (!mixed) return fail_text("out of memory");
    fac_graph_free(*g);
    *g = mixed;
    return fac_graph_check(mixed, &err) ? fail(&err) : EXIT_OK;
}

static int add_step(const option *o, const char *text) {
    ordered_list *s = o->to;
    ordered *more = realloc(s->at, (size_t)(s->n + 1) * sizeof *more);
    if (!more) return fail_text("out of memory");
    s->at = more;
    s->at[s->n++] = (ordered){ o->name, text };
    return -1;
}

/* ---- numbers ---- */

/* An interval as option.range has it. */
typedef struct range {
    double low, high;
    bool above, below;
} range;

static range range_of(const option *o) {
    range r = { -INFINITY, INFINITY, true, true };
    char *end = NULL;
    if (!o->range) return r;
    r.above = o->range[0] == '(';
    r.low = strtod(o->range + 1, &end);
    r.high = strtod(end + 1, &end);
    r.below = *end == ')';
    return r;
}

static bool in_range(const range *r, double x) {
    const bool high_enough = r->above ? x > r->low : x >= r->low;
    const bool low_enough = r->below ? x < r->high : x <= r->high;
    return high_enough && low_enough;
}

bool option_takes(const option *o, double x) {
    const range r = range_of(o);
    return in_range(&r, x);
}

static int wrong_number(const verb *v, const option *o, const range *r, const char *text) {
    const char *what = o->kind == OPTION_INT ? "an integer" : "a number";
    char low[48] = "", high[48] = "";
    const bool both = isfinite(r->low) && isfinite(r->high);
    if (both && !r->above && !r->below) {
        snprintf(low, sizeof low, " from %.10g to %.10g", r->low, r->high);
    } else {
        if (isfinite(r->low))
            snprintf(low, sizeof low, r->above ? " above %.10g" : " of at least %.10g", r->low);
        if (isfinite(r->high))
            snprintf(high, sizeof high, r->below ? "%sbelow %.10g" : "%sof at most %.10g",
                     both ? " and " : " ", r->high);
    }
    return usage_error(v, "%s needs %s%s%s, not \"%s\"", o->name, what, low, high, text);
}

/* Digits as people write them: no blanks before them, and not the C library's hexadecimal ones. */
static bool plain_number(const char *text) {
    return !strchr(" \t\n\v\f\r", *text) && !strpbrk(text, "xX");
}

static int set_int(const verb *v, const option *o, const char *text) {
    const range r = range_of(o);
    char *end = NULL;
    errno = 0;
    const long x = strtol(text, &end, 10);
    if (end == text || *end || errno || !plain_number(text) || !in_range(&r, (double)x))
        return wrong_number(v, o, &r, text);
    *(long *)o->to = x;
    return -1;
}

static int set_real(const verb *v, const option *o, const char *text) {
    const range r = range_of(o);
    char *end = NULL;
    const double x = strtod(text, &end);
    if (end == text || *end || !plain_number(text) || !in_range(&r, x))
        return wrong_number(v, o, &r, text);
    *(double *)o->to = x;
    return -1;
}

/* ---- what was given ---- */

enum { GIVEN = 256 };
static struct {
    const void *to[GIVEN];
    int n;
} given;

bool option_given(const void *to) {
    for (int i = 0; i < given.n; i++)
        if (given.to[i] == to) return true;
    return false;
}

static void note_given(const option *o) {
    if (!option_given(o->to) && given.n < GIVEN) given.to[given.n++] = o->to;
}

/* What names a file or a folder is not empty, but where that means none. */
static bool must_have_name(const option *o) {
    return o->value && strcmp(o->name, "--wisdom") &&
           (!strcmp(o->value, "DIR") || !strncmp(o->value, "FILE", 4) ||
            !strcmp(o->value, "MODEL"));
}

static int set(const verb *v, const option *o, const char *text) {
    note_given(o);
    if (text && !*text && must_have_name(o))
        return usage_error(v, "%s needs %s, not \"\"", o->name, o->value);
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)o->to = true;
        return -1;
    case OPTION_TEXT:
    case OPTION_OUT:
        *(const char **)o->to = strcmp(o->value, "DIR") ? text : folder_name(text);
        return -1;
    case OPTION_INT:
        return set_int(v, o, text);
    case OPTION_REAL:
        return set_real(v, o, text);
    case OPTION_STEP:
        return add_step(o, text);
    case OPTION_LIST:
    case OPTION_OUTS: {
        list *l = o->to;
        const char **more = realloc(l->at, (size_t)(l->n + 1) * sizeof *more);
        if (!more) return fail_text("out of memory");
        l->at = more;
        l->at[l->n++] = text;
        return -1;
    }
    }
    return -1;
}

static const option *option_find(const verb *v, const char *name, size_t n) {
    for (const option *o = v->options; o && o->name; o++)
        if (strlen(o->name) == n && !strncmp(o->name, name, n)) return o;
    return NULL;
}

int options_parse(const verb *v, int argc, char **argv, list *args) {
    args->at = malloc((size_t)(argc + 1) * sizeof *args->at);
    if (!args->at) return fail_text("out of memory");
    bool only_args = false;
    for (int i = 0; i < argc; i++) {
        const char *a = argv[i];
        if (only_args || a[0] != '-' || !a[1]) {
            args->at[args->n++] = a;
            continue;
        }
        if (!strcmp(a, "--")) {
            only_args = true;
            continue;
        }
        if (!strcmp(a, "--help") || !strcmp(a, "-h")) {
            verb_help(v, stdout);
            return EXIT_OK;
        }
        const char *equals = strchr(a, '=');
        const option *o = option_find(v, a, equals ? (size_t)(equals - a) : strlen(a));
        if (!o) return usage_error(v, "facula %s has no option %s", v->name, a);
        const char *text = equals ? equals + 1 : NULL;
        const bool alone = o->kind == OPTION_FLAG || (o->kind == OPTION_STEP && !o->value);
        if (alone && text) return usage_error(v, "%s takes no value", o->name);
        if (!alone && !text) {
            if (i + 1 == argc) return usage_error(v, "%s needs %s", o->name, o->value);
            text = argv[++i];
        }
        int code = set(v, o, text);
        if (code >= 0) return code;
    }
    return -1;
}
