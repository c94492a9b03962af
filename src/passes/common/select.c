/* Does a name mean this node?  See select.h. */
#include "passes/common/select.h"
#include <stdio.h>
#include <string.h>

enum { WORD = 512 };

/* * alone is special: names hold brackets and question marks.  Greedy with one place to go back to:
 * linear in text times pattern. */
static bool glob(const char *p, const char *s) {
    const char *star = NULL, *from = NULL;
    while (*s)
        if (*p == '*') {
            star = p++;
            from = s;
        } else if (*p == *s) {
            p++;
            s++;
        } else if (star) {
            p = star + 1;
            s = ++from;
        } else
            return false;
    while (*p == '*') p++;
    return !*p;
}

/* ---- one word ---- */

static bool by_output(const fac_node *n, const char *word) {
    for (int k = 0; k < n->nout; k++)
        if (n->out[k]->name && glob(word, n->out[k]->name)) return true;
    return false;
}

static bool by_label(const fac_node *n, const char *word) {
    char label[WORD];
    if (glob(word, fac_node_label(n, label, sizeof label))) return true;
    if (n->origin && glob(word, n->origin)) return true;
    if (!n->scope || !n->name) return false;
    snprintf(label, sizeof label, "%s.%s", n->scope, n->name);
    return glob(word, label);
}

/* The path itself, or one around it. */
static bool around(const char *path, const char *word) {
    char part[WORD];
    if (!path || !*path) return false;
    snprintf(part, sizeof part, "%s", path);
    for (char *dot = part + strlen(part); dot; dot = strrchr(part, '.')) {
        *dot = 0;
        if (glob(word, part)) return true;
    }
    return false;
}

static fac_selected by_word(const fac_node *n, const char *word) {
    if (!strncmp(word, "op:", 3))
        return glob(word + 3, n->op->name) ? FAC_BY_NAME : FAC_NOT_SELECTED;
    if (!strncmp(word, "kind:", 5))
        return glob(word + 5, fac_kind_of(n, fac_class_of(n))) ? FAC_BY_NAME : FAC_NOT_SELECTED;
    if (by_output(n, word) || by_label(n, word)) return FAC_BY_NAME;
    if (around(n->scope, word)) return FAC_BY_MODULE;
    fac_arena a = { 0 };
    const fac_selected found =
        around(fac_module_path(&a, n), word) ? FAC_BY_MODULE : FAC_NOT_SELECTED;
    fac_arena_free(&a);
    return found;
}

/* ---- several ---- */

/* The next of the words, which commas part; false after the last. */
static bool next(const char **s, char word[WORD]) {
    if (!**s) return false;
    const size_t n = strcspn(*s, ",");
    snprintf(word, WORD, "%.*s", (int)n, *s);
    *s += n + ((*s)[n] == ',');
    return true;
}

fac_selected fac_select(const fac_node *n, const char *pattern) {
    char word[WORD];
    fac_selected best = by_word(n, pattern); /* names may hold commas */
    for (const char *s = strchr(pattern, ',') ? pattern : "";
         best != FAC_BY_NAME && next(&s, word);) {
        const fac_selected one = by_word(n, word);
        if (one > best) best = one;
    }
    return best;
}

bool fac_select_name(const char *name, const char *pattern) {
    char word[WORD];
    if (glob(pattern, name)) return true;
    for (const char *s = strchr(pattern, ',') ? pattern : ""; next(&s, word);)
        if (glob(word, name)) return true;
    return false;
}
