/* A reader of expressions, by recursive descent:
 *     sum      product { + | - product }
 *     product  sign { * | / sign }            compared by < > ==
 *     sign     - sign | power
 *     power    call [ ** | ^ sign ]
 *     call     primary { . name ( ... ) }
 *     primary  number | name | name ( sum, ... ) | ( sum ) */
#include "studio/sandbox/expression.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "facula/ops.h"

typedef struct reader {
    expression *e;
    const char *text, *at;
    int depth;
    fac_error *err;
    bool failed;
} reader;

static int fail(reader *r, const char *what) {
    if (!r->failed)
        fac_raise(r->err, FAC_E_ARGUMENT, "at character %d: %s", (int)(r->at - r->text) + 1, what);
    r->failed = true;
    return 0;
}

static void skip(reader *r) { r->at += strspn(r->at, " \t\r\n"); }

static bool next_is(reader *r, const char *mark) {
    skip(r);
    if (strncmp(r->at, mark, strlen(mark))) return false;
    r->at += strlen(mark);
    return true;
}

/* ---- steps ---- */

static int add(reader *r, const char *name, fac_value *v, int n, const int *in) {
    expression *e = r->e;
    if (r->failed) return 0;
    if (e->n == EXPRESSION_STEPS) return fail(r, "the expression is too long");
    if (fac_graph_check(e->g, r->err)) {
        r->failed = true;
        return 0;
    }
    expression_step *s = &e->of[e->n];
    *s = (expression_step){ .value = v, .n = n };
    snprintf(s->name, sizeof s->name, "%s", name);
    for (int k = 0; k < n; k++) s->in[k] = in[k];
    return e->n++;
}

/* A number is a step, too, because the page shows its gradient. */
static int number(reader *r, double x) {
    char name[24];
    snprintf(name, sizeof name, "%.6g", x);
    return add(r, name, fac_number(r->e->g, r->e->dtype, x), 0, NULL);
}

int fac_expression_arity(const fac_op *op) {
    if (!op->map || !op->map->f64[FAC_ISA_BASE] || op->map->inputs > EXPRESSION_INPUTS) return 0;
    for (int k = 0; op->in && op->in[k].name; k++)
        if (op->in[k].is & FAC_OPTIONAL) return 0;
    return op->map->inputs;
}

static const fac_op *find_op(const char *name) {
    static const char *const same[][2] = { { "lt", "less" },     { "gt", "greater" },
                                           { "eq", "equal" },    { "inv", "reciprocal" },
                                           { "id", "identity" }, { "maximum", "max" },
                                           { "minimum", "min" } };
    for (size_t k = 0; k < sizeof same / sizeof *same; k++)
        if (!strcmp(same[k][0], name)) name = same[k][1];
    const fac_op *op = fac_op_find(name);
    return op && fac_expression_arity(op) ? op : NULL;
}

/* Reductions of all elements of one tensor; max and min of two arguments are elementwise. */
static const struct {
    const char *name;
    fac_value *(*op)(fac_value *x, fac_dims axes, bool keep);
} reductions[] = { { "sum", fac_sum },
                   { "mean", fac_mean },
                   { "prod", fac_reduce_prod },
                   { "max", fac_reduce_max },
                   { "min", fac_reduce_min } };
enum { REDUCTIONS = sizeof reductions / sizeof *reductions };

static int find_reduction(const char *name) {
    int k = 0;
    while (k < REDUCTIONS && strcmp(reductions[k].name, name)) k++;
    return k;
}

/* Comparisons return numbers, as in the course. */
static int apply(reader *r, const char *name, int n, const int *in) {
    fac_value *v[EXPRESSION_INPUTS] = { NULL };
    if (r->failed) return 0;
    for (int k = 0; k < n; k++) v[k] = r->e->of[in[k]].value;
    const int reduction = n == 1 ? find_reduction(name) : REDUCTIONS;
    if (reduction < REDUCTIONS)
        return add(r, name, reductions[reduction].op(v[0], (fac_dims){ 0 }, false), n, in);
    const fac_op *op = find_op(name);
    if (!op) return fail(r, "unknown function before this character");
    if (fac_expression_arity(op) != n)
        return fail(r, "this function takes another number of arguments");
    fac_value *y = fac_apply(r->e->g, op, NULL, n, v);
    if (fac_value_type(y).dtype != r->e->dtype) y = fac_cast(y, r->e->dtype);
    return add(r, op->name, y, n, in);
}

