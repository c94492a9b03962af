/* Batch norms of training take residual adds and activations into their bodies: the graph is
 * smaller and means the same. */
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

enum { MOST = 40 };

static fac_value *conv_bn(fac_value *x, const char *conv, const char *bn, int channels) {
    x = fac_nn_conv2d(x, conv, channels, 3, &(fac_nn_conv2d_opts){ .pad = 1, .no_bias = true });
    return fac_nn_batch_norm(x, bn, 1e-5);
}

/* Outputs: all gradients of the mean of model's.  Frees model. */
static fac_graph *gradients_of(fac_graph *model) {
    fac_graph *g = fac_graph_training(model);
    fac_value *loss = fac_mean(fac_graph_output(g, 0), (fac_dims){ 0 }, false), *w[MOST], *dw[MOST];
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

/* A step of a small network with relu, relu6, residual adds and a norm without activation. */
static fac_graph *step(void) {
    fac_graph *model = fac_graph_new();
    fac_nn_seed(model, 7);
    fac_value *x = fac_input(model, "x", FAC_F32, fac_shape(3, 5, 9, 11));
    fac_value *a = fac_relu(conv_bn(x, "conv1", "bn1", 20));
    fac_value *b = fac_relu6(conv_bn(a, "conv2", "bn2", 20));
    fac_value *c = fac_relu(fac_add(conv_bn(b, "conv3", "bn3", 20), a));
    fac_value *d = fac_add(c, conv_bn(c, "conv4", "bn4", 20));
    fac_output(model, "y", fac_mul(d, d));
    return gradients_of(model);
}

/* Of one whose shortcut is a strided convolution of 1 x 1. */
static fac_graph *step_with_shortcut(void) {
    fac_graph *model = fac_graph_new();
    const fac_nn_conv2d_opts strided = { .stride = 2, .no_bias = true };
    fac_nn_seed(model, 7);
    fac_value *x = fac_input(model, "x", FAC_F32, fac_shape(3, 5, 9, 11));
    fac_value *a = fac_relu(conv_bn(x, "conv1", "bn1", 20));
    fac_value *b = fac_relu(conv_bn(a, "conv2", "bn2", 20));
    fac_value *shortcut =
        fac_nn_batch_norm(fac_nn_conv2d(a, "conv3", 20, 1, &strided), "bn3", 1e-5);
    fac_value *c = fac_relu(fac_add(
        fac_nn_batch_norm(fac_nn_conv2d(b, "conv4", 20, 1, &strided), "bn4", 1e-5), shortcut));
    fac_output(model, "y", fac_mul(c, c));
    return gradients_of(model);
}

/* Of one with a max pool after relu. */
static fac_graph *step_with_pool(void) {
    fac_graph *model = fac_graph_new();
    fac_nn_seed(model, 7);
    fac_value *x = fac_input(model, "x", FAC_F32, fac_shape(3, 5, 9, 11));
    fac_value *a = fac_relu(conv_bn(x, "conv1", "bn1", 20));
    a = fac_max_pool2d(a, 3, 3, &(fac_pool2d_opts){ .stride = { 2, 2 }, .pad = { 1, 1, 1, 1 } });
    for (int k = 2; k < 5; k++) {
        char conv[8], norm[8];
        snprintf(conv, sizeof conv, "conv%d", k), snprintf(norm, sizeof norm, "bn%d", k);
        a = fac_relu(conv_bn(a, conv, norm, 20));
    }
    fac_output(model, "y", fac_mul(a, a));
    return gradients_of(model);
}

static bool accept_all(void *self, const fac_node *n) { return (void)self, (void)n, true; }

static int count(const fac_graph *g, const char *op, bool with_body) {
    int n = 0;
    for (const fac_node *m = g->first; m; m = m->next)
        n += !strcmp(m->op->name, op) && (!with_body || m->body[0]);
    return n;
}

static void graph_is_smaller(void **state) {
    (void)state;
    fac_error err = { 0 };
    fac_graph *g = step(), *to = fac_pass_norm_epilogue(g, accept_all, NULL);
    assert_int_equal(fac_graph_check(to, &err), FAC_OK);
    assert_int_equal(count(g, "batch_norm", false), 4);
    assert_int_equal(count(to, "batch_norm", false), 4);
    assert_int_equal(count(to, "batch_norm", true), 4);
    assert_int_equal(count(g, "relu", false), 2);
    assert_int_equal(count(to, "relu", false), 0);
    assert_int_equal(count(to, "clip", false), 0);
    assert_int_equal(count(to, "batch_norm_act_grad", false),
                     2); /* not bn3: its masked gradient goes to the sum as well */
    assert_int_equal(count(to, "batch_norm_grad", false), 2);
    assert_int_equal(count(to, "less", false), 0);
    fac_graph_free(to);
    fac_graph_free(g);
}

static double price_one(void *self, const fac_node *n) { return (void)self, (void)n, 1; }

/* The statistics of each norm come from the convolution before it. */
static fac_graph *with_moments(const fac_graph *g) {
    fac_graph *pools = fac_pass_relu_pools(g, accept_all, NULL),
              *short_of = fac_pass_norm_epilogue(pools, accept_all, NULL);
    fac_graph *to = fac_pass_norm_moments(short_of, price_one, NULL);
    fac_error err = { 0 };
    assert_int_equal(fac_graph_check(to, &err), FAC_OK);
    assert_int_equal(count(to, "conv2d_moments", false), 4);
    assert_int_equal(count(to, "batch_norm_given", false), 4);
    assert_true(count(to, "batch_norm_given", true) >= 3);
    assert_int_equal(count(to, "batch_norm", false) + count(to, "conv2d", false), 0);
    fac_graph_free(short_of);
    fac_graph_free(pools);
    return to;
}

/* And the sums of their gradients from the gradients of convolutions. */
static fac_graph *with_sums(const fac_graph *g) {
    fac_graph *one = fac_pass_epilogue(g, accept_all, NULL), *two = with_moments(one);
    fac_graph *to = fac_pass_norm_sums(two, price_one, NULL);
    fac_error err = { 0 };
    assert_int_equal(fac_graph_check(to, &err), FAC_OK);
    assert_true(count(to, "conv2d_grad_x_norm", false) >= 2);
    assert_int_equal(count(to, "conv2d_grad_x_norm", false),
                     count(to, "batch_norm_grad_given", false));
    fac_graph_free(one);
    fac_graph_free(two);
    return to;
}

/* And what relu lets pass after the residual add is kept as bits. */
static fac_graph *with_masks(const fac_graph *g) {
    fac_graph *sums = with_sums(g), *to = fac_pass_norm_masks(sums, price_one, NULL);
    fac_error err = { 0 };
    assert_int_equal(fac_graph_check(to, &err), FAC_OK);
    fac_graph_free(sums);
    return to;
}

/* Relu after a norm alone is seen from the norm's own x. */
static void masks_are_bits(void **state) {
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        fac_graph *g = turn ? step_with_pool() : step(), *sums = with_sums(g),
                  *to = fac_pass_norm_masks(sums, price_one, NULL);
        int by_y = 0, by_bits = 0;
        for (const fac_node *n = sums->first; n; n = n->next)
            by_y += FAC_IS(n, conv2d_grad_x_norm) && n->in[9];
        for (const fac_node *n = to->first; n; n = n->next) {
            if (!FAC_IS(n, conv2d_grad_x_norm)) continue;
            assert_null(n->in[9]);
            if (!n->in[10]) continue;
            by_bits++;
            assert_string_equal(n->in[10]->node->op->name, "batch_norm_given_relu");
            assert_int_equal(n->in[10]->index, 3);
        }
        assert_int_equal(by_y, !turn);
        assert_int_equal(by_bits, !turn);
        assert_int_equal(count(to, "batch_norm_given_relu", false), !turn);
        assert_int_equal(count(to, "batch_norm_given", false), 3 + turn);
        fac_graph_free(to);
        fac_graph_free(sums);
        fac_graph_free(g);
    }
}

