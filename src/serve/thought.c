/* Thoughts in the text of an answer, see thought.h. */
#include "serve/thought.h"
#include "serve/marks.h"

static const char opens[] = "<think>", closes[] = "</think>";
enum { LAST = 8, ROOM = 256 }; /* tokens that <think> and a line break are at most; bytes */

/* Whether the text of the prompt's last tokens ends with <think>. */
static bool ends_open(const fac_wish *w, const fac_tokenizer *t) {
    const fac_prompt *p = w->prompts;
    const int64_t last = p->n < LAST ? p->n : LAST;
    char text[ROOM];
    size_t n = fac_tokenizer_decode(t, p->ids + p->n - last, last, FAC_TEXT_SPECIAL, text, ROOM);
    if (n >= ROOM) return false;
    n = fac_mark_trim(text, n);
    return n >= strlen(opens) && !memcmp(text + n - strlen(opens), opens, strlen(opens));
}

fac_thought_form fac_thought_form_of(const char *jinja, const fac_wish *w, const fac_tokenizer *t) {
    if (w->raw_thoughts || w->must_call || !jinja || !strstr(jinja, closes))
        return FAC_THOUGHT_NONE;
    if (w->grammar || w->schema) return FAC_THOUGHT_TAGS; /* an answer from its first byte on */
    return ends_open(w, t) ? FAC_THOUGHT_OPEN : FAC_THOUGHT_TAGS;
}

fac_thought fac_thought_find(fac_thought_form form, const char *s, size_t n, bool over) {
    const fac_thought none = { 0 }, unknown = { .text = n };
    size_t from = fac_mark_skip(s, n, 0);
    if (form == FAC_THOUGHT_NONE) return none;
    if (fac_mark_begins(s + from, n - from, opens))
        from = fac_mark_skip(s, n, from + strlen(opens));
    else if (!over && !fac_mark_find(s + from, n - from, opens, false))
        return unknown;
    else if (form == FAC_THOUGHT_TAGS)
        return none;
    const size_t to = fac_mark_find(s + from, n - from, closes, over) + from;
    const bool closed = to < n && n - to >= strlen(closes);
    const size_t text = closed ? fac_mark_skip(s, n, to + strlen(closes)) : n;
    return (fac_thought){ from, from + fac_mark_trim(s + from, to - from), text };
}
