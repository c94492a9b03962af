/* Templates as pieces, and tags as words, numbers, texts and marks. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/jinja/jinja.h"
#include "text/normal.h"

typedef fac_jinja_reading reading;

void fac_jinja_wrong(reading *r, const char *what) {
    if (r->status) return;
    r->sign = FAC_JINJA_OVER;
    r->status = fac_raise(r->err, FAC_E_FORMAT, "the chat template, line %d: %s", r->line, what);
}

static bool is_space(char c) { return c == ' ' || (c >= 9 && c <= 13); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 128;
}

/* Moves on, counting lines. */
static void go(reading *r, size_t n) {
    for (; n && r->at < r->n; n--) r->line += r->s[r->at++] == '\n';
}

static void go_spaces(reading *r) {
    while (is_space(r->s[r->at])) go(r, 1);
}

/* After the end of a tag: -%} takes all spaces, %} one line end. */
static void after_tag(reading *r, char control, bool block) {
    if (control == '-')
        go_spaces(r);
    else if (control != '+' && block && r->s[r->at] == '\n')
        go(r, 1);
}

/* ---- texts between tags ---- */

static size_t find_tag(const reading *r) {
    size_t k = r->at;
    while (k < r->n && !(r->s[k] == '{' && r->s[k + 1] && strchr("{%#", r->s[k + 1]))) k++;
    return k;
}

/* Where the text from `from` to a tag at `to` ends: spaces between the line's begin and a block do
 * not count, and none at all before {%-. */
static size_t text_end(const reading *r, size_t from, size_t to) {
    const char kind = r->s[to] ? r->s[to + 1] : 0;
    const char control = kind ? r->s[to + 2] : 0;
    size_t end = to;
    if (!kind || control == '+') return to;
    if (control == '-') {
        while (end > from && is_space(r->s[end - 1])) end--;
        return end;
    }
    if (kind == '{') return to;
    while (end > from && is_space(r->s[end - 1]) && r->s[end - 1] != '\n') end--;
    const bool begins = end ? r->s[end - 1] == '\n' : true;
    return begins ? end : to;
}

static bool skip_comment(reading *r) {
    const char *end = strstr(r->s + r->at + 2, "#}");
    if (!end) {
        fac_jinja_wrong(r, "a comment without #}");
        return false;
    }
    const char control = end > r->s + r->at + 2 ? end[-1] : 0;
    go(r, (size_t)(end + 2 - r->s) - r->at);
    after_tag(r, control, true);
    return true;
}

enum fac_jinja_piece fac_jinja_next_piece(reading *r, fac_jinja_text *text) {
    *text = (fac_jinja_text){ r->s, NULL, 0 };
    while (!r->status && r->at < r->n) {
        const size_t tag = find_tag(r), from = r->at;
        const size_t end = text_end(r, from, tag);
        go(r, tag - from);
        if (end > from) {
            *text = (fac_jinja_text){ r->s + from, NULL, end - from };
            return FAC_JINJA_PIECE_TEXT;
        }
        if (tag == r->n) break;
        if (r->s[tag + 1] == '#') {
            if (!skip_comment(r)) break;
            continue;
        }
        r->block = r->s[tag + 1] == '%';
        go(r, 2);
        if (r->s[r->at] == '-' || (r->block && r->s[r->at] == '+')) go(r, 1);
        r->open = 0;
        fac_jinja_next(r);
        return r->block ? FAC_JINJA_PIECE_BLOCK : FAC_JINJA_PIECE_VALUE;
    }
    r->sign = FAC_JINJA_OVER;
    return FAC_JINJA_PIECE_TEXT;
}

fac_jinja_text fac_jinja_raw(reading *r) {
    const size_t from = r->at;
    for (;; go(r, 1)) {
        const char *tag = strstr(r->s + r->at, "{%");
        if (!tag) break;
        go(r, (size_t)(tag - r->s) - r->at);
        const char *s = tag + 2 + (tag[2] == '-' || tag[2] == '+');
        while (is_space(*s)) s++;
        if (strncmp(s, "endraw", 6)) continue;
        for (s += 6; is_space(*s);) s++;
        const char control = *s;
        s += control == '-' || control == '+';
        if (strncmp(s, "%}", 2)) continue;
        const size_t at = r->at, end = text_end(r, from, at);
        go(r, (size_t)(s + 2 - r->s) - at);
        after_tag(r, control, true);
        return (fac_jinja_text){ r->s + from, NULL, end - from };
    }
    fac_jinja_wrong(r, "raw without endraw");
    return (fac_jinja_text){ r->s, NULL, 0 };
}

/* ---- signs within tags ---- */

bool fac_jinja_is(const reading *r, fac_jinja_sign sign, const char *word) {
    return r->sign == sign && !strcmp(r->word, word);
}

static const char *copy(reading *r, const char *s, size_t n) {
    char *to = fac_arena_alloc(r->arena, n + 1, 1);
    if (to) memcpy(to, s, n);
    if (!to && !r->status) r->status = fac_raise_memory(r->err, "a chat template");
    return to ? to : "";
}

static bool closes(reading *r) {
    static const char end[2][3] = { "}}", "%}" };
    const char *s = r->s + r->at, control = *s;
    const bool one = control == '-' || (r->block && control == '+');
    if (r->open || strncmp(s + one, end[r->block], 2)) return false;
    go(r, 2 + (size_t)one);
    after_tag(r, one ? control : 0, r->block);
    r->sign = FAC_JINJA_CLOSE;
    return true;
}

