/* Where a residual block's shortcut has a convolution and a norm, both norms and both their
 * gradients become one node each: the graph means the same. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "backends/opencl/device/opencl.h"
#include "base/rng.h"
#include "facula/facula.h"
#include "facula/nn.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "opencl_check.h"
#include "passes/passes.h"
#include "train/train_internal.h"

enum { MOST = 40, CHANNELS = 16, IMAGES = 3, SIDE = 9, ELEMENTS = IMAGES * 4 * SIDE * SIDE };

/* Which activation ends the block that the test is about. */
typedef enum ending { RELU, RELU6, NOTHING } ending;

static fac_value *conv_bn(fac_value *x, int number, int size, int stride) {
    char conv[16], bn[16];
    snprintf(conv, sizeof conv, "conv%d", number), snprintf(bn, sizeof bn, "bn%d", number);
    x = fac_nn_conv2d(x, conv, CHANNELS, size,
                      &(fac_nn_conv2d_opts){ .pad = size / 2, .stride = stride, .no_bias = true });
    return fac_nn_batch_norm(x, bn, 1e-5);
}

/* All gradients of a network of two blocks, the first with a convolution in its shortcut, the
 * second without. */
static fac_graph *step(ending e) {
    fac_graph *model = fac_graph_new();
    fac_nn_seed(model, 7);
    fac_value *x = fac_input(model, "x", FAC_F32, fac_shape(IMAGES, 4, SIDE, SIDE)), *w[MOST],
              *dw[MOST];
    fac_value *a = fac_relu(conv_bn(x, 1, 3, 1));
    fac_value *b = fac_relu(conv_bn(a, 2, 3, 2));
    fac_value *c = fac_add(conv_bn(b, 3, 1, 1), conv_bn(a, 4, 1, 2));
    if (e == RELU) c = fac_relu(c);
    if (e == RELU6) c = fac_relu6(c);
    fac_value *d = fac_relu(conv_bn(c, 5, 3, 1));
    d = fac_relu(fac_add(conv_bn(d, 6, 3, 1), c));
    fac_output(model, "y", fac_mul(d, d));
    fac_graph *g = fac_graph_training(model);
    fac_value *loss = fac_mean(fac_graph_output(g, 0), (fac_dims){ 0 }, false);
    int n = 0;
    for (int i = 0; i < fac_graph_params(g); i++)
        if (fac_value_trains(fac_graph_param(g, i))) w[n++] = fac_graph_param(g, i);
    fac_grad(loss, n, w, dw);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        fac_output(g, name, dw[i]);
    }
    fac_graph_free(model);
    return g;
}

static bool accept_all(void *self, const fac_node *n) { return (void)self, (void)n, true; }

static int count(const fac_graph *g, const char *op) {
    int n = 0;
    for (const fac_node *m = g->first; m; m = m->next) n += !strcmp(m->op->name, op);
    return n;
}

/* self: what a pair is worth, forward and of gradients; other nodes are worth 1. */
static double price_of(void *self, const fac_node *n) {
    const double *worth = self;
    if (FAC_IS(n, batch_norm_pair) || FAC_IS(n, batch_norm_pair_relu)) return worth[0];
    return FAC_IS(n, batch_norm_grad_pair) ? worth[1] : 1;
}

/* The passes before the one that is tested, which a GPU's prices would let happen; sums: of norms'
 * gradients, too, and masks as bits. */
static fac_graph *before(const fac_graph *g, bool sums) {
    double worth[] = { 1, 1 };
    fac_graph *one = fac_pass_epilogue(g, accept_all, NULL),
              *two = fac_pass_norm_epilogue(one, accept_all, NULL);
    fac_graph *three = fac_pass_norm_moments(two, price_of, worth), *to = three;
    if (sums) {
        fac_graph *four = fac_pass_norm_sums(three, price_of, worth);
        to = fac_pass_norm_masks(four, price_of, worth);
        fac_graph_free(four), fac_graph_free(three);
    }
    fac_graph_free(two);
    fac_graph_free(one);
    return to;
}

/* Gradients at any price. */
static fac_graph *with_pairs(const fac_graph *g, bool sums) {
    double worth[] = { 1, 0 };
    fac_error err = { 0 };
    fac_graph *from = before(g, sums), *to = fac_pass_norm_pairs(from, price_of, worth);
    assert_int_equal(fac_graph_check(to, &err), FAC_OK);
    fac_graph_free(from);
    return to;
}

/* Of norms or pairs: with bits, too. */
static int norms(const fac_graph *g, const char *op) {
    char bits[40];
    snprintf(bits, sizeof bits, "%s_relu", op);
    return count(g, op) + count(g, bits);
}

