/* Solvers of softmax whose speed and faults are known. */
#ifndef FACULA_TUNE_SOLVERS_H
#define FACULA_TUNE_SOLVERS_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "backends/wisdom.h"
#include "tune/tune.h"
#include "tune_check.h"

enum { VERSION = 3, SLOW_MS = 8, FAIR_MS = 4 };

static int hopeless_runs, wrong_runs;

/* A plan beside softmax's own: which of ours it is for. */
typedef struct plan {
    void *inner;
    bool slow, wrong, hopeless;
    int variant;
} plan;

static bool offer_like(fac_device *d, fac_problem *p, fac_offer *o, double share) {
    return offer_softmax(d, p, o, 1e-4 * share);
}

/* Recommended, and slow but for its second variant. */
static bool offer_slow(fac_device *d, fac_problem *p, fac_offer *o) {
    if (p->variant > 2 || !offer_like(d, p, o, 0.5)) return false;
    o->variants = 2;
    o->version = VERSION;
    return true;
}
static bool offer_wrong(fac_device *d, fac_problem *p, fac_offer *o) {
    return !p->variant && offer_like(d, p, o, 0.9);
}
static bool offer_hopeless(fac_device *d, fac_problem *p, fac_offer *o) {
    return !p->variant && offer_like(d, p, o, 100);
}
/* Right and quick, but not as quick as the second variant of the slow one. */
static bool offer_fair(fac_device *d, fac_problem *p, fac_offer *o) {
    return !p->variant && offer_like(d, p, o, 1);
}

static fac_status make_as(fac_device *d, const fac_problem *p, void **out, fac_error *e,
                          plan kind) {
    plan *s = calloc(1, sizeof *s);
    *s = kind;
    s->variant = p->variant;
    *out = s;
    return fac_cpu_softmax.make(d, p, &s->inner, e);
}
static fac_status make_slow(fac_device *d, const fac_problem *p, void **out, fac_error *e) {
    return make_as(d, p, out, e, (plan){ .slow = true });
}
static fac_status make_wrong(fac_device *d, const fac_problem *p, void **out, fac_error *e) {
    return make_as(d, p, out, e, (plan){ .wrong = true });
}
static fac_status make_hopeless(fac_device *d, const fac_problem *p, void **out, fac_error *e) {
    return make_as(d, p, out, e, (plan){ .hopeless = true });
}
static fac_status make_fair(fac_device *d, const fac_problem *p, void **out, fac_error *e) {
    return make_as(d, p, out, e, (plan){ 0 });
}
static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *e) {
    const plan *s = arg;
    fac_status status = fac_cpu_softmax.run(s->inner, d, in, out, work, e);
    hopeless_runs += s->hopeless;
    wrong_runs += s->wrong;
    if (s->wrong)
        ((float *)out[0].memory)[out[0].at / 4] += 1;
    else if (!s->slow)
        now += 1e-3 * FAIR_MS;
    else if (s->variant != 2)
        now += 1e-3 * SLOW_MS;
    return status;
}

static const fac_solver slow = {
    .name = "softmax/slow", .offer = offer_slow, .make = make_slow, .done = done_softmax, .run = run
};
static const fac_solver wrong = { .name = "softmax/wrong",
                                  .offer = offer_wrong,
                                  .make = make_wrong,
                                  .done = done_softmax,
                                  .run = run };
static const fac_solver hopeless = { .name = "softmax/hopeless",
                                     .offer = offer_hopeless,
                                     .make = make_hopeless,
                                     .done = done_softmax,
                                     .run = run };
static const fac_solver fair = {
    .name = "softmax/fair", .offer = offer_fair, .make = make_fair, .done = done_softmax, .run = run
};

/* What the program chose for its only node. */
static fac_step_stat chosen(fac_program *p, fac_tensor *x) {
    fac_tensor *y = NULL;
    fac_step_stat s;
    OK(fac_program_run(p, &x, &y, err));
    fac_tensor_free(y);
    assert_int_equal(fac_program_steps(p, &s, 1), 1);
    return s;
}

static void assert_choice(const fac_graph *g, const fac_wisdom *w, const char *solver,
                          int variant) {
    fac_program *p;
    fac_tensor *x = input();
    OK(fac_program_new(g, device, &(fac_program_opts){ .wisdom = w }, &p, err));
    const fac_step_stat s = chosen(p, x);
    assert_string_equal(s.solver, solver);
    assert_int_equal(s.variant, variant);
    assert_string_equal(s.op, "softmax");
    assert_string_equal(s.layouts, "plain -> plain");
    fac_tensor_free(x);
    fac_program_free(p);
}
#endif
