/* What stays between layers of few bits is bits: each instruction set gives the very codes and
 * numbers of the formulas, on fresh random problems whose numbers are whole; whole trained networks
 * have the same sums in whole numbers, layer by layer, and choose the same classes as in floats. */
#include <math.h>
#include "bits_check.h"
#include "backends/cpu/bits/bits.h"
#include "op_list.h"
#include "ops/constant.h"
#include "ops/conv_basis.h"
#include "passes/passes.h"

static fac_device *dev;

static fac_graph *graph_of(const char *text) {
    fac_graph *g;
    fac_error err = { 0 };
    FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    if (fac_graph_read(f, &g, &err)) fail_msg("%s\n%s", err.text, text);
    fclose(f);
    return g;
}

/* Codes have nothing after their last channel. */
static void fill_codes(fac_tensor *t, uint64_t *s, int channels) {
    const fac_dims d = fac_tensor_type(t).dims;
    const size_t n = (size_t)fac_dims_count(&d), words = (size_t)d.d[4];
    uint32_t *x = malloc((n + 1) * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        const int left = channels - 32 * (int)(i % words);
        x[i] = (uint32_t)below(s, 65536) << 16 | (uint32_t)below(s, 65536);
        if (left < 32) x[i] &= (1u << left) - 1;
    }
    assert_int_equal(fac_tensor_write(t, x, n * sizeof *x, NULL), FAC_OK);
    free(x);
}

enum { MOST_OUT = 4 };
typedef struct results_of {
    int n;
    size_t bytes[MOST_OUT];
    unsigned char *of[MOST_OUT];
} results_of;

static void run_text(const char *text, const char *isa, bool exact, int channels, results_of *to) {
    fac_graph *g = graph_of(text);
    fac_device *d;
    fac_program *p;
    fac_error err = { 0 };
    fac_tensor *in[2] = { NULL }, *out[MOST_OUT] = { NULL };
    uint64_t s = seed;
    if (fac_device_open("cpu", &(fac_device_opts){ .isa = isa, .threads = 2 }, &d, &err))
        fail_msg("%s", err.text);
    const int inputs = fac_graph_inputs(g);
    for (int k = 0; k < inputs; k++) {
        const fac_type t = fac_value_type(fac_graph_input(g, k));
        assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &in[k], NULL), FAC_OK);
        if (t.dtype == FAC_U32)
            fill_codes(in[k], &s, channels);
        else
            fill(in[k], &s, -3, 9);
    }
    for (int k = 0; k < fac_graph_params(g); k++)
        fill(fac_value_tensor(fac_graph_param(g, k)), &s, -5, 5);
    const fac_program_opts o = { .no_fuse = exact, .solver = exact ? "ref" : NULL };
    if (fac_program_new(g, d, &o, &p, &err) || fac_program_run(p, in, out, &err))
        fail_msg("%s\n%s", err.text, text);
    to->n = fac_graph_outputs(g);
    for (int k = 0; k < to->n; k++) {
        const fac_type t = fac_tensor_type(out[k]);
        to->bytes[k] = (size_t)fac_dims_count(&t.dims) * 4;
        to->of[k] = malloc(to->bytes[k] + 1);
        assert_int_equal(fac_tensor_read(out[k], to->of[k], to->bytes[k], NULL), FAC_OK);
        fac_tensor_free(out[k]);
    }
    for (int k = 0; k < inputs; k++) fac_tensor_free(in[k]);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(d);
}

static void same(const char *text, int channels) {
    results_of want, got;
    run_text(text, "portable", true, channels, &want);
    for (const char *const *isa = problem_isas; *isa; isa++) {
        run_text(text, *isa, false, channels, &got);
        for (int k = 0; k < got.n; k++) {
            if (got.bytes[k] != want.bytes[k] || memcmp(got.of[k], want.of[k], got.bytes[k]))
                fail_msg("output %d on %s (seed %llu):\n%s", k, *isa, (unsigned long long)seed,
                         text);
            free(got.of[k]);
        }
    }
    for (int k = 0; k < want.n; k++) free(want.of[k]);
}

