/* Generating: feed, step, sample, tell, until something ends it. */
#include <string.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "lm/session.h"

/* What stays is read anew: kept keys would still know what was forgotten. */
static fac_status shift(fac_session *s, fac_writer *w, fac_error *err) {
    const int64_t keep = fac_writer_shift(w);
    FAC_TRY(fac_session_cut(s, w->o->slot, keep, err));
    return fac_session_feed(s, w->o->slot, w->past + keep, w->n - keep, err);
}

/* Tokens by the logits of what was read, as long as they are what was guessed. */
static fac_status take_guesses(fac_session *s, fac_writer *w, const fac_guesses *g, int32_t *id,
                               bool *go_on, fac_error *err) {
    bool right = true;
    for (int k = 0; right; k++) {
        FAC_TRY(fac_writer_next(w, g->logits + k * w->facts.vocabulary, id, go_on, err));
        FAC_TRY(fac_guess_take(s, w, g, k, *id, *go_on, &right, err));
    }
    return FAC_OK;
}

static fac_status write_on(fac_session *s, fac_writer *w, fac_error *err) {
    int32_t id;
    fac_guesses g = { .logits = fac_session_logits(s, w->o->slot) };
    for (;;) {
        bool go_on = true;
        FAC_TRY(take_guesses(s, w, &g, &id, &go_on, err));
        const bool full = !go_on && w->stat->finish == FAC_FINISH_CONTEXT;
        if (!go_on && !(full && w->o->shift)) return FAC_OK;
        if (!full) {
            FAC_TRY(fac_guess_read(s, w, id, &g, err));
            continue;
        }
        FAC_TRY(shift(s, w, err));
        FAC_TRY(fac_session_step(s, err));
        g = (fac_guesses){ .logits = fac_session_logits(s, w->o->slot) };
    }
}

static fac_status work(fac_session *s, fac_writer *w, const int32_t *prompt, int64_t n,
                       fac_error *err) {
    const double begin = fac_seconds(), planned = s->plan_seconds;
    FAC_TRY(fac_session_feed(s, w->o->slot, prompt, n, err));
    FAC_TRY(fac_session_step(s, err));
    const double read = fac_seconds(), for_prompt = s->plan_seconds;
    w->stat->prompt = n;
    w->stat->prompt_seconds = read - begin;
    w->stat->prompt_plan_seconds = for_prompt - planned;
    if (!fac_session_logits(s, w->o->slot))
        return fac_raise(err, FAC_E_ARGUMENT, "an empty prompt");
    FAC_TRY(write_on(s, w, err));
    fac_writer_rest(w);
    w->stat->seconds = fac_seconds() - read;
    w->stat->plan_seconds = s->plan_seconds - for_prompt;
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
    FAC_TRY(fac_guess_fits(s, w.o->draft, w.o->lookup, err));
    FAC_TRY(begin(s, &w, prompt, n, err));
    const fac_status status = work(s, &w, prompt, n, err);
    fac_writer_end(&w);
    return status;
}