/* No kernel takes what *self names. */
static double price_without(void *self, const fac_node *n) {
    if (!strcmp(self, "mask")) return FAC_IS(n, conv2d_grad_x_norm) && n->in[10] ? INFINITY : 1;
    return !strcmp(n->op->name, self) ? INFINITY : 1;
}

static void masks_need_kernels(void **state) {
    (void)state;
    static const char *const without[] = { "mask", "batch_norm_given_relu" };
    fac_graph *g = step(), *sums = with_sums(g);
    for (int k = 0; k < 2; k++) {
        char name[32];
        snprintf(name, sizeof name, "%s", without[k]);
        fac_graph *to = fac_pass_norm_masks(sums, price_without, name);
        assert_int_equal(count(to, "batch_norm_given_relu", false), 0);
        assert_int_equal(count(to, "batch_norm_given", true),
                         count(sums, "batch_norm_given", true));
        assert_int_equal(count(to, "conv2d_grad_x_norm", false),
                         count(sums, "conv2d_grad_x_norm", false));
        fac_graph_free(to);
    }
    fac_graph_free(sums);
    fac_graph_free(g);
}

/* self: the price of a gradient by x with sums.  A norm's gradient is worth 2, one whose sums are
 * given 1. */
static double price_of(void *self, const fac_node *n) {
    if (FAC_IS(n, conv2d_grad_x_norm)) return *(const double *)self;
    return FAC_IS(n, batch_norm_grad) ? 2 : 1;
}