/* A convolution of floats or codes, with or without z, y, limits, relus. */
static int random_text(uint64_t *s, char *to, size_t size) {
    static const char *const bases[] = { "-",         "f32{1}",     "f32{2}",
                                         "f32{1, 2}", "f32{3, -1}", "f32{1, 2, 4}" };
    static const int planes[] = { 1, 1, 1, 2, 2, 3 };
    static const char *const relus[] = { "", " relu" };
    const int groups = below(s, 4) ? 1 : 2, coded = below(s, 2), lanes = 16 + 16 * coded;
    const int C = groups > 1 ? lanes * (1 + below(s, 2)) : 1 + below(s, 80);
    const int K = groups > 1 ? 16 * (1 + below(s, 3)) : 1 + below(s, 70);
    const int R = 1 + below(s, 3), S = 1 + below(s, 3), M = 1 + below(s, 2), N = 1 + below(s, 3);
    const int H = R + below(s, 12), W = S + below(s, 20), ph = below(s, R), pw = below(s, S);
    const int xb = below(s, 6), yb = below(s, 6), all = groups * K, wide = groups * C;
    const int P = H + 2 * ph - R + 1, Q = W + 2 * pw - S + 1;
    const bool limits = M == 1 && planes[xb] == 1 && below(s, 3), z = !limits && below(s, 2);
    const bool y = !limits && below(s, 2), y_relu = below(s, 2), q_relu = below(s, 2);
    int at = 0;
#define PUT(...) at += snprintf(to + at, size - (size_t)at, __VA_ARGS__)
    if (coded)
        PUT("input x u32[%d,%d,%d,%d,%d]\n", planes[xb], N, H, W, (wide + 31) / 32);
    else
        PUT("input x f32[%d,%d,%d,%d]\n", N, wide, H, W);
    if (z) PUT("input z f32[%d,%d,%d,%d]\n", N, all, P, Q);
    PUT("param w u8[%d,%d,%d]\nparam b f32[%d]\nparam v f32[%d,%d]\nparam s f32[%d]\n", M, all,
        (C * R * S + 7) / 8, all, M, all, all);
    const char *u = bases[xb], *t = bases[yb];
    if (limits)
        PUT("%%3 = code_limits(v, %s, s, b, %s) reach=%d%s\n", u, t, C * R * S,
            relus[y_relu || q_relu]);
    const char *add = "-", *limit = "-";
    if (z) add = "z";
    if (limits) limit = "%3";
    PUT("%%4, %%5 = conv2d_codes(x, w, b, %s, v, s, %s, %s, %s)", u, add, t, limit);
    PUT(" pad=%d,%d,%d,%d groups=%d dims=%d,%d,%d,%d", ph, pw, ph, pw, groups, all, C, R, S);
    if (y_relu) PUT(" y_relu");
    if (q_relu) PUT(" q_relu");
    if (!coded && below(s, 2)) PUT(" relu");
    PUT("\noutput q = %%4\n");
    if (y) PUT("output y = %%5\n");
    PUT("%%6 = max_pool_codes(%%4, %s) kernel=%d,%d", t, 1 + (P > 1), 1 + (Q > 1));
    PUT(" stride=%d,%d pad=%d,%d,0,0\noutput m = %%6\n", 1 + below(s, 2), 1 + below(s, 2),
        P > 2 && below(s, 2), Q > 2 && below(s, 2));
    return wide;
}

static void random_codes_are_exact(void **state) {
    (void)state;
    uint64_t s = seed;
    for (int k = 0; k < 80; k++) {
        char text[1200];
        const int channels = random_text(&s, text, sizeof text);
        same(text, channels);
    }
}

/* ---- trained networks ---- */

enum { IMAGES = 16, SIDE = 13, CLASSES = 5, PIXELS = IMAGES * 3 * SIDE * SIDE };

static fac_value *conv_norm(fac_value *x, const char *name, int channels, int stride) {
    char bn[24];
    const fac_nn_conv2d_opts o = { .pad = 1, .stride = stride, .no_bias = true };
    snprintf(bn, sizeof bn, "%s_bn", name);
    return fac_nn_batch_norm(fac_nn_conv2d(x, name, channels, 3, &o), bn, 0);
}

/* A stem, a residual block, one with a shortcut of its own, a max pool, linear layers. */
static fac_graph *network(void) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, seed);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, SIDE, SIDE));
    x = fac_relu(conv_norm(x, "stem", 32, 1));
    for (int k = 0; k < 2; k++) {
        static const char *const names[2][3] = { { "a1", "a2", NULL }, { "b1", "b2", "b3" } };
        const int stride = 1 + k, channels = 32 + 16 * k;
        fac_value *y = fac_relu(conv_norm(x, names[k][0], channels, stride));
        y = conv_norm(y, names[k][1], channels, 1);
        x = fac_relu(fac_add(y, k ? conv_norm(x, names[k][2], channels, stride) : x));
    }
    x = fac_relu(fac_max_pool2d(conv_norm(x, "c", 64, 1), 2, 2, NULL));
    x = fac_relu(conv_norm(x, "d", 40, 1));
    x = fac_relu(fac_nn_linear(fac_mean(x, fac_shape(2, 3), false), "e", 64));
    x = fac_relu(fac_nn_linear(x, "f", 48));
    fac_output(g, "logits", fac_nn_linear(x, "g", CLASSES));
    return g;
}

