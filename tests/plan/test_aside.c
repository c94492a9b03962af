/* Steps that are done beside others: in the plan of a training none of them shares memory with what
 * runs meanwhile, and on a device with a second queue a training is the one without it, to the last
 * bit. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fresh_seed.h"
#include "backends/device.h"
#include "base/rng.h"
#include "facula/facula.h"
#include "opencl_check.h"
#include "run/program_internal.h"

enum { BATCH = 2, STEPS = 3, SIDE = 28 };

static uint64_t seed;
static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

static fac_tensor *batch(void) {
    static float x[BATCH * SIDE * SIDE];
    fac_tensor *t = NULL;
    fac_random_fill(seed, 1, -1, 1, sizeof x / sizeof *x, x);
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(BATCH, 1, SIDE, SIDE), &t, &err));
    OK(fac_tensor_write(t, x, sizeof x, &err));
    return t;
}

static fac_tensor *classes(void) {
    const int64_t c[BATCH] = { 3, 7 };
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(BATCH), &t, &err));
    OK(fac_tensor_write(t, c, sizeof c, &err));
    return t;
}

static fac_trainer *trainer(fac_device *d, const char *name) {
    fac_graph *g = NULL;
    fac_trainer *t = NULL;
    OK(fac_zoo_new(name, NULL, seed, &g, &err));
    OK(fac_trainer_new(g, d, &(fac_trainer_opts){ 0 }, &t, &err));
    fac_graph_free(g);
    return t;
}

/* LeNet. */
static void train(fac_device *d, double *losses) {
    fac_trainer *t = trainer(d, "lenet");
    fac_tensor *x = batch(), *labels = classes();
    for (int i = 0; i < STEPS; i++) {
        fac_score score = { 0 };
        OK(fac_trainer_step(t, x, labels, 0.001, &score, &err));
        losses[i] = score.loss;
    }
    fac_trainer_free(t);
    fac_tensor_free(x);
    fac_tensor_free(labels);
}

/* ---- plans ---- */

static int begun, ended, met;
static bool able(fac_device *d) { return d != NULL; }
static fac_status count(int *n) {
    ++*n;
    return FAC_OK;
}
static fac_status begin(fac_device *d, fac_error *e) {
    (void)d, (void)e;
    return count(&begun);
}
static fac_status end(fac_device *d, fac_error *e) {
    (void)d, (void)e;
    return count(&ended);
}
static fac_status meet(fac_device *d, fac_error *e) {
    (void)d, (void)e;
    return count(&met);
}
static const fac_beside counting = { able, begin, end, meet };

/* Root r is written, or any memory that it has. */
static bool touches(const fac_plan *p, int r, int other) {
    if (r < 0 || other < 0) return false;
    const fac_root *a = &p->roots[r], *b = &p->roots[other];
    if (r == other) return true;
    if (a->kind != FAC_ROOT_ARENA || b->kind != FAC_ROOT_ARENA) return false;
    return a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

static bool any(const fac_plan *p, int r, const fac_slot *slots, int n) {
    bool found = false;
    for (int i = 0; i < n; i++) found |= touches(p, r, slots[i].root);
    return found;
}

/* Step t runs while s does. */
static void check_pair(const fac_plan *p, const fac_step *s, const fac_step *t) {
    const fac_problem *a = s->problem, *b = t->problem;
    for (int k = 0; k <= b->nout; k++) { /* what t writes */
        const int r = k < b->nout ? t->out[k].root : t->work;
        if (any(p, r, s->in, a->nin) || any(p, r, s->out, a->nout) || touches(p, r, s->work))
            fail_msg("%s writes over memory of %s, which is aside", t->label, s->label);
    }
    for (int k = 0; k < b->nin; k++)
        if (any(p, t->in[k].root, s->out, a->nout) || touches(p, t->in[k].root, s->work))
            fail_msg("%s reads what %s makes, which is aside", t->label, s->label);
}

static int check_plan(const fac_plan *p) {
    int aside = 0;
    for (int i = 0; i < p->nsteps; i++) {
        aside += p->steps[i].aside;
        for (int j = i + 1; p->steps[i].aside && j < p->nsteps && !p->steps[j].meet; j++)
            if (!p->steps[j].aside) check_pair(p, &p->steps[i], &p->steps[j]);
    }
    return aside;
}

static void nothing_shares_memory_with_what_is_aside(void **state) {
    (void)state;
    double losses[STEPS], without[STEPS];
    fac_device *cpu = NULL;
    fac_tensor *in[3] = { NULL, classes(), NULL };
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &cpu, &err));
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(BATCH, 3, 224, 224), &in[0], &err));
    OK(fac_tensor_new(NULL, FAC_F64, (fac_dims){ 0 }, &in[2], &err));
    const fac_backend *own = cpu->backend;
    fac_backend with = *own;
    with.beside = &counting;
    train(cpu, without);
    cpu->backend = &with;
    fac_trainer *t = trainer(cpu, "resnet18");
    OK(fac_program_plan(fac_trainer_program(t), in, NULL, &err));
    assert_int_equal(check_plan(fac_trainer_program(t)->last), 20); /* its convolutions */
    fac_trainer_free(t);
    train(cpu, losses);
    print_message("%d begun, %d met\n", begun, met);
    assert_true(begun == STEPS * 2 && ended == begun && met >= STEPS);
    assert_memory_equal(losses, without, sizeof losses);
    cpu->backend = own;
    for (int i = 0; i < 3; i++) fac_tensor_free(in[i]);
    fac_device_free(cpu);
}

/* ---- queues ---- */

static bool always(fac_device *d) { return d != NULL; }

static void a_second_queue_changes_nothing(void **state) {
    (void)state;
    double one[STEPS], two[STEPS];
    fac_device *d = NULL;
    assert_int_equal(opencl_open(&d, &err), 0);
    if (!d) skip();
    const fac_backend *own = d->backend;
    fac_backend with = *own;
    fac_beside beside = *own->beside;
    beside.able = always;
    with.beside = NULL;
    d->backend = &with;
    train(d, one);
    with.beside = &beside;
    train(d, two);
    d->backend = own;
    assert_memory_equal(one, two, sizeof one);
    fac_device_free(d);
}

int main(void) {
    seed = fresh_seed();
    const struct CMUnitTest tests[] = { cmocka_unit_test(nothing_shares_memory_with_what_is_aside),
                                        cmocka_unit_test(a_second_queue_changes_nothing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
