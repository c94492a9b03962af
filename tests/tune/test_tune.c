/* Tuning, with solvers whose speed and faults are known: a slow one that its estimate recommends, a
 * fast one that is wrong, one with variants, one that is not worth a try. */
#include "tune_solvers.h"

static bool offer_slow_only(fac_device *d, fac_problem *p, fac_offer *o) {
    return !p->variant && offer_like(d, p, o, 0.5);
}
static const fac_solver slow_only = { .name = "softmax/slow",
                                      .offer = offer_slow_only,
                                      .make = make_slow,
                                      .done = done_softmax,
                                      .run = run };

static fac_tune_stat tune(const fac_graph *g, fac_wisdom *w) {
    fac_program *p;
    fac_tune_stat stat;
    fac_tensor *x = input();
    OK(fac_program_new(g, device, NULL, &p, err));
    OK(fac_program_tune(p, &x, &(fac_tune_opts){ .seconds = 0.05, .rounds = 1 }, w, &stat, err));
    fac_tensor_free(x);
    fac_program_free(p);
    return stat;
}

static void test_finds_the_fastest(void **state) {
    (void)state;
    const fac_solver *const all[] = { &slow, &wrong, &hopeless, &fair, NULL };
    give(all);
    hopeless_runs = wrong_runs = 0;
    fac_graph *g = one_softmax();
    fac_wisdom *w;
    fac_wisdom_entry e;
    OK(fac_wisdom_new(&w, err));
    assert_choice(g, w, "softmax/slow", 0);
    const fac_tune_stat s = tune(g, w);
    assert_int_equal(s.problems, 1);
    assert_int_equal(s.candidates, 5); /* slow and its two variants, wrong, fair */
    assert_int_equal(s.changed, 1);
    assert_true(s.after < s.before);
    assert_int_equal(hopeless_runs, 0);
    assert_choice(g, w, "softmax/slow", 2);
    assert_true(fac_wisdom_find(w, fac_device_key(device), problem_text, &e));
    assert_int_equal(e.version, VERSION);
    assert_true(e.seconds < e.otherwise);
    fac_wisdom_free(w);
    fac_graph_free(g);
}

/* The fastest is wrong: the next one is taken, and it is counted. */
static void test_refuses_the_wrong(void **state) {
    (void)state;
    static const char *const names[] = {
        "cpu", "another"
    }; /* the reference kernels judge, the cpu does */
    const fac_solver *const all[] = { &slow_only, &wrong, &fair, NULL };
    fac_graph *g = one_softmax();
    give(all);
    for (int k = 0; k < 2; k++) {
        fac_wisdom *w;
        OK(fac_wisdom_new(&w, err));
        own.name = names[k];
        wrong_runs = 0;
        const fac_tune_stat s = tune(g, w);
        assert_true(wrong_runs > 0);
        assert_int_equal(s.refused, 1);
        assert_int_equal(s.changed, 1);
        assert_choice(g, w, "softmax/fair", 0);
        fac_wisdom_free(w);
    }
    fac_graph_free(g);
}

/* Real solvers, a real network with a training step after it: whatever is learnt, results stay
 * within the solvers' tolerance. */
