/* Errors of whole networks in every precision, against the reference kernels.  Where a device has
 * no matrix units the better precision is done, and the same bounds hold.  Skipped where no driver
 * is. */
#include "opencl_pair.h"
#include "backends/opencl/device/opencl.h"
#include "backends/opencl/device/probe.h"
#include "graph/graph_internal.h"

/* Devices without matrix units get small images and no half types: PoCL compiles a network of these
 * for half a minute. */
enum { BATCH = 2, SIDE = 32, SIDE_UNITS = 128, CLASSES = 1000, N = BATCH * CLASSES };

/* most: of the largest logit, after the layers of resnet18; low: what the model is computed in.
 * TF32 keeps as many bits as f16, three more than bf16. */
static const struct {
    const char *name;
    fac_precision precision;
    fac_dtype low;
    double most;
} modes[] = { { "highest", FAC_PRECISION_HIGHEST, FAC_NONE, 2e-6 },
              { "default", FAC_PRECISION_DEFAULT, FAC_NONE, 5e-6 },
              { "high", FAC_PRECISION_HIGH, FAC_NONE, 2e-3 },
              { "medium", FAC_PRECISION_MEDIUM, FAC_NONE, 1.6e-2 },
              { "bf16", FAC_PRECISION_DEFAULT, FAC_BF16, 1.6e-2 },
              { "f16", FAC_PRECISION_DEFAULT, FAC_F16, 2e-3 } };
/* Errors grow with the layers: 52 convolutions and clips instead of 20 convolutions with sums
 * around them. */
static const struct {
    const char *name;
    double more;
} networks[] = { { "resnet18", 1 }, { "mobilenet_v2", 8 } };
enum { MODES = sizeof modes / sizeof *modes };

static void logits(const fac_graph *g, fac_device *d, const fac_program_opts *o, fac_tensor *x,
                   float *to) {
    fac_program *p;
    fac_tensor *y = NULL, *wide;
    OK(fac_program_new(g, d, o, &p, &err));
    OK(fac_program_run(p, &x, &y, &err));
    OK(fac_tensor_convert(y, FAC_F32, &wide, &err));
    OK(fac_tensor_read(wide, to, N * sizeof *to, &err));
    fac_tensor_free(wide);
    fac_tensor_free(y);
    fac_program_free(p);
}

/* Weights as networks begin with them lie in +-1 / sqrt(inputs): each layer makes activations
 * smaller, by sqrt(6) after relu, until the logits are biases, which no arithmetic makes wrong. */
static void keep_alive(fac_graph *g) {
    for (size_t i = 0; i < g->nparams; i++) {
        fac_tensor *t = g->params[i]->tensor;
        const fac_type type = fac_tensor_type(t);
        if (type.dims.n != 4) continue;
        const size_t n = (size_t)fac_dims_count(&type.dims);
        float *w = malloc(n * sizeof *w);
        OK(fac_tensor_read(t, w, n * sizeof *w, &err));
        for (size_t j = 0; j < n; j++) w[j] *= sqrtf(6);
        OK(fac_tensor_write(t, w, n * sizeof *w, &err));
        free(w);
    }
}

static fac_status small(const char *name, int side, fac_graph **out) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 3);
    fac_output(
        g, "logits",
        fac_zoo_find(name)->build(fac_input(g, "x", FAC_F32, fac_shape(BATCH, 3, side, side))));
    keep_alive(g);
    *out = g;
    return fac_graph_check(g, &err);
}

static double largest(const float *x, const float *y, int n) {
    double top = 0;
    for (int i = 0; i < n; i++) {
        const double d = fabs((double)x[i] - (y ? (double)y[i] : 0));
        top = isnan(d) ? INFINITY : fmax(top, d);
    }
    return top;
}

static void test_networks(void **state) {
    (void)state;
    static float right[N], got[N];
    NEEDS_DEVICE();
    const bool units = fac_cl_has_path(fac_opencl_of(opencl), FAC_CL_MMA);
    const int side = units ? SIDE_UNITS : SIDE;
    fac_tensor *x = random_tensor(NULL, (fac_dims){ 4, { BATCH, 3, side, side } }, 1);
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        fac_graph *g;
        double worst[MODES];
        OK(small(networks[i].name, side, &g));
        logits(g, cpu, &(fac_program_opts){ .solver = "ref", .no_fuse = true }, x, right);
        const double top = largest(right, NULL, N),
                     apart = largest(right, right + CLASSES, CLASSES) / top;
        print_message("%-12s of another image %.1e\n", networks[i].name, apart);
        assert_true(apart > 0.02); /* the image matters */
        for (int k = 0; k < MODES; k++) {
            if (!units && modes[k].low != FAC_NONE) continue;
            fac_graph *low = modes[k].low != FAC_NONE ? fac_graph_autocast(g, modes[k].low) : NULL;
            logits(low ? low : g, opencl, &(fac_program_opts){ .precision = modes[k].precision }, x,
                   got);
            worst[k] = largest(right, got, N) / top;
            print_message("%-12s %-8s %.1e\n", networks[i].name, modes[k].name, worst[k]);
            if (!(worst[k] <= networks[i].more * modes[k].most))
                fail_msg("%s in %s", networks[i].name, modes[k].name);
            assert_true(worst[k] > (low ? 1e-5 : 0)); /* something was rounded */
            fac_graph_free(low);
        }
        if (units) assert_true(worst[2] > 3 * worst[0] && worst[3] > worst[2]);
        fac_graph_free(g);
    }
    fac_tensor_free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_networks) };
    return cmocka_run_group_tests_name("opencl_precision", tests, open_devices, close_devices);
}
