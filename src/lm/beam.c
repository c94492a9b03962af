/* Beam search.  Each beam has a slot; of two that go on from the same beam one stays in its slot,
 * the other one gets a copy in the slot of a beam that ends there. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "lm/lm.h"

enum { USUAL_BEAMS = 4 };

typedef struct candidate {
    double sum; /* of log p */
    int beam;
    int32_t id;
    bool ends;
} candidate;

typedef struct beam {
    int32_t *ids;
    double sum;
    int slot;
} beam;

typedef struct search {
    fac_session *s;
    const fac_tokenizer *t;
    fac_beam_opts o;
    int64_t vocabulary, tokens, step; /* tokens: of an answer at most; step: generated so far */
    beam *now, *next;
    int running, most; /* beams; candidates */
    candidate *best;
    int nbest;
    fac_beams done;
    fac_error *err;
} search;

static double score_of(const search *s, double sum, int64_t n) {
    return sum / pow((double)n, s->o.length_penalty);
}

/* ---- candidates ---- */

/* The best `most`, the best one first; of equals the one that came first. */
static void offer(search *s, candidate c) {
    int at = s->nbest;
    if (at == s->most && c.sum <= s->best[at - 1].sum) return;
    if (at < s->most)
        s->nbest++;
    else
        at--;
    for (; at && s->best[at - 1].sum < c.sum; at--) s->best[at] = s->best[at - 1];
    s->best[at] = c;
}

static bool ends(const search *s, int32_t id) {
    return s->step + 1 >= s->tokens || (!s->o.ignore_end && fac_tokenizer_ends(s->t, id));
}

static fac_status look(search *s) {
    s->nbest = 0;
    for (int b = 0; b < s->running; b++) {
        const float *logits = fac_session_logits(s->s, s->now[b].slot);
        if (!logits) return fac_raise(s->err, FAC_E_ARGUMENT, "an empty prompt");
        const double all = fac_log_sum(logits, s->vocabulary);
        if (isnan(all))
            return fac_raise(s->err, FAC_E_FORMAT,
                             "logits are no numbers: a weight is none, or numbers outgrow their "
                             "type");
        for (int64_t k = 0; k < s->vocabulary; k++) {
            const double sum = s->now[b].sum + (double)logits[k] - all;
            if (s->nbest < s->most || sum > s->best[s->nbest - 1].sum)
                offer(s, (candidate){ sum, b, (int32_t)k, ends(s, (int32_t)k) });
        }
    }
    return FAC_OK;
}

/* ---- texts that have ended ---- */

static fac_status finish(search *s, const candidate *c) {
    const double score = score_of(s, c->sum, s->step + 1);
    int at = s->done.n;
    if (at == s->o.beams && score <= s->done.at[at - 1].score) return FAC_OK;
    int32_t *ids = fac_alloc((size_t)s->step + 1, sizeof *ids);
    if (!ids) return fac_raise_memory(s->err, "a text");
    memcpy(ids, s->now[c->beam].ids, (size_t)s->step * sizeof *ids);
    ids[s->step] = c->id;
    if (at == s->o.beams)
        fac_release(s->done.at[--at].ids);
    else
        s->done.n++;
    for (; at && s->done.at[at - 1].score < score; at--) s->done.at[at] = s->done.at[at - 1];
    s->done.at[at] = (fac_beam){ ids, s->step + 1, score };
    return FAC_OK;
}

/* Of the best `beams` candidates; those after them would have been no beams. */
static fac_status finish_all(search *s) {
    for (int k = 0; k < s->nbest && k < s->o.beams; k++)
        if (s->best[k].ends) FAC_TRY(finish(s, &s->best[k]));
    return FAC_OK;
}

/* ---- beams that go on ---- */

static int choose(search *s) {
    int n = 0;
    for (int k = 0; k < s->nbest && n < s->o.beams; k++)
        if (!s->best[k].ends) s->best[n++] = s->best[k];
    return n;
}

/* The first one that goes on from a beam keeps its slot. */
static fac_status place(search *s, int n) {
    bool *taken = fac_alloc((size_t)s->o.beams, sizeof *taken);
    int free_ = 0;
    fac_status status = taken ? FAC_OK : fac_raise_memory(s->err, "a list of slots");
    for (int k = 0; k < n && !status; k++) s->next[k].slot = -1;
    for (int k = 0; k < n && !status; k++) {
        const int slot = s->now[s->best[k].beam].slot;
        if (taken[slot]) continue;
        taken[slot] = true;
        s->next[k].slot = slot;
    }
    for (int k = 0; k < n && !status; k++) {
        if (s->next[k].slot >= 0) continue;
        while (taken[free_]) free_++;
        taken[free_] = true;
        s->next[k].slot = free_;
        const int from = s->now[s->best[k].beam].slot;
        status = fac_session_copy(s->s, from, free_, fac_session_length(s->s, from), s->err);
    }
    fac_release(taken);
    return status;
}

