/* GBNF, as llama.cpp describes it (https://github.com/ggml-org/llama.cpp/tree/master/grammars):
 * from its text to items of bytes.  Characters beyond ASCII become rows of byte ranges, so matching
 * knows nothing of characters. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/text.h"
#include "lm/grammar.h"

enum {
    MOST_ITEMS = 1 << 20,
    MOST_TIMES = 2000,
    MOST_DEPTH = 200,
    LAST_LETTER = 0x10ffff,
    NO_RULE = -1
};

typedef struct row {
    fac_grammar_item *of;
    size_t n, room;
} row;
typedef struct name {
    const char *s;
    size_t n;
    bool defined;
} name; /* of a rule; s NULL: it has none */
typedef struct range {
    uint32_t low, high;
} range;

typedef struct reading {
    fac_grammar *g;
    const char *begin, *s;
    name *names; /* by rule */
    size_t room, depth;
    fac_error *err;
} reading;

static int line_of(const reading *r) {
    int line = 1;
    for (const char *s = r->begin; s < r->s; s++) line += *s == '\n';
    return line;
}

static fac_status wrong(const reading *r, const char *expected) {
    return fac_raise(r->err, FAC_E_FORMAT, "grammar, line %d: %s is expected at '%.20s'",
                     line_of(r), expected, r->s);
}

static fac_status no_memory(const reading *r) {
    return fac_raise(r->err, FAC_E_NOMEM, "a grammar of more than %d items, or no memory for it",
                     MOST_ITEMS);
}

static fac_status put(const reading *r, row *to, fac_grammar_item i) {
    if (to->n >= MOST_ITEMS || !fac_reserve(&to->of, &to->room, to->n + 1, sizeof i))
        return no_memory(r);
    to->of[to->n++] = i;
    return FAC_OK;
}

static fac_status put_bytes(const reading *r, row *to, unsigned low, unsigned high) {
    return put(r, to, (fac_grammar_item){ FAC_GRAMMAR_BYTES, (uint8_t)low, (uint8_t)high, 0 });
}

static fac_status put_rule(const reading *r, row *to, int32_t rule) {
    return put(r, to, (fac_grammar_item){ .kind = FAC_GRAMMAR_RULE, .rule = rule });
}

static fac_status put_kind(const reading *r, row *to, int kind) {
    return put(r, to, (fac_grammar_item){ .kind = (uint8_t)kind });
}

/* ---- rules ---- */

static fac_status new_rule(reading *r, const char *s, size_t n, int32_t *to) {
    fac_grammar *g = r->g;
    if (g->nrules >= MOST_ITEMS ||
        !fac_reserve(&g->rules, &g->room_rules, g->nrules + 1, sizeof *g->rules) ||
        !fac_reserve(&r->names, &r->room, g->nrules + 1, sizeof *r->names))
        return no_memory(r);
    r->names[g->nrules] = (name){ s, n, false };
    g->rules[g->nrules] = NO_RULE;
    *to = (int32_t)g->nrules++;
    return FAC_OK;
}

static fac_status rule_named(reading *r, const char *s, size_t n, int32_t *to) {
    for (size_t k = 0; k < r->g->nrules; k++) {
        if (!r->names[k].s || r->names[k].n != n || memcmp(r->names[k].s, s, n)) continue;
        *to = (int32_t)k;
        return FAC_OK;
    }
    return new_rule(r, s, n, to);
}

/* The rule is these rows, which end here. */
static fac_status define(reading *r, int32_t rule, row *rows) {
    fac_grammar *g = r->g;
    FAC_TRY(put_kind(r, rows, FAC_GRAMMAR_END));
    if (g->n + rows->n > MOST_ITEMS ||
        !fac_reserve(&g->items, &g->room, g->n + rows->n, sizeof *g->items))
        return no_memory(r);
    if (rows->n) memcpy(g->items + g->n, rows->of, rows->n * sizeof *rows->of);
    g->rules[rule] = (int32_t)g->n;
    g->n += rows->n;
    return FAC_OK;
}

/* ---- characters as bytes ---- */

