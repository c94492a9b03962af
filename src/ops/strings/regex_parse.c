/* From the text of a regular expression to a tree. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "ops/strings/regex_internal.h"
#include "tensor/utf.h"

enum { DEEPEST = 200, TIMES = 1000, LAST = 0x10ffff };
typedef struct flags {
    bool fold, dot_all, lines;
} flags;
typedef struct parser {
    fac_arena *arena;
    const char *whole;
    const unsigned char *p;
    flags f;
    int depth;
    fac_error *err;
    fac_status status;
} parser;

static fac_re *fail(parser *s, fac_status status, const char *what) {
    if (!s->status)
        s->status = fac_raise(s->err, status, "pattern \"%s\", at %d: %s", s->whole,
                              (int)((const char *)s->p - s->whole), what);
    return NULL;
}
static fac_re *no_memory(parser *s) { return fail(s, FAC_E_NOMEM, "no memory"); }

static fac_re *made(parser *s, fac_re r) {
    fac_re *to = fac_arena_alloc(s->arena, 1, sizeof *to);
    if (!to) return no_memory(s);
    *to = r;
    return to;
}

static fac_set *new_set(parser *s) {
    fac_set *set = fac_arena_alloc(s->arena, 1, sizeof *set);
    if (!set)
        no_memory(s);
    else
        set->fold = s->f.fold;
    return set;
}

static fac_re *of_set(parser *s, fac_set *set) {
    return set ? made(s, (fac_re){ .kind = FAC_RE_SET, .set = set }) : NULL;
}

static fac_re *character(parser *s, uint32_t c) {
    fac_set *set = new_set(s);
    if (set && !fac_set_add(s->arena, set, c, c)) return no_memory(s);
    return of_set(s, set);
}

static fac_re *assertion(parser *s, fac_assertion at) {
    return made(s, (fac_re){ .kind = FAC_RE_ASSERT, .at = at });
}

static bool takes(parser *s, const char *word) {
    const size_t n = strlen(word);
    if (strncmp((const char *)s->p, word, n)) return false;
    s->p += n;
    return true;
}

/* ---- escapes ---- */

