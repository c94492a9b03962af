/* Marks in a text that a model writes, such as <think> and <tool_call>. */
#ifndef FACULA_SERVE_MARKS_H
#define FACULA_SERVE_MARKS_H
#include <stdbool.h>
#include <string.h>

static inline bool fac_mark_blank(char c) { return c == ' ' || (c >= 9 && c <= 13); }

/* After the blanks from `at` on. */
static inline size_t fac_mark_skip(const char *s, size_t n, size_t at) {
    while (at < n && fac_mark_blank(s[at])) at++;
    return at;
}

/* Without the blanks at its end. */
static inline size_t fac_mark_trim(const char *s, size_t n) {
    while (n && fac_mark_blank(s[n - 1])) n--;
    return n;
}

static inline bool fac_mark_begins(const char *s, size_t n, const char *mark) {
    return n >= strlen(mark) && !memcmp(s, mark, strlen(mark));
}

/* Where a mark stands; unless it must be whole, also what may become one at the end.  n: nowhere.
 */
static inline size_t fac_mark_find(const char *s, size_t n, const char *mark, bool whole) {
    const size_t m = strlen(mark);
    const char *end = s + n;
    for (const char *at = s; at < end && (at = memchr(at, *mark, (size_t)(end - at))); at++) {
        const size_t rest = (size_t)(end - at), left = rest < m ? rest : m;
        if ((left == m || !whole) && !memcmp(at, mark, left)) return (size_t)(at - s);
    }
    return n;
}
#endif
