/* Tokens of rules. */
#include "edit/cursor.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "graph/lexer.h"
#include "graph/number.h"

static bool begins_name(char c) { return fac_is_letter(c) || c == '/'; }
static bool in_name(char c) { return begins_name(c) || fac_is_digit(c) || c == '.' || c == ':'; }

fac_place fac_cursor_place(fac_cursor *c) {
    fac_cursor_space(c);
    return (fac_place){ c->line, (int)(c->s - c->bol) + 1 };
}

static fac_status fail_list(fac_cursor *c, fac_place at, const char *format, va_list args) {
    char what[400];
    vsnprintf(what, sizeof what, format, args);
    return fac_raise(c->err, FAC_E_FORMAT, "%s:%d:%d: %s", c->file, at.line, at.column, what);
}

fac_status fac_cursor_fail_at(fac_cursor *c, fac_place at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const fac_status s = fail_list(c, at, format, args);
    va_end(args);
    return s;
}

fac_status fac_cursor_fail(fac_cursor *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const fac_status s = fail_list(c, fac_cursor_place(c), format, args);
    va_end(args);
    return s;
}

void fac_cursor_space(fac_cursor *c) { c->s = fac_skip_blanks(c->s, c->end); }

bool fac_cursor_ahead(fac_cursor *c, char x) {
    fac_cursor_space(c);
    return c->s < c->end && *c->s == x;
}

bool fac_cursor_is(fac_cursor *c, char x) {
    if (!fac_cursor_ahead(c, x)) return false;
    c->s++;
    return true;
}

fac_status fac_cursor_need(fac_cursor *c, char x) {
    return fac_cursor_is(c, x) ? FAC_OK : fac_cursor_fail(c, "'%c' is missing", x);
}

bool fac_cursor_line_end(fac_cursor *c) {
    fac_cursor_space(c);
    return c->s == c->end || *c->s == '\n' || *c->s == ';';
}

void fac_cursor_next_line(fac_cursor *c) {
    while (fac_cursor_line_end(c) && c->s < c->end)
        if (*c->s++ == '\n') {
            c->line++;
            c->bol = c->s;
        }
}

fac_status fac_cursor_name(fac_cursor *c, const char **out) {
    fac_cursor_space(c);
    *out = NULL;
    if (c->s == c->end) return FAC_OK;
    const char *from = c->s, *to;
    if (*from == '"') {
        to = ++from;
        while (to < c->end && *to != '"' && *to != '\n') to++;
        if (to == c->end || *to != '"') return fac_cursor_fail(c, "the closing quote is missing");
    } else {
        to = from + (*from == '%' && c->end - from > 1 && fac_is_digit(from[1]));
        if (to == from && !begins_name(*from)) return FAC_OK;
        while (to < c->end && in_name(*to)) to++;
    }
    char *copy = fac_arena_alloc(c->arena, (size_t)(to - from) + 1, 1);
    if (!copy) return fac_raise(c->err, FAC_E_NOMEM, "%s: no memory for a name", c->file);
    memcpy(copy, from, (size_t)(to - from));
    c->s = to + (from > c->s);
    *out = copy;
    return FAC_OK;
}

bool fac_cursor_number(fac_cursor *c, double *out) {
    fac_cursor_space(c);
    if (c->s == c->end || !(fac_is_digit(*c->s) || *c->s == '-' || *c->s == '.')) return false;
    return fac_real_parse(&c->s, c->end, out);
}

bool fac_cursor_keyword(fac_cursor *c, const char *word) {
    const size_t n = strlen(word);
    fac_cursor_space(c);
    if ((size_t)(c->end - c->s) < n || memcmp(c->s, word, n)) return false;
    if ((size_t)(c->end - c->s) > n && in_name(c->s[n])) return false;
    c->s += n;
    return true;
}
