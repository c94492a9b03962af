/* Expressions of chat templates, with Jinja's precedence: or, and, not, comparisons, + and -, ~,
 * products, **, signs, then calls, filters and tests. */
#include <string.h>
#include "base/error.h"
#include "text/jinja/jinja.h"

typedef fac_jinja_reading reading;
typedef fac_jinja_node node;

enum { MOST_DEPTH = 200 };

static node *unary(reading *r, bool filters);

/* ---- signs ---- */

node *fac_jinja_node_new(reading *r, fac_jinja_what what) {
    node *n = r->status ? NULL : fac_arena_alloc(r->arena, 1, sizeof *n);
    if (!n) {
        if (!r->status) r->status = fac_raise_memory(r->err, "a chat template");
        n = &r->spare;
    }
    n->what = what;
    n->line = r->line;
    return n;
}

bool fac_jinja_take(reading *r, const char *mark) {
    if (!fac_jinja_is(r, FAC_JINJA_MARK, mark)) return false;
    fac_jinja_next(r);
    return true;
}

static bool take_word(reading *r, const char *word) {
    if (!fac_jinja_is(r, FAC_JINJA_WORD, word)) return false;
    fac_jinja_next(r);
    return true;
}

void fac_jinja_want(reading *r, const char *mark) {
    char what[64] = "expected ";
    if (!fac_jinja_take(r, mark)) fac_jinja_wrong(r, strcat(what, mark));
}

const char *fac_jinja_word(reading *r) {
    const char *word = r->word;
    if (r->sign != FAC_JINJA_WORD) {
        fac_jinja_wrong(r, "expected a name");
        return "";
    }
    fac_jinja_next(r);
    return word;
}

static node *two(reading *r, fac_jinja_what what, const char *name, node *a, node *b) {
    node *n = fac_jinja_node_new(r, what);
    n->name = name;
    n->a = a;
    n->b = b;
    return n;
}

/* ---- lists ---- */

/* Values up to `end`, which is taken; pairs: with : between two of them. */
static node *items(reading *r, const char *end, bool pairs) {
    node *first = NULL, **last = &first;
    while (!r->status && !fac_jinja_take(r, end)) {
        for (int k = 0; k < (pairs ? 2 : 1); k++) {
            if (k) fac_jinja_want(r, ":");
            *last = two(r, FAC_JINJA_ARGUMENT, NULL, fac_jinja_expression(r, false, true), NULL);
            last = &(*last)->next;
        }
        if (fac_jinja_take(r, end)) break;
        fac_jinja_want(r, ",");
    }
    return first;
}

/* After (: values, and names with = before them. */
static node *arguments(reading *r) {
    node *first = NULL, **last = &first;
    while (!r->status && !fac_jinja_take(r, ")")) {
        node *n = two(r, FAC_JINJA_ARGUMENT, NULL, fac_jinja_expression(r, false, true), NULL);
        if (fac_jinja_take(r, "=")) {
            if (!n->a || n->a->what != FAC_JINJA_NAME) fac_jinja_wrong(r, "a name before =");
            n->name = n->a ? n->a->name : NULL;
            n->a = fac_jinja_expression(r, false, true);
        }
        *last = n;
        last = &n->next;
        if (fac_jinja_take(r, ")")) break;
        fac_jinja_want(r, ",");
    }
    return first;
}

/* ---- what stands alone ---- */

static node *constant(reading *r, fac_jinja_value v) {
    node *n = fac_jinja_node_new(r, FAC_JINJA_CONST);
    n->value = v;
    return n;
}

static node *word(reading *r) {
    static const struct {
        const char *name;
        fac_jinja_value value;
    } known[] = { { "true", { .kind = FAC_JINJA_BOOL, .i = 1 } },
                  { "True", { .kind = FAC_JINJA_BOOL, .i = 1 } },
                  { "false", { .kind = FAC_JINJA_BOOL } },
                  { "False", { .kind = FAC_JINJA_BOOL } },
                  { "none", { .kind = FAC_JINJA_NONE } },
                  { "None", { .kind = FAC_JINJA_NONE } } };
    const char *name = fac_jinja_word(r);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcmp(name, known[k].name)) return constant(r, known[k].value);
    return two(r, FAC_JINJA_NAME, name, NULL, NULL);
}

/* Texts that follow each other are one.  Its room doubles, so that many take no memory beyond the
 * template's size. */
static node *text(reading *r) {
    fac_jinja_text all = r->value.text;
    char *to = NULL;
    size_t room = 0;
    fac_jinja_next(r);
    while (r->sign == FAC_JINJA_QUOTED) {
        const fac_jinja_text more = r->value.text;
        if (all.n + more.n > room || !to) {
            room = 2 * (all.n + more.n) + 8;
            to = fac_arena_alloc(r->arena, room, 1);
            if (!to) r->status = fac_raise_memory(r->err, "a chat template");
            if (!to) return &r->spare;
            memcpy(to, all.s, all.n);
        }
        memcpy(to + all.n, more.s, more.n);
        all = (fac_jinja_text){ to, NULL, all.n + more.n };
        fac_jinja_next(r);
    }
    return constant(r, (fac_jinja_value){ .kind = FAC_JINJA_TEXT, .text = all });
}

