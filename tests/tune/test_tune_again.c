/* Tuning once more: solvers that were fast by luck, more variants than anybody tries, and a limit
 * on how many are tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "tune/tune.h"
#include "tune_check.h"

enum { VARIANTS = 90, QUICK = 83 };

static double milliseconds[VARIANTS + 1];
static int runs[VARIANTS + 1], made[VARIANTS + 1],
    lucky; /* lucky: a variant that is fast when it is made first; 0: none */

typedef struct plan {
    void *inner;
    int variant;
    bool luck;
} plan;

/* The estimates of variants grow with their number. */
static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    if (p->variant > VARIANTS || !offer_softmax(d, p, o, 1e-4 * (1 + 0.01 * p->variant)))
        return false;
    o->variants = VARIANTS;
    return true;
}
static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *e) {
    plan *s = calloc(1, sizeof *s);
    s->variant = p->variant;
    s->luck = made[s->variant]++ == 0 && s->variant && s->variant == lucky;
    *out = s;
    return fac_cpu_softmax.make(d, p, &s->inner, e);
}
static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *e) {
    const plan *s = arg;
    runs[s->variant]++;
    now += s->luck ? 1e-3 : 1e-3 * milliseconds[s->variant];
    return fac_cpu_softmax.run(s->inner, d, in, out, work, e);
}
static const fac_solver many = {
    .name = "softmax/many", .offer = offer, .make = make, .done = done_softmax, .run = run
};

static fac_tune_stat tune(int most, int *variant) {
    static const fac_solver *const all[] = { &many, NULL };
    fac_graph *g = one_softmax();
    fac_program *p;
    fac_wisdom *w;
    fac_wisdom_entry e;
    fac_tensor *x = input();
    fac_tune_stat stat;
    give(all);
    memset(runs, 0, sizeof runs);
    memset(made, 0, sizeof made);
    OK(fac_program_new(g, device, NULL, &p, err));
    OK(fac_wisdom_new(&w, err));
    OK(fac_program_tune(p, &x, &(fac_tune_opts){ .seconds = 0.02, .rounds = 1, .most = most }, w,
                        &stat, err));
    assert_true(fac_wisdom_find(w, fac_device_key(device), problem_text, &e));
    assert_string_equal(e.solver, "softmax/many");
    *variant = e.variant;
    fac_wisdom_free(w);
    fac_program_free(p);
    fac_tensor_free(x);
    fac_graph_free(g);
    return stat;
}

static void all_take(double ms) {
    for (int i = 0; i <= VARIANTS; i++) milliseconds[i] = ms;
}

/* A variant after the first 64. */
static void test_all_are_tried(void **state) {
    (void)state;
    int variant;
    all_take(8);
    milliseconds[QUICK] = 4;
    lucky = 0;
    const fac_tune_stat s = tune(0, &variant);
    assert_int_equal(s.candidates, VARIANTS + 1);
    assert_int_equal(s.winners, 1);
    assert_int_equal(s.confirmed, 1);
    assert_int_equal(s.changed, 1);
    assert_int_equal(variant, QUICK);
}

/* Those with the least estimates, the usual one among them. */
static void test_most(void **state) {
    (void)state;
    int variant;
    all_take(8);
    milliseconds[QUICK] = milliseconds[3] = 4;
    milliseconds[4] = 2;
    lucky = 0;
    const fac_tune_stat s = tune(4, &variant);
    assert_int_equal(s.candidates, 4);
    assert_int_equal(variant, 3);
    assert_int_equal(runs[4] + runs[QUICK], 0);
    assert_int_equal(tune(1, &variant).candidates, 1);
    assert_int_equal(variant, 0);
}

/* What does not win a second time is not taken, and the whole runs as it did. */
static void test_luck(void **state) {
    (void)state;
    int variant;
    all_take(8);
    lucky = 2;
    const fac_tune_stat s = tune(4, &variant);
    assert_int_equal(made[2], 2);
    assert_int_equal(s.winners, 1);
    assert_int_equal(s.confirmed, 0);
    assert_int_equal(s.changed, 0);
    assert_int_equal(variant, 0);
    assert_true(s.after == s.before);
}

/* Less than what clocks tell apart. */
static void test_noise(void **state) {
    (void)state;
    int variant;
    all_take(8);
    milliseconds[2] = 7.9;
    lucky = 0;
    const fac_tune_stat s = tune(4, &variant);
    assert_int_equal(s.winners, 0);
    assert_int_equal(variant, 0);
}

/* Contents that make results numbers: variances are positive.  What is NaN nearly everywhere proves
 * nothing. */
static void test_proofs(void **state) {
    (void)state;
    static const struct {
        const char *problem;
        bool right;
    } cases[] = {
        { "batch_norm(f32[2,4,3,3], f32[4], f32[4], f32[4], f32[4]) !run=1,2,3,4", true },
        { "batch_norm(f32[2,4,3,3], f32[4], f32[4], f32[4], f32[4]) epsilon=-9 !run=1,2,3,4",
          false }
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bool right = !cases[k].right;
        OK(fac_tune_check(device, NULL, cases[k].problem, "ref", 0, 0, &right, err));
        if (right != cases[k].right) fail_msg("%s", cases[k].problem);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_are_tried, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_most, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_luck, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_noise, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_proofs, open_device, close_device)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
