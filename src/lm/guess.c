/* Speculative decoding: guesses from the text so far, or by a smaller model, and the step that
 * checks them. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "lm/lm.h"

enum { SHORTEST = 2 };

/* ---- looked up ---- */

/* Where the last `length` tokens stood before, the latest place; -1: nowhere. */
static int64_t seen_before(const int32_t *past, int64_t n, int64_t length) {
    for (int64_t at = n - length - 1; at >= 0; at--)
        if (!memcmp(past + at, past + n - length, (size_t)length * sizeof *past)) return at;
    return -1;
}

static int look_up(const int32_t *past, int64_t n, int longest, int most, int32_t *to) {
    for (int64_t length = longest; length >= SHORTEST; length--) {
        const int64_t at = n > length ? seen_before(past, n, length) : -1;
        if (at < 0) continue;
        const int64_t from = at + length, left = n - from;
        const int count = left < most ? (int)left : most;
        memcpy(to, past + from, (size_t)count * sizeof *to);
        return count;
    }
    return 0;
}

/* ---- a smaller model ---- */

static int32_t best_of(const float *logits, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        if (logits[k] > logits[best]) best = k;
    return (int32_t)best;
}

/* The draft has read what is alike; it reads the rest, the last token in any case. */
static fac_status catch_up(fac_session *d, const int32_t *past, int64_t n, fac_error *err) {
    const int64_t have = fac_session_length(d, 0);
    int32_t *before = fac_alloc((size_t)have + 1, sizeof *before);
    int64_t same = 0;
    if (!before) return fac_raise_memory(err, "what a draft has read");
    fac_session_past(d, 0, before);
    while (same < have && same < n - 1 && before[same] == past[same]) same++;
    fac_release(before);
    FAC_TRY(fac_session_cut(d, 0, same, err));
    FAC_TRY(fac_session_feed(d, 0, past + same, n - same, err));
    return fac_session_step(d, err);
}

static fac_status draft(fac_session *d, const int32_t *past, int64_t n, int64_t vocabulary,
                        int most, int32_t *to, int *count, fac_error *err) {
    if (n + most > fac_session_facts(d).context) return FAC_OK;
    FAC_TRY(catch_up(d, past, n, err));
    for (; *count < most; (*count)++) {
        if (*count) {
            FAC_TRY(fac_session_feed(d, 0, &to[*count - 1], 1, err));
            FAC_TRY(fac_session_step(d, err));
        }
        to[*count] = best_of(fac_session_logits(d, 0), vocabulary);
    }
    return FAC_OK;
}

static fac_status guess(const fac_generate_opts *o, const int32_t *past, int64_t n,
                        int64_t vocabulary, int most, int32_t *to, int *count, fac_error *err) {
    *count = o->lookup > 0 ? look_up(past, n, o->lookup, most, to) : 0;
    if (*count || !o->draft) return FAC_OK;
    return draft(o->draft, past, n, vocabulary, most, to, count, err);
}

fac_status fac_guess_fits(const fac_session *s, const fac_session *draft, int lookup,
                          fac_error *err) {
    if (lookup && lookup < SHORTEST)
        return fac_raise(err, FAC_E_ARGUMENT, "a lookup of %d tokens: %d at least, or 0 for none",
                         lookup, SHORTEST);
    if (!draft) return FAC_OK;
    const int64_t a = fac_session_facts(s).vocabulary, b = fac_session_facts(draft).vocabulary;
    if (draft != s && a == b) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT,
                     "a draft model of %lld tokens for one of %lld: they must be the same tokens",
                     (long long)b, (long long)a);
}

/* ---- the step ---- */

/* How many tokens may be guessed now: with the one before them they must fit. */
static int room_for(const fac_session *s, const fac_writer *w) {
    enum { MOST = FAC_SESSION_CHECKED - 1, WITH_DRAFT = 4 };
    const fac_generate_opts *o = w->o;
    if (o->lookup <= 0 && !o->draft) return 0;
    int most = o->guesses > 0 && o->guesses < MOST ? o->guesses : MOST;
    if (!o->guesses && o->draft) most = WITH_DRAFT;
    const int64_t context = w->facts.context - fac_session_length(s, o->slot) - 1;
    const int64_t left = o->tokens ? o->tokens - w->stat->generated - 1 : most;
    if (context < most) most = (int)context;
    return left < most ? (int)left : most;
}

fac_status fac_guess_read(fac_session *s, fac_writer *w, int32_t id, fac_guesses *g,
                          fac_error *err) {
    const int slot = w->o->slot, most = room_for(s, w);
    int64_t n;
    g->n = 0;
    if (most > 0)
        FAC_TRY(guess(w->o, w->past, w->n, w->facts.vocabulary, most, g->ids, &g->n, err));
    FAC_TRY(fac_session_feed(s, slot, &id, 1, err));
    if (!g->n) {
        FAC_TRY(fac_session_step(s, err));
        g->logits = fac_session_logits(s, slot);
        return FAC_OK;
    }
    FAC_TRY(fac_session_feed(s, slot, g->ids, g->n, err));
    w->stat->guessed += g->n;
    return fac_session_check(s, slot, &g->logits, &n, err);
}

fac_status fac_guess_take(fac_session *s, fac_writer *w, const fac_guesses *g, int k, int32_t id,
                          bool go_on, bool *right, fac_error *err) {
    *right = go_on && k < g->n && id == g->ids[k];
    w->stat->accepted += *right;
    if (*right || k == g->n) return FAC_OK;
    return fac_session_cut(s, w->o->slot, fac_session_length(s, w->o->slot) - g->n + k, err);
}