static node *listed(reading *r, const char *end, bool pairs, bool tuple) {
    node *n = fac_jinja_node_new(r, pairs ? FAC_JINJA_PAIRS : FAC_JINJA_ITEMS);
    node *all = items(r, end, pairs);
    n->items = all;
    n->tuple = tuple;
    return n;
}

static node *in_parens(reading *r) {
    if (fac_jinja_is(r, FAC_JINJA_MARK, ")")) return listed(r, ")", false, true);
    node *n = fac_jinja_expression(r, true, true);
    fac_jinja_want(r, ")");
    return n;
}

static node *primary(reading *r) {
    if (r->sign == FAC_JINJA_WORD) return word(r);
    if (r->sign == FAC_JINJA_QUOTED) return text(r);
    if (r->sign == FAC_JINJA_NUMBER) {
        const fac_jinja_value v = r->value;
        fac_jinja_next(r);
        return constant(r, v);
    }
    if (fac_jinja_take(r, "(")) return in_parens(r);
    if (fac_jinja_take(r, "[")) return listed(r, "]", false, false);
    if (fac_jinja_take(r, "{")) return listed(r, "}", true, false);
    fac_jinja_wrong(r, "expected a value");
    return &r->spare;
}

/* ---- what follows a value ---- */

static bool ends_part(const reading *r) {
    return fac_jinja_is(r, FAC_JINJA_MARK, ":") || fac_jinja_is(r, FAC_JINJA_MARK, "]");
}

/* After [: one index, or up to three parts of a slice. */
static node *index_of(reading *r, node *a) {
    node *part[3] = { NULL, NULL, NULL };
    int n = 0;
    bool slice = false;
    for (; n < 3 && !r->status; n++) {
        if (!ends_part(r)) part[n] = fac_jinja_expression(r, true, true);
        if (!fac_jinja_take(r, ":")) break;
        slice = true;
    }
    fac_jinja_want(r, "]");
    node *to = two(r, slice ? FAC_JINJA_SLICE : FAC_JINJA_INDEX, NULL, a, part[0]);
    if (!slice && !part[0]) fac_jinja_wrong(r, "expected an index");
    to->c = part[1];
    to->d = part[2];
    return to;
}

static node *postfix(reading *r, node *a) {
    while (!r->status) {
        if (fac_jinja_take(r, ".")) {
            if (r->sign == FAC_JINJA_NUMBER) {
                node *at = constant(r, r->value);
                fac_jinja_next(r);
                a = two(r, FAC_JINJA_INDEX, NULL, a, at);
            } else {
                a = two(r, FAC_JINJA_ATTRIBUTE, fac_jinja_word(r), a, NULL);
            }
        } else if (fac_jinja_take(r, "[")) {
            a = index_of(r, a);
        } else if (fac_jinja_take(r, "(")) {
            node *n = two(r, FAC_JINJA_CALL, NULL, a, NULL), *all = arguments(r);
            n->items = all;
            a = n;
        } else {
            break;
        }
    }
    return a;
}

static node *filter(reading *r, node *a) {
    node *n = two(r, FAC_JINJA_FILTER, fac_jinja_word(r), a, NULL);
    node *all = fac_jinja_take(r, "(") ? arguments(r) : NULL;
    n->items = all;
    return n;
}

/* A test's argument may stand without brackets: is divisibleby 3. */
static bool begins_argument(const reading *r) {
    static const char *const no[] = { "else", "or", "and", "is", "if", "in", "not" };
    if (r->sign == FAC_JINJA_NUMBER || r->sign == FAC_JINJA_QUOTED) return true;
    if (fac_jinja_is(r, FAC_JINJA_MARK, "[") || fac_jinja_is(r, FAC_JINJA_MARK, "{")) return true;
    for (size_t k = 0; k < sizeof no / sizeof *no; k++)
        if (fac_jinja_is(r, FAC_JINJA_WORD, no[k])) return false;
    return r->sign == FAC_JINJA_WORD;
}

static node *test(reading *r, node *a) {
    const bool no = take_word(r, "not");
    node *n = two(r, FAC_JINJA_TEST, fac_jinja_word(r), a, NULL), *all = NULL;
    if (fac_jinja_take(r, "("))
        all = arguments(r);
    else if (begins_argument(r))
        all = two(r, FAC_JINJA_ARGUMENT, NULL, postfix(r, primary(r)), NULL);
    n->items = all;
    return no ? two(r, FAC_JINJA_NOT, NULL, n, NULL) : n;
}

node *fac_jinja_filters(reading *r, node *a) {
    while (!r->status) {
        if (fac_jinja_take(r, "|"))
            a = filter(r, a);
        else if (take_word(r, "is"))
            a = test(r, a);
        else
            break;
    }
    return a;
}

/* ---- signs between values ---- */