static int hex_of(unsigned char c) {
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

static bool hex_number(parser *s, uint32_t *c) {
    const bool braces = takes(s, "{");
    int digits = 0;
    for (*c = 0; hex_of(*s->p) >= 0 && (braces || digits < 2) && *c <= LAST; digits++)
        *c = *c * 16 + (uint32_t)hex_of(*s->p++);
    if (*c <= LAST && (braces ? digits > 0 && takes(s, "}") : digits == 2)) return true;
    fail(s, FAC_E_FORMAT, "no character in hexadecimal digits");
    return false;
}

/* The character of an escape whose letter is at p. */
static bool escaped(parser *s, uint32_t *c) {
    static const char letters[] = "afnrtv", means[] = "\a\f\n\r\t\v";
    const unsigned char e = *s->p;
    const char *known = e ? strchr(letters, e) : NULL;
    if (e >= '0' && e <= '7') {
        for (*c = 0; *s->p >= '0' && *s->p <= '7' && *c < 64; s->p++)
            *c = *c * 8 + (uint32_t)(*s->p - '0');
        return true;
    }
    if (takes(s, "x")) return hex_number(s, c);
    if (known)
        *c = (unsigned char)means[known - letters];
    else if (e && e < 0x80 && !((e | 0x20) >= 'a' && (e | 0x20) <= 'z') && !(e >= '0' && e <= '9'))
        *c = e;
    else
        return fail(s, FAC_E_FORMAT, "an escape that is none"), false;
    s->p++;
    return true;
}

/* \pL, \p{^N}: p stands after the p or P. */
static bool add_category(parser *s, fac_set *set, bool others) {
    static const char letters[] = "LMN";
    const bool braces = takes(s, "{");
    if (braces && takes(s, "^")) others = !others;
    const char *kind = *s->p ? strchr(letters, *s->p) : NULL;
    if (kind) s->p++;
    if (!kind || (braces && !takes(s, "}")))
        return fail(s, FAC_E_UNSUPPORTED, "of Unicode's categories only L, M and N are supported"),
               false;
    if (others)
        set->not_kinds |= 1u << (kind - letters);
    else
        set->kinds |= 1u << (kind - letters);
    return true;
}

/* A class that stands after a backslash; false: it is none, and p is where it was. */
static bool add_escaped_class(parser *s, fac_set *set) {
    const char c = (char)*s->p;
    if (c && strchr("dswDSW", c)) {
        s->p++;
        if (!fac_set_add_class(s->arena, set, c)) no_memory(s);
        return true;
    }
    if (c != 'p' && c != 'P') return false;
    s->p++;
    add_category(s, set, c == 'P');
    return true;
}

static fac_re *with_repetitions(parser *s, fac_re *r);

/* Of what is repeated after the end only the last character is. */
static fac_re *quoted(parser *s) {
    fac_re *all = made(s, (fac_re){ .kind = FAC_RE_EMPTY });
    for (bool end = takes(s, "\\E"); all && *s->p && !end;) {
        fac_re *next = character(s, fac_utf8_next(&s->p));
        end = takes(s, "\\E");
        if (next && end) next = with_repetitions(s, next);
        all = next ? made(s, (fac_re){ .kind = FAC_RE_CAT, .a = all, .b = next }) : NULL;
    }
    return all;
}

static fac_re *escape(parser *s) {
    fac_set *set = new_set(s);
    uint32_t c;
    if (!set) return NULL;
    if (takes(s, "A")) return assertion(s, FAC_AT_BEGIN);
    if (takes(s, "z")) return assertion(s, FAC_AT_END);
    if (takes(s, "b")) return assertion(s, FAC_AT_WORD);
    if (takes(s, "B")) return assertion(s, FAC_AT_NO_WORD);
    if (takes(s, "Q")) return quoted(s);
    if (add_escaped_class(s, set)) return s->status ? NULL : of_set(s, set);
    return escaped(s, &c) ? character(s, c) : NULL;
}

/* ---- [...] ---- */

static bool bound(parser *s, uint32_t *c) {
    if (takes(s, "\\")) return escaped(s, c);
    *c = fac_utf8_next(&s->p);
    return true;
}

static bool add_item(parser *s, fac_set *set) {
    const char *at = (const char *)s->p, *end = strncmp(at, "[:", 2) ? NULL : strstr(at, ":]");
    uint32_t first, last;
    if (end && fac_set_add_named(s->arena, set, at + 2, (size_t)(end - at) - 2)) {
        s->p = (const unsigned char *)end + 2;
        return true;
    }
    if (end) return fail(s, FAC_E_FORMAT, "a class of characters that is none"), false;
    if (*s->p == '\\') {
        s->p++;
        if (add_escaped_class(s, set)) return !s->status;
        s->p--;
    }
    if (!bound(s, &first)) return false;
    last = first;
    if (*s->p == '-' && s->p[1] && s->p[1] != ']') {
        s->p++;
        if (!bound(s, &last)) return false;
    }
    if (last < first) return fail(s, FAC_E_FORMAT, "a range that ends before it begins"), false;
    return fac_set_add(s->arena, set, first, last) || (no_memory(s), false);
}

static fac_re *brackets(parser *s) {
    fac_set *set = new_set(s);
    if (!set) return NULL;
    set->others = takes(s, "^");
    do {
        if (!*s->p) return fail(s, FAC_E_FORMAT, "a ] is missing");
        if (!add_item(s, set)) return NULL;
    } while (*s->p != ']');
    s->p++;
    return of_set(s, set);
}

/* ---- (...) ---- */

static fac_re *alternatives(parser *s);

/* i, m, s, U and - up to : or ); false after an error. */
static bool read_flags(parser *s) {
    bool on = true;
    for (; *s->p && *s->p != ':' && *s->p != ')'; s->p++) {
        if (*s->p == '-' && on)
            on = false;
        else if (*s->p == 'i')
            s->f.fold = on;
        else if (*s->p == 'm')
            s->f.lines = on;
        else if (*s->p == 's')
            s->f.dot_all = on;
        else if (*s->p != 'U')
            return fail(s, FAC_E_FORMAT, "a group of a kind that is not known"), false;
    }
    return true;
}

static fac_re *group(parser *s) {
    const flags before = s->f;
    if (takes(s, "?P<") || (takes(s, "?<") && *s->p != '=' && *s->p != '!')) {
        const char *end = strchr((const char *)s->p, '>');
        if (!end) return fail(s, FAC_E_FORMAT, "a name without end");
        s->p = (const unsigned char *)end + 1;
    } else if (takes(s, "?")) {
        if (!read_flags(s)) return NULL;
        if (takes(s, ")"))
            return made(
                s, (fac_re){ .kind = FAC_RE_EMPTY }); /* they last to the end of what is around */
        if (!takes(s, ":")) return fail(s, FAC_E_FORMAT, "a ) is missing");
    }
    if (++s->depth > DEEPEST)
        return fail(s, FAC_E_UNSUPPORTED, "too many groups within each other");
    fac_re *inner = alternatives(s);
    s->depth--;
    s->f = before;
    if (inner && !takes(s, ")")) return fail(s, FAC_E_FORMAT, "a ) is missing");
    return inner;
}

/* ---- sequences ---- */

static fac_re *dot(parser *s) {
    fac_set *set = new_set(s);
    if (set && !s->f.dot_all && !fac_set_add(s->arena, set, '\n', '\n')) return no_memory(s);
    if (set) set->others = true;
    return of_set(s, set);
}

static fac_re *atom(parser *s) {
    if (takes(s, "(")) return group(s);
    if (takes(s, "[")) return brackets(s);
    if (takes(s, "\\")) return escape(s);
    if (takes(s, ".")) return dot(s);
    if (takes(s, "^")) return assertion(s, s->f.lines ? FAC_AT_LINE : FAC_AT_BEGIN);
    if (takes(s, "$")) return assertion(s, s->f.lines ? FAC_AT_LINE_END : FAC_AT_END);
    if (strchr("*+?", *s->p)) return fail(s, FAC_E_FORMAT, "nothing is there to repeat");
    return character(s, fac_utf8_next(&s->p));
}

static bool number(parser *s, int *x) {
    const unsigned char *from = s->p;
    for (*x = 0; *s->p >= '0' && *s->p <= '9' && *x <= TIMES; s->p++) *x = *x * 10 + (*s->p - '0');
    return s->p > from;
}

/* {n}, {n,} or {n,m}; otherwise the brace is a character, and p stays. */
static bool counts(parser *s, int *least, int *most) {
    const unsigned char *from = s->p++;
    bool is = number(s, least);
    *most = *least;
    if (is && takes(s, ",") && !number(s, most)) *most = -1;
    if (is && takes(s, "}")) return true;
    s->p = from;
    return false;
}

/* What repeats the thing before p; false: nothing does. */
static bool repetition(parser *s, int *least, int *most) {
    *least = *s->p == '+';
    *most = *s->p == '?' ? 1 : -1;
    if (*s->p && strchr("*+?", *s->p))
        s->p++;
    else if (*s->p != '{' || !counts(s, least, most))
        return false;
    takes(s, "?");
    return true;
}

static fac_re *with_repetitions(parser *s, fac_re *r) {
    int least, most;
    while (r && repetition(s, &least, &most)) {
        if (least > TIMES || most > TIMES || (most >= 0 && most < least))
            return fail(s, FAC_E_FORMAT, "no such number of repetitions");
        r = made(s, (fac_re){ .kind = FAC_RE_REPEAT, .a = r, .least = least, .most = most });
    }
    return r;
}

static fac_re *repeated(parser *s) { return with_repetitions(s, atom(s)); }

static fac_re *sequence(parser *s) {
    fac_re *all = made(s, (fac_re){ .kind = FAC_RE_EMPTY });
    while (all && *s->p && *s->p != '|' && *s->p != ')') {
        fac_re *next = repeated(s);
        all = next ? made(s, (fac_re){ .kind = FAC_RE_CAT, .a = all, .b = next }) : NULL;
    }
    return all;
}

static fac_re *alternatives(parser *s) {
    fac_re *all = sequence(s);
    while (all && takes(s, "|")) {
        fac_re *next = sequence(s);
        all = next ? made(s, (fac_re){ .kind = FAC_RE_ALT, .a = all, .b = next }) : NULL;
    }
    return all;
}

fac_status fac_re_parse(fac_arena *arena, const char *pattern, fac_re **out, fac_error *err) {
    parser s = {
        .arena = arena, .whole = pattern, .p = (const unsigned char *)pattern, .err = err
    };
    *out = alternatives(&s);
    if (*out && *s.p) fail(&s, FAC_E_FORMAT, "a ) too many");
    return s.status;
}
