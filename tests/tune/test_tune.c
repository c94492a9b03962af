/* Tuning, with solvers whose speed and faults are known: a slow one that its estimate recommends, a
 * fast one that is wrong, one with variants, one that is not worth a try. */
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
static bool offer_slow_only(fac_device *d, fac_problem *p, fac_offer *o) {
    return !p->variant && offer_like(d, p, o, 0.5);
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
    else
        now += 1e-3 * (s->slow ? s->variant == 2 ? 0 : SLOW_MS : FAIR_MS);
    return status;
}

static const fac_solver slow = {
    .name = "softmax/slow", .offer = offer_slow, .make = make_slow, .done = done_softmax, .run = run
};
static const fac_solver slow_only = { .name = "softmax/slow",
                                      .offer = offer_slow_only,
                                      .make = make_slow,
                                      .done = done_softmax,
                                      .run = run };
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

/* Entries that do not fit are as good as none. */
static void test_ignored_entries(void **state) {
    (void)state;
    const fac_solver *const all[] = { &slow, &fair, NULL };
    give(all);
    fac_graph *g = one_softmax();
    const fac_wisdom_entry good = {
        fac_device_key(device), problem_text, "softmax/slow", 1, VERSION, 1, 2
    };
    fac_wisdom_entry e[6] = { good, good, good, good, good, good };
    e[0].version = VERSION + 1;
    e[1].variant = 9;
    e[2].solver = "softmax/unheard";
    e[3].device = "cpu, another one";
    e[4].problem = "softmax(f32[8,33])";
    e[5].solver = "conv2d/direct";
    for (int k = 0; k < 6; k++) {
        fac_wisdom *w;
        OK(fac_wisdom_new(&w, err));
        OK(fac_wisdom_put(w, &e[k], err));
        assert_choice(g, w, "softmax/slow", 0);
        OK(fac_wisdom_put(w, &good, err));
        assert_choice(g, w, "softmax/slow", 1);
        fac_wisdom_free(w);
    }
    fac_graph_free(g);
}

/* What comes with the library is done on a device whose key has its parts, unless the user measured
 * something else there. */
static void test_shipped(void **state) {
    (void)state;
    static const char text[] =
        "facula wisdom 1\n\ndevice gpu, 132 units, sm_90\nsoftmax/slow:1 3 1 2 softmax(f32[8,32])\n"
        "\ndevice gpu, 64 units, sm_90\nsoftmax/slow:2 3 1 2 softmax(f32[8,32])\n"
        "\ndevice gpu, old, sm_90\nsoftmax/slow:2 2 1 2 softmax(f32[8,32])\n";
    static const struct {
        const char *key;
        bool measured;
        const char *solver;
        int variant;
    } cases[] = {
        { "gpu, Some Card, 132 units, 99 GB, driver 7, sm_90", false, "softmax/slow", 1 },
        { "gpu, Some Card, 64 units, sm_90", false, "softmax/slow", 2 },
        { "gpu, Some Card, 132 units, sm_80", false, "softmax/slow", 0 },
        { "gpu, old, sm_90", false, "softmax/slow", 0 }, /* of an older version of the solver */
        { "cpu, 132 units, sm_90", false, "softmax/slow", 0 },
        { "gpu, Some Card, 132 units, 99 GB, driver 7, sm_90", true, "softmax/fair", 0 }
    };
    const fac_solver *const all[] = { &slow, &fair, NULL };
    fac_graph *g = one_softmax();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        open_device(NULL);
        give(all);
        assert_choice(g, NULL, "softmax/slow", 0);
        snprintf(device->key, sizeof device->key, "%s", cases[k].key);
        if (cases[k].measured) {
            const fac_wisdom_entry e = { device->key, problem_text, "softmax/fair", 0, 0, 1, 2 };
            if (!device->wisdom) OK(fac_wisdom_new(&device->wisdom, err));
            OK(fac_wisdom_put(device->wisdom, &e, err));
        }
        OK(fac_device_ship(device, text, err));
        assert_choice(g, NULL, cases[k].solver, cases[k].variant);
        close_device(NULL);
    }
    fac_graph_free(g);
}