static int two(reader *r, const char *name, int a, int b) {
    const int in[] = { a, b };
    return apply(r, name, 2, in);
}

/* ---- the grammar ---- */

static int compare(reader *r);

static bool read_name(reader *r, char to[24]) {
    size_t n = 0;
    skip(r);
    while (isalnum((unsigned char)r->at[n]) || r->at[n] == '_') n++;
    if (!n || n >= 24 || isdigit((unsigned char)*r->at)) return false;
    memcpy(to, r->at, n);
    to[n] = 0;
    r->at += n;
    return true;
}

/* After the opening bracket; in[0..n) is already read. */
static int arguments(reader *r, const char *name, int n, int in[EXPRESSION_INPUTS]) {
    while (!r->failed && !next_is(r, ")")) {
        if (n == EXPRESSION_INPUTS) return fail(r, "too many arguments");
        in[n++] = compare(r);
        if (!next_is(r, ",")) {
            if (!next_is(r, ")")) return fail(r, "expected a comma or a closing bracket");
            break;
        }
    }
    return apply(r, name, n, in);
}

static int named(reader *r) {
    char name[24];
    int in[EXPRESSION_INPUTS];
    if (!read_name(r, name)) return fail(r, "expected a number, a name or an opening bracket");
    if (next_is(r, "(")) return arguments(r, name, 0, in);
    for (int k = 0; k < r->e->n; k++)
        if (!r->e->of[k].n && !strcmp(r->e->of[k].name, name)) return k;
    return fail(r, "unknown variable before this character");
}

static int primary(reader *r) {
    char *end;
    skip(r);
    if (next_is(r, "(")) {
        const int inside = compare(r);
        return next_is(r, ")") ? inside : fail(r, "expected a closing bracket");
    }
    if (!isdigit((unsigned char)*r->at) && *r->at != '.') return named(r);
    const double x = strtod(r->at, &end);
    if (end == r->at) return fail(r, "expected a number");
    r->at = end;
    return number(r, x);
}

static int call(reader *r) {
    int x = primary(r), in[EXPRESSION_INPUTS];
    char name[24];
    while (!r->failed && next_is(r, ".")) {
        if (!read_name(r, name) || !next_is(r, "("))
            return fail(r, "expected a function after the point");
        in[0] = x;
        x = arguments(r, name, 1, in);
    }
    return x;
}

static int sign(reader *r) {
    if (++r->depth > EXPRESSION_DEPTH) return fail(r, "the expression is nested too deeply");
    int x;
    if (next_is(r, "-")) {
        x = sign(r);
        x = apply(r, "neg", 1, &x);
    } else {
        x = call(r);
        if (next_is(r, "**") || next_is(r, "^")) x = two(r, "pow", x, sign(r));
    }
    r->depth--;
    return x;
}

static int product(reader *r) {
    int x = sign(r);
    while (!r->failed) {
        if (next_is(r, "*"))
            x = two(r, "mul", x, sign(r));
        else if (next_is(r, "/"))
            x = two(r, "div", x, sign(r));
        else
            break;
    }
    return x;
}

static int sum(reader *r) {
    int x = product(r);
    while (!r->failed) {
        if (next_is(r, "+"))
            x = two(r, "add", x, product(r));
        else if (next_is(r, "-"))
            x = two(r, "sub", x, product(r));
        else
            break;
    }
    return x;
}

static int compare(reader *r) {
    if (++r->depth > EXPRESSION_DEPTH) return fail(r, "the expression is nested too deeply");
    int x = sum(r);
    if (next_is(r, "<"))
        x = two(r, "less", x, sum(r));
    else if (next_is(r, ">"))
        x = two(r, "greater", x, sum(r));
    else if (next_is(r, "=="))
        x = two(r, "equal", x, sum(r));
    r->depth--;
    return x;
}

fac_status fac_expression_read(expression *e, const char *text, int *result, fac_error *err) {
    fac_error why = { 0 };
    reader r = { .e = e, .text = text, .at = text, .err = &why };
    if (strlen(text) > EXPRESSION_TEXT)
        return fac_raise(err, FAC_E_ARGUMENT, "an expression must not be longer than %d characters",
                         EXPRESSION_TEXT);
    const int x = compare(&r);
    skip(&r);
    if (!r.failed && *r.at) fail(&r, "expected the end of the expression");
    if (r.failed) return fac_raise(err, why.status ? why.status : FAC_E_ARGUMENT, "%s", why.text);
    *result = x;
    return FAC_OK;
}
