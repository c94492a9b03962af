/* Tokens of graph text. */
#include "graph/lexer.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "facula/text.h"

static bool in_word(char c) { return fac_is_letter(c) || fac_is_digit(c); }
static bool begins_name(char c) { return fac_is_letter(c) || c == '/'; } /* and no number */
static bool in_name(char c) { return in_word(c) || c == '.' || c == '/'; }

fac_status fac_lex_fail(fac_lexer *l, const char *format, ...) {
    char what[400], place[40] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (l->line) snprintf(place, sizeof place, "line %d: ", l->line);
    fac_lex_space(l);
    int rest = 0;
    while (l->s + rest < l->end && rest < 24 && l->s[rest] != '\n') rest++;
    if (rest) return fac_raise(l->err, FAC_E_FORMAT, "%s%s, at '%.*s'", place, what, rest, l->s);
    return fac_raise(l->err, FAC_E_FORMAT, "%s%s, at the end", place, what);
}

const char *fac_skip_blanks(const char *s, const char *end) {
    while (s < end && (*s == ' ' || *s == '\t' || *s == '\r')) s++;
    if (s < end && *s == '#')
        while (s < end && *s != '\n') s++;
    return s;
}

void fac_lex_space(fac_lexer *l) { l->s = fac_skip_blanks(l->s, l->end); }

bool fac_lex_is(fac_lexer *l, char c) {
    fac_lex_space(l);
    if (l->s == l->end || *l->s != c) return false;
    l->s++;
    return true;
}

fac_status fac_lex_need(fac_lexer *l, char c) {
    return fac_lex_is(l, c) ? FAC_OK : fac_lex_fail(l, "'%c' is missing", c);
}

fac_status fac_lex_end(fac_lexer *l) {
    fac_lex_space(l);
    return l->s == l->end ? FAC_OK : fac_lex_fail(l, "this was not expected");
}

bool fac_lex_letter(fac_lexer *l) {
    fac_lex_space(l);
    return l->s < l->end && fac_is_letter(*l->s);
}

fac_status fac_lex_word(fac_lexer *l, const char *what, char *to, size_t size) {
    fac_lex_space(l);
    size_t n = 0;
    while (l->s + n < l->end && in_word(l->s[n])) n++;
    if (!n || n >= size)
        return fac_lex_fail(l, n ? "%s: the word is too long" : "%s is missing", what);
    memcpy(to, l->s, n);
    to[n] = 0;
    l->s += n;
    return FAC_OK;
}

static int hex(char c) {
    return fac_is_digit(c)        ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* After the opening quote. */
static fac_status quoted(fac_lexer *l, const char *what, fac_arena *arena, const char **out) {
    const char *close = l->s;
    while (close < l->end && *close != '"' && *close != '\n')
        close += *close == '\\' && l->end - close > 1 ? 2 : 1;
    if (close >= l->end || *close != '"')
        return fac_lex_fail(l, "%s: the closing quote is missing", what);
    char *to = fac_arena_alloc(arena, (size_t)(close - l->s) + 1, 1), *at = to;
    if (!to) return fac_raise(l->err, FAC_E_NOMEM, "%s: no memory for a name", what);
    for (const char *p = l->s; p < close; p++) {
        if (*p != '\\') {
            if (!*p) return fac_lex_fail(l, "%s: a zero byte", what);
            *at++ = *p;
        } else if (p[1] == 'n') {
            *at++ = '\n';
            p++;
        } else if (p[1] == '"' || p[1] == '\\') {
            *at++ = *++p;
        } else if (p[1] == 'x' && close - p > 3 && hex(p[2]) >= 0 && hex(p[3]) >= 0 &&
                   (p[2] != '0' || p[3] != '0')) {
            *at++ = (char)(hex(p[2]) << 4 | hex(p[3]));
            p += 3;
        } else {
            l->s = p;
            return fac_lex_fail(
                l, "%s: only \\\\, \\\", \\n and \\x01 to \\xff may follow a backslash", what);
        }
    }
    l->s = close + 1;
    *out = to;
    return FAC_OK;
}

fac_status fac_lex_name(fac_lexer *l, const char *what, fac_arena *arena, const char **out) {
    fac_lex_space(l);
    if (fac_lex_is(l, '"')) return quoted(l, what, arena, out);
    size_t n = 0;
    while (l->s + n < l->end && in_name(l->s[n])) n++;
    if (!n || !begins_name(*l->s)) return fac_lex_fail(l, "%s is missing", what);
    char *to = fac_arena_alloc(arena, n + 1, 1);
    if (!to) return fac_raise(l->err, FAC_E_NOMEM, "%s: no memory for a name", what);
    memcpy(to, l->s, n);
    l->s += n;
    *out = to;
    return FAC_OK;
}

bool fac_name_plain(const char *s) {
    if (!begins_name(*s)) return false;
    while (in_name(*s)) s++;
    return !*s;
}

void fac_quote(const char *s, fac_text *to) {
    fac_text_add(to, "\"");
    while (*s) {
        uint32_t c;
        const size_t n = fac_utf8(s, &c);
        const bool bytes = fac_steers(c) || (n == 1 && c == FAC_NO_LETTER);
        if (c == '\n')
            fac_text_add(to, "\\n");
        else if (c == '"' || c == '\\')
            fac_text_print(to, "\\%c", *s);
        else if (!bytes)
            fac_text_add_bytes(to, s, n);
        for (size_t k = 0; bytes && c != '\n' && k < n; k++)
            fac_text_print(to, "\\x%02x", (unsigned)(unsigned char)s[k]);
        s += n;
    }
    fac_text_add(to, "\"");
}

void fac_name_print(const char *s, fac_text *to) {
    if (fac_name_plain(s))
        fac_text_add(to, s);
    else
        fac_quote(s, to);
}
