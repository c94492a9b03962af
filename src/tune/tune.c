/* Tuning in place: the program runs many times, in each pass with another candidate for each of its
 * problems, and each step is timed where it works.  Measured alone and with cold caches, solvers
 * come out in another order: blockings found that way were 15 to 20 % slower in their network than
 * those that this finds.
 *
 *   subjects   the different problems of the program, and for each everything that offers to solve
 *              it (tune_subject.c)
 *   passes     in pass k problem j takes candidate (k + j) mod (how many it has): no two passes
 *              meet the same neighbours
 *   winners    the least time of a step, with the reorders and packs in front of it, which its
 *              wishes brought about
 *   again      all winners at once against the estimates' choices, timed anew: the least of many
 *              times flatters, so a winner that does not win once more is none
 *   check      a winner other than the estimate's choice must give what the reference kernels or,
 *              for other devices, the cpu's solvers give (tune_check.c), or the next one is looked
 *              for
 *   verdict    the whole program with the winners against the one without, in turns: if it is not
 *              faster in nearly all, nothing changes */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/clock.h"
#include "tune/tune.h"

typedef fac_tune_candidate candidate;
typedef fac_tune_subject subject;
typedef fac_tuning tuning;

/* FASTER: of the alternations; 12 throws of a coin show one side so often in 1 of 50 cases. */
enum { RUNS = 3, MOST_RUNS = 64, AGAIN = 2, ALTERNATIONS = 12, FASTER = 10 };

static const double GAIN = 0.97; /* of the default's time, at most: less is noise */

/* ---- programs that differ in their wisdom ---- */

static fac_status learn(fac_wisdom *w, const tuning *t, const subject *s, int which,
                        fac_error *err) {
    const candidate *c = &s->at[which], *usual = &s->at[s->usual];
    const fac_wisdom_entry e = { fac_device_key(t->p->device),
                                 s->key,
                                 c->is.solver->name,
                                 c->is.variant,
                                 c->is.version,
                                 isfinite(c->seconds) ? c->seconds : 0,
                                 isfinite(usual->seconds) ? usual->seconds : 0 };
    return fac_wisdom_put(w, &e, err);
}

/* The same program with this wisdom alone, compiled for the inputs. */
static fac_status program_with(const tuning *t, const fac_wisdom *w, fac_program **out,
                               fac_error *err) {
    fac_program_opts o = t->p->opts;
    o.wisdom = w;
    FAC_TRY(fac_program_new(t->p->graph, t->p->device, &o, out, err));
    fac_status status = fac_program_plan(*out, t->in, NULL, err);
    if (status) fac_program_free(*out), *out = NULL;
    return status;
}

static fac_status run_once(fac_program *p, fac_tensor *const in[], double *seconds,
                           fac_error *err) {
    const size_t n = p->graph->noutputs;
    fac_tensor **out = fac_alloc(n + 1, sizeof *out);
    if (!out) return fac_raise_memory(err, "%zu outputs", n);
    const double start = fac_now();
    fac_status status = fac_program_run(p, in, out, err);
    if (!status) status = fac_device_sync(p->device, err);
    *seconds = fac_now() - start;
    for (size_t i = 0; i < n; i++) fac_tensor_free(out[i]);
    fac_release(out);
    return status;
}

/* ---- passes ---- */

/* How many of the run's commands are those of the step; *k: the first that may be. */
static size_t commands_of(const fac_plan *plan, const fac_step *step, size_t *k) {
    size_t n = 0;
    while (*k < plan->ncommands && plan->commands[*k].step == step->label) ++*k, n++;
    return n;
}

/* Times of the run that just ended, by subject: the mean over its steps, each with the reorders and
 * packs before it.  A device's clock says nothing of the time between two commands, which a solver
 * pays for each of its own. */
static fac_status note(tuning *t, const fac_plan *plan) {
    double before = 0;
    size_t k = 0;
    for (size_t i = 0; i < t->n; i++) {
        t->at[i].sum = 0;
        t->at[i].steps = 0;
        t->at[i].ran = -1;
    }
    for (int i = 0; i < plan->nsteps; i++) {
        const fac_step *step = &plan->steps[i];
        const double seconds = step->seconds + t->launch * (double)commands_of(plan, step, &k);
        if (step->kind == FAC_STEP_PACKS) continue; /* for steps all over the plan */
        before += seconds;
        if (!fac_tune_is_subject(step)) continue;
        char *key = fac_problem_key(step->problem);
        if (!key) return fac_raise(t->err, FAC_E_NOMEM, "no memory to tune %s", step->label);
        subject *s = fac_tune_subject_of(t, key);
        fac_release(key);
        const int which = s ? fac_tune_place_of(s, step->solver, step->problem->variant) : -1;
        if (which >= 0) {
            s->ran = s->steps && s->ran != which ? -1 : which;
            s->sum += before;
            s->steps++;
        }
        before = 0;
    }
    for (size_t i = 0; i < t->n; i++) {
        subject *s = &t->at[i];
        if (s->ran >= 0) s->at[s->ran].seconds = fmin(s->at[s->ran].seconds, s->sum / s->steps);
    }
    return FAC_OK;
}

