/* Guesses for speculative decoding: from the text so far, or by a smaller model. */
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

fac_status fac_guess(const fac_generate_opts *o, const int32_t *past, int64_t n, int64_t vocabulary,
                     int most, int32_t *to, int *count, fac_error *err) {
    *count = o->lookup > 0 ? look_up(past, n, o->lookup, most, to) : 0;
    if (*count || !o->draft) return FAC_OK;
    return draft(o->draft, past, n, vocabulary, most, to, count, err);
}
