/* Generating: feed, step, sample, tell, until something ends it. */
#include <string.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "lm/lm.h"

static double seconds(void) { return (double)fac_now_ns() * 1e-9; }

/* What stays is read anew: kept keys would still know what was forgotten. */
static fac_status shift(fac_session *s, fac_writer *w, fac_error *err) {
    const int64_t keep = fac_writer_shift(w);
    FAC_TRY(fac_session_cut(s, w->o->slot, keep, err));
    return fac_session_feed(s, w->o->slot, w->past + keep, w->n - keep, err);
}

/* How many tokens may be guessed now: with the one before them they must fit. */
static int room_for_guesses(const fac_session *s, const fac_writer *w) {
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

/* The token, with guesses after it: *logits of all that were read. */
static fac_status read_on(fac_session *s, fac_writer *w, int32_t id, int32_t *guesses, int *count,
                          const float **logits, fac_error *err) {
    const int slot = w->o->slot, most = room_for_guesses(s, w);
    int64_t n;
    *count = 0;
    if (most > 0)
        FAC_TRY(fac_guess(w->o, w->past, w->n, w->facts.vocabulary, most, guesses, count, err));
    FAC_TRY(fac_session_feed(s, slot, &id, 1, err));
    if (!*count) {
        FAC_TRY(fac_session_step(s, err));
        *logits = fac_session_logits(s, slot);
        return FAC_OK;
    }
    FAC_TRY(fac_session_feed(s, slot, guesses, *count, err));
    w->stat->guessed += *count;
    return fac_session_check(s, slot, logits, &n, err);
}

/* Tokens by the logits of what was read, as long as they are what was guessed.  What was read
 * beyond them is forgotten. */
static fac_status take_guesses(fac_session *s, fac_writer *w, const float *logits,
                               const int32_t *guesses, int count, int32_t *id, bool *go_on,
                               fac_error *err) {
    const int64_t length = fac_session_length(s, w->o->slot) - count;
    for (int k = 0; k <= count; k++) {
        FAC_TRY(fac_writer_next(w, logits + k * w->facts.vocabulary, id, go_on, err));
        const bool right = *go_on && k < count && *id == guesses[k];
        w->stat->accepted += right;
        if (right) continue;
        return k < count ? fac_session_cut(s, w->o->slot, length + k, err) : FAC_OK;
    }
    return FAC_OK;
}

static fac_status write_on(fac_session *s, fac_writer *w, fac_error *err) {
    int32_t id, guesses[FAC_SESSION_CHECKED];
    int count = 0;
    const float *logits = fac_session_logits(s, w->o->slot);
    for (;;) {
        bool go_on = true;
        FAC_TRY(take_guesses(s, w, logits, guesses, count, &id, &go_on, err));
        const bool full = !go_on && w->stat->finish == FAC_FINISH_CONTEXT;
        if (!go_on && !(full && w->o->shift)) return FAC_OK;
        count = 0;
        if (!full) {
            FAC_TRY(read_on(s, w, id, guesses, &count, &logits, err));
            continue;
        }
        FAC_TRY(shift(s, w, err));
        FAC_TRY(fac_session_step(s, err));
        logits = fac_session_logits(s, w->o->slot);
    }
}

static fac_status work(fac_session *s, fac_writer *w, const int32_t *prompt, int64_t n,
                       fac_error *err) {
    const double begin = seconds();
    FAC_TRY(fac_session_feed(s, w->o->slot, prompt, n, err));
    FAC_TRY(fac_session_step(s, err));
    const double read = seconds();
    w->stat->prompt = n;
    w->stat->prompt_seconds = read - begin;
    if (!fac_session_logits(s, w->o->slot))
        return fac_raise(err, FAC_E_ARGUMENT, "an empty prompt");
    FAC_TRY(write_on(s, w, err));
    fac_writer_rest(w);
    w->stat->seconds = seconds() - read;
    return FAC_OK;
}

/* What the slot has read, then the prompt. */
static fac_status begin(fac_session *s, fac_writer *w, const int32_t *prompt, int64_t n,
                        fac_error *err) {
    const int64_t before = fac_session_length(s, w->o->slot);
    int32_t *past = fac_alloc((size_t)(before + n), sizeof *past);
    if (!past) return fac_raise_memory(err, "the answer");
    fac_session_past(s, w->o->slot, past);
    if (n) memcpy(past + before, prompt, (size_t)n * sizeof *prompt);
    const fac_status status = fac_writer_begin(w, past, before + n, err);
    fac_release(past);
    return status;
}

static fac_status check_draft(const fac_session *s, const fac_generate_opts *o, fac_error *err) {
    if (!o->draft) return FAC_OK;
    const int64_t a = fac_session_facts(s).vocabulary, b = fac_session_facts(o->draft).vocabulary;
    if (o->draft != s && a == b) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT,
                     "a draft model of %lld tokens for one of %lld: they must be the same tokens",
                     (long long)b, (long long)a);
}

fac_status fac_generate(fac_session *s, const fac_tokenizer *t, const int32_t *prompt, int64_t n,
                        const fac_generate_opts *o, fac_token_fn tell, void *self,
                        fac_generate_stat *stat, fac_error *err) {
    static const fac_generate_opts usual;
    fac_generate_stat unused;
    fac_writer w = { .t = t,
                     .o = o ? o : &usual,
                     .tell = tell,
                     .self = self,
                     .facts = fac_session_facts(s),
                     .stat = stat ? stat : &unused };
    FAC_TRY(check_draft(s, w.o, err));
    FAC_TRY(begin(s, &w, prompt, n, err));
    const fac_status status = work(s, &w, prompt, n, err);
    fac_writer_end(&w);
    return status;
}
