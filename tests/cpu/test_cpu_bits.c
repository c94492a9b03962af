/* Convolutions of few bits: every instruction set gives the very sums of the formula, on fresh
 * random problems whose numbers are whole, so that no rounding hides a bit; networks of few bits
 * become these convolutions and choose the same classes as in floats. */
#include <math.h>
#include "bits_check.h"
#include "backends/cpu/bits/bits.h"

static const char *const ways[] = { "conv2d_basis/bits", "conv2d_basis/tables" };

/* Sums of whole numbers are exact in any order, so results are equal bit by bit. */
static void same(const char *problem) {
    size_t n, m;
    float *want = results(problem, "cpu", "portable", "ref", &n);
    for (const char *const *isa = problem_isas; *isa; isa++)
        for (int k = 0; k < 2; k++) {
            if (k && !has_tables(*isa)) continue;
            float *got = results(problem, "cpu", *isa, ways[k], &m);
            assert_int_equal(n, m);
            for (size_t i = 0; i < n; i++)
                if (got[i] != want[i])
                    fail_msg("%s, %s, %s (seed %llu): element %zu is %.9g, not %.9g", problem, *isa,
                             ways[k], (unsigned long long)seed, i, (double)got[i], (double)want[i]);
            free(got);
        }
    free(want);
}

static void random_problems_are_exact(void **state) {
    (void)state;
    uint64_t s = seed;
    for (int k = 0; k < 60; k++) {
        char problem[400];
        random_problem(&s, problem, sizeof problem);
        same(problem);
    }
}

/* One pixel, one channel, images that are rows of a product, more words than a byte can count,
    wide images. */
static void edges(void **state) {
    (void)state;
    same("conv2d_basis(f32[1,1,1,1], u8[1,1,1], -, f32{1}, f32[1,1]) dims=1,1,1,1");
    same("conv2d_basis(f32[37,65,1,1], u8[1,33,9], f32[33], -, f32[1,33]) dims=33,65,1,1");
    same("conv2d_basis(f32[5,300,1,1], u8[2,10,38], f32[10], f32{1, 2}, f32[2,10], f32[10]) "
         "dims=10,300,1,1");
    same("conv2d_basis(f32[1,1100,3,3], u8[1,2,1238], -, f32{1}, f32[1,2]) pad=1,1,1,1 "
         "dims=2,1100,3,3");
    same("conv2d_basis(f32[1,512,7,7], u8[1,64,576], -, -, f32[1,64]) pad=1,1,1,1 dims=64,512,3,3");
    same("conv2d_basis(f32[1,3,4,300], u8[1,5,12], -, -, f32[1,5]) pad=2,2,2,2 dims=5,3,4,8");
    same("conv2d_basis(f32[1,5,5,5], u8[1,4,16], -, -, f32[1,4]) pad=7,7,7,7 dims=4,5,5,5");
}

/* Where every bit is set sums overflow first. */
static void largest_sums_fit(void **state) {
    (void)state;
    full = true;
    same("conv2d_basis(f32[1,64,9,11], u8[1,64,72], -, f32{1}, f32[1,64]) pad=1,1,1,1 "
         "dims=64,64,3,3");
    same("conv2d_basis(f32[1,61,9,12], u8[1,70,69], -, -, f32[1,70]) stride=2,2 pad=1,1,1,1 "
         "dims=70,61,3,3");
    same("conv2d_basis(f32[2,100,6,9], u8[1,3,313], -, f32{1}, f32[1,3]) pad=2,2,2,2 "
         "dims=3,100,5,5");
    same("conv2d_basis(f32[1,60,9,6], u8[1,9,113], -, f32{1}, f32[1,9]) pad=2,1,2,1 dims=9,60,5,3");
    same("conv2d_basis(f32[1,60,6,9], u8[1,9,225], -, f32{1}, f32[1,9]) dims=9,60,5,6");
    same("conv2d_basis(f32[1,90,7,13], u8[1,5,315], -, f32{1}, f32[1,5]) dilation=1,2 "
         "dims=5,90,7,4");
    same("conv2d_basis(f32[1,1100,2,5], u8[2,4,138], -, f32{1}, f32[2,4]) dims=4,1100,1,1");
    same("conv2d_basis(f32[1,40,9,7], u8[2,33,90], -, f32{1, 3}, f32[2,33]) pad=1,1,1,1 "
         "dims=33,40,3,6");
    same("conv2d_basis(f32[1,64,5,5], u8[1,32,72], -, f32{1, 2}, f32[1,32]) pad=1,1,1,1 "
         "dims=32,64,3,3");
    same("conv2d_basis(f32[1,64,5,5], u8[1,32,72], -, f32{8, 1, 4, 2}, f32[1,32]) pad=1,1,1,1 "
         "dims=32,64,3,3");
    full = false;
}

