/* Layouts as a decision of the whole graph, on a device that says that it is a GPU with matrix
 * units: plans of whole networks are looked at, and what can run where there is no such unit gives
 * the cpu's answers.  Skipped where no driver is. */
#include "opencl_pair.h"
#include "backends/opencl/device/opencl.h"
#include "backends/opencl/device/probe.h"
#include "train/train_internal.h"

enum { STEPS = 4096 };

static fac_gpu_limits true_limits;

/* From now on the device is an H200 as far as solvers can see. */
static void disguise(fac_device *d) {
    fac_opencl *o = fac_opencl_of(d);
    true_limits = o->limits;
    o->limits = (fac_gpu_limits){ .memory = (size_t)140 << 30,
                                  .largest = (size_t)35 << 30,
                                  .local = 48 << 10,
                                  .align = 512,
                                  .group = 1024,
                                  .units = 132,
                                  .vector = o->limits.vector,
                                  .vendor = "NVIDIA Corporation",
                                  .fp64 = true,
                                  .gpu = true,
                                  .major = 1,
                                  .minor = 2 };
    for (int k = 0; k < FAC_CL_PATHS; k++)
        o->paths[k] = k == FAC_CL_MMA || k == FAC_CL_WGMMA || k == FAC_CL_DOUBLES ? 1 : 2;
}

typedef struct seen {
    int steps, reorders, packs, away, last, launches;
} seen;

static seen look_at(const fac_graph *g, fac_tensor *const in[], fac_precision precision,
                    bool print) {
    static fac_step_stat s[STEPS];
    fac_program *p = NULL;
    fac_plan_stat stat;
    seen all = { 0 };
    const fac_program_opts opts = { .plan_only = true, .precision = precision };
    OK(fac_program_new(g, opencl, &opts, &p, &err));
    OK(fac_program_plan(p, in, &stat, &err));
    all.steps = (int)fac_program_steps(p, s, STEPS);
    for (int i = 0; i < all.steps && i < STEPS; i++) {
        all.reorders += !strcmp(s[i].op, "reorder");
        all.packs += !strcmp(s[i].op, "pack");
        all.away += s[i].fallback;
        if (print) printf("  %-22s %-22s %s\n", s[i].solver, s[i].layouts, s[i].nodes);
    }
    fac_program_free(p);
    return all;
}

static const char *const names[] = { "resnet50",  "vgg16",   "resnet18",          "mobilenet_v2",
                                     "googlenet", "alexnet", "efficientnet_lite0" };

static void networks(void **state) {
    (void)state;
    NEEDS_DEVICE();
    const char *only = getenv("FACULA_NET");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fac_graph *g = NULL;
        if (only && strcmp(only, names[i])) continue;
        OK(fac_zoo_new(names[i], NULL, 1, &g, &err));
        for (int64_t batch = 1; batch <= 16; batch += 15) {
            fac_tensor *x = NULL;
            OK(fac_tensor_new(NULL, FAC_F32, fac_shape(batch, 3, 224, 224), &x, &err));
            const seen s = look_at(g, &x, FAC_PRECISION_HIGH, only != NULL);
            print_message("%s, batch %d: %d steps, %d reorders, %d on the cpu\n", names[i],
                          (int)batch, s.steps, s.reorders, s.away);
            assert_int_equal(s.away, 0);
            assert_int_equal(s.reorders, 0);
            fac_tensor_free(x);
        }
        fac_graph_free(g);
    }
}

static fac_value *conv(fac_value *x, const char *name, int channels, int kernel, int groups) {
    return fac_relu(fac_nn_conv2d(x, name, channels, kernel,
                                  &(fac_nn_conv2d_opts){ .pad = kernel / 2, .groups = groups }));
}

/* A block as MobileNet's in front of one as GoogLeNet's: a residual, reductions that read one
 * image, a concat. */