static fac_tensor *images(void) {
    static float x[PIXELS];
    fac_tensor *t;
    uint64_t s = seed;
    for (size_t i = 0; i < PIXELS; i++) x[i] = (float)below(&s, 2001) / 1000 - 1;
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(IMAGES, 3, SIDE, SIDE), &t, NULL),
                     FAC_OK);
    assert_int_equal(fac_tensor_write(t, x, sizeof x, NULL), FAC_OK);
    return t;
}

/* A few steps, after which norms, bases and weights are nobody's first values; for IMAGES
 * images. */
static fac_graph *trained(const char *scheme) {
    fac_error err = { 0 };
    fac_graph *g = network(), *q;
    fac_trainer *t;
    fac_tensor *x = images(), *y;
    int64_t labels[IMAGES];
    for (int i = 0; i < IMAGES; i++) labels[i] = i % CLASSES;
    assert_int_equal(fac_tensor_new(NULL, FAC_I64, fac_shape(IMAGES), &y, NULL), FAC_OK);
    assert_int_equal(fac_tensor_write(y, labels, sizeof labels, NULL), FAC_OK);
    if (fac_graph_quantize(g, &(fac_quantizing){ 1, &scheme, false }, &q, NULL, &err))
        fail_msg("%s: %s", scheme, err.text);
    if (fac_trainer_new(q, dev, NULL, &t, &err)) fail_msg("%s: %s", scheme, err.text);
    for (int k = 0; k < 6; k++)
        if (fac_trainer_step(t, x, y, 0.003, NULL, &err)) fail_msg("%s: %s", scheme, err.text);
    fac_trainer_free(t);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_graph *quiet = fac_graph_inference(q), *sized = fac_pass_sizes(quiet, IMAGES);
    fac_graph_free(quiet);
    fac_graph_free(q);
    fac_graph_free(g);
    assert_non_null(sized);
    return sized;
}

static void run_graph(fac_graph *g, fac_tensor *const in[], bool exact, fac_tensor *out[]) {
    fac_program *p;
    fac_error err = { 0 };
    const fac_program_opts o = { .no_fuse = exact, .solver = exact ? "ref" : NULL };
    if (fac_program_new(g, dev, &o, &p, &err) || fac_program_run(p, in, out, &err))
        fail_msg("%s", err.text);
    fac_program_free(p);
}

static int count(const fac_graph *g, const fac_op *op) {
    int n = 0;
    for (const fac_node *m = g->first; m; m = m->next) n += m->op == op;
    return n;
}

/* Powers of two as digits, so that a sum in f32 holds those of all planes. */
static fac_value *unit(fac_graph *g, int planes) {
    double u[4] = { 1, 4096 };
    assert_true(planes <= 2);
    return fac_constant(g, FAC_F32, fac_shape(planes), u);
}

/* Plane m of the weights alone. */
static fac_value *one_plane(fac_graph *g, const fac_dims *d, int m) {
    double v[4 * 128] = { 0 };
    assert_true(d->d[0] * d->d[1] <= 4 * 128);
    for (int64_t k = 0; k < d->d[1]; k++) v[m * d->d[1] + k] = 1;
    return fac_constant(g, FAC_F32, *d, v);
}

/* The sums of a layer that reads codes, from the codes and bits of a run. */
static void same_sums(const fac_node *n, fac_tensor *codes, fac_tensor *bits, const char *scheme) {
    const fac_conv_basis_attrs *a = n->attrs;
    const fac_dims *basis = &n->in[FAC_CB_W_BASIS]->type.dims;
    const fac_type t = fac_tensor_type(codes);
    fac_graph *g = fac_graph_new();
    fac_tensor *out[2][4] = { { NULL } };
    fac_value *x = fac_input(g, "x", t.dtype, t.dims), *w = fac_const(g, bits);
    for (int m = 0; m < basis->d[0]; m++) {
        char name[16];
        fac_conv_basis_attrs same = { .conv = a->conv, .dims = a->dims };
        fac_value *u = n->in[FAC_CB_X_BASIS] ? unit(g, (int)t.dims.d[0]) : NULL;
        fac_value *in[FAC_CB_PORTS] = { x, w, NULL, u, one_plane(g, basis, m), NULL };
        snprintf(name, sizeof name, "d%d", m);
        fac_output(g, name, fac_emit(&fac_op_conv2d_basis, &same, FAC_CB_PORTS, in));
    }
    for (int exact = 0; exact < 2; exact++) run_graph(g, &codes, exact, out[exact]);
    for (int m = 0; m < basis->d[0]; m++) {
        const fac_type y = fac_tensor_type(out[0][m]);
        const size_t count_of = (size_t)fac_dims_count(&y.dims);
        float *d[2];
        for (int e = 0; e < 2; e++) {
            d[e] = malloc((count_of + 1) * sizeof **d);
            assert_int_equal(fac_tensor_read(out[e][m], d[e], count_of * sizeof **d, NULL), FAC_OK);
            fac_tensor_free(out[e][m]);
        }
        for (size_t i = 0; i < count_of; i++)
            if (d[0][i] != d[1][i])
                fail_msg("%s: %s: sum %zu of plane %d is %g, not %g (seed %llu)", scheme,
                         n->name ? n->name : "", i, m, (double)d[0][i], (double)d[1][i],
                         (unsigned long long)seed);
        free(d[0]);
        free(d[1]);
    }
    fac_graph_free(g);
}