/* ---- networks ---- */

static fac_device *dev;

/* Norms that have learned something: fresh ones have thresholds at 0,
    where sums of signs lie and where
 * floats may fall to either side. */
static void learn_norms(fac_graph *g) {
    uint64_t s = seed;
    for (int k = 0; k < fac_graph_params(g); k++) {
        fac_value *v = fac_graph_param(g, k);
        float x[64];
        const size_t n = (size_t)fac_dims_count(&(fac_dims){ 1, { fac_value_type(v).dims.d[0] } });
        if (!strstr(fac_value_name(v), "bn") || !strstr(fac_value_name(v), "bias")) continue;
        for (size_t i = 0; i < n; i++)
            x[i] = 0.0137f * (float)(1 + below(&s, 9)) * (below(&s, 2) ? 1.0f : -1.0f);
        assert_int_equal(fac_tensor_write(fac_value_tensor(v), x, n * sizeof *x, NULL), FAC_OK);
    }
}

static fac_graph *network(const char *scheme, uint64_t with) {
    fac_error err = { 0 };
    fac_graph *g = fac_graph_new(), *q, *quiet;
    fac_nn_seed(g, with);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, 15, 17));
    for (int k = 0; k < 4; k++) {
        char name[16], bn[16];
        const fac_nn_conv2d_opts o = { .pad = 1, .stride = k == 2 ? 2 : 1, .no_bias = k % 2 == 0 };
        snprintf(name, sizeof name, "conv%d", k + 1);
        snprintf(bn, sizeof bn, "bn%d", k + 1);
        x = fac_relu(fac_nn_batch_norm(fac_nn_conv2d(x, name, 32 + 8 * k, 3, &o), bn, 0));
    }
    x = fac_relu(fac_nn_linear(fac_flatten(fac_max_pool2d(x, 2, 2, NULL), 1), "fc1", 40));
    fac_output(g, "logits", fac_nn_linear(x, "fc2", 10));
    if (fac_graph_quantize(g, &(fac_quantizing){ 1, &scheme, true }, &q, NULL, &err))
        fail_msg("%s: %s", scheme, err.text);
    learn_norms(q);
    quiet = fac_graph_inference(q);
    fac_graph_free(q);
    fac_graph_free(g);
    return quiet;
}

/* exact: by reference kernels, whose sums of signs are those of whole numbers. */
static void run(fac_graph *g, bool exact, float *to) {
    fac_program *p;
    fac_error err = { 0 };
    fac_tensor *x, *y = NULL;
    static float pixels[8 * 3 * 15 * 17];
    uint64_t s = seed;
    for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++)
        pixels[i] = (float)below(&s, 2001) / 1000 - 1;
    if (fac_program_new(g, dev,
                        &(fac_program_opts){ .no_fuse = exact, .solver = exact ? "ref" : NULL }, &p,
                        &err))
        fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(8, 3, 15, 17), &x, NULL), FAC_OK);
    assert_int_equal(fac_tensor_write(x, pixels, sizeof pixels, NULL), FAC_OK);
    if (fac_program_run(p, &x, &y, &err)) fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_read(y, to, 80 * sizeof *to, NULL), FAC_OK);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_program_free(p);
}

static int count(const fac_graph *g, const char *op) {
    char *text = NULL, *at;
    size_t size;
    int n = 0;
    FILE *f = open_memstream(&text, &size);
    assert_int_equal(fac_graph_write(g, f, NULL), FAC_OK);
    fclose(f);
    for (at = strstr(text, op); at; at = strstr(at + 1, op)) n++;
    free(text);
    return n;
}

/* Layers of few bits are counted, but those of many pairs of planes,
    which take longer than floats. */