static void norms_meet(void **state) {
    (void)state;
    for (int k = 0; k < 6; k++) {
        const ending e = k / 2;
        fac_graph *g = step(e), *from = before(g, k % 2), *to = with_pairs(g, k % 2);
        const fac_node *pair = to->first;
        assert_int_equal(norms(from, "batch_norm_given"), 6);
        assert_int_equal(norms(to, "batch_norm_given"), 4);
        assert_int_equal(norms(to, "batch_norm_pair"), 1);
        while (strncmp(pair->op->name, "batch_norm_pair", 15)) pair = pair->next;
        assert_int_equal(pair->nin, 14);
        const bool bits = k % 2 && e == RELU;
        assert_int_equal(count(to, "batch_norm_pair_relu"), bits);
        assert_true(pair->nin == pair->nports && !pair->body[0] == (e == NOTHING || bits));
        if (pair->body[0]) assert_int_equal(pair->body[0]->ninputs, 1);
        assert_int_equal(count(to, "batch_norm_grad_pair"), 1);
        /* of two norms one may have sums from a convolution's gradient, which masks twice for
         * nobody */
        const int given = count(from, "batch_norm_grad_given") - count(to, "batch_norm_grad_given");
        assert_int_equal(count(to, "batch_norm_sums"), 2 - given);
        assert_int_equal(given, k % 2 && e != RELU6);
        fac_graph_free(to), fac_graph_free(from), fac_graph_free(g);
    }
}

/* Two norms are worth 2, a norm's gradient beside sums that are made 1. */
static void pairs_have_a_price(void **state) {
    (void)state;
    fac_graph *g = step(RELU), *from = before(g, true);
    for (int dear = 0; dear < 4; dear++) {
        double worth[] = { 2, 1 };
        if (dear & 1) worth[0] = 2.1;
        if (dear & 2) worth[1] = 1.1;
        fac_graph *to = fac_pass_norm_pairs(from, price_of, worth);
        assert_int_equal(norms(to, "batch_norm_pair"), dear & 1 ? 0 : 1);
        assert_int_equal(count(to, "batch_norm_grad_pair"), dear & 2 ? 0 : 1);
        assert_int_equal(count(to, "batch_norm_sums"), dear & 2 ? 0 : 1);
        fac_graph_free(to);
    }
    fac_graph_free(from), fac_graph_free(g);
}

/* Gradients, and running statistics after them; returns how many. */
static int results_of(fac_graph *g, fac_device *d, bool fuse, fac_tensor *x, fac_tensor **out) {
    static const char *const running[] = { "bn3.running_mean", "bn3.running_var",
                                           "bn4.running_mean", "bn4.running_var" };
    fac_error err = { 0 };
    fac_program *p = NULL;
    memset(out, 0, (MOST + 4) * sizeof *out);
    const fac_program_opts opts = { .no_fuse = !fuse, .precision = FAC_PRECISION_HIGHEST };
    if (fac_program_new(g, d, &opts, &p, &err)) fail_msg("%s", err.text);
    if (fac_program_run(p, &x, out, &err)) fail_msg("%s", err.text);
    int n = fac_graph_outputs(g);
    for (int k = 0; k < 4; k++)
        out[n++] = fac_tensor_retain(fac_value_tensor(fac_graph_find(g, running[k])));
    fac_program_free(p);
    return n;
}

static void compare(const fac_tensor *x, fac_tensor *y, double tolerance, int output) {
    const fac_type t = fac_tensor_type(x);
    const float *a = fac_tensor_data(x), *b = fac_tensor_data(y);
    double top = 0;
    for (int64_t i = 0; i < fac_dims_count(&t.dims); i++) top = fmax(top, fabs((double)a[i]));
    for (int64_t i = 0; i < fac_dims_count(&t.dims); i++)
        if (!(fabs((double)(a[i] - b[i])) <= tolerance * (1 + top)))
            fail_msg("output %d: %g and %g", output, (double)a[i], (double)b[i]);
    fac_tensor_free(y);
}

/* On the cpu, where pairs are expanded, and by an OpenCL device's kernels, shaped for a GPU, if
 * there is one; there also as the device itself would have it. */
static void results_are_the_same(void **state) {
    (void)state;
    fac_error err = { 0 };
    fac_device *cpu = NULL, *other = NULL;
    fac_tensor *x = NULL;
    float data[ELEMENTS];
    fac_random_fill(11, 1, -1, 1, ELEMENTS, data);
    assert_int_equal(fac_device_open("cpu", NULL, &cpu, &err), FAC_OK);
    assert_int_equal(opencl_open(&other, &err), 0);
    if (other) fac_opencl_of(other)->limits.gpu = true;
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(IMAGES, 4, SIDE, SIDE), &x, &err),
                     FAC_OK);
    assert_int_equal(fac_tensor_write(x, data, sizeof data, &err), FAC_OK);
    for (int k = 0; k < 6; k++) {
        fac_graph *plain = step(k / 2), *again = step(k / 2), *pairs = with_pairs(again, k % 2);
        fac_tensor *want[MOST + 4], *got[MOST + 4];
        const int n = results_of(plain, cpu, false, x, want);
        for (int way = 0; way < (other ? 3 : 1); way++) {
            if (way) {
                again = step(k / 2);
                pairs = with_pairs(again, k % 2);
            }
            fac_graph *of = way < 2 ? pairs : again;
            results_of(of, way ? other : cpu, way == 2, x, got);
            for (int i = 0; i < n; i++) compare(want[i], got[i], way ? 2e-4 : 2e-5, i);
            fac_graph_free(pairs), fac_graph_free(again);
        }
        for (int i = 0; i < n; i++) fac_tensor_free(want[i]);
        fac_graph_free(plain);
    }
    fac_tensor_free(x);
    fac_device_free(cpu), fac_device_free(other);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(norms_meet),
                                        cmocka_unit_test(pairs_have_a_price),
                                        cmocka_unit_test(results_are_the_same) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