/* A device opened with a file uses it; a solver that the caller forces goes first. */
static void test_device_file(void **state) {
    (void)state;
    char path[] = "/tmp/facula-tune-XXXXXX";
    fac_device *d;
    fac_graph *g;
    fac_program *p;
    fac_wisdom *w;
    fac_step_stat s;
    fac_tensor *x, *y = NULL;
    static const char problem[] =
        "conv2d(f32[1,16,14,14], f32[16,16,3,3], f32[16]) pad=1,1,1,1 {relu}";
    assert_true(mkstemp(path) >= 0);
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1, .wisdom = "" }, &d, err));
    OK(fac_wisdom_new(&w, err));
    const fac_wisdom_entry e = { fac_device_key(d), problem, "conv2d/gemm", 0, 0, 1, 2 };
    OK(fac_wisdom_put(w, &e, err));
    OK(fac_wisdom_save(w, path, err));
    fac_wisdom_free(w);
    fac_device_free(d);
    OK(fac_problem_graph(problem, true, &g, err));
    OK(fac_tensor_new(NULL, FAC_F32, (fac_dims){ 4, { 1, 16, 14, 14 } }, &x, err));
    static const char *const want[][2] = { { "", NULL },
                                           { NULL, "conv2d/gemm" },
                                           { NULL, "conv2d/direct" } };
    for (int k = 0; k < 3; k++) {
        OK(fac_device_open(
            "cpu", &(fac_device_opts){ .threads = 1, .wisdom = want[k][0] ? want[k][0] : path }, &d,
            err));
        OK(fac_program_new(g, d, &(fac_program_opts){ .solver = k == 2 ? want[k][1] : NULL }, &p,
                           err));
        OK(fac_program_run(p, &x, &y, err));
        const size_t n = fac_program_steps(p, NULL, 0);
        fac_step_stat all[8];
        assert_in_range(n, 1, 8);
        fac_program_steps(p, all, 8);
        s = (fac_step_stat){ 0 };
        for (size_t i = 0; i < n; i++)
            if (!strcmp(all[i].op, "conv2d")) s = all[i];
        if (k)
            assert_string_equal(s.solver, want[k][1]);
        else
            assert_string_not_equal(s.solver, "conv2d/gemm");
        fac_tensor_free(y);
        y = NULL;
        fac_program_free(p);
        fac_device_free(d);
    }
    fac_tensor_free(x);
    fac_graph_free(g);
    remove(path);
}

/* The marks after a problem: reduced precision forbidden; operands that are no parameters. */
static void test_keys(void **state) {
    (void)state;
    static const struct {
        bool exact, params;
        const char *key;
    } cases[] = { { false, true, "linear(f32[2,3], f32[4,3])" },
                  { true, true, "linear(f32[2,3], f32[4,3]) !highest" },
                  { false, false, "linear(f32[2,3], f32[4,3]) !run=1" },
                  { true, false, "linear(f32[2,3], f32[4,3]) !highest !run=1" } };
    for (int k = 0; k < 4; k++) {
        fac_graph *g;
        fac_program *p;
        fac_tensor *in[2] = { NULL };
        OK(fac_problem_graph("linear(f32[2,3], f32[4,3])", cases[k].params, &g, err));
        OK(fac_program_new(g, device,
                           &(fac_program_opts){ .precision = cases[k].exact
                                                                 ? FAC_PRECISION_HIGHEST
                                                                 : FAC_PRECISION_DEFAULT },
                           &p, err));
        for (int i = 0; i < fac_graph_inputs(g); i++)
            OK(fac_tensor_new(NULL, FAC_F32, fac_value_type(fac_graph_input(g, i)).dims, &in[i],
                              err));
        OK(fac_program_plan(p, in, NULL, err));
        char *key = NULL;
        for (int i = 0; i < p->last->nsteps; i++) {
            const fac_step *s = &p->last->steps[i];
            if (s->kind == FAC_STEP_RUN && s->problem->node->graph)
                key = fac_problem_key(s->problem);
        }
        assert_non_null(key);
        assert_string_equal(key, cases[k].key);
        free(key);
        for (int i = 0; i < 2; i++) fac_tensor_free(in[i]);
        fac_program_free(p);
        fac_graph_free(g);
    }
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
    for (int i = 0; i < 16 * 400; i++)
        top = fmaxf(top, fabsf(p[i])), worst = fmaxf(worst, fabsf(p[i] - q[i]));
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
        cmocka_unit_test_setup_teardown(test_ignored_entries, open_device, close_device),
        cmocka_unit_test(test_shipped),
        cmocka_unit_test(test_device_file),
        cmocka_unit_test_setup_teardown(test_keys, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_every_candidate_is_right, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_network, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_peaks, open_device, close_device)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