static node *unary(reading *r, bool filters) {
    node *a;
    if (++r->depth > MOST_DEPTH) fac_jinja_wrong(r, "an expression that is nested too deeply");
    if (fac_jinja_take(r, "-"))
        a = two(r, FAC_JINJA_NEGATE, NULL, unary(r, false), NULL);
    else if (fac_jinja_take(r, "+"))
        a = unary(r, false);
    else
        a = primary(r);
    a = postfix(r, a);
    r->depth--;
    return filters ? fac_jinja_filters(r, a) : a;
}

/* The one of these marks that is here, and taken; NULL: none. */
static const char *one_of(reading *r, const char *const marks[]) {
    for (int k = 0; marks[k]; k++)
        if (fac_jinja_take(r, marks[k])) return marks[k];
    return NULL;
}

/* Products of level 0 to sums of level 3. */
static node *math(reading *r, int level) {
    static const char *const marks[4][5] = {
        { "**" }, { "*", "/", "//", "%" }, { "~" }, { "+", "-" }
    };
    node *a = level ? math(r, level - 1) : unary(r, true);
    const char *sign;
    while (!r->status && (sign = one_of(r, marks[level])))
        a = two(r, FAC_JINJA_MATH, sign, a, level ? math(r, level - 1) : unary(r, true));
    return a;
}

static const char *comparison(reading *r) {
    static const char *const marks[] = { "==", "!=", "<=", ">=", "<", ">", NULL };
    if (take_word(r, "in")) return "in";
    if (!fac_jinja_is(r, FAC_JINJA_WORD, "not")) return one_of(r, marks);
    fac_jinja_next(r);
    if (!take_word(r, "in")) fac_jinja_wrong(r, "expected in after not");
    return "not in";
}

/* a < b < c is a < b and b < c. */
static node *compare(reading *r) {
    node *left = math(r, 3), *all = NULL;
    const char *sign;
    while (!r->status && (sign = comparison(r))) {
        node *right = math(r, 3), *one = two(r, FAC_JINJA_COMPARE, sign, left, right);
        all = all ? two(r, FAC_JINJA_AND, NULL, all, one) : one;
        left = right;
    }
    return all ? all : left;
}

static node *negation(reading *r) {
    if (!take_word(r, "not")) return compare(r);
    if (++r->depth > MOST_DEPTH) fac_jinja_wrong(r, "an expression that is nested too deeply");
    node *n = two(r, FAC_JINJA_NOT, NULL, negation(r), NULL);
    r->depth--;
    return n;
}

static node *conjunction(reading *r) {
    node *a = negation(r);
    while (!r->status && take_word(r, "and")) a = two(r, FAC_JINJA_AND, NULL, a, negation(r));
    return a;
}

static node *disjunction(reading *r) {
    node *a = conjunction(r);
    while (!r->status && take_word(r, "or")) a = two(r, FAC_JINJA_OR, NULL, a, conjunction(r));
    return a;
}

static node *choice(reading *r) {
    node *a = disjunction(r);
    while (!r->status && take_word(r, "if")) {
        node *n = two(r, FAC_JINJA_CHOICE, NULL, disjunction(r), a);
        if (take_word(r, "else")) n->c = fac_jinja_expression(r, false, true);
        a = n;
    }
    return a;
}

node *fac_jinja_expression(reading *r, bool many, bool with_choice) {
    if (++r->depth > MOST_DEPTH) fac_jinja_wrong(r, "an expression that is nested too deeply");
    node *a = with_choice ? choice(r) : disjunction(r);
    r->depth--;
    if (!many || !fac_jinja_is(r, FAC_JINJA_MARK, ",")) return a;
    node *n = fac_jinja_node_new(r, FAC_JINJA_ITEMS);
    node **last = &n->items;
    n->tuple = true;
    for (;;) {
        *last = two(r, FAC_JINJA_ARGUMENT, NULL, a, NULL);
        if (r->status || !fac_jinja_take(r, ",") || r->sign == FAC_JINJA_CLOSE ||
            fac_jinja_is(r, FAC_JINJA_MARK, ")"))
            return n;
        last = &(*last)->next;
        a = fac_jinja_expression(r, false, with_choice);
    }
}

/* One name, several, or a field of a namespace. */
node *fac_jinja_target(reading *r) {
    node *a = two(r, FAC_JINJA_NAME, fac_jinja_word(r), NULL, NULL);
    if (fac_jinja_take(r, ".")) return two(r, FAC_JINJA_ATTRIBUTE, fac_jinja_word(r), a, NULL);
    if (!fac_jinja_is(r, FAC_JINJA_MARK, ",")) return a;
    node *n = fac_jinja_node_new(r, FAC_JINJA_ITEMS);
    node **last = &n->items;
    for (;;) {
        *last = two(r, FAC_JINJA_ARGUMENT, NULL, a, NULL);
        if (r->status || !fac_jinja_take(r, ",")) break;
        last = &(*last)->next;
        a = two(r, FAC_JINJA_NAME, fac_jinja_word(r), NULL, NULL);
    }
    return n;
}