static void networks_become_counts(void **state) {
    (void)state;
    static const struct {
        const char *scheme;
        int layers;
    } nets[] = { { "lq:w1a1", 3 }, { "lq:w1a2", 3 },  { "lq:w2a2", 3 },     { "xnor", 3 },
                 { "bnn", 3 },     { "bireal", 3 },   { "dorefa:w1a2", 3 }, { "dorefa:w2a2", 3 },
                 { "bwn", 0 },     { "lsq:w2a2", 0 }, { "lq:w1a32", 0 } };
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
        fac_graph *g = network(nets[k].scheme, seed + k), *after;
        fac_error err = { 0 };
        float bits[80], floats[80];
        if (fac_graph_after(g, dev, NULL, "sweep", &after, &err))
            fail_msg("%s: %s", nets[k].scheme, err.text);
        const int n = count(after, "conv2d_basis(") + count(after, "conv2d_codes(");
        const bool counts = !strcmp(fac_cpu_of(dev)->bits->name, "popcount");
        if (counts && n < nets[k].layers)
            fail_msg("%s: %d layers are counted, not %d", nets[k].scheme, n, nets[k].layers);
        fac_graph_free(after);
        run(g, false, bits);
        run(g, true, floats);
        for (int i = 0; i < 80; i++)
            if (fabsf(bits[i] - floats[i]) > 2e-3f * (1 + fabsf(floats[i])))
                fail_msg("%s: output %d: %g and %g", nets[k].scheme, i, (double)bits[i],
                         (double)floats[i]);
        fac_graph_free(g);
    }
}

/* Signs with factors, as QONNX has them: one number, or one for each filter. */
static void factors_of_signs_go_along(void **state) {
    (void)state;
    static char text[] = "input x f32[2,40,9,8]\nparam w f32[48,40,3,3]\nparam s f32[48,1,1,1]\n"
                         "%1 = binarize(x)\n%2 = mul(%1, f32(0.5))\n%3 = binarize(w)\n%4 = "
                         "mul(%3, s)\n"
                         "%5 = conv2d(%2, %4) pad=1,1,1,1\noutput y = %5\n";
    fac_graph *g, *after;
    fac_error err = { 0 };
    float *got[2];
    size_t n = 0;
    FILE *f = fmemopen(text, sizeof text - 1, "r");
    if (fac_graph_read(f, &g, &err)) fail_msg("%s", err.text);
    fclose(f);
    uint64_t s = seed;
    for (int k = 0; k < fac_graph_params(g); k++)
        fill(fac_value_tensor(fac_graph_param(g, k)), &s, -5, 5);
    if (fac_graph_after(g, dev, NULL, "sweep", &after, &err)) fail_msg("%s", err.text);
    if (!strcmp(fac_cpu_of(dev)->bits->name, "popcount"))
        assert_int_equal(count(after, "conv2d_basis("), 1);
    /* counted bits are exact; where the planner finds floats faster they are rounded */
    const float most = count(after, "conv2d_basis(") ? 0 : 1e-3f;
    fac_graph_free(after);
    for (int exact = 0; exact < 2; exact++) {
        fac_program *p;
        fac_tensor *x, *y = NULL;
        const fac_program_opts o = { .no_fuse = exact, .solver = exact ? "ref" : NULL };
        s = seed + 1;
        assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(2, 40, 9, 8), &x, NULL), FAC_OK);
        fill(x, &s, -3, 3);
        if (fac_program_new(g, dev, &o, &p, &err) || fac_program_run(p, &x, &y, &err))
            fail_msg("%s", err.text);
        const fac_dims d = fac_tensor_type(y).dims;
        n = (size_t)fac_dims_count(&d);
        got[exact] = malloc(n * sizeof **got);
        assert_int_equal(fac_tensor_read(y, got[exact], n * sizeof **got, NULL), FAC_OK);
        fac_tensor_free(x);
        fac_tensor_free(y);
        fac_program_free(p);
    }
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[0][i] - got[1][i]) <= most))
            fail_msg("[%zu] is %g, not %g", i, (double)got[0][i], (double)got[1][i]);
    free(got[0]);
    free(got[1]);
    fac_graph_free(g);
}