static int bytes_of(uint32_t c, unsigned char to[4]) {
    if (c < 0x80) return to[0] = (unsigned char)c, 1;
    const int n = c < 0x800 ? 2 : 3 + (c >= 0x10000);
    for (int k = n - 1; k; k--, c >>= 6) to[k] = (unsigned char)(0x80 | (c & 63));
    to[0] = (unsigned char)((0xf00 >> n & 0xff) | c);
    return n;
}

/* Characters low .. high as rows of byte ranges: cut where their bytes do not run over whole
 * ranges. */
static fac_status put_range(const reading *r, row *to, uint32_t low, uint32_t high) {
    static const uint32_t ends[] = { 0x7f, 0x7ff, 0xd7ff, 0xdfff, 0xffff };
    unsigned char a[4], b[4];
    if (low > high || (low >= 0xd800 && high <= 0xdfff)) return FAC_OK;
    for (int k = 0; k < 5; k++)
        if (low <= ends[k] && high > ends[k]) {
            FAC_TRY(put_range(r, to, low, ends[k]));
            return put_range(r, to, ends[k] + 1, high);
        }
    for (int bits = 6; bits <= 18; bits += 6) {
        const uint32_t mask = (1u << bits) - 1;
        if ((low & ~mask) == (high & ~mask)) continue;
        const uint32_t cut = low & mask ? low | mask : (high & ~mask) - 1;
        if (!(low & mask) && (high & mask) == mask) continue;
        FAC_TRY(put_range(r, to, low, cut));
        return put_range(r, to, cut + 1, high);
    }
    if (to->n) FAC_TRY(put_kind(r, to, FAC_GRAMMAR_OR));
    const int n = bytes_of(low, a);
    bytes_of(high, b);
    for (int k = 0; k < n; k++) FAC_TRY(put_bytes(r, to, a[k], b[k]));
    return FAC_OK;
}

static int by_low(const void *a, const void *b) {
    const range *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* A class becomes a rule, unless one range of bytes says it. */
static fac_status put_class(reading *r, row *to, range *of, size_t n, bool all_but) {
    row rows = { 0 };
    int32_t rule;
    uint32_t next = 0;
    fac_status status = FAC_OK;
    if (!all_but && n == 1 && of->high < 0x80) return put_bytes(r, to, of->low, of->high);
    if (n) qsort(of, n, sizeof *of, by_low);
    for (size_t k = 0; k < n && !status; k++) {
        if (!all_but)
            status = put_range(r, &rows, of[k].low, of[k].high);
        else if (of[k].low > next)
            status = put_range(r, &rows, next, of[k].low - 1);
        if (of[k].high + 1 > next) next = of[k].high + 1;
    }
    if (all_but && !status && next <= LAST_LETTER) status = put_range(r, &rows, next, LAST_LETTER);
    if (!status && !rows.n) status = wrong(r, "a class of some characters");
    if (!status) status = new_rule(r, NULL, 0, &rule);
    if (!status) status = define(r, rule, &rows);
    fac_release(rows.of);
    return status ? status : put_rule(r, to, rule);
}

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
        if (!at) return wrong(r, "a hexadecimal digit");
        const size_t d = (size_t)(at - all);
        *to = *to * 16 + (uint32_t)(d % 16);
    }
    return *to <= LAST_LETTER ? FAC_OK : wrong(r, "a character up to \\U0010FFFF");
}

/* One character of a text or a class; \xNN is the character of that number. */
static fac_status letter(reading *r, uint32_t *to) {
    static const char from[] = "nrt\\\"[]-^", is[] = "\n\r\t\\\"[]-^";
    if (*r->s != '\\') {
        const size_t n = fac_utf8(r->s, to);
        if (!*to || *to == '\n' || (*to == FAC_NO_LETTER && n == 1))
            return wrong(r, "the end of a text or class");
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
        return wrong(r, "one of \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\x \\u \\U before this");
    *to = (uint32_t)is[at - from];
    return FAC_OK;
}

static fac_status read_text(reading *r, row *to) {
    for (r->s++; *r->s != '"';) {
        unsigned char bytes[4];
        uint32_t c;
        FAC_TRY(letter(r, &c));
        const int n = bytes_of(c, bytes);
        for (int k = 0; k < n; k++) FAC_TRY(put_bytes(r, to, bytes[k], bytes[k]));
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
            status = wrong(r, "a range whose end is not before its begin");
        if (!status && !fac_reserve(&of, &room, n + 1, sizeof *of)) status = no_memory(r);
        if (!status) of[n++] = x;
    }
    if (!status) r->s++;
    if (!status) status = put_class(r, to, of, n, all_but);
    fac_release(of);
    return status;
}

static fac_status read_rows(reading *r, int32_t rule, bool in_group);

static fac_status read_group(reading *r, row *to) {
    int32_t rule;
    r->s++;
    FAC_TRY(new_rule(r, NULL, 0, &rule));
    FAC_TRY(read_rows(r, rule, true));
    if (*r->s != ')') return wrong(r, "')'");
    r->s++;
    return put_rule(r, to, rule);
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
        return put_class(r, to, &any, 0, true);
    }
    if (!n) return wrong(r, "a text, a class, a group or a rule");
    FAC_TRY(rule_named(r, r->s, n, &rule));
    r->s += n;
    return put_rule(r, to, rule);
}