/* \xNN, \uNNNN, \UNNNNNNNN as the character of that number. */
static size_t coded(const char *s, size_t digits, char *to) {
    char text[9] = { 0 }, *end;
    strncpy(text, s, digits);
    const uint32_t c = (uint32_t)strtoul(text, &end, 16);
    if (end != text + digits || strchr("+- ", *text)) return 0;
    return c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : fac_utf8_write(to, c);
}

/* What a backslash and the letters after it stand for, as in Python; bytes that were read, 0: none
 * that is known. */
static size_t escape(const char *s, char *to, size_t *wrote) {
    static const char from[] = "ntr\\'\"abfv0\n", is[] = "\n\t\r\\'\"\a\b\f\v\0";
    const char *at = *s ? strchr(from, *s) : NULL;
    size_t digits = *s == 'x' ? 2 : 4;
    if (*s == 'U') digits = 8;
    if (*s == 'x' || *s == 'u' || *s == 'U') {
        *wrote = coded(s + 1, digits, to);
        return *wrote ? 1 + digits : 0;
    }
    if (at && *s != '\n') *to = is[at - from];
    *wrote = at ? *s != '\n' : 2;
    if (at) return 1;
    to[0] = '\\';
    to[1] = *s;
    return *s ? 1 : 0;
}

static void quoted(reading *r) {
    const char quote = r->s[r->at];
    size_t end = r->at + 1, n = 0;
    while (end < r->n && r->s[end] != quote) end += r->s[end] == '\\' ? 2 : 1;
    if (end >= r->n) {
        fac_jinja_wrong(r, "a text without its last quote");
        return;
    }
    char *to = fac_arena_alloc(r->arena, 2 * (end - r->at) + 8, 1);
    for (size_t k = r->at + 1; to && k < end;) {
        size_t wrote = 1;
        if (r->s[k] != '\\') {
            to[n++] = r->s[k++];
            continue;
        }
        const size_t used = escape(r->s + k + 1, to + n, &wrote);
        if (!used) {
            fac_jinja_wrong(r, "a backslash that says no character");
            return;
        }
        k += 1 + used;
        n += wrote;
    }
    if (!to && !r->status) r->status = fac_raise_memory(r->err, "a chat template");
    go(r, end + 1 - r->at);
    r->sign = FAC_JINJA_QUOTED;
    r->value = (fac_jinja_value){ .kind = FAC_JINJA_TEXT, .text = { to ? to : "", NULL, n } };
}

static void number(reading *r) {
    char text[64];
    size_t n = 0, k = r->at;
    bool real = false;
    for (; n < sizeof text - 1; k++) {
        const char c = r->s[k];
        const bool point = c == '.' && !real && is_digit(r->s[k + 1]);
        const bool power = (c == 'e' || c == 'E') && n &&
                           (is_digit(r->s[k + 1]) ||
                            (r->s[k + 1] && strchr("+-", r->s[k + 1]) && is_digit(r->s[k + 2])));
        if (!is_digit(c) && c != '_' && !point && !power) break;
        real |= point || power;
        if (c != '_') text[n++] = c;
        if (power && !is_digit(r->s[k + 1])) text[n++] = r->s[++k];
    }
    text[n] = 0;
    r->sign = FAC_JINJA_NUMBER;
    go(r, k - r->at);
    if (real)
        r->value = (fac_jinja_value){ .kind = FAC_JINJA_FLOAT, .f = strtod(text, NULL) };
    else
        r->value = (fac_jinja_value){ .kind = FAC_JINJA_INT, .i = strtoll(text, NULL, 10) };
    if (n == sizeof text - 1 || (!real && r->value.i == INT64_MAX))
        fac_jinja_wrong(r, "a number that is too large");
}

static void mark(reading *r) {
    static const char *const two[] = { "==", "!=", "<=", ">=", "//", "**" };
    const char *s = r->s + r->at;
    size_t n = 1;
    for (size_t k = 0; k < sizeof two / sizeof *two; k++)
        if (!strncmp(s, two[k], 2)) n = 2;
    if (n == 1 && !strchr("+-*/%~()[]{},.:|<>=", *s)) {
        fac_jinja_wrong(r, "a character that has no place here");
        return;
    }
    if (strchr("([{", *s)) r->open++;
    if (strchr(")]}", *s) && r->open) r->open--;
    r->sign = FAC_JINJA_MARK;
    r->word = copy(r, s, n);
    go(r, n);
}

void fac_jinja_next(reading *r) {
    r->sign = FAC_JINJA_OVER;
    if (r->status) return;
    go_spaces(r);
    const char *s = r->s + r->at;
    if (!*s) {
        fac_jinja_wrong(r, r->block ? "a tag without %}" : "a value without }}");
    } else if (closes(r)) {
        return;
    } else if (is_letter(*s)) {
        size_t n = 1;
        while (is_letter(s[n]) || is_digit(s[n])) n++;
        r->sign = FAC_JINJA_WORD;
        r->word = copy(r, s, n);
        go(r, n);
    } else if (is_digit(*s)) {
        number(r);
    } else if (*s == '"' || *s == '\'') {
        quoted(r);
    } else {
        mark(r);
    }
}
