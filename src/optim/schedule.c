/* Learning rates as functions of the step, so a resumed training needs nothing but its step number;
 * the plateau, which looks at a metric, has a few numbers of memory beside. */
#include <math.h>
#include <string.h>
#include "optim/optim_internal.h"

static const double pi = 3.14159265358979323846;

/* From `from` at part 0 to `to` at part 1 along half a cosine. */
static double along(double from, double to, double part) {
    return to + (from - to) / 2 * (1 + cos(pi * part));
}

/* torch's OneCycleLR with its defaults (Smith & Topin 2017): the turn is at step rise * steps - 1,
 * the end at steps - 1. */
static double one_cycle(const fac_schedule *s, double t, double steps) {
    double rise = s->rise != 0 ? s->rise : 0.3, turn = rise * steps - 1, end = steps - 1;
    double first = s->lr / 25, last = first / 1e4;
    if (t >= end) return last;
    if (t > turn) return along(s->lr, last, (t - turn) / (end - turn));
    return along(first, s->lr, turn > 0 ? t / turn : 1);
}

/* Cosines of `every`, every * multiple, every * multiple^2... steps (Loshchilov & Hutter 2017,
 * SGDR). */
static double restarts(const fac_schedule *s, double t) {
    double length = s->every > 0 ? (double)s->every : 1,
           multiple = s->multiple > 1 ? (double)s->multiple : 1;
    if (multiple == 1) t = fmod(t, length);
    while (t >= length) {
        t -= length;
        length *= multiple;
    }
    return along(s->lr, s->low, t / length);
}

/* lr during the warm-up; after it, what the schedule says. */
static double warm(const fac_schedule *s, double lr, int64_t step) {
    return step < s->warmup ? lr * (double)(step + 1) / (double)s->warmup : lr;
}

double fac_schedule_lr(const fac_schedule *s, int64_t step) {
    if (step < s->warmup) return warm(s, s->lr, step);
    double t = (double)(step - s->warmup), steps = (double)(s->steps - s->warmup),
           part = t < steps ? t / steps : 1;
    double gamma = s->kind == FAC_SCHEDULE_STEP ? 0.1 : 0.95;
    if (s->gamma != 0) gamma = s->gamma;
    switch (s->kind) {
    case FAC_SCHEDULE_CONSTANT:
        return s->lr;
    case FAC_SCHEDULE_STEP:
        return s->every > 0 ? s->lr * pow(gamma, floor(t / (double)s->every)) : s->lr;
    case FAC_SCHEDULE_EXPONENTIAL:
        return s->lr * pow(gamma, t);
    case FAC_SCHEDULE_COSINE:
        return t >= steps ? s->low : along(s->lr, s->low, t / steps);
    case FAC_SCHEDULE_ONE_CYCLE:
        return one_cycle(s, t, steps);
    case FAC_SCHEDULE_LINEAR:
        return s->lr + (s->low - s->lr) * part;
    case FAC_SCHEDULE_POLYNOMIAL:
        return s->lr * pow(1 - part, fac_optim_or(s->power, 1));
    case FAC_SCHEDULE_RESTARTS:
        return restarts(s, t);
    case FAC_SCHEDULE_PLATEAU:
        return s->lr;
    }
    return s->lr;
}

/* ---- plateau: ReduceLROnPlateau ---- */

static bool better(const fac_schedule *s, double metric, double best) {
    double threshold = s->threshold < 0 ? 0 : fac_optim_or(s->threshold, 1e-4),
           sign = s->rising ? 1 : -1;
    double mark = s->absolute ? best + sign * threshold : best * (1 + sign * threshold);
    return s->rising ? metric > mark : metric < mark;
}

void fac_plateau_next(const fac_schedule *s, double metric, fac_plateau *p) {
    const double least = 1e-8; /* cuts smaller than this are not made */
    int64_t patience = s->patience ? s->patience : 10;
    if (patience < 0) patience = 0;
    if (!p->seen++) {
        p->lr = s->lr;
        p->best = s->rising ? -INFINITY : INFINITY;
    }
    if (better(s, metric, p->best)) {
        p->best = metric;
        p->bad = 0;
    } else {
        p->bad++;
    }
    if (p->cooldown > 0) p->cooldown--, p->bad = 0;
    if (p->bad <= patience) return;
    double lower = fmax(p->lr * fac_optim_or(s->gamma, 0.1), s->low);
    if (p->lr - lower > least) p->lr = lower;
    p->cooldown = s->cooldown;
    p->bad = 0;
}

double fac_plateau_lr(const fac_schedule *s, const fac_plateau *p, int64_t step) {
    return warm(s, p->seen ? p->lr : s->lr, step);
}

static const char *const names[] = { "constant", "step",       "exponential", "cosine", "one-cycle",
                                     "linear",   "polynomial", "restarts",    "plateau" };

const char *fac_schedule_name(fac_schedule_kind kind) { return names[kind]; }

bool fac_schedule_find(const char *name, fac_schedule_kind *out) {
    for (int k = 0; k <= FAC_SCHEDULE_PLATEAU; k++)
        if (name && !strcmp(names[k], name)) {
            *out = (fac_schedule_kind)k;
            return true;
        }
    return false;
}
