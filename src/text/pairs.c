/* Byte-pair encoding learned from counted pieces (Sennrich et al. 2016,
 * https://arxiv.org/abs/1508.07909): the most frequent pair of neighbours becomes a token, again
 * and again.  Each pair knows in which pieces it was seen, so a step touches those alone; a heap
 * has the counts, of which some are of yesterday: they are put right when they come up. */
#include <string.h>
#include "base/error.h"
#include "base/heap.h"
#include "base/memory.h"
#include "text/tokenizer.h"

typedef struct spot {
    int32_t left, right; /* left -1: free */
    int64_t count;
    uint32_t *words;
    size_t n, room;
} spot;

typedef struct wait {
    int64_t count;
    int32_t left, right;
} wait;

/* The most frequent first, of equals the lower ids. */
static bool comes_before(const wait *a, const wait *b) {
    if (a->count != b->count) return a->count > b->count;
    return a->left != b->left ? a->left < b->left : a->right < b->right;
}
FAC_HEAP(wait, wait, comes_before)

typedef struct state {
    int32_t *symbols; /* of all pieces */
    size_t *begins;   /* of each piece, nwords + 1 */
    const int64_t *counts;
    size_t nwords;
    spot *spots;
    size_t room, used;
    wait_heap heap;
    bool failed;
} state;

/* ---- pairs by their ids ---- */

static size_t place(const spot *spots, size_t room, int32_t left, int32_t right) {
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t at = (key * 0x9e3779b97f4a7c15 >> 24) & (room - 1);
    while (spots[at].left >= 0 && (spots[at].left != left || spots[at].right != right))
        at = (at + 1) & (room - 1);
    return at;
}

static spot *new_spots(size_t room) {
    spot *all = fac_alloc(room, sizeof *all);
    for (size_t k = 0; all && k < room; k++) all[k].left = -1;
    return all;
}

static bool widen(state *s) {
    const size_t room = s->room ? 2 * s->room : 1 << 12;
    spot *wide = new_spots(room);
    if (!wide) return false;
    for (size_t k = 0; k < s->room; k++) {
        const spot *old = &s->spots[k];
        if (old->left >= 0) wide[place(wide, room, old->left, old->right)] = *old;
    }
    fac_release(s->spots);
    s->spots = wide;
    s->room = room;
    return true;
}

/* The pair, new if need be; NULL: no memory. */
static spot *of(state *s, int32_t left, int32_t right) {
    if (2 * (s->used + 1) > s->room && !widen(s)) return NULL;
    spot *p = &s->spots[place(s->spots, s->room, left, right)];
    if (p->left >= 0) return p;
    p->left = left;
    p->right = right;
    s->used++;
    return p;
}

static void put(state *s, const spot *p) {
    if (!wait_push(&s->heap, (wait){ p->count, p->left, p->right })) s->failed = true;
}

/* ---- counting ---- */

/* A piece is noted once where it has a pair several times in a row of changes. */
static void note(state *s, int32_t left, int32_t right, int64_t change, size_t word, bool seen) {
    spot *p = of(s, left, right);
    if (!p) {
        s->failed = true;
        return;
    }
    p->count += change;
    if (!seen || (p->n && p->words[p->n - 1] == word)) return;
    if (!fac_reserve(&p->words, &p->room, p->n + 1, sizeof *p->words))
        s->failed = true;
    else
        p->words[p->n++] = (uint32_t)word;
}

static void count_all(state *s) {
    for (size_t w = 0; w < s->nwords && !s->failed; w++)
        for (size_t k = s->begins[w]; s->symbols[k] >= 0 && s->symbols[k + 1] >= 0; k++)
            note(s, s->symbols[k], s->symbols[k + 1], s->counts[w], w, true);
    for (size_t k = 0; k < s->room && !s->failed; k++) {
        const spot *p = &s->spots[k];
        if (p->left >= 0) put(s, p);
    }
}

/* ---- joining ---- */

/* Neighbours of a place that was joined: what they were, what they are. */
static void changed(state *s, int32_t gone_left, int32_t gone_right, int32_t left, int32_t right,
                    size_t word) {
    const int64_t n = s->counts[word];
    note(s, gone_left, gone_right, -n, word, false);
    note(s, left, right, n, word, true);
    const spot *p = s->failed ? NULL : of(s, left, right);
    if (p) put(s, p);
}

/* In one piece, from the left. */
static void join_in(state *s, size_t word, int32_t left, int32_t right, int32_t to) {
    int32_t *x = s->symbols + s->begins[word];
    size_t n = 0;
    while (x[n] >= 0) n++;
    size_t at = 0;
    for (size_t k = 0; k < n && !s->failed; k++) {
        const bool here = x[k] == left && x[k + 1] == right;
        if (!here) {
            x[at++] = x[k];
            continue;
        }
        if (at) changed(s, x[at - 1], left, x[at - 1], to, word);
        x[at++] = to;
        k++;
        if (x[k + 1] >= 0) changed(s, right, x[k + 1], to, x[k + 1], word);
    }
    x[at] = -1;
}

static void join(state *s, const wait *best, int32_t to) {
    spot *p = of(s, best->left, best->right);
    uint32_t *words = p->words;
    const size_t n = p->n;
    p->count = 0;
    p->words = NULL;
    p->n = p->room = 0;
    for (size_t k = 0; k < n && !s->failed; k++) join_in(s, words[k], best->left, best->right, to);
    fac_release(words);
    p = s->failed ? NULL : of(s, best->left, best->right);
    if (p) p->count = 0;
}

static void learn(state *s, int32_t most, fac_spell_fn *spell, void *self, fac_learning *out) {
    while (s->heap.n && out->tokens < most && !s->failed) {
        const wait best = wait_pop(&s->heap);
        const spot *p = of(s, best.left, best.right);
        if (!p || p->count < 2) continue;
        if (p->count != best.count) {
            put(s, p);
            continue;
        }
        const int32_t to = spell(self, best.left, best.right);
        if (to < 0 || !fac_reserve(&out->at, &out->room, out->n + 1, sizeof *out->at)) {
            s->failed = true;
            return;
        }
        out->at[out->n++] = (fac_learned){ best.left, best.right, to };
        if (to >= out->tokens) out->tokens = to + 1;
        join(s, &best, to);
    }
}

static bool find_begins(state *s, size_t n) {
    s->begins = fac_alloc(s->nwords + 1, sizeof *s->begins);
    size_t word = 0;
    for (size_t k = 0; s->begins && k < n; k++) {
        const bool first = !k || s->symbols[k - 1] < 0;
        if (first) s->begins[word++] = k;
    }
    return s->begins;
}

fac_status fac_learn_pairs(int32_t *words, size_t n, const int64_t *counts, size_t nwords,
                           int32_t most, fac_spell_fn *spell, void *self, fac_learning *out,
                           fac_error *err) {
    state s = { .symbols = words, .counts = counts, .nwords = nwords };
    s.failed = !find_begins(&s, n) || !widen(&s);
    if (!s.failed) count_all(&s);
    if (!s.failed) learn(&s, most, spell, self, out);
    for (size_t k = 0; k < s.room; k++) fac_release(s.spots[k].words);
    fac_release(s.spots);
    fac_release(s.heap.at);
    fac_release(s.begins);
    return s.failed ? fac_raise(err, FAC_E_NOMEM, "no memory to learn a vocabulary") : FAC_OK;
}
