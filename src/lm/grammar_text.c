/* GBNF, as llama.cpp describes it (https://github.com/ggml-org/llama.cpp/tree/master/grammars):
 * from its text to items of bytes.  Characters beyond ASCII become rows of byte ranges
 * (grammar_write.c), so matching knows nothing of characters. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/text.h"
#include "lm/grammar_text.h"

typedef fac_grammar_row row;
typedef fac_grammar_range range;
typedef fac_grammar_text reading;

enum { MOST_TIMES = 2000, MOST_DEPTH = 200 };

/* ---- the text ---- */

static void skip(reading *r) {
    for (;; r->s++) {
        if (*r->s == '#') r->s += strcspn(r->s, "\n");
        if (!*r->s || !strchr(" \t\r\n", *r->s)) return;
    }
}

static size_t name_here(const char *s) {
    size_t n = 0;
    while ((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z') ||
           (s[n] >= '0' && s[n] <= '9') || (s[n] && strchr("-_", s[n])))
        n++;
    return n;
}

/* A name that ::= follows begins the next rule. */
static bool defines(const reading *r) {
    reading ahead = *r;
    ahead.s += name_here(r->s);
    if (ahead.s == r->s) return false;
    skip(&ahead);
    return !strncmp(ahead.s, "::=", 3);
}

static fac_status digits(reading *r, int n, uint32_t *to) {
    *to = 0;
    for (int k = 0; k < n; k++, r->s++) {
        static const char all[] = "0123456789abcdef0123456789ABCDEF";
        const char *at = *r->s ? strchr(all, *r->s) : NULL;
        if (!at) return fac_grammar_wrong(r, "a hexadecimal digit");
        const size_t d = (size_t)(at - all);
        *to = *to * 16 + (uint32_t)(d % 16);
    }
    return *to <= FAC_GRAMMAR_LAST_LETTER ? FAC_OK
                                          : fac_grammar_wrong(r, "a character up to \\U0010FFFF");
}

/* One character of a text or a class; \xNN is the character of that number. */
static fac_status letter(reading *r, uint32_t *to) {
    static const char from[] = "nrt\\\"[]-^", is[] = "\n\r\t\\\"[]-^";
    if (*r->s != '\\') {
        const size_t n = fac_utf8(r->s, to);
        if (!*to || *to == '\n' || (*to == FAC_NO_LETTER && n == 1))
            return fac_grammar_wrong(r, "the end of a text or class");
        r->s += n;
        return FAC_OK;
    }
    const char c = *++r->s;
    if (c) r->s++;
    if (c == 'x') return digits(r, 2, to);
    if (c == 'u') return digits(r, 4, to);
    if (c == 'U') return digits(r, 8, to);
    const char *at = c ? strchr(from, c) : NULL;
    if (!at)
        return fac_grammar_wrong(
            r, "one of \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\x \\u \\U before this");
    *to = (uint32_t)is[at - from];
    return FAC_OK;
}

static fac_status read_text(reading *r, row *to) {
    for (r->s++; *r->s != '"';) {
        unsigned char bytes[4];
        uint32_t c;
        FAC_TRY(letter(r, &c));
        const int n = fac_grammar_bytes_of(c, bytes);
        for (int k = 0; k < n; k++) FAC_TRY(fac_grammar_put_bytes(r, to, bytes[k], bytes[k]));
    }
    r->s++;
    return FAC_OK;
}

static fac_status read_class(reading *r, row *to) {
    range *of = NULL;
    size_t n = 0, room = 0;
    fac_status status = FAC_OK;
    const bool all_but = *++r->s == '^';
    if (all_but) r->s++;
    while (!status && *r->s != ']') {
        range x = { 0 };
        status = letter(r, &x.low);
        x.high = x.low;
        if (!status && r->s[0] == '-' && r->s[1] != ']') {
            r->s++;
            status = letter(r, &x.high);
        }
        if (!status && x.high < x.low)
            status = fac_grammar_wrong(r, "a range whose end is not before its begin");
        if (!status && !fac_reserve(&of, &room, n + 1, sizeof *of))
            status = fac_grammar_no_memory(r);
        if (!status) of[n++] = x;
    }
    if (!status) r->s++;
    if (!status) status = fac_grammar_put_class(r, to, of, n, all_but);
    fac_release(of);
    return status;
}

static fac_status read_rows(reading *r, int32_t rule, bool in_group);

static fac_status read_group(reading *r, row *to) {
    int32_t rule;
    r->s++;
    FAC_TRY(fac_grammar_new_rule(r, NULL, 0, &rule));
    FAC_TRY(read_rows(r, rule, true));
    if (*r->s != ')') return fac_grammar_wrong(r, "')'");
    r->s++;
    return fac_grammar_put_rule(r, to, rule);
}

static fac_status read_one(reading *r, row *to) {
    range any = { '\n', '\n' };
    int32_t rule;
    const size_t n = name_here(r->s);
    if (*r->s == '"') return read_text(r, to);
    if (*r->s == '[') return read_class(r, to);
    if (*r->s == '(') return read_group(r, to);
    if (*r->s == '.') {
        r->s++;
        return fac_grammar_put_class(r, to, &any, 0, true);
    }
    if (!n) return fac_grammar_wrong(r, "a text, a class, a group or a rule");
    FAC_TRY(fac_grammar_rule_named(r, r->s, n, &rule));
    r->s += n;
    return fac_grammar_put_rule(r, to, rule);
}

/* ---- repetitions ---- */

static fac_status number(reading *r, int *to) {
    const char *begin = r->s;
    *to = 0;
    while (*r->s >= '0' && *r->s <= '9' && *to <= MOST_TIMES) *to = 10 * *to + (*r->s++ - '0');
    return r->s > begin && *to <= MOST_TIMES ? FAC_OK : fac_grammar_wrong(r, "a number up to 2000");
}

/* {m}, {m,} or {m,n} */
static fac_status read_braces(reading *r, int *low, int *high) {
    r->s++;
    FAC_TRY(number(r, low));
    *high = *low;
    if (*r->s == ',') {
        r->s++;
        *high = -1;
        if (*r->s != '}') FAC_TRY(number(r, high));
    }
    if (*r->s != '}' || (*high >= 0 && *high < *low))
        return fac_grammar_wrong(r, "{m}, {m,} or {m,n}");
    r->s++;
    return FAC_OK;
}

static fac_status read_times(reading *r, row *to, const row *what) {
    int low = 1, high = 1;
    if (*r->s == '{')
        FAC_TRY(read_braces(r, &low, &high));
    else if (*r->s && strchr("*+?", *r->s)) {
        low = *r->s == '+';
        high = *r->s == '?' ? 1 : -1;
        r->s++;
    }
    return fac_grammar_repeat(r, to, what, low, high);
}

/* ---- rows ---- */

static fac_status read_item(reading *r, row *rows) {
    row one = { 0 };
    fac_status status = read_one(r, &one);
    if (!status) skip(r);
    if (!status) status = read_times(r, rows, &one);
    fac_release(one.of);
    skip(r);
    return status;
}

static fac_status read_rows_into(reading *r, row *rows, bool in_group) {
    skip(r);
    for (;;) {
        if (*r->s == '|') {
            FAC_TRY(fac_grammar_put_or(r, rows));
            r->s++;
            skip(r);
        } else if (!*r->s || *r->s == ')' || (!in_group && defines(r))) {
            return FAC_OK;
        } else {
            FAC_TRY(read_item(r, rows));
        }
    }
}

static fac_status read_rows(reading *r, int32_t rule, bool in_group) {
    row rows = { 0 };
    if (++r->depth > MOST_DEPTH) return fac_grammar_wrong(r, "less depth of groups");
    fac_status status = read_rows_into(r, &rows, in_group);
    if (!status) status = fac_grammar_define(r, rule, &rows);
    fac_release(rows.of);
    r->depth--;
    return status;
}

static fac_status read_rule(reading *r) {
    int32_t rule;
    if (!defines(r)) return fac_grammar_wrong(r, "NAME ::=");
    const size_t n = name_here(r->s);
    FAC_TRY(fac_grammar_rule_named(r, r->s, n, &rule));
    if (r->names[rule].defined) return fac_grammar_wrong(r, "a rule that is not there yet");
    r->names[rule].defined = true;
    r->s += n;
    skip(r);
    r->s += 3;
    FAC_TRY(read_rows(r, rule, false));
    return *r->s == ')' ? fac_grammar_wrong(r, "no ')'") : FAC_OK;
}

/* ---- is it whole? ---- */

/* By rule: 1 while it is looked into, 2 when that is done; empty: it can be nothing at all. */
typedef struct look {
    unsigned char *seen;
    bool *empty;
} look;

/* A rule that begins with itself would open for ever. */
static fac_status check_rule(reading *r, look *l, int32_t rule, size_t depth) {
    const fac_grammar *g = r->g;
    bool row_empty = true;
    if (l->seen[rule] == 2) return FAC_OK;
    if (l->seen[rule] == 1 || depth > 4 * MOST_TIMES) {
        const fac_grammar_name *x = &r->names[rule];
        if (!x->s)
            return fac_raise(r->err, FAC_E_FORMAT,
                             "grammar: a group that may be nothing is repeated without an end");
        return fac_raise(r->err, FAC_E_FORMAT, "grammar: the rule %.*s begins with itself",
                         (int)x->n, x->s);
    }
    l->seen[rule] = 1;
    for (int32_t at = g->rules[rule];; at++) {
        const fac_grammar_item *i = &g->items[at];
        if (i->kind == FAC_GRAMMAR_BYTES) row_empty = false;
        if (i->kind == FAC_GRAMMAR_RULE && row_empty) {
            FAC_TRY(check_rule(r, l, i->rule, depth + 1));
            row_empty = l->empty[i->rule];
        }
        if (i->kind < FAC_GRAMMAR_OR) continue;
        l->empty[rule] |= row_empty;
        row_empty = true;
        if (i->kind == FAC_GRAMMAR_END) break;
    }
    l->seen[rule] = 2;
    return FAC_OK;
}

static fac_status check_all(reading *r) {
    const size_t n = r->g->nrules;
    look l = { fac_alloc(n + 1, 1), fac_alloc(n + 1, sizeof(bool)) };
    fac_status status = l.seen && l.empty ? FAC_OK : fac_grammar_no_memory(r);
    for (size_t k = 0; k < n && !status; k++)
        if (r->g->rules[k] == FAC_GRAMMAR_NO_RULE)
            status = fac_raise(r->err, FAC_E_FORMAT, "grammar: there is no rule %.*s",
                               (int)r->names[k].n, r->names[k].s);
    for (size_t k = 0; k < n && !status; k++) status = check_rule(r, &l, (int32_t)k, 0);
    fac_release(l.seen);
    fac_release(l.empty);
    return status;
}

static fac_status read_all(reading *r) {
    skip(r);
    while (*r->s) {
        FAC_TRY(read_rule(r));
        skip(r);
    }
    for (size_t k = 0; k < r->g->nrules; k++)
        if (r->names[k].defined && r->names[k].n == 4 && !memcmp(r->names[k].s, "root", 4)) {
            r->g->root = (int32_t)k;
            return check_all(r);
        }
    return fac_raise(r->err, FAC_E_FORMAT, "grammar: there is no rule root");
}

fac_status fac_grammar_parse(fac_grammar *g, const char *text, fac_error *err) {
    reading r = { .g = g, .begin = text, .s = text, .err = err };
    const fac_status status = read_all(&r);
    fac_release(r.names);
    return status;
}
