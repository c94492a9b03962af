/* Learning rates as functions of the step: no state, so a resumed training needs nothing but its step number. */
#include <math.h>
#include <string.h>
#include "facula/optim.h"

static const double pi = 3.14159265358979323846;

/* From `from` at part 0 to `to` at part 1 along half a cosine. */
static double along(double from, double to, double part) { return to + (from - to) / 2 * (1 + cos(pi * part)); }

/* torch's OneCycleLR with its defaults (Smith & Topin 2017): the turn is at step rise * steps - 1, the end at steps - 1. */
static double one_cycle(const fac_schedule *s, double t, double steps) {
    double rise = s->rise != 0 ? s->rise : 0.3, turn = rise * steps - 1, end = steps - 1;
    double first = s->lr / 25, last = first / 1e4;
    if (t >= end) return last;
    return t <= turn ? along(first, s->lr, turn > 0 ? t / turn : 1) : along(s->lr, last, (t - turn) / (end - turn));
}

double fac_schedule_lr(const fac_schedule *s, int64_t step) {
    if (step < s->warmup) return s->lr * (double)(step + 1) / (double)s->warmup;
    double t = (double)(step - s->warmup), steps = (double)(s->steps - s->warmup);
    double gamma = s->gamma != 0 ? s->gamma : s->kind == FAC_SCHEDULE_STEP ? 0.1 : 0.95;
    switch (s->kind) {
    case FAC_SCHEDULE_CONSTANT:    return s->lr;
    case FAC_SCHEDULE_STEP:        return s->every > 0 ? s->lr * pow(gamma, floor(t / (double)s->every)) : s->lr;
    case FAC_SCHEDULE_EXPONENTIAL: return s->lr * pow(gamma, t);
    case FAC_SCHEDULE_COSINE:      return t >= steps ? s->low : along(s->lr, s->low, t / steps);
    case FAC_SCHEDULE_ONE_CYCLE:   return one_cycle(s, t, steps);
    }
    return s->lr;
}

static const char *const names[] = { "constant", "step", "exponential", "cosine", "one-cycle" };

const char *fac_schedule_name(fac_schedule_kind kind) { return names[kind]; }

bool fac_schedule_find(const char *name, fac_schedule_kind *out) {
    for (int k = 0; k <= FAC_SCHEDULE_ONE_CYCLE; k++)
        if (name && !strcmp(names[k], name)) {
            *out = (fac_schedule_kind)k;
            return true;
        }
    return false;
}
