/* Does a pattern end at a node?  Goals (an operand of the pattern, a value of the graph) are met
 * one after the other; the operands of commuting ops are tried in both orders, going back to what
 * was known before. */
#include <math.h>
#include <string.h>
#include "edit/rules.h"
#include "op_list.h"

enum {
    STEPS = 20000
}; /* for one node; far more than any pattern without dozens of equal sums needs */

/* ---- attributes ---- */

static const void *field(const void *attrs, const fac_attr *a) {
    return (const char *)attrs + a->at;
}

static bool near(double a, double b) {
    return a == b || fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b)) || (isnan(a) && isnan(b));
}

/* What is written, where zero stands for the default, and what a node has. */
static bool near_reals(const fac_reals *p, const fac_reals *q) {
    for (int k = 0; k < p->n && p->n == q->n; k++)
        if (!near(p->v[k], q->v[k])) return false;
    return p->n == q->n;
}

/* The number that x stands for: zero is what zero_means says. */
static int64_t int_of(const fac_attr *a, int64_t x) { return x ? x : (int64_t)a->zero_means; }
static double real_of(const fac_attr *a, double x) { return x != 0 ? x : a->zero_means; }

static bool same(const fac_attr *a, const void *p, const void *q) {
    const int count = a->count ? a->count : 1;
    const char *s, *t;
    switch (a->kind) {
    case FAC_A_INT:
        for (int k = 0; k < count; k++) {
            const int64_t x = ((const int64_t *)p)[k], y = ((const int64_t *)q)[k];
            if (int_of(a, x) != int_of(a, y)) return false;
        }
        return true;
    case FAC_A_REAL:
        for (int k = 0; k < count; k++) {
            const double x = ((const double *)p)[k], y = ((const double *)q)[k];
            if (!near(real_of(a, x), real_of(a, y))) return false;
        }
        return true;
    case FAC_A_FLAG:
        return *(const bool *)p == *(const bool *)q;
    case FAC_A_ENUM:
        return *(const int *)p == *(const int *)q;
    case FAC_A_DTYPE:
        return *(const fac_dtype *)p == *(const fac_dtype *)q;
    case FAC_A_DIMS:
        return fac_dims_equal(p, q);
    case FAC_A_REALS:
        return near_reals(p, q);
    case FAC_A_TEXT:
        s = *(const char *const *)p;
        t = *(const char *const *)q;
        return s && t ? !strcmp(s, t) : s == t;
    }
    return false;
}

/* A variable means the same everywhere. */
static bool bind_attr(fac_match *m, int slot, const fac_attr *a, const void *at) {
    const fac_attr *b = m->attr[slot];
    if (b)
        return b->kind == a->kind && b->count == a->count && b->choices == a->choices &&
               same(a, m->at[slot], at);
    m->attr[slot] = a;
    m->at[slot] = at;
    return true;
}

static bool attributes(fac_match *m, const fac_statement *s, const fac_node *n) {
    static const union {
        fac_dims dims;
        double numbers[FAC_EDIT_NUMBERS];
    } zero;
    for (const fac_attr *a = n->op->attrs; a && a->name; a++) {
        const fac_setting *t = s->settings, *end = t + s->nsettings;
        while (t < end && t->attr != a) t++;
        const void *has = field(n->attrs, a);
        if (t < end && t->variable) {
            if (!bind_attr(m, t->slot, a, has)) return false;
        } else if (t < end) {
            if (!same(a, field(s->attrs, a), has)) return false;
        } else if (!s->any && (a->count > FAC_EDIT_NUMBERS || !same(a, &zero, has)))
            return false;
    }
    return true;
}

/* ---- operands ---- */

static bool commutes(const fac_op *op) {
    static const fac_op *const names[] = {
        &fac_op_add,         &fac_op_and,   &fac_op_bitwise_and, &fac_op_bitwise_or,
        &fac_op_bitwise_xor, &fac_op_equal, &fac_op_max,         &fac_op_min,
        &fac_op_mul,         &fac_op_or,    &fac_op_xor,         NULL
    };
    return fac_op_is_one_of(op, names);
}

