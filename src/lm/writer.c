/* The text of one sequence: a token is chosen, its bytes are told as far as they are whole
 * characters and begin no stop text, until something ends it.  A step allocates nothing. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/text.h"
#include "lm/lm.h"

enum { PIECE = 512 }; /* bytes of a token's text that need no room of their own */

fac_status fac_writer_begin(fac_writer *w, const int32_t *past, int64_t n, fac_error *err) {
    const size_t room = (size_t)(w->facts.context > n ? w->facts.context : n) + 1;
    for (int k = 0; k < w->o->nstop; k++)
        if (!w->o->stop[k] || !*w->o->stop[k])
            return fac_raise(err, FAC_E_ARGUMENT, "an empty stop text");
    *w->stat = (fac_generate_stat){ .finish = FAC_FINISH_END };
    w->stream = (fac_stream){ .stop = w->o->stop, .nstop = w->o->nstop };
    w->past = fac_alloc(room, sizeof *w->past);
    w->room = fac_alloc((size_t)w->facts.vocabulary, sizeof *w->room);
    if (!w->past || !w->room || !fac_reserve(&w->stream.held, &w->stream.room, 2 * PIECE, 1)) {
        fac_writer_end(w);
        return fac_raise_memory(err, "the answer");
    }
    if (n) memcpy(w->past, past, (size_t)n * sizeof *past);
    w->n = n;
    const fac_status status =
        w->o->grammar ? fac_matcher_begin(&w->matcher, w->o->grammar, err) : FAC_OK;
    if (status) fac_writer_end(w);
    return status;
}

void fac_writer_end(fac_writer *w) {
    fac_stream_end(&w->stream);
    fac_matcher_end(&w->matcher);
    fac_release(w->past);
    fac_release(w->room);
    w->past = NULL;
    w->room = NULL;
}

/* What is no UTF-8 becomes U+FFFD: told text is always whole. */
static bool tell_bytes(fac_writer *w, int32_t id, const char *text, size_t n) {
    char plain[512];
    size_t used = 0;
    for (size_t k = 0; k < n;) {
        uint32_t c;
        char four[8] = { 0 };
        memcpy(four, text + k, n - k < 4 ? n - k : 4);
        size_t bytes = fac_utf8(four, &c);
        const bool bad = c == FAC_NO_LETTER && bytes == 1 && text[k];
        if (!text[k]) bytes = 1;
        if (used + 4 > sizeof plain) {
            if (!w->tell(w->self, id, plain, used)) return false;
            used = 0;
        }
        const size_t wide = bad ? 3 : bytes;
        memcpy(plain + used, bad ? "\xef\xbf\xbd" : text + k, wide);
        used += wide;
        k += bytes;
    }
    return w->tell(w->self, id, plain, used);
}

int64_t fac_writer_shift(fac_writer *w) {
    const int64_t most = w->facts.context / 2;
    const int64_t keep = w->o->keep < most ? w->o->keep : most;
    const int64_t gone = (w->n - keep + 1) / 2;
    memmove(w->past + keep, w->past + keep + gone, (size_t)(w->n - keep - gone) * sizeof *w->past);
    w->n -= gone;
    w->shifts++;
    w->stat->finish = FAC_FINISH_END;
    return keep;
}

void fac_writer_rest(fac_writer *w) {
    if (w->tell && w->stream.n) tell_bytes(w, -1, w->stream.held, w->stream.n);
    w->stream.n = 0;
}

static void stop_for(fac_writer *w, fac_finish why, bool *go_on) {
    w->stat->finish = why;
    *go_on = false;
}

/* The text of a token, as far as it is ready. */
static fac_status put(fac_writer *w, int32_t id, bool *go_on, fac_error *err) {
    char few[PIECE];
    char *bytes = few;
    bool stopped;
    const unsigned flags = w->o->control ? FAC_TEXT_SPECIAL : 0;
    size_t n = fac_tokenizer_piece(w->t, id, flags, few, sizeof few);
    if (n > sizeof few && !(bytes = fac_alloc(n, 1))) return fac_raise_memory(err, "the answer");
    if (bytes != few) fac_tokenizer_piece(w->t, id, flags, bytes, n);
    const size_t ready = fac_stream_add(&w->stream, bytes, n, &stopped);
    if (bytes != few) fac_release(bytes);
    if (ready == SIZE_MAX) return fac_raise_memory(err, "the answer");
    if (w->tell && !tell_bytes(w, id, w->stream.held, ready)) stop_for(w, FAC_FINISH_CALLER, go_on);
    fac_stream_take(&w->stream, ready);
    if (!stopped) return FAC_OK;
    w->stream.n = 0;
    stop_for(w, FAC_FINISH_STOP, go_on);
    return FAC_OK;
}

/* A draw that fits is one of all that fit; only where it does not, the whole vocabulary is looked
 * at. */
static fac_status choose(fac_writer *w, const float *logits, int32_t *id, bool *go_on,
                         fac_error *err) {
    fac_sampler s = w->o->sampler;
    const int64_t n = w->facts.vocabulary;
    s.seed += w->shifts;
    *id = fac_sample_in(&s, logits, n, NULL, w->past, w->n, w->room);
    if (*id < 0)
        return fac_raise(err, FAC_E_FORMAT,
                         "no logit is a number: a weight is none, or numbers outgrow their type");
    if (!w->o->grammar) return FAC_OK;
    if (*id >= w->matcher.g->count || !fac_matcher_takes(&w->matcher, *id)) {
        const bool *allowed = fac_matcher_walk(&w->matcher);
        if (!allowed) return fac_raise_memory(err, "a grammar, or it is too ambiguous");
        const int64_t both = w->matcher.g->count < n ? w->matcher.g->count : n;
        *id = fac_sample_in(&s, logits, both, allowed, w->past, w->n, w->room);
        if (!allowed[*id]) stop_for(w, FAC_FINISH_STOP, go_on); /* the vocabulary has no way on */
    }
    if (*go_on && !fac_tokenizer_ends(w->t, *id)) fac_matcher_step(&w->matcher, *id);
    return FAC_OK;
}

fac_status fac_writer_next(fac_writer *w, const float *logits, int32_t *id, bool *go_on,
                           fac_error *err) {
    const fac_generate_opts *o = w->o;
    FAC_TRY(choose(w, logits, id, go_on, err));
    if (!*go_on) return FAC_OK;
    if (fac_tokenizer_ends(w->t, *id) && (!o->ignore_end || o->grammar)) {
        stop_for(w, FAC_FINISH_END, go_on);
        return FAC_OK;
    }
    const int64_t read = w->n;
    w->past[w->n++] = *id;
    w->stat->generated++;
    FAC_TRY(put(w, *id, go_on, err));
    if (!*go_on) return FAC_OK;
    if (o->tokens && w->stat->generated >= o->tokens)
        stop_for(w, FAC_FINISH_LENGTH, go_on);
    else if (read >= w->facts.context)
        stop_for(w, FAC_FINISH_CONTEXT, go_on);
    return FAC_OK;
}
