/* Generating: feed, step, sample, tell, until something ends it. */
#include <string.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "facula/text.h"
#include "lm/lm.h"

static double seconds(void) { return (double)fac_now_ns() * 1e-9; }

typedef struct writing {
    fac_session             *s;
    const fac_tokenizer     *t;
    const fac_generate_opts *o;
    fac_token_fn             tell;
    void                    *self;
    fac_stream               stream;
    int32_t                 *past;          /* prompt and answer */
    int64_t                  n;
    fac_generate_stat       *stat;
    fac_error               *err;
} writing;

/* What is no UTF-8 becomes U+FFFD: told text is always whole. */
static bool tell_bytes(writing *w, int32_t id, const char *text, size_t n) {
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
        memcpy(plain + used, bad ? "\xef\xbf\xbd" : text + k, bad ? 3 : bytes);
        used += bad ? 3 : bytes;
        k += bytes;
    }
    return w->tell(w->self, id, plain, used);
}

static fac_status no_memory(writing *w) { return fac_raise(w->err, FAC_E_NOMEM, "no memory for the answer"); }

/* The text of a token, as far as it is ready. */
static fac_status put(writing *w, int32_t id, bool *go_on) {
    char few[512], *bytes = few;
    bool stopped;
    size_t n = fac_tokenizer_piece(w->t, id, 0, few, sizeof few);
    if (n > sizeof few && !(bytes = fac_alloc(n, 1))) return no_memory(w);
    if (bytes != few) fac_tokenizer_piece(w->t, id, 0, bytes, n);
    const size_t ready = fac_stream_add(&w->stream, bytes, n, &stopped);
    if (bytes != few) fac_release(bytes);
    if (ready == SIZE_MAX) return no_memory(w);
    if (w->tell && !tell_bytes(w, id, w->stream.held, ready)) {
        w->stat->finish = FAC_FINISH_CALLER;
        *go_on = false;
    }
    fac_stream_take(&w->stream, ready);
    if (!stopped) return FAC_OK;
    w->stream.n = 0;
    w->stat->finish = FAC_FINISH_STOP;
    *go_on = false;
    return FAC_OK;
}

/* The next token; *go_on false: it ends the answer, or there is no room for it. */
static fac_status next(writing *w, bool *go_on) {
    const fac_generate_opts *o = w->o;
    const float *logits = fac_session_logits(w->s, o->slot);
    const fac_lm_facts f = fac_session_facts(w->s);
    const int32_t id = fac_sample(&o->sampler, logits, f.vocabulary, w->past, w->n, NULL);
    if (id < 0) return no_memory(w);
    if (fac_tokenizer_ends(w->t, id) && !o->ignore_end) {
        *go_on = false;
        return FAC_OK;
    }
    w->past[w->n++] = id;
    w->stat->generated++;
    FAC_TRY(put(w, id, go_on));
    if (!*go_on) return FAC_OK;
    if (o->tokens && w->stat->generated >= o->tokens) {
        w->stat->finish = FAC_FINISH_LENGTH;
        *go_on = false;
        return FAC_OK;
    }
    if (fac_session_length(w->s, o->slot) >= f.context) {
        w->stat->finish = FAC_FINISH_CONTEXT;
        *go_on = false;
        return FAC_OK;
    }
    FAC_TRY(fac_session_feed(w->s, o->slot, &id, 1, w->err));
    return fac_session_step(w->s, w->err);
}

static fac_status work(writing *w, const int32_t *prompt, int64_t n) {
    const double begin = seconds();
    bool go_on = true;
    FAC_TRY(fac_session_feed(w->s, w->o->slot, prompt, n, w->err));
    FAC_TRY(fac_session_step(w->s, w->err));
    const double read = seconds();
    w->stat->prompt = n;
    w->stat->prompt_seconds = read - begin;
    if (!fac_session_logits(w->s, w->o->slot)) return fac_raise(w->err, FAC_E_ARGUMENT, "an empty prompt");
    fac_status status = FAC_OK;
    while (go_on && !status) status = next(w, &go_on);
    if (!status && w->tell && w->stream.n) tell_bytes(w, -1, w->stream.held, w->stream.n);
    w->stat->seconds = seconds() - read;
    return status;
}

fac_status fac_generate(fac_session *s, const fac_tokenizer *t, const int32_t *prompt, int64_t n, const fac_generate_opts *o,
                        fac_token_fn tell, void *self, fac_generate_stat *stat, fac_error *err) {
    static const fac_generate_opts usual;
    fac_generate_stat unused;
    if (!o) o = &usual;
    for (int k = 0; k < o->nstop; k++)
        if (!o->stop[k] || !*o->stop[k]) return fac_raise(err, FAC_E_ARGUMENT, "an empty stop text");
    writing w = { .s = s, .t = t, .o = o, .tell = tell, .self = self, .stream = { .stop = o->stop, .nstop = o->nstop },
                  .stat = stat ? stat : &unused, .err = err };
    *w.stat = (fac_generate_stat){ .finish = FAC_FINISH_END };
    w.past = fac_alloc((size_t)(fac_session_facts(s).context + n + 1), sizeof *w.past);
    if (!w.past) return no_memory(&w);
    w.n = fac_session_past(s, o->slot, w.past);
    memcpy(w.past + w.n, prompt, (size_t)n * sizeof *prompt);
    w.n += n;
    const fac_status status = work(&w, prompt, n);
    fac_stream_end(&w.stream);
    fac_release(w.past);
    return status;
}