static void test_network(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_program *usual, *tuned;
    fac_tensor *x, *a = NULL, *b = NULL;
    fac_wisdom *w;
    fac_tune_stat stat;
    fac_value *v = fac_input(g, "x", FAC_F32, (fac_dims){ 4, { 1, 3, 20, 20 } });
    for (int k = 0; k < 3; k++) {
        char name[8];
        fac_tensor *t;
        const int64_t from = k ? 16 : 3;
        OK(fac_tensor_new(NULL, FAC_F32, (fac_dims){ 4, { 16, from, 3, 3 } }, &t, err));
        float data[16 * 16 * 9];
        for (int64_t i = 0; i < 16 * from * 9; i++) data[i] = (float)(i * 7 % 13) / 13 - 0.5f;
        OK(fac_tensor_write(t, data, (size_t)(16 * from * 9) * sizeof *data, err));
        snprintf(name, sizeof name, "w%d", k);
        v = fac_relu(fac_conv2d(v, fac_param(g, name, t), NULL,
                                &(fac_conv2d_opts){ .pad = { 1, 1, 1, 1 } }));
        fac_tensor_free(t);
    }
    fac_output(g, "y", v);
    OK(fac_graph_check(g, err));
    OK(fac_tensor_new(NULL, FAC_F32, (fac_dims){ 4, { 1, 3, 20, 20 } }, &x, err));
    float data[1200];
    for (int i = 0; i < 1200; i++) data[i] = (float)(i * 5 % 17) / 17 - 0.4f;
    OK(fac_tensor_write(x, data, sizeof data, err));
    OK(fac_wisdom_new(&w, err));
    OK(fac_program_new(g, device, NULL, &usual, err));
    real_solvers = true;
    OK(fac_program_tune(usual, &x, &(fac_tune_opts){ .seconds = 1e-3, .rounds = 1 }, w, &stat,
                        err));
    real_solvers = false;
    assert_true(stat.problems >= 2 && stat.candidates > stat.problems);
    assert_int_equal(stat.refused, 0);
    assert_int_equal(fac_wisdom_count(w), stat.problems);
    OK(fac_program_new(g, device, &(fac_program_opts){ .wisdom = w }, &tuned, err));
    OK(fac_program_run(usual, &x, &a, err));
    OK(fac_program_run(tuned, &x, &b, err));
    const float *p = fac_tensor_data(a), *q = fac_tensor_data(b);
    float top = 0, worst = 0;
    for (int i = 0; i < 16 * 400; i++) {
        top = fmaxf(top, fabsf(p[i]));
        worst = fmaxf(worst, fabsf(p[i] - q[i]));
    }
    assert_true(top > 0 && worst <= 1e-4f * top);
    fac_tensor_free(a);
    fac_tensor_free(b);
    fac_tensor_free(x);
    fac_program_free(usual);
    fac_program_free(tuned);
    fac_wisdom_free(w);
    fac_graph_free(g);
}

/* Every solver and every variant of it that makes an offer, on odd sizes too, gives what the
 * reference kernels give. */
static void test_every_candidate_is_right(void **state) {
    (void)state;
    static const char *const problems[] = {
        "conv2d(f32[1,20,17,19], f32[40,20,3,3], f32[40]) pad=1,1,1,1 {relu}",
        "conv2d(f32[2,16,9,5], f32[100,16,3,3]) pad=0,1,2,0",
        "conv2d(f32[1,33,40,40], f32[65,33,3,3], f32[65], f32[1,65,40,40]) pad=1,1,1,1 {add(_, x1) "
        "relu}",
        "conv2d(f32[1,7,23,30], f32[35,7,5,5], f32[35]) pad=2,2,2,2",
        "linear(f32[5,33], f32[70,33], f32[70])"
    };
    int variants = 0;
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++) {
        fac_graph *g;
        fac_program *p;
        fac_tensor *in[4] = { NULL };
        fac_candidate all[64];
        OK(fac_problem_graph(problems[k], true, &g, err));
        OK(fac_program_new(g, device, NULL, &p, err));
        for (int i = 0; i < fac_graph_inputs(g); i++)
            OK(fac_tensor_new(NULL, FAC_F32, fac_value_type(fac_graph_input(g, i)).dims, &in[i],
                              err));
        OK(fac_program_plan(p, in, NULL, err));
        const fac_step *s = NULL;
        for (int i = 0; i < p->last->nsteps; i++)
            if (p->last->steps[i].kind == FAC_STEP_RUN && p->last->steps[i].problem->node->graph)
                s = &p->last->steps[i];
        assert_non_null(s);
        char *key = fac_problem_key(s->problem);
        const int n = fac_candidates(device, s->problem, all, 64);
        assert_in_range(n, 1, 64);
        for (int i = 0; i < n; i++) {
            bool right = false;
            OK(fac_tune_check(device, NULL, key, all[i].solver->name, all[i].variant,
                              all[i].version, &right, err));
            if (!right)
                fail_msg("%s, variant %d: wrong on %s", all[i].solver->name, all[i].variant, key);
            variants += all[i].variant > 0;
        }
        free(key);
        for (int i = 0; i < 4; i++) fac_tensor_free(in[i]);
        fac_program_free(p);
        fac_graph_free(g);
    }
    assert_true(variants > 8);
}

/* What a cpu measures of itself is at least possible. */
static void test_peaks(void **state) {
    (void)state;
    fac_peaks p;
    OK(fac_device_peaks(device, &p, err));
    assert_int_equal(p.threads, 2);
    assert_true(p.flops > 1e6 && p.flops_one > 1e6 && isfinite(p.flops));
    assert_true(p.memory_read > 1e6 && p.memory_copy > 1e6 && isfinite(p.memory_read));
    assert_true(p.cache[0] > 0 && p.cache_read[0] > 1e6);
    assert_true(p.fork_join > 0 && p.fork_join < 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_finds_the_fastest, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_refuses_the_wrong, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_every_candidate_is_right, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_network, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_peaks, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
