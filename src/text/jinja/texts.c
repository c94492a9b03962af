/* Methods of texts, and the filters that do the same. */
#include <string.h>
#include "data/text/text_internal.h"
#include "text/jinja/jinja.h"
#include "text/normal.h"
#include "text/tokenizer.h"

typedef fac_jinja_run run;
typedef fac_jinja_value value;
typedef fac_jinja_arguments arguments;

/* What Python takes for a space. */
static bool is_blank(uint32_t c) {
    return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

/* Is the character of n bytes at s to be stripped: one of these, or a space. */
static bool stripped(const char *s, size_t n, const fac_jinja_text *these) {
    size_t used;
    if (!these) return is_blank(fac_code_point(s, n, &used));
    for (size_t at = 0; at < these->n; at += used) {
        fac_code_point(these->s + at, these->n - at, &used);
        if (used == n && !memcmp(these->s + at, s, n)) return true;
    }
    return false;
}

static value strip(run *r, value v, const arguments *a, bool left, bool right) {
    const value *given = fac_jinja_argument(a, 0, "chars");
    const fac_jinja_text t = fac_jinja_as_text(r, v);
    const fac_jinja_text *these = given && given->kind == FAC_JINJA_TEXT ? &given->text : NULL;
    size_t from = 0, to = t.n, used;
    while (left && from < to) {
        fac_code_point(t.s + from, to - from, &used);
        if (!stripped(t.s + from, used, these)) break;
        from += used;
    }
    while (right && to > from) {
        for (used = 1; used < to - from && (t.s[to - used] & 0xc0) == 0x80;) used++;
        if (!stripped(t.s + to - used, used, these)) break;
        to -= used;
    }
    fac_jinja_read(r, (from + t.n - to) * (1 + (these ? these->n : 0)));
    return fac_jinja_part(t, from, to);
}

static value trim(run *r, value v, const arguments *a) { return strip(r, v, a, true, true); }
static value lstrip(run *r, value v, const arguments *a) { return strip(r, v, a, true, false); }
static value rstrip(run *r, value v, const arguments *a) { return strip(r, v, a, false, true); }

/* ---- letters ---- */

typedef enum letters { LOWER, UPPER, TITLE, CAPITAL } letters;

static value cased(run *r, value v, letters how) {
    const fac_jinja_text t = fac_jinja_as_text(r, v);
    fac_jinja_out o = { 0 };
    bool within = false;
    for (size_t k = 0, used; k < t.n && !r->status; k += used) {
        const uint32_t c = fac_code_point(t.s + k, t.n - k, &used);
        const bool small = c >= 'a' && c <= 'z', large = c >= 'A' && c <= 'Z';
        const bool raises = how == UPPER || (how != LOWER && !within);
        char to[4], from[4] = { 0 };
        const size_t n = fac_utf8_write(to, raises ? fac_unicode_upper(c) : fac_unicode_lower(c));
        if (t.from) memset(from, t.from[k], sizeof from);
        within = how == CAPITAL || small || large || c >= 128;
        fac_jinja_write(r, &o, to, from, n);
    }
    return fac_jinja_written(&o);
}

static value lower(run *r, value v, const arguments *a) {
    (void)a;
    return cased(r, v, LOWER);
}
static value upper(run *r, value v, const arguments *a) {
    (void)a;
    return cased(r, v, UPPER);
}
static value title(run *r, value v, const arguments *a) {
    (void)a;
    return cased(r, v, TITLE);
}
static value capitalize(run *r, value v, const arguments *a) {
    (void)a;
    return cased(r, v, CAPITAL);
}

/* ---- finding ---- */

/* The text that an argument must be. */
static fac_jinja_text wanted(run *r, const arguments *a, int place, const char *name) {
    const value *v = fac_jinja_argument(a, place, name);
    if (v && v->kind == FAC_JINJA_TEXT) return v->text;
    fac_jinja_fail(r, FAC_E_ARGUMENT, "a text was expected, not %s",
                   v ? fac_jinja_kind_name(*v) : "nothing");
    return (fac_jinja_text){ "", NULL, 0 };
}

/* Where `what` begins at or after from; t.n + 1: nowhere. */
static size_t find_text(run *r, fac_jinja_text t, fac_jinja_text what, size_t from) {
    if (from > t.n || what.n > t.n - from) return t.n + 1;
    if (!what.n) return from;
    const char *at = memmem(t.s + from, t.n - from, what.s, what.n);
    const size_t found = at ? (size_t)(at - t.s) : t.n;
    return fac_jinja_read(r, found - from) && at ? found : t.n + 1;
}

static bool stands(run *r, fac_jinja_text t, fac_jinja_text what, bool end) {
    return what.n <= t.n && fac_jinja_read(r, what.n) &&
           !memcmp(end ? t.s + t.n - what.n : t.s, what.s, what.n);
}

/* A text, or one of several. */
static value borders(run *r, value v, const arguments *a, bool end) {
    const fac_jinja_text t = fac_jinja_as_text(r, v);
    const value *one = fac_jinja_argument(a, 0, "prefix");
    if (!one || one->kind != FAC_JINJA_TUPLE)
        return fac_jinja_bool(stands(r, t, wanted(r, a, 0, "prefix"), end));
    bool any = false;
    for (size_t k = 0; k < one->list->n; k++)
        any |= one->list->at[k].kind == FAC_JINJA_TEXT && stands(r, t, one->list->at[k].text, end);
    return fac_jinja_bool(any);
}

static value starts(run *r, value v, const arguments *a) { return borders(r, v, a, false); }
static value ends(run *r, value v, const arguments *a) { return borders(r, v, a, true); }

static value cut_off(run *r, value v, const arguments *a, bool end) {
    const fac_jinja_text t = fac_jinja_as_text(r, v), what = wanted(r, a, 0, "prefix");
    if (!stands(r, t, what, end)) return v;
    return end ? fac_jinja_part(t, 0, t.n - what.n) : fac_jinja_part(t, what.n, t.n);
}
static value without_prefix(run *r, value v, const arguments *a) { return cut_off(r, v, a, false); }
static value without_suffix(run *r, value v, const arguments *a) { return cut_off(r, v, a, true); }

static value find(run *r, value v, const arguments *a) {
    const fac_jinja_text t = fac_jinja_as_text(r, v);
    const size_t at = find_text(r, t, wanted(r, a, 0, "sub"), 0);
    if (at > t.n) return fac_jinja_int(-1);
    return fac_jinja_int((int64_t)fac_jinja_length(r, fac_jinja_part(t, 0, at)));
}

static value count(run *r, value v, const arguments *a) {
    const fac_jinja_text t = fac_jinja_as_text(r, v), what = wanted(r, a, 0, "sub");
    int64_t n = 0;
    for (size_t at = 0; (at = find_text(r, t, what, at)) <= t.n && fac_jinja_step(r); n++)
        at += what.n + !what.n;
    return fac_jinja_int(n);
}

static value replace(run *r, value v, const arguments *a) {
    const fac_jinja_text t = fac_jinja_as_text(r, v), old = wanted(r, a, 0, "old");
    const fac_jinja_text now = wanted(r, a, 1, "new");
    const int64_t most = fac_jinja_count(r, a, 2, "count", -1);
    fac_jinja_out o = { 0 };
    size_t from = 0;
    for (int64_t k = 0; (most < 0 || k < most) && fac_jinja_step(r); k++) {
        /* an empty text stands before each character, and at the end */
        size_t next = from, used = 1;
        if (!old.n && k && from < t.n) {
            fac_code_point(t.s + from, t.n - from, &used);
            next = from + used;
        }
        const size_t at = !old.n && k && from == t.n ? t.n + 1 : find_text(r, t, old, next);
        if (at > t.n) break;
        fac_jinja_print(r, &o, fac_jinja_part(t, from, at));
        fac_jinja_write(r, &o, now.s, now.from, now.n);
        from = at + old.n;
    }
    fac_jinja_print(r, &o, fac_jinja_part(t, from, t.n));
    return fac_jinja_written(&o);
}

/* ---- cutting ---- */

static size_t blanks(run *r, fac_jinja_text t, size_t at, bool are) {
    const size_t from = at;
    size_t used;
    for (; at < t.n; at += used)
        if (is_blank(fac_code_point(t.s + at, t.n - at, &used)) != are) break;
    fac_jinja_read(r, at - from);
    return at;
}

static value split_at_blanks(run *r, fac_jinja_text t, int64_t most) {
    const value v = fac_jinja_new_list(r, FAC_JINJA_LIST);
    size_t at = blanks(r, t, 0, true);
    for (int64_t k = 0; at < t.n && !r->status; k++) {
        const size_t end = most >= 0 && k >= most ? t.n : blanks(r, t, at, false);
        fac_jinja_add(r, v.list, fac_jinja_part(t, at, end));
        at = blanks(r, t, end, true);
    }
    return v;
}

static value split(run *r, value v, const arguments *a) {
    const fac_jinja_text t = fac_jinja_as_text(r, v);
    const value *given = fac_jinja_argument(a, 0, "sep");
    const int64_t most = fac_jinja_count(r, a, 1, "maxsplit", -1);
    if (!given || given->kind == FAC_JINJA_NONE) return split_at_blanks(r, t, most);
    const fac_jinja_text sep = wanted(r, a, 0, "sep");
    const value to = fac_jinja_new_list(r, FAC_JINJA_LIST);
    size_t from = 0;
    if (!sep.n) return fac_jinja_fail(r, FAC_E_ARGUMENT, "split at an empty text");
    for (int64_t k = 0; (most < 0 || k < most) && !r->status; k++) {
        const size_t at = find_text(r, t, sep, from);
        if (at > t.n) break;
        fac_jinja_add(r, to.list, fac_jinja_part(t, from, at));
        from = at + sep.n;
    }
    if (!r->status) fac_jinja_add(r, to.list, fac_jinja_part(t, from, t.n));
    return to;
}

static value lines(run *r, value v, const arguments *a) {
    const fac_jinja_text t = fac_jinja_as_text(r, v);
    const value to = fac_jinja_new_list(r, FAC_JINJA_LIST);
    (void)a;
    for (size_t at = 0; at < t.n && !r->status;) {
        size_t end = at;
        while (end < t.n && t.s[end] != '\n' && t.s[end] != '\r') end++;
        fac_jinja_read(r, end - at);
        fac_jinja_add(r, to.list, fac_jinja_part(t, at, end));
        at = end + (t.n - end > 1 && t.s[end] == '\r' && t.s[end + 1] == '\n' ? 2 : 1);
    }
    return to;
}

static value joined(run *r, value v, const arguments *a) {
    const value *given = fac_jinja_argument(a, 0, "items");
    const fac_jinja_list all = given ? fac_jinja_each(r, *given) : (fac_jinja_list){ 0 };
    fac_jinja_out o = { 0 };
    for (size_t k = 0; k < all.n && !r->status; k++) {
        if (k) fac_jinja_print(r, &o, v);
        fac_jinja_print(r, &o, all.at[k]);
    }
    return fac_jinja_written(&o);
}

static value digits(run *r, value v, const arguments *a) {
    const fac_jinja_text t = fac_jinja_as_text(r, v);
    bool all = t.n > 0 && fac_jinja_read(r, t.n);
    (void)a;
    for (size_t k = 0; k < t.n; k++) all &= t.s[k] >= '0' && t.s[k] <= '9';
    return fac_jinja_bool(all);
}

fac_jinja_filter *fac_jinja_find_method(const char *name) {
    static const struct {
        const char *name;
        fac_jinja_filter *f;
    } all[] = { { "strip", trim },
                { "lstrip", lstrip },
                { "rstrip", rstrip },
                { "lower", lower },
                { "upper", upper },
                { "title", title },
                { "capitalize", capitalize },
                { "startswith", starts },
                { "endswith", ends },
                { "removeprefix", without_prefix },
                { "removesuffix", without_suffix },
                { "find", find },
                { "count", count },
                { "replace", replace },
                { "split", split },
                { "splitlines", lines },
                { "join", joined },
                { "isdigit", digits } };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (!strcmp(name, all[k].name)) return all[k].f;
    return NULL;
}
