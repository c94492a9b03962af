/* Byte pair encoding of one piece: neighbours are joined, the best pair first and the leftmost of
 * equals, until none is known. Pairs wait in a heap, since pieces of a hundred thousand equal
 * letters exist. */
#include <string.h>
#include "base/heap.h"
#include "base/memory.h"
#include "text/tokenizer.h"

/* A part of the piece: bytes [at, at + n), the token that it is (-1: none), and its neighbours (-1:
 * none). */
typedef struct symbol {
    uint32_t at, n;
    int32_t id, before, after;
} symbol;
/* Two neighbours; stale when one of them has changed since: n is their length in sum. */
typedef struct pair {
    double order;
    int32_t left;
    uint32_t n;
    int32_t to;
} pair;

static bool comes_before(const pair *a, const pair *b) {
    return a->order != b->order ? a->order < b->order : a->left < b->left;
}
FAC_HEAP(pair, pair, comes_before)

typedef struct work {
    const fac_tokenizer *t;
    const char *s;
    symbol *symbols;
    size_t n;
    pair_heap heap;
    bool failed;
} work;

void fac_ids_add(fac_ids *ids, int32_t id) {
    if (!fac_reserve(&ids->at, &ids->room, ids->n + 1, sizeof *ids->at))
        ids->failed = true;
    else
        ids->at[ids->n++] = id;
}

/* ---- pairs ---- */

/* A symbol and the one after it, if together they are a token. */
static void offer(work *w, int32_t left) {
    if (left < 0 || w->symbols[left].after < 0) return;
    const symbol *a = &w->symbols[left], *b = &w->symbols[a->after];
    pair p = { 0, left, a->n + b->n, -1 };
    if (w->t->kind == FAC_TOKENS_SCORES) {
        p.to = fac_tokenizer_look(w->t, w->s + a->at, p.n);
        if (p.to < 0) return;
        p.order = -(double)w->t->tokens[p.to].score;
    } else {
        const fac_merge *m =
            a->id < 0 || b->id < 0 ? NULL : fac_merges_find(&w->t->merges, a->id, b->id);
        if (!m) return;
        p.to = m->to;
        p.order = m->rank;
    }
    if (!pair_push(&w->heap, p)) w->failed = true;
}

static void join(work *w, const pair *p) {
    symbol *a = &w->symbols[p->left], *b = a->after >= 0 ? &w->symbols[a->after] : NULL;
    if (!a->n || !b || a->n + b->n != p->n) return;
    a->n = p->n;
    a->id = p->to;
    a->after = b->after;
    b->n = 0;
    if (a->after >= 0) w->symbols[a->after].before = p->left;
    offer(w, a->before);
    offer(w, p->left);
}

static void merge(work *w) {
    for (int32_t k = 0; (size_t)k + 1 < w->n; k++) offer(w, k);
    while (w->heap.n && !w->failed) {
        const pair p = pair_pop(&w->heap);
        join(w, &p);
    }
}

/* ---- beginnings and ends ---- */

/* Bytes, or characters: those that are no token, as bytes where ranks decide, later where scores
 * do. */
static void begin(work *w, size_t n) {
    const fac_tokenizer *t = w->t;
    for (size_t at = 0, used; at < n; at += used) {
        int32_t id = -1;
        used = 1;
        if (t->kind == FAC_TOKENS_BYTES)
            id = t->byte[(unsigned char)w->s[at]];
        else
            fac_code_point(w->s + at, n - at, &used);
        if (t->kind != FAC_TOKENS_BYTES) id = fac_tokenizer_look(t, w->s + at, used);
        if (id < 0 && t->kind == FAC_TOKENS_RANKS && t->byte[(unsigned char)w->s[at]] >= 0) {
            id = t->byte[(unsigned char)w->s[at]];
            used = 1;
        }
        w->symbols[w->n] =
            (symbol){ (uint32_t)at, (uint32_t)used, id, (int32_t)w->n - 1, (int32_t)w->n + 1 };
        w->n++;
    }
    if (w->n) w->symbols[w->n - 1].after = -1;
}

static void put(const fac_tokenizer *t, const char *s, const symbol *a, fac_ids *out) {
    if (a->id >= 0) {
        fac_ids_add(out, a->id);
        return;
    }
    bool bytes = t->kind != FAC_TOKENS_BYTES;
    for (uint32_t k = 0; bytes && k < a->n; k++) bytes = t->byte[(unsigned char)s[a->at + k]] >= 0;
    if (bytes)
        for (uint32_t k = 0; k < a->n; k++) fac_ids_add(out, t->byte[(unsigned char)s[a->at + k]]);
    else if (t->unknown >= 0)
        fac_ids_add(out, t->unknown);
}

void fac_bpe(const fac_tokenizer *t, const char *s, size_t n, fac_ids *out) {
    symbol few[64];
    work w = { .t = t, .s = s, .symbols = n <= 64 ? few : fac_alloc(n, sizeof *few) };
    if (!w.symbols || n > INT32_MAX) {
        out->failed = true;
        return;
    }
    begin(&w, n);
    merge(&w);
    for (int32_t k = 0; w.n && k >= 0; k = w.symbols[k].after) put(t, s, &w.symbols[k], out);
    out->failed |= w.failed;
    fac_release(w.heap.at);
    if (w.symbols != few) fac_release(w.symbols);
}