/* Sums come along where both nodes together are at most a tenth more expensive. */
static void sums_have_a_price(void **state) {
    (void)state;
    fac_graph *g = step(), *one = fac_pass_epilogue(g, accept_all, NULL), *two = with_moments(one);
    for (int dear = 0; dear < 2; dear++) {
        double sums = dear ? 2.32 : 2.28;
        fac_graph *to = fac_pass_norm_sums(two, price_of, &sums);
        if (dear)
            assert_int_equal(count(to, "conv2d_grad_x_norm", false), 0);
        else
            assert_true(count(to, "conv2d_grad_x_norm", false) >= 1);
        fac_graph_free(to);
    }
    fac_graph_free(two);
    fac_graph_free(one);
    fac_graph_free(g);
}

/* Nothing makes or reads the zeros between the pixels that a strided shortcut sees. */
static void strided_shortcuts_are_thin(void **state) {
    (void)state;
    fac_graph *g = step_with_shortcut(), *to = with_sums(g);
    int thin = 0;
    for (const fac_node *n = to->first; n; n = n->next) {
        if (!FAC_IS(n, conv2d_grad_x_norm) || !n->in[8]) continue;
        const fac_dims *add = &n->in[8]->type.dims, *dx = &n->out[0]->type.dims;
        thin += add->d[2] == (dx->d[2] + 1) / 2 && add->d[3] == (dx->d[3] + 1) / 2;
    }
    assert_int_equal(thin, 1);
    fac_graph_free(to);
    fac_graph_free(g);
}

/* The mask of relu before a max pool is the pool's, none is left to the norm. */
static void pools_see_what_relu_passes(void **state) {
    (void)state;
    fac_graph *g = step_with_pool(), *one = fac_pass_relu_pools(g, accept_all, NULL);
    fac_graph *to = fac_pass_norm_epilogue(one, accept_all, NULL);
    fac_error err = { 0 };
    assert_int_equal(fac_graph_check(to, &err), FAC_OK);
    assert_int_equal(count(g, "max_pool2d_grad", false), 1);
    assert_int_equal(count(to, "max_pool2d_relu_grad", false), 1);
    assert_int_equal(count(to, "max_pool2d_grad", false), 0);
    assert_int_equal(count(to, "batch_norm_grad", false), 1);
    assert_int_equal(count(to, "batch_norm_act_grad", false), 3);
    fac_graph_free(to);
    fac_graph_free(one);
    fac_graph_free(g);
}

