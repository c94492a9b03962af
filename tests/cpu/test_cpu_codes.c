/* What stays between layers of few bits is bits: each instruction set gives the very codes and
 * numbers of the formulas, on fresh random problems whose numbers are whole; whole trained networks
 * have the same sums in whole numbers, layer by layer, and choose the same classes as in floats. */
#include <math.h>
#include "codes_check.h"
#include "backends/cpu/bits/bits.h"
#include "op_list.h"
#include "ops/constant.h"
#include "ops/conv_basis.h"
#include "passes/passes.h"

static fac_device *dev;

static void same_by(const char *text, int channels, const char *isa, const char *solver,
                    const results_of *want) {
    results_of got;
    run_text(text, "cpu", isa, solver, channels, &got);
    for (int k = 0; k < got.n; k++) {
        if (got.bytes[k] != want->bytes[k] || memcmp(got.of[k], want->of[k], got.bytes[k]))
            fail_msg("output %d on %s by %s (seed %llu):\n%s", k, isa, solver ? solver : "choice",
                     (unsigned long long)seed, text);
        free(got.of[k]);
    }
}

/* One layer: by counts, and by tables where they are. */
static void same(const char *text, int channels, bool one) {
    results_of want;
    run_text(text, "cpu", "portable", "ref", channels, &want);
    for (const char *const *isa = problem_isas; *isa; isa++) {
        same_by(text, channels, *isa, one ? "conv2d_codes/bits" : NULL, &want);
        if (one && has_tables(*isa)) same_by(text, channels, *isa, "conv2d_codes/tables", &want);
    }
    for (int k = 0; k < want.n; k++) free(want.of[k]);
}

static void random_codes_are_exact(void **state) {
    (void)state;
    uint64_t s = seed;
    for (int k = 0; k < 80; k++) {
        char text[1200];
        const int channels = random_text(&s, text, sizeof text);
        same(text, channels, true);
    }
}

static void concats_of_codes_are_exact(void **state) {
    (void)state;
    uint64_t s = seed;
    for (int k = 0; k < 60; k++) {
        char text[2000];
        const int channels = concat_text(&s, text, sizeof text);
        same(text, channels, false);
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

/* Two layers side by side, one with a max pool, as one image. */
static fac_value *side_by_side(fac_value *x) {
    fac_value *p = fac_relu(conv_norm(x, "p", 64, 1));
    fac_value *q =
        fac_relu(fac_max_pool2d(conv_norm(x, "q", 40, 1), 3, 3,
                                &(fac_pool2d_opts){ .stride = { 1, 1 }, .pad = { 1, 1, 1, 1 } }));
    return fac_concat((fac_value *[]){ p, q }, 2, 1);
}

/* A stem, a residual block, one with a shortcut of its own, a max pool, a concat, linear layers. */
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
    x = fac_relu(conv_norm(side_by_side(x), "d", 40, 1));
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

/* Concats of codes. */
static int joins_of(const fac_graph *g) {
    int n = 0;
    for (const fac_node *m = g->first; m; m = m->next)
        n += FAC_IS(m, concat) && m->out[0]->type.dtype == FAC_U32 && m->out[0]->type.dims.n == 5;
    return n;
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

/* Layers that give codes, those that read them, pools of codes, layers with limits and concats. */
static void trained_networks_are_exact(void **state) {
    (void)state;
    static const struct {
        const char *scheme;
        int codes, read, pools, limits, joins;
    } nets[] = { { "lq:w1a1", 7, 6, 2, 4, 1 },
                 { "lq:w1a2", 7, 6, 2, 0, 1 },
                 { "lq:w2a2", 7, 6, 2, 0, 1 },
                 { "xnor", 7, 8, 2, 5, 1 },
                 { "dorefa:w1a2", 7, 6, 2, 0, 1 } };
    const bool counts = !strcmp(fac_cpu_of(dev)->bits->name, "popcount");
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
        fac_graph *g = trained(nets[k].scheme), *after;
        fac_error err = { 0 };
        if (fac_graph_after(g, dev, NULL, "sweep", &after, &err)) fail_msg("%s", err.text);
        const int codes = count(after, &fac_op_conv2d_codes);
        const int pools = count(after, &fac_op_max_pool_codes);
        const int limits = count(after, &fac_op_code_limits);
        const int joins = joins_of(after);
        const int read = same_layers(after, nets[k].scheme);
        fac_graph_free(after);
        same_classes(g, nets[k].scheme);
        fac_graph_free(g);
        print_message("%s: %d, %d, %d, %d, %d\n", nets[k].scheme, codes, read, pools, limits,
                      joins);
        if (counts && (codes < nets[k].codes || read < nets[k].read || pools < nets[k].pools ||
                       limits < nets[k].limits || joins < nets[k].joins))
            fail_msg("%s: %d layers give codes, %d read them, %d pools, %d limits, %d concats",
                     nets[k].scheme, codes, read, pools, limits, joins);
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
                                        cmocka_unit_test(concats_of_codes_are_exact),
                                        cmocka_unit_test(trained_networks_are_exact) };
    return cmocka_run_group_tests_name("codes", tests, open_device, close_device);
}
