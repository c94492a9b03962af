/* What tests of tuning share: a device with their solvers alone, which are softmax's own slowed
 * down, and a clock that only these make advance (tests/CMakeLists.txt), so that nothing depends on
 * the machine. */
#ifndef FAC_TESTS_TUNE_CHECK_H
#define FAC_TESTS_TUNE_CHECK_H

#include <stdlib.h>
#include <string.h>
#include "program_check.h"
#include "op_list.h"

extern const fac_solver fac_cpu_softmax;

static const char problem_text[] = "softmax(f32[8,32])";

static double now;
static bool real_solvers;
double __real_fac_now(void);
double __wrap_fac_now(void);
double __wrap_fac_now(void) { return real_solvers ? __real_fac_now() : (now += 1e-6); }

static bool offer_softmax(fac_device *d, const fac_problem *p, fac_offer *o, double seconds) {
    fac_problem q = *p;
    if (!FAC_IS(p->node, softmax) || !fac_cpu_softmax.offer(d, &q, o)) return false;
    o->seconds = seconds;
    return true;
}

/* Plans begin with softmax's own. */
static void done_softmax(fac_device *d, void *arg) {
    void *inner = *(void **)arg;
    if (inner) fac_cpu_softmax.done(d, inner);
    free(arg);
}

/* The device has these solvers alone (and the reference after them). */
static fac_backend own;
static void give(const fac_solver *const *all) {
    static const fac_solver *list[8];
    int n = 0;
    for (; all[n]; n++) list[n] = all[n];
    list[n] = NULL;
    own = *device->backend;
    own.solvers = list;
    device->backend = &own;
}

static fac_graph *one_softmax(void) {
    fac_graph *g;
    OK(fac_problem_graph(problem_text, true, &g, err));
    return g;
}

static fac_tensor *input(void) {
    fac_tensor *x;
    OK(fac_tensor_new(NULL, FAC_F32, (fac_dims){ 2, { 8, 32 } }, &x, err));
    return x;
}

#endif