/* ---- repetitions ---- */

static fac_status put_row(const reading *r, row *to, const row *from) {
    for (size_t k = 0; k < from->n; k++) FAC_TRY(put(r, to, from->of[k]));
    return FAC_OK;
}

/* rule ::= what next | (nothing); next: the rule itself, another one or NO_RULE */
static fac_status define_more(reading *r, int32_t rule, const row *what, int32_t next) {
    row rows = { 0 };
    fac_status status = put_row(r, &rows, what);
    if (!status && next != NO_RULE) status = put_rule(r, &rows, next);
    if (!status) status = put_kind(r, &rows, FAC_GRAMMAR_OR);
    if (!status) status = define(r, rule, &rows);
    fac_release(rows.of);
    return status;
}

/* `what` from low to high times; high < 0: without end. */
static fac_status repeat(reading *r, row *to, const row *what, int low, int high) {
    int32_t rule, next = NO_RULE;
    for (int k = 0; k < low; k++) FAC_TRY(put_row(r, to, what));
    if (high < 0) {
        FAC_TRY(new_rule(r, NULL, 0, &rule));
        FAC_TRY(define_more(r, rule, what, rule));
        return put_rule(r, to, rule);
    }
    for (int k = low; k < high; k++) {
        FAC_TRY(new_rule(r, NULL, 0, &rule));
        FAC_TRY(define_more(r, rule, what, next));
        next = rule;
    }
    return next == NO_RULE ? FAC_OK : put_rule(r, to, next);
}

static fac_status number(reading *r, int *to) {
    const char *begin = r->s;
    *to = 0;
    while (*r->s >= '0' && *r->s <= '9' && *to <= MOST_TIMES) *to = 10 * *to + (*r->s++ - '0');
    return r->s > begin && *to <= MOST_TIMES ? FAC_OK : wrong(r, "a number up to 2000");
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
    if (*r->s != '}' || (*high >= 0 && *high < *low)) return wrong(r, "{m}, {m,} or {m,n}");
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
    return repeat(r, to, what, low, high);
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
            FAC_TRY(put_kind(r, rows, FAC_GRAMMAR_OR));
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
    if (++r->depth > MOST_DEPTH) return wrong(r, "less depth of groups");
    fac_status status = read_rows_into(r, &rows, in_group);
    if (!status) status = define(r, rule, &rows);
    fac_release(rows.of);
    r->depth--;
    return status;
}

static fac_status read_rule(reading *r) {
    int32_t rule;
    if (!defines(r)) return wrong(r, "NAME ::=");
    const size_t n = name_here(r->s);
    FAC_TRY(rule_named(r, r->s, n, &rule));
    if (r->names[rule].defined) return wrong(r, "a rule that is not there yet");
    r->names[rule].defined = true;
    r->s += n;
    skip(r);
    r->s += 3;
    FAC_TRY(read_rows(r, rule, false));
    return *r->s == ')' ? wrong(r, "no ')'") : FAC_OK;
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
        static const name group = { "a group", 7, true };
        const name *x = r->names[rule].s ? &r->names[rule] : &group;
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
    fac_status status = l.seen && l.empty ? FAC_OK : no_memory(r);
    for (size_t k = 0; k < n && !status; k++)
        if (r->g->rules[k] == NO_RULE)
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
