/* Wisdom that is ignored, shipped, or of a device's file; keys of problems and devices. */
#include "tune_solvers.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ignored_entries, open_device, close_device),
        cmocka_unit_test(test_shipped),
        cmocka_unit_test(test_device_file),
        cmocka_unit_test_setup_teardown(test_keys, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