/* Gradients and running statistics are those of the program without fusing. */
static void check_results(fac_graph *(*make)(void)) {
    fac_error err = { 0 };
    enum { WAYS = 8, BITS = WAYS - 1 }; /* the last three: on an OpenCL device, if there is one */
    fac_tensor *out[WAYS][MOST] = { { NULL } }, *x = NULL;
    fac_device *device = NULL, *other_device = NULL;
    int n = 0, ways = WAYS - 3;
    float data[3 * 5 * 9 * 11];
    fac_random_fill(11, 1, -1, 1, sizeof data / sizeof *data, data);
    assert_int_equal(fac_device_open("cpu", NULL, &device, &err), FAC_OK);
    assert_int_equal(opencl_open(&other_device, &err), 0);
    if (other_device) ways = WAYS;
    const bool gpu = other_device && fac_opencl_of(other_device)->limits.gpu;
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(3, 5, 9, 11), &x, &err), FAC_OK);
    assert_int_equal(fac_tensor_write(x, data, sizeof data, &err), FAC_OK);
    for (int k = 0; k < ways; k++) {
        fac_graph *plain = make(), *g = k == 2                ? with_moments(plain)
                                        : k == 3              ? with_sums(plain)
                                        : k == 4 || k == BITS ? with_masks(plain)
                                                              : plain;
        fac_program *p = NULL;
        if (k == BITS)
            fac_opencl_of(other_device)->limits.gpu =
                true; /* bits are written there, and read by what expands */
        const fac_program_opts opts = { .no_fuse = k == 0 || (k > 1 && k < 5) || k == BITS,
                                        .precision = FAC_PRECISION_HIGHEST };
        if (fac_program_new(g, k < 5 ? device : other_device, &opts, &p, &err))
            fail_msg("%s", err.text);
        if (fac_program_run(p, &x, out[k], &err)) fail_msg("%s", err.text);
        n = fac_graph_outputs(g);
        out[k][n] = fac_tensor_retain(fac_value_tensor(fac_graph_find(g, "bn3.running_var")));
        fac_program_free(p);
        if (k == BITS) fac_opencl_of(other_device)->limits.gpu = gpu;
        if (g != plain) fac_graph_free(g);
        fac_graph_free(plain);
    }
    for (int i = 0; i < (ways - 1) * (n + 1); i++) {
        fac_tensor *one = out[0][i % (n + 1)], *other = out[1 + i / (n + 1)][i % (n + 1)];
        fac_type t = fac_tensor_type(one);
        const float *a = fac_tensor_data(one), *b = fac_tensor_data(other);
        double top = 0;
        for (int64_t e = 0; e < fac_dims_count(&t.dims); e++) top = fmax(top, fabs((double)a[e]));
        for (int64_t e = 0; e < fac_dims_count(&t.dims); e++)
            if (!(fabs((double)(a[e] - b[e])) <= (i < 4 * (n + 1) ? 2e-5 : 2e-4) * (1 + top)))
                fail_msg("output %d: %g and %g", i, (double)a[e], (double)b[e]);
        fac_tensor_free(other);
    }
    for (int i = 0; i <= n; i++) fac_tensor_free(out[0][i]);
    fac_tensor_free(x);
    fac_device_free(device);
    fac_device_free(other_device);
}

static void results_are_the_same(void **state) {
    (void)state;
    check_results(step);
    check_results(step_with_shortcut);
    check_results(step_with_pool);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(graph_is_smaller),
                                        cmocka_unit_test(sums_have_a_price),
                                        cmocka_unit_test(strided_shortcuts_are_thin),
                                        cmocka_unit_test(pools_see_what_relu_passes),
                                        cmocka_unit_test(masks_are_bits),
                                        cmocka_unit_test(masks_need_kernels),
                                        cmocka_unit_test(results_are_the_same) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
