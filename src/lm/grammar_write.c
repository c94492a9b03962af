/* The rules of a grammar as they are written: rows of items, classes of characters as rows of byte
 * ranges, and repetitions as rules of their own. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "lm/grammar_text.h"

typedef fac_grammar_row row;
typedef fac_grammar_range range;
typedef fac_grammar_text reading;

enum { MOST_ITEMS = 1 << 20 };

static int line_of(const reading *r) {
    int line = 1;
    for (const char *s = r->begin; s < r->s; s++) line += *s == '\n';
    return line;
}

fac_status fac_grammar_wrong(const reading *r, const char *expected) {
    return fac_raise(r->err, FAC_E_FORMAT, "grammar, line %d: %s is expected at '%.20s'",
                     line_of(r), expected, r->s);
}

fac_status fac_grammar_no_memory(const reading *r) {
    return fac_raise(r->err, FAC_E_NOMEM, "a grammar of more than %d items, or no memory for it",
                     MOST_ITEMS);
}

static fac_status put(const reading *r, row *to, fac_grammar_item i) {
    if (to->n >= MOST_ITEMS || !fac_reserve(&to->of, &to->room, to->n + 1, sizeof i))
        return fac_grammar_no_memory(r);
    to->of[to->n++] = i;
    return FAC_OK;
}

fac_status fac_grammar_put_bytes(const reading *r, row *to, unsigned low, unsigned high) {
    return put(r, to, (fac_grammar_item){ FAC_GRAMMAR_BYTES, (uint8_t)low, (uint8_t)high, 0 });
}

fac_status fac_grammar_put_rule(const reading *r, row *to, int32_t rule) {
    return put(r, to, (fac_grammar_item){ .kind = FAC_GRAMMAR_RULE, .rule = rule });
}

fac_status fac_grammar_put_or(const reading *r, row *to) {
    return put(r, to, (fac_grammar_item){ .kind = FAC_GRAMMAR_OR });
}

/* ---- rules ---- */

fac_status fac_grammar_new_rule(reading *r, const char *s, size_t n, int32_t *to) {
    fac_grammar *g = r->g;
    if (g->nrules >= MOST_ITEMS ||
        !fac_reserve(&g->rules, &g->room_rules, g->nrules + 1, sizeof *g->rules) ||
        !fac_reserve(&r->names, &r->room, g->nrules + 1, sizeof *r->names))
        return fac_grammar_no_memory(r);
    r->names[g->nrules] = (fac_grammar_name){ s, n, false };
    g->rules[g->nrules] = FAC_GRAMMAR_NO_RULE;
    *to = (int32_t)g->nrules++;
    return FAC_OK;
}

fac_status fac_grammar_rule_named(reading *r, const char *s, size_t n, int32_t *to) {
    for (size_t k = 0; k < r->g->nrules; k++) {
        if (!r->names[k].s || r->names[k].n != n || memcmp(r->names[k].s, s, n)) continue;
        *to = (int32_t)k;
        return FAC_OK;
    }
    return fac_grammar_new_rule(r, s, n, to);
}

/* The rule is these rows, which end here. */
fac_status fac_grammar_define(reading *r, int32_t rule, row *rows) {
    fac_grammar *g = r->g;
    FAC_TRY(put(r, rows, (fac_grammar_item){ .kind = FAC_GRAMMAR_END }));
    if (g->n + rows->n > MOST_ITEMS ||
        !fac_reserve(&g->items, &g->room, g->n + rows->n, sizeof *g->items))
        return fac_grammar_no_memory(r);
    if (rows->n) memcpy(g->items + g->n, rows->of, rows->n * sizeof *rows->of);
    g->rules[rule] = (int32_t)g->n;
    g->n += rows->n;
    return FAC_OK;
}

/* ---- characters as bytes ---- */

int fac_grammar_bytes_of(uint32_t c, unsigned char to[4]) {
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
    if (to->n) FAC_TRY(fac_grammar_put_or(r, to));
    const int n = fac_grammar_bytes_of(low, a);
    fac_grammar_bytes_of(high, b);
    for (int k = 0; k < n; k++) FAC_TRY(fac_grammar_put_bytes(r, to, a[k], b[k]));
    return FAC_OK;
}

static int by_low(const void *a, const void *b) {
    const range *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* A class becomes a rule, unless one range of bytes says it. */
fac_status fac_grammar_put_class(reading *r, row *to, range *of, size_t n, bool all_but) {
    row rows = { 0 };
    int32_t rule;
    uint32_t next = 0;
    fac_status status = FAC_OK;
    if (!all_but && n == 1 && of->high < 0x80)
        return fac_grammar_put_bytes(r, to, of->low, of->high);
    if (n) qsort(of, n, sizeof *of, by_low);
    for (size_t k = 0; k < n && !status; k++) {
        if (!all_but)
            status = put_range(r, &rows, of[k].low, of[k].high);
        else if (of[k].low > next)
            status = put_range(r, &rows, next, of[k].low - 1);
        if (of[k].high + 1 > next) next = of[k].high + 1;
    }
    if (all_but && !status && next <= FAC_GRAMMAR_LAST_LETTER)
        status = put_range(r, &rows, next, FAC_GRAMMAR_LAST_LETTER);
    if (!status && !rows.n) status = fac_grammar_wrong(r, "a class of some characters");
    if (!status) status = fac_grammar_new_rule(r, NULL, 0, &rule);
    if (!status) status = fac_grammar_define(r, rule, &rows);
    fac_release(rows.of);
    return status ? status : fac_grammar_put_rule(r, to, rule);
}

/* ---- repetitions ---- */

static fac_status put_row(const reading *r, row *to, const row *from) {
    for (size_t k = 0; k < from->n; k++) FAC_TRY(put(r, to, from->of[k]));
    return FAC_OK;
}

/* rule ::= what next | (nothing); next: the rule itself, another one or FAC_GRAMMAR_NO_RULE */
static fac_status define_more(reading *r, int32_t rule, const row *what, int32_t next) {
    row rows = { 0 };
    fac_status status = put_row(r, &rows, what);
    if (!status && next != FAC_GRAMMAR_NO_RULE) status = fac_grammar_put_rule(r, &rows, next);
    if (!status) status = fac_grammar_put_or(r, &rows);
    if (!status) status = fac_grammar_define(r, rule, &rows);
    fac_release(rows.of);
    return status;
}

/* `what` from low to high times; high < 0: without end. */
fac_status fac_grammar_repeat(reading *r, row *to, const row *what, int low, int high) {
    int32_t rule, next = FAC_GRAMMAR_NO_RULE;
    for (int k = 0; k < low; k++) FAC_TRY(put_row(r, to, what));
    if (high < 0) {
        FAC_TRY(fac_grammar_new_rule(r, NULL, 0, &rule));
        FAC_TRY(define_more(r, rule, what, rule));
        return fac_grammar_put_rule(r, to, rule);
    }
    for (int k = low; k < high; k++) {
        FAC_TRY(fac_grammar_new_rule(r, NULL, 0, &rule));
        FAC_TRY(define_more(r, rule, what, next));
        next = rule;
    }
    return next == FAC_GRAMMAR_NO_RULE ? FAC_OK : fac_grammar_put_rule(r, to, next);
}
