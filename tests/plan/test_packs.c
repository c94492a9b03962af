/* Weights that a run changes, packed together: a cpu that is given a packer trains as the one
 * without it, to the last bit, in fewer steps. */
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
#include "program_check.h"

enum { BATCH = 4, STEPS = 3, MANY = 400 };

/* ---- a packer that packs one by one ---- */

typedef struct jobs {
    const fac_pack_job *job;
    int n;
} jobs;
static int made, done, packed;

static bool takes(const fac_solver *s) { return s->pack; }

static fac_status make(fac_device *d, const fac_pack_job *job, int n, void **plan, fac_error *e) {
    jobs *j = malloc(sizeof *j);
    (void)d, (void)e;
    *j = (jobs){ job, n };
    *plan = j;
    made++;
    return FAC_OK;
}

static void undo(fac_device *d, void *plan) {
    (void)d;
    free(plan);
    done++;
}

static fac_status pack(const void *plan, fac_device *d, const fac_span *from, fac_span to,
                       fac_error *e) {
    const jobs *j = plan;
    for (int i = j->n - 1; i >= 0; i--) {
        const fac_pack_job *job = &j->job[i];
        const fac_span result = { to.memory, to.at + job->to };
        const fac_status status =
            job->solver->pack(job->plan, d, job->input, from[job->from], result, e);
        if (status) return status;
        packed++;
    }
    return FAC_OK;
}

static const fac_packer packer = { takes, make, undo, pack };

/* ---- trainings ---- */

static uint64_t seed;

static fac_tensor *batch(void) {
    static float x[BATCH * 28 * 28];
    fac_tensor *t = NULL;
    fac_random_fill(seed, 1, -1, 1, sizeof x / sizeof *x, x);
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(BATCH, 1, 28, 28), &t, err));
    OK(fac_tensor_write(t, x, sizeof x, err));
    return t;
}

static fac_tensor *classes(void) {
    int64_t c[BATCH];
    fac_tensor *t = NULL;
    for (int i = 0; i < BATCH; i++) c[i] = (int64_t)(fac_random_bits(seed, 2, (uint64_t)i) % 10);
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(BATCH), &t, err));
    OK(fac_tensor_write(t, c, sizeof c, err));
    return t;
}

/* Losses of a few steps, and how many steps of the plan pack. */
static int train(double *losses) {
    static fac_step_stat s[MANY];
    fac_graph *g = NULL;
    fac_trainer *t = NULL;
    fac_tensor *x = batch(), *labels = classes();
    int packs = 0;
    OK(fac_zoo_new("lenet", NULL, seed, &g, err));
    OK(fac_trainer_new(g, device, &(fac_trainer_opts){ 0 }, &t, err));
    for (int i = 0; i < STEPS; i++) {
        fac_score score = { 0 };
        OK(fac_trainer_step(t, x, labels, 0.01, &score, err));
        losses[i] = score.loss;
    }
    const size_t n = fac_program_steps(fac_trainer_program(t), s, MANY);
    assert_true(n < MANY);
    for (size_t i = 0; i < n; i++) packs += !strcmp(s[i].op, "pack");
    fac_trainer_free(t);
    fac_graph_free(g);
    fac_tensor_free(x);
    fac_tensor_free(labels);
    return packs;
}

static void packed_together_or_one_by_one(void **state) {
    (void)state;
    double apart[STEPS], together[STEPS];
    const fac_backend *own = device->backend;
    fac_backend with = *own;
    with.packer = &packer;
    const int before = train(apart);
    device->backend = &with;
    const int after = train(together);
    device->backend = own;
    print_message("%d steps pack, %d with a packer\n", before, after);
    assert_memory_equal(apart, together, sizeof apart);
    assert_true(before > 4 &&
                after <= 2); /* what is not there yet at the place of the first one stays apart */
    assert_true(made > 0 && made == done);
    assert_int_equal(packed, STEPS * (before - after + made));
}

int main(void) {
    seed = fresh_seed();
    const struct CMUnitTest tests[] = { cmocka_unit_test(packed_together_or_one_by_one) };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