/* A constant: one number anywhere for a scalar, a list for a list. */
static bool numbers(const fac_term *t, const fac_value *v) {
    double x[FAC_EDIT_NUMBERS];
    const double tolerance = t->tolerance >= 0 ? t->tolerance : 1e-6;
    if (!v || (t->dtype && v->type.dtype != t->dtype) || (!t->scalar && v->type.dims.n != 1))
        return false;
    if (fac_edit_numbers(v, x) != t->n) return false;
    for (int k = 0; k < t->n; k++)
        if (!(x[k] == t->v[k] || fabs(x[k] - t->v[k]) <= tolerance * fabs(t->v[k]))) return false;
    return true;
}

static bool push(fac_match *m, const fac_term *t, fac_value *v) {
    if (m->ngoals == FAC_RULE_GOALS) return false;
    m->goals[m->ngoals++] = (fac_goal){ t, v };
    return true;
}

/* The operands of a node become goals, from..: those after the ones that were pushed. */
static bool push_operands(fac_match *m, const fac_statement *s, const fac_node *n, int from) {
    for (int i = from; i < s->nargs; i++)
        if (!push(m, &s->args[i], i < n->nin ? n->in[i] : NULL)) return false;
    for (int i = s->nargs; i < n->nin; i++)
        if (n->in[i]) return false;
    return true;
}

/* Its outputs are the results, also those that nothing of the pattern reads. */
static bool results(fac_match *m, const fac_statement *s, const fac_node *n) {
    if (s->nresults > n->nout) return false;
    for (int k = 0; k < s->nresults; k++) {
        fac_value **v = &m->value[fac_rule_value(m->rule, s->results[k])];
        if (*v && *v != n->out[k]) return false;
        *v = n->out[k];
    }
    return true;
}

static bool solve(fac_match *m);

/* The node takes the place of a statement of the pattern.  false: not, or not in this way; true:
 * all goals are met. */
static bool take(fac_match *m, int statement, const fac_node *n) {
    const fac_statement *s = &m->rule->match.at[statement];
    if (n->op != s->op || n->body[0] || fac_rule_dead(n) || !attributes(m, s, n)) return false;
    m->node[statement] = n;
    if (!results(m, s, n)) return false;
    if (s->nargs != 2 || n->nin != 2 || !commutes(n->op))
        return push_operands(m, s, n, 0) && solve(m);
    fac_match before = *m;
    if (push_operands(m, s, n, 0) && solve(m)) return true;
    *m = before;
    return push(m, &s->args[0], n->in[1]) && push(m, &s->args[1], n->in[0]) && solve(m);
}

static bool solve(fac_match *m) {
    while (m->next < m->ngoals) {
        const fac_goal goal = m->goals[m->next++];
        const fac_term *t = goal.term;
        if (--*m->budget < 0) return false;
        if (t->kind == FAC_TERM_ANY) continue;
        if (t->kind == FAC_TERM_ABSENT && goal.v) return false;
        if (t->kind == FAC_TERM_ABSENT) continue;
        if (t->kind == FAC_TERM_NUMBERS && !numbers(t, goal.v)) return false;
        if (t->kind == FAC_TERM_NUMBERS) continue;
        fac_value **bound = &m->value[t->slot];
        const int maker = m->rule->maker[t->slot];
        if (!goal.v || (*bound && *bound != goal.v)) return false;
        if (*bound) continue;
        *bound = goal.v;
        if (maker < 0) continue;
        if (!goal.v->node || goal.v->index != m->rule->output[t->slot]) return false;
        if (m->node[maker] && m->node[maker] != goal.v->node) return false;
        if (!m->node[maker]) return take(m, maker, goal.v->node);
    }
    return fac_rule_holds(m);
}

bool fac_rule_matches(const fac_rule *r, const fac_node *root, fac_match *m) {
    int budget = STEPS;
    const int last = (int)r->match.n - 1;
    if (root->op != r->match.at[last].op) return false;
    memset(m, 0, offsetof(fac_match, goals));
    m->rule = r;
    m->next = m->ngoals = 0;
    m->budget = &budget;
    const bool found = take(m, last, root);
    m->budget = NULL;
    return found;
}