/* ---- norms after linear layers ---- */

/* The results of a text by what it becomes, and by reference kernels in floats. */
static void as_in_floats(const char *text, fac_dims d, float most) {
    fac_graph *g;
    fac_error err = { 0 };
    fac_tensor *x, *y[2] = { NULL };
    uint64_t s = seed;
    FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    if (fac_graph_read(f, &g, &err)) fail_msg("%s", err.text);
    fclose(f);
    for (int k = 0; k < fac_graph_params(g); k++)
        fill(fac_value_tensor(fac_graph_param(g, k)), &s, 1, 5);
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, d, &x, NULL), FAC_OK);
    fill(x, &s, -3, 3);
    for (int exact = 0; exact < 2; exact++) {
        fac_program *p;
        const fac_program_opts o = { .no_fuse = exact, .solver = exact ? "ref" : NULL };
        if (fac_program_new(g, dev, &o, &p, &err) || fac_program_run(p, &x, &y[exact], &err))
            fail_msg("%s", err.text);
        fac_program_free(p);
    }
    const fac_dims to = fac_tensor_type(y[0]).dims;
    const float *a = fac_tensor_data(y[0]), *b = fac_tensor_data(y[1]);
    for (int64_t i = 0; i < fac_dims_count(&to); i++)
        if (!(fabsf(a[i] - b[i]) <= most * (1 + fabsf(b[i]))))
            fail_msg("[%lld] is %g, not %g:\n%s", (long long)i, (double)a[i], (double)b[i], text);
    for (int k = 0; k < 2; k++) fac_tensor_free(y[k]);
    fac_tensor_free(x);
    fac_graph_free(g);
}

/* Rows of sequences have their positions where a norm has its channels, here as many as the layer
 * has outputs: such a norm is none of the layer's. */
static void norms_join_their_own_channels(void **state) {
    (void)state;
    static const struct {
        const char *x, *norm;
        int rank;
        bool joins;
    } nets[] = { { "f32[64,128]", "", 2, true },
                 { "f32[2,64,128]", "", 3, false },
                 { "f32[2,64,128]", "flat = reshape(y, i64{128, 64})\n", 2, true } };
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
        char text[700];
        fac_graph *g, *after;
        fac_error err = { 0 };
        snprintf(text, sizeof text,
                 "input x %s\nparam w f32[64,128]\nparam v f32[1,64]\nparam u f32[2]\n"
                 "param s f32[64]\nparam t f32[64]\nparam m f32[64]\nparam r f32[64]\n"
                 "q = quantize_basis(x, u) positive\nl = quantize_basis(w, v)\n"
                 "y = linear(q, l)\n%sz = batch_norm(%s, s, t, m, r) epsilon=0.001\n"
                 "output z = z\n",
                 nets[k].x, nets[k].norm, *nets[k].norm ? "flat" : "y");
        FILE *f = fmemopen(text, strlen(text), "r");
        if (fac_graph_read(f, &g, &err)) fail_msg("%s", err.text);
        fclose(f);
        if (fac_graph_after(g, dev, NULL, "sweep", &after, &err)) fail_msg("%s", err.text);
        if (!strcmp(fac_cpu_of(dev)->bits->name, "popcount"))
            assert_int_equal(count(after, "conv2d_basis("), 1);
        if (count(after, "conv2d_basis(") && nets[k].joins)
            assert_int_equal(count(after, "batch_norm("), 0);
        fac_graph_free(after);
        fac_graph_free(g);
        const bool rows = strstr(nets[k].x, "[64");
        as_in_floats(text, rows ? fac_shape(64, 128) : fac_shape(2, 64, 128), 1e-4f);
    }
}

static int open_device(void **state) {
    (void)state;
    seed = fresh_seed();
    return fac_device_open("cpu", NULL, &dev, NULL);
}
static int close_device(void **state) {
    (void)state;
    fac_device_free(dev);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_problems_are_exact), cmocka_unit_test(edges),
        cmocka_unit_test(largest_sums_fit),          cmocka_unit_test(networks_become_counts),
        cmocka_unit_test(factors_of_signs_go_along), cmocka_unit_test(norms_join_their_own_channels)
    };
    return cmocka_run_group_tests_name("bits", tests, open_device, close_device);
}
