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
    for (size_t at = 0; at < n; at++) {
        const size_t left = n - at < m ? n - at : m;
        if ((left == m || !whole) && !memcmp(s + at, mark, left)) return at;
    }
    return n;
}
#endif