static fac_status go_on(search *s) {
    const int n = choose(s);
    FAC_TRY(place(s, n));
    for (int k = 0; k < n; k++) {
        const candidate *c = &s->best[k];
        beam *b = &s->next[k];
        memcpy(b->ids, s->now[c->beam].ids, (size_t)s->step * sizeof *b->ids);
        b->ids[s->step] = c->id;
        b->sum = c->sum;
    }
    beam *other = s->now;
    s->now = s->next;
    s->next = other;
    s->running = n;
    s->step++;
    return FAC_OK;
}

/* Could the best beam still become one of the best texts? */
static bool is_over(const search *s) {
    if (!s->running) return true;
    if (s->done.n < s->o.beams) return false;
    if (s->o.early) return true;
    return score_of(s, s->now[0].sum, s->step) <= s->done.at[s->done.n - 1].score;
}

static fac_status work(search *s) {
    for (;;) {
        FAC_TRY(look(s));
        FAC_TRY(finish_all(s));
        FAC_TRY(go_on(s));
        if (is_over(s)) return FAC_OK;
        for (int k = 0; k < s->running; k++)
            FAC_TRY(fac_session_feed(s->s, s->now[k].slot, &s->now[k].ids[s->step - 1], 1, s->err));
        FAC_TRY(fac_session_step(s->s, s->err));
    }
}

/* ---- beginning and end ---- */

static void free_beams(beam *b, int n) {
    for (int k = 0; b && k < n; k++) fac_release(b[k].ids);
    fac_release(b);
}

static beam *new_beams(int n, int64_t tokens) {
    beam *b = fac_alloc((size_t)n, sizeof *b);
    bool good = b;
    for (int k = 0; k < n && good; k++) {
        b[k].ids = fac_alloc((size_t)tokens + 1, sizeof *b[k].ids);
        good = b[k].ids;
    }
    if (good) return b;
    free_beams(b, n);
    return NULL;
}

/* Each beam may end in each of its ends, and as many must be left. */
static int candidates(const search *s) {
    int n = 1;
    for (int64_t k = 0; k < s->vocabulary; k++) n += fac_tokenizer_ends(s->t, (int32_t)k);
    if (s->o.ignore_end || n < 2) n = 2;
    return n * s->o.beams;
}

static fac_status prepare(search *s, const int32_t *prompt, int64_t n) {
    const int64_t room = fac_session_facts(s->s).context - n;
    s->vocabulary = fac_session_facts(s->s).vocabulary;
    if (s->o.beams < 1 || s->o.tokens < 0 || room < 1)
        return fac_raise(s->err, FAC_E_ARGUMENT, "%d beams of %lld tokens after %lld", s->o.beams,
                         (long long)s->o.tokens, (long long)n);
    s->tokens = s->o.tokens && s->o.tokens < room ? s->o.tokens : room;
    s->most = candidates(s);
    s->now = new_beams(s->o.beams, s->tokens);
    s->next = new_beams(s->o.beams, s->tokens);
    s->best = fac_alloc((size_t)s->most, sizeof *s->best);
    s->done.at = fac_alloc((size_t)s->o.beams, sizeof *s->done.at);
    if (!s->now || !s->next || !s->best || !s->done.at)
        return fac_raise_memory(s->err, "%d beams", s->o.beams);
    for (int k = 0; k < s->o.beams; k++) FAC_TRY(fac_session_cut(s->s, k, 0, s->err));
    FAC_TRY(fac_session_feed(s->s, 0, prompt, n, s->err));
    s->running = 1;
    return fac_session_step(s->s, s->err);
}

fac_status fac_generate_beams(fac_session *s, const fac_tokenizer *t, const int32_t *prompt,
                              int64_t n, const fac_beam_opts *o, fac_beams *out, fac_error *err) {
    search w = { .s = s, .t = t, .err = err };
    if (o) w.o = *o;
    if (!w.o.beams) w.o.beams = USUAL_BEAMS;
    if (!o || isnan(w.o.length_penalty)) w.o.length_penalty = 1;
    fac_status status = prepare(&w, prompt, n);
    if (!status) status = work(&w);
    free_beams(w.now, w.o.beams);
    free_beams(w.next, w.o.beams);
    fac_release(w.best);
    if (status)
        fac_beams_free(&w.done);
    else
        *out = w.done;
    return status;
}

void fac_beams_free(fac_beams *b) {
    for (int k = 0; k < b->n; k++) fac_release(b->at[k].ids);
    fac_release(b->at);
    *b = (fac_beams){ 0 };
}