/* What a command costs beside its own time: what a run takes longer than all its commands, by their
 * number. */
static fac_status price(tuning *t, fac_program *p) {
    double least = INFINITY, busy = 0, seconds;
    if (!t->p->device->backend->watch) return FAC_OK;
    for (int i = 0; i <= RUNS; i++) {
        FAC_TRY(run_once(p, t->in, &seconds, t->err));
        if (i) least = fmin(least, seconds);
    }
    fac_program_profile(p, true);
    FAC_TRY(run_once(p, t->in, &seconds, t->err));
    const fac_plan *plan = p->last;
    for (size_t k = 0; k < plan->ncommands; k++)
        busy += plan->commands[k].end - plan->commands[k].start;
    if (plan->ncommands) t->launch = fmax(0, least - busy) / (double)plan->ncommands;
    return FAC_OK;
}

static fac_status measure(tuning *t, fac_program *p) {
    const double limit = t->o->seconds > 0 ? t->o->seconds : 0.2, start = fac_now();
    double seconds;
    FAC_TRY(run_once(p, t->in, &seconds, t->err));
    for (int i = 0; i < RUNS || (i < MOST_RUNS && fac_now() - start < limit); i++) {
        fac_program_profile(p, true);
        FAC_TRY(run_once(p, t->in, &seconds, t->err));
        FAC_TRY(note(t, p->last));
    }
    return FAC_OK;
}

static fac_status pass(tuning *t, int k) {
    fac_wisdom *w = NULL;
    fac_program *p = NULL;
    FAC_TRY(fac_wisdom_new(&w, t->err));
    fac_status status = FAC_OK;
    for (size_t j = 0; j < t->n && !status; j++)
        if (t->at[j].n)
            status = learn(w, t, &t->at[j], (int)(((size_t)k + j) % (size_t)t->at[j].n), t->err);
    if (!status) status = program_with(t, w, &p, t->err);
    if (!status) {
        status = measure(t, p);
        fac_program_free(p);
    }
    fac_wisdom_free(w);
    return status;
}

static fac_status passes(tuning *t) {
    int most = 1, rounds = t->o->rounds > 0 ? t->o->rounds : 2;
    for (size_t j = 0; j < t->n; j++)
        if (t->at[j].n > most) most = t->at[j].n;
    for (int r = 0; r < rounds; r++)
        for (int k = 0; k < most; k++) {
            if (t->o->progress) t->o->progress(t->o->self, r * most + k, rounds * most);
            FAC_TRY(pass(t, k));
        }
    if (t->o->progress) t->o->progress(t->o->self, rounds * most, rounds * most);
    return FAC_OK;
}

static void tell(const tuning *t) {
    for (size_t j = 0; j < t->n && t->o->measured; j++)
        for (int i = 0; i < t->at[j].n; i++) {
            const candidate *c = &t->at[j].at[i];
            const fac_tuned told = { c->is.solver->name, c->is.variant, c->is.seconds, c->seconds };
            t->o->measured(t->o->self, t->at[j].key, &told);
        }
}

/* ---- winners ---- */

static bool wins(const subject *s, int which) {
    const double usual = s->at[s->usual].seconds;
    return isfinite(usual) && s->at[which].seconds < GAIN * usual;
}

/* The usual choice when nothing is clearly faster. */
static int fastest(const subject *s) {
    int best = s->usual;
    for (int i = 0; i < s->n; i++)
        if (s->at[i].seconds < s->at[best].seconds) best = i;
    return wins(s, best) ? best : s->usual;
}

static fac_status check(tuning *t, subject *s, fac_tune_stat *stat) {
    bool right = false;
    const candidate *c = &s->at[s->best];
    if (!t->judge && strcmp(t->p->device->backend->name, "cpu"))
        FAC_TRY(fac_device_open("cpu", &(fac_device_opts){ .wisdom = "" }, &t->judge, t->err));
    FAC_TRY(fac_tune_check(t->p->device, t->judge, s->key, c->is.solver->name, c->is.variant,
                           c->is.version, &right, t->err));
    s->open = !right;
    if (right) return FAC_OK;
    stat->refused++;
    s->at[s->best].seconds = INFINITY;
    return FAC_OK;
}

/* Once more, as in a pass: the estimates' choices and all winners, in turns. */
static fac_status again(tuning *t, const fac_wisdom *none) {
    fac_wisdom *w = NULL;
    fac_program *both[2] = { NULL };
    fac_status status = fac_wisdom_new(&w, t->err);
    for (size_t j = 0; j < t->n && !status; j++) {
        subject *s = &t->at[j];
        status = learn(w, t, s, s->best, t->err);
        if (s->best != s->usual) s->at[s->best].seconds = s->at[s->usual].seconds = INFINITY;
    }
    for (int k = 0; k < 2 && !status; k++) status = program_with(t, k ? w : none, &both[k], t->err);
    for (int i = 0; i < 2 * AGAIN && !status; i++) status = measure(t, both[i % 2]);
    for (int k = 0; k < 2; k++) fac_program_free(both[k]);
    fac_wisdom_free(w);
    for (size_t j = 0; j < t->n; j++) {
        subject *s = &t->at[j];
        if (!wins(s, s->best)) s->best = s->usual;
    }
    return status;
}