static fac_graph *blocks(void) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 3);
    fac_value *x = conv(fac_input(g, "x", FAC_F32, fac_shape(2, 3, 20, 20)), "stem", 32, 3, 1);
    x = fac_add(x, conv(conv(x, "deep", 32, 3, 32), "point", 32, 1, 1));
    fac_value *parts[] = { conv(x, "b1", 16, 1, 1), conv(conv(x, "b2a", 16, 1, 1), "b2b", 32, 3, 1),
                           conv(conv(x, "b3a", 16, 1, 1), "b3b", 16, 3, 1) };
    x = fac_concat(parts, 3, 1);
    fac_output(g, "image", x);
    fac_output(g, "y", fac_nn_linear(fac_mean(x, fac_shape(2, 3), false), "fc", 10));
    return g;
}

/* With all kernels but those of matrix units. */
static void same_answers(void **state) {
    (void)state;
    NEEDS_DEVICE();
    static fac_step_stat s[STEPS];
    fac_opencl_of(opencl)->limits = true_limits;
    fac_opencl_of(opencl)->limits.gpu = true;
    fac_opencl_of(opencl)->paths[FAC_CL_MMA] = fac_opencl_of(opencl)->paths[FAC_CL_WGMMA] = 2;
    fac_graph *g = blocks();
    fac_program *p[2] = { NULL };
    fac_tensor *x = random_tensor(NULL, fac_shape(2, 3, 20, 20), 1), *y[2][2] = { { NULL } };
    int last = 0;
    for (int k = 0; k < 2; k++) {
        OK(fac_program_new(g, k ? opencl : cpu, NULL, &p[k], &err));
        OK(fac_program_run(p[k], &x, y[k], &err));
    }
    const size_t n = fac_program_steps(p[1], s, STEPS);
    for (size_t k = 0; k < n; k++) last += strstr(s[k].layouts, "last") != NULL;
    assert_true(last > 0);
    for (int i = 0; i < 2; i++) {
        const fac_type type = fac_tensor_type(y[0][i]);
        const float *a = fac_tensor_data(y[0][i]), *b = fac_tensor_data(y[1][i]);
        for (int64_t k = 0; k < fac_dims_count(&type.dims); k++)
            if (!(fabs((double)a[k] - (double)b[k]) <= 1e-4))
                fail_msg("output %d: %g and %g at %d", i, a[k], b[k], (int)k);
    }
    for (int k = 0; k < 2; k++)
        fac_program_free(p[k]), fac_tensor_free(y[k][0]), fac_tensor_free(y[k][1]);
    fac_tensor_free(x);
    fac_graph_free(g);
}

/* A step of Adam; where there are a hundred million parameters, whose moments would be filled, of
 * plain descent. */
static void trainings(void **state) {
    (void)state;
    NEEDS_DEVICE();
    const char *only = getenv("FACULA_NET");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fac_graph *g = NULL;
        fac_trainer *t = NULL;
        fac_tensor *in[3] = { NULL };
        if (only && strcmp(only, names[i])) continue;
        const bool many = !strcmp(names[i], "vgg16") || !strcmp(names[i], "alexnet");
        OK(fac_zoo_new(names[i], NULL, 1, &g, &err));
        OK(fac_trainer_new(g, cpu, &(fac_trainer_opts){ .optimizer = many ? "sgd" : "adam" }, &t,
                           &err));
        OK(fac_tensor_new(NULL, FAC_F32, fac_shape(16, 3, 224, 224), &in[0], &err));
        OK(fac_tensor_new(NULL, FAC_I64, fac_shape(16), &in[1], &err));
        OK(fac_tensor_new(NULL, FAC_F64, (fac_dims){ 0 }, &in[2], &err));
        const seen s = look_at(t->step, in, FAC_PRECISION_HIGH, only != NULL);
        print_message("%s, training: %d steps, %d reorders, %d packs, %d on the cpu\n", names[i],
                      s.steps, s.reorders, s.packs, s.away);
        assert_int_equal(s.away, 0);
        if (!strncmp(names[i], "resnet", 6)) assert_int_equal(s.reorders, 0);
        for (int k = 0; k < 3; k++) fac_tensor_free(in[k]);
        fac_trainer_free(t);
        fac_graph_free(g);
    }
}

static int open_disguised(void **state) {
    const int code = open_devices(state);
    if (!code && opencl) disguise(opencl);
    return code;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(networks), cmocka_unit_test(trainings),
                                        cmocka_unit_test(same_answers) };
    return cmocka_run_group_tests_name("opencl layouts", tests, open_disguised, close_devices);
}
