/* See diff.h. */
#include <string.h>
#include "base/memory.h"
#include "report/diff/diff.h"

/* ---- attributes, as their text has them ---- */

typedef struct word {
    const char *s;
    size_t n, name;
} word; /* name: letters before '=' */

/* The next of words separated by spaces; spaces in quotes are letters. */
static bool next_word(const char **at, word *out) {
    const char *s = *at;
    bool quoted = false;
    while (*s == ' ') s++;
    *out = (word){ .s = s };
    for (; *s && (*s != ' ' || quoted); s++) {
        if (*s == '"' && !(s > out->s && s[-1] == '\\')) quoted = !quoted;
        if (*s == '=' && !out->name) out->name = (size_t)(s - out->s);
    }
    out->n = (size_t)(s - out->s);
    if (!out->name) out->name = out->n;
    *at = s;
    return out->n > 0;
}

static bool find_word(const char *all, const word *name, word *out) {
    while (next_word(&all, out))
        if (out->name == name->name && !memcmp(out->s, name->s, name->name)) return true;
    return false;
}

static void separate(fac_text *to) {
    if (to->n) fac_text_add(to, "; ");
}

static void put_change(fac_text *to, const word *from, const word *into) {
    separate(to);
    if (from)
        fac_text_add_bytes(to, from->s, from->n);
    else
        fac_text_add(to, "default");
    fac_text_add(to, " -> ");
    if (into)
        fac_text_add_bytes(to, into->s, into->n);
    else
        fac_text_add(to, "default");
}

void fac_diff_attrs(const fac_node *x, const fac_node *y, fac_text *to) {
    fac_text a = { 0 }, b = { 0 };
    word u, v;
    if (fac_attrs_equal(x->op, x->attrs, y->attrs)) return;
    fac_attrs_print(x->op, x->attrs, &a);
    fac_attrs_print(y->op, y->attrs, &b);
    to->failed |= a.failed || b.failed;
    const char *p = a.s ? a.s : "";
    const char *q = b.s ? b.s : "";
    const char *at = p;
    while (!to->failed && next_word(&at, &u)) {
        const bool there = find_word(q, &u, &v);
        if (!there || u.n != v.n || memcmp(u.s, v.s, u.n)) put_change(to, &u, there ? &v : NULL);
    }
    at = q;
    while (!to->failed && next_word(&at, &v))
        if (!find_word(p, &v, &u)) put_change(to, NULL, &v);
    fac_text_free(&a);
    fac_text_free(&b);
}

/* ---- order: the longest ascending sequence of the places in a, by patience sorting ---- */

/* How many piles end in a place below this one. */
static int pile_for(const int *ends, int piles, const int *mate, int place) {
    int lo = 0, hi = piles;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (mate[ends[mid]] < place)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool fac_diff_moved(const fac_match *m, bool *moved) {
    const fac_diff_side *b = &m->b;
    int *ends = fac_alloc((size_t)b->n + 1, sizeof *ends),
        *before = fac_alloc((size_t)b->n + 1, sizeof *before), piles = 0;
    if (ends && before) {
        for (int q = 0; q < b->n; q++) {
            if (b->mate[q] < 0) continue;
            const int k = pile_for(ends, piles, b->mate, b->mate[q]);
            before[q] = k ? ends[k - 1] : -1;
            ends[k] = q;
            piles += k == piles;
            moved[q] = true;
        }
        for (int q = piles ? ends[piles - 1] : -1; q >= 0; q = before[q]) moved[q] = false;
    }
    const bool room = ends && before;
    fac_release(ends);
    fac_release(before);
    return room;
}