enum { LAYERS = 16 };

/* All layers that read codes, with those of one run of the whole network. */
static int same_layers(fac_graph *after, const char *scheme) {
    const fac_node *layer[LAYERS];
    fac_tensor *x = images(), *out[1 + 2 * LAYERS] = { NULL };
    int n = 0;
    for (const fac_node *m = after->first; m; m = m->next) {
        const bool basis = m->op == &fac_op_conv2d_basis || m->op == &fac_op_conv2d_codes;
        char name[2][16];
        if (!basis || m->in[FAC_CB_X]->type.dtype != FAC_U32 || n == LAYERS) continue;
        snprintf(name[0], sizeof name[0], "codes%d", n);
        snprintf(name[1], sizeof name[1], "bits%d", n);
        fac_output(after, name[0], m->in[FAC_CB_X]);
        fac_output(after, name[1], m->in[FAC_CB_BITS]);
        layer[n++] = m;
    }
    run_graph(after, &x, false, out);
    for (int k = 0; k < n; k++) same_sums(layer[k], out[1 + 2 * k], out[2 + 2 * k], scheme);
    for (int k = 0; k < 1 + 2 * n; k++) fac_tensor_free(out[k]);
    fac_tensor_free(x);
    return n;
}

/* The largest of each image, where it is clearly the largest. */
static void same_classes(fac_graph *g, const char *scheme) {
    fac_tensor *x = images(), *out[2] = { NULL };
    float y[2][IMAGES][CLASSES];
    for (int exact = 0; exact < 2; exact++) {
        run_graph(g, &x, exact, &out[exact]);
        assert_int_equal(fac_tensor_read(out[exact], y[exact], sizeof y[exact], NULL), FAC_OK);
        fac_tensor_free(out[exact]);
    }
    for (int i = 0; i < IMAGES; i++) {
        int best = 0, second = -1;
        for (int k = 1; k < CLASSES; k++)
            if (y[1][i][k] > y[1][i][best]) best = k;
        for (int k = 0; k < CLASSES; k++)
            if (k != best && (second < 0 || y[1][i][k] > y[1][i][second])) second = k;
        if (y[1][i][best] - y[1][i][second] < 0.1f) continue;
        for (int k = 0; k < CLASSES; k++)
            if (y[0][i][k] > y[0][i][best])
                fail_msg("%s: image %d is class %d, not %d (seed %llu)", scheme, i, k, best,
                         (unsigned long long)seed);
    }
    fac_tensor_free(x);
}

/* Layers that give codes, those that read them, pools of codes and layers with limits. */
static void trained_networks_are_exact(void **state) {
    (void)state;
    static const struct {
        const char *scheme;
        int codes, read, pools, limits;
    } nets[] = { { "lq:w1a1", 5, 5, 1, 3 },
                 { "lq:w1a2", 5, 5, 1, 0 },
                 { "lq:w2a2", 5, 5, 1, 0 },
                 { "xnor", 0, 0, 0, 0 },
                 { "dorefa:w1a2", 5, 5, 1, 0 } };
    const bool counts = !strcmp(fac_cpu_of(dev)->bits->name, "popcount");
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
        fac_graph *g = trained(nets[k].scheme), *after;
        fac_error err = { 0 };
        if (fac_graph_after(g, dev, NULL, "sweep", &after, &err)) fail_msg("%s", err.text);
        const int codes = count(after, &fac_op_conv2d_codes);
        const int pools = count(after, &fac_op_max_pool_codes);
        const int limits = count(after, &fac_op_code_limits);
        const int read = same_layers(after, nets[k].scheme);
        fac_graph_free(after);
        same_classes(g, nets[k].scheme);
        fac_graph_free(g);
        print_message("%s: %d, %d, %d, %d\n", nets[k].scheme, codes, read, pools, limits);
        if (counts && (codes < nets[k].codes || read < nets[k].read || pools < nets[k].pools ||
                       limits < nets[k].limits))
            fail_msg("%s: %d layers give codes, %d read them, %d pools, %d limits", nets[k].scheme,
                     codes, read, pools, limits);
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
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_codes_are_exact),
                                        cmocka_unit_test(trained_networks_are_exact) };
    return cmocka_run_group_tests_name("codes", tests, open_device, close_device);
}