/* The fastest that are right and fast twice. */
static fac_status settle(tuning *t, const fac_wisdom *none, fac_tune_stat *stat) {
    for (size_t j = 0; j < t->n; j++) {
        subject *s = &t->at[j];
        s->best = fastest(s);
        s->open = s->best != s->usual;
        stat->winners += s->open;
    }
    for (bool more = stat->winners > 0; more;) {
        FAC_TRY(again(t, none));
        more = false;
        for (size_t j = 0; j < t->n; j++) {
            subject *s = &t->at[j];
            if (s->open && s->best != s->usual)
                FAC_TRY(check(t, s, stat));
            else
                s->open = false;
            if (s->open) s->best = fastest(s);
            s->open = s->open && s->best != s->usual;
            more = more || s->open;
        }
    }
    for (size_t j = 0; j < t->n; j++) stat->confirmed += t->at[j].best != t->at[j].usual;
    return FAC_OK;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* faster: in how many turns the one with what was learnt was. */
static fac_status alternate(const tuning *t, const fac_wisdom *w, const fac_wisdom *none,
                            fac_tune_stat *stat, int *faster) {
    double before[ALTERNATIONS], after[ALTERNATIONS], warm;
    fac_program *usual = NULL, *tuned = NULL;
    *faster = 0;
    FAC_TRY(program_with(t, none, &usual, t->err));
    fac_status status = program_with(t, w, &tuned, t->err);
    if (!status) status = run_once(usual, t->in, &warm, t->err);
    if (!status) status = run_once(tuned, t->in, &warm, t->err);
    for (int i = 0; i < ALTERNATIONS && !status; i++) {
        status = run_once(usual, t->in, &before[i], t->err);
        if (!status) status = run_once(tuned, t->in, &after[i], t->err);
        if (!status) *faster += after[i] < before[i];
    }
    fac_program_free(usual);
    fac_program_free(tuned);
    if (status) return status;
    qsort(before, ALTERNATIONS, sizeof *before, by_value);
    qsort(after, ALTERNATIONS, sizeof *after, by_value);
    stat->before = before[ALTERNATIONS /
                          4]; /* whoever else runs on the machine makes runs slower, never faster */
    stat->together = stat->after = after[ALTERNATIONS / 4];
    return FAC_OK;
}

/* What was learnt, for all subjects or, when the whole is not faster with it, only that the
 * estimates are as good. */
static fac_status verdict(tuning *t, const fac_wisdom *none, fac_wisdom *into,
                          fac_tune_stat *stat) {
    fac_wisdom *w = NULL;
    FAC_TRY(fac_wisdom_new(&w, t->err));
    fac_status status = FAC_OK;
    int better = 0, faster = 0;
    for (size_t j = 0; j < t->n && !status; j++) {
        better += t->at[j].best != t->at[j].usual;
        status = learn(w, t, &t->at[j], t->at[j].best, t->err);
    }
    if (!status) status = alternate(t, w, none, stat, &faster);
    const bool keep = !status && better && stat->after < stat->before && faster >= FASTER;
    for (size_t j = 0; j < t->n && !status; j++) {
        subject *s = &t->at[j];
        if (!keep) s->best = s->usual;
        stat->changed += s->best != s->usual;
        status = learn(into, t, s, s->best, t->err);
    }
    fac_wisdom_free(w);
    if (!status && !keep) stat->after = stat->before;
    return status;
}

static fac_status tune(tuning *t, const fac_wisdom *none, fac_wisdom *into, fac_tune_stat *stat) {
    fac_program *p = NULL;
    FAC_TRY(program_with(t, none, &p, t->err));
    fac_status status = FAC_OK;
    for (int i = 0; i < p->last->nsteps && !status; i++)
        if (fac_tune_is_subject(&p->last->steps[i])) status = fac_tune_add(t, &p->last->steps[i]);
    if (!status) status = price(t, p);
    fac_program_free(p);
    FAC_TRY(status);
    stat->problems = (int)t->n;
    for (size_t j = 0; j < t->n; j++) stat->candidates += t->at[j].n;
    FAC_TRY(passes(t));
    tell(t);
    FAC_TRY(settle(t, none, stat));
    return verdict(t, none, into, stat);
}

fac_status fac_program_tune(fac_program *p, fac_tensor *const in[], const fac_tune_opts *opts,
                            fac_wisdom *into, fac_tune_stat *stat, fac_error *err) {
    const fac_tune_opts usual = { 0 };
    fac_tune_stat s = { 0 };
    fac_wisdom *none = NULL;
    if (!p || !into)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_program_tune: %s is NULL",
                         p ? "into" : "the program");
    FAC_TRY(fac_wisdom_new(&none, err));
    tuning t = { .p = p, .in = in, .o = opts ? opts : &usual, .err = err };
    fac_status status = tune(&t, none, into, &s);
    fac_tune_forget(&t);
    fac_wisdom_free(none);
    if (!status && stat) *stat = s;
    return status;
}
