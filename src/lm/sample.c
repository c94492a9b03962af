/* The next token from logits: penalties, top-k, top-p, min-p, temperature, a draw. */
#include <math.h>
#include <stdlib.h>
#include "base/memory.h"
#include "base/rng.h"
#include "lm/lm.h"

static int by_logit(const void *a, const void *b) {
    const fac_token_chance *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool is_better(const fac_token_chance *a, const fac_token_chance *b) {
    return by_logit(a, b) < 0;
}

/* ---- penalties ---- */

static void punish(const fac_sampler *s, fac_token_chance *c, int count) {
    const double repeat = s->repeat > 0 ? s->repeat : 1;
    c->logit = (float)(c->logit > 0 ? (double)c->logit / repeat : (double)c->logit * repeat);
    c->logit -= (float)(s->presence + s->frequency * count);
}

static void penalties(const fac_sampler *s, fac_token_chance *c, int64_t vocabulary,
                      const int32_t *past, int64_t n) {
    const int64_t last = s->last > 0 ? s->last : 64;
    const int64_t from = n > last ? n - last : 0;
    if ((s->repeat <= 0 || s->repeat == 1) && s->presence == 0 && s->frequency == 0) return;
    for (int64_t k = from; k < n; k++) {
        int count = 0;
        bool before = false;
        for (int64_t j = from; j < n; j++) {
            count += past[j] == past[k];
            before |= j < k && past[j] == past[k];
        }
        if (!before && past[k] >= 0 && past[k] < vocabulary) punish(s, &c[past[k]], count);
    }
}

static void add_biases(const fac_sampler *s, fac_token_chance *c, int64_t vocabulary) {
    for (int k = 0; k < s->nbias; k++)
        if (s->bias[k].id >= 0 && s->bias[k].id < vocabulary)
            c[s->bias[k].id].logit += s->bias[k].bias;
}

/* ---- who is left ---- */

/* The k best come first, in order: a heap whose root is the worst of them. */
static int64_t best_of(fac_token_chance *c, int64_t n, int64_t k) {
    if (k <= 0 || k >= n) {
        qsort(c, (size_t)n, sizeof *c, by_logit);
        return n;
    }
    qsort(c, (size_t)k, sizeof *c, by_logit);
    for (int64_t i = k; i < n; i++) {
        if (!is_better(&c[i], &c[k - 1])) continue;
        const fac_token_chance one = c[i];
        int64_t at = k - 1;
        for (; at > 0 && is_better(&one, &c[at - 1]); at--) c[at] = c[at - 1];
        c[at] = one;
    }
    return k;
}

static void probabilities(fac_token_chance *c, int64_t n, double temperature) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += c[k].p = exp(((double)c[k].logit - (double)c[0].logit) / temperature);
    for (int64_t k = 0; k < n; k++) c[k].p /= sum;
}

/* The least set that adds up to p; always one. */
static int64_t top_p(const fac_token_chance *c, int64_t n, double p) {
    double sum = 0;
    if (p <= 0 || p >= 1) return n;
    for (int64_t k = 0; k < n; k++)
        if ((sum += c[k].p) >= p) return k + 1;
    return n;
}

static int64_t min_p(const fac_token_chance *c, int64_t n, double p) {
    int64_t k = 1;
    if (p <= 0) return n;
    while (k < n && c[k].p >= p * c[0].p) k++;
    return k;
}

static int32_t draw(const fac_sampler *s, const fac_token_chance *c, int64_t n, int64_t position) {
    double u = fac_random_uniform(s->seed, 1, (uint64_t)position);
    for (int64_t k = 0; k < n; k++)
        if ((u -= c[k].p) < 0) return c[k].id;
    return c[n - 1].id;
}

double fac_log_sum(const float *logits, int64_t n) {
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++) most = (double)logits[k] > most ? (double)logits[k] : most;
    for (int64_t k = 0; k < n; k++) sum += exp((double)logits[k] - most);
    return most + log(sum);
}

static int32_t choose(const fac_sampler *s, fac_token_chance *c, int64_t vocabulary,
                      const int32_t *past, int64_t n) {
    penalties(s, c, vocabulary, past, n);
    add_biases(s, c, vocabulary);
    if (!(s->temperature > 0)) {
        best_of(c, vocabulary, 1);
        return c[0].id;
    }
    int64_t left = best_of(c, vocabulary, s->top_k);
    probabilities(c, left, 1);
    left = top_p(c, left, s->top_p);
    left = min_p(c, left, s->min_p);
    probabilities(c, left, s->temperature);
    return draw(s, c, left, n);
}

/* Nothing changes the order of the logits. */
static bool is_plain(const fac_sampler *s) {
    const bool repeats = s->repeat > 0 && s->repeat != 1;
    return !(s->temperature > 0) && !repeats && s->presence == 0 && s->frequency == 0 && !s->nbias;
}

static float larger(float a, float b) { return b > a ? b : a; }

/* The first of the largest: maxima of lanes, then where it stands; -1: none of them is a number. */
static int32_t largest_of(const float *x, int64_t n) {
    enum { LANES = 16 };
    float most[LANES];
    int64_t k = 0, at = 0;
    for (int l = 0; l < LANES; l++) most[l] = -INFINITY;
    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++) most[l] = larger(most[l], x[k + l]);
    for (; k < n; k++) most[0] = larger(most[0], x[k]);
    for (int l = 1; l < LANES; l++) most[0] = larger(most[0], most[l]);
    while (at < n && x[at] != most[0]) at++;
    return (int32_t)(at < n ? at : -1);
}

int32_t fac_sample_in(const fac_sampler *s, const float *logits, int64_t vocabulary,
                      const bool *allowed, const int32_t *past, int64_t n, fac_token_chance *room) {
    int64_t numbers = 0;
    if (!allowed && is_plain(s)) return largest_of(logits, vocabulary);
    for (int64_t k = 0; k < vocabulary; k++) {
        const bool number = !isnan(logits[k]);
        numbers += number;
        room[k] = (fac_token_chance){ number ? logits[k] : -INFINITY, (int32_t)k, 0 };
    }
    if (!numbers) return -1;
    for (int64_t k = 0; k < vocabulary && allowed; k++)
        if (!allowed[k]) room[k].logit = -INFINITY;
    return choose(s, room, vocabulary, past, n);
}

int32_t fac_sample(const fac_sampler *s, const float *logits, int64_t vocabulary,
                   const int32_t *past, int64_t n, double *logprob) {
    fac_token_chance *c = fac_alloc((size_t)vocabulary, sizeof *c);
    if (!c) return -1;
    const int32_t id = fac_sample_in(s, logits, vocabulary, NULL, past, n, c);
    fac_release(c);
    if (logprob && id >= 0) *logprob = (double)logits[id] - fac_log_sum(logits, vocabulary);
    return id;
}
