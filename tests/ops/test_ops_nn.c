/* Convolution, pooling, products, reductions, normalization: what is known before anything runs.
 * Sizes that are symbols, what is refused and how, resolved geometry, cost. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "facula/backend.h"
#include "facula/op.h"
#include "facula/ops.h"
#include "op_list.h"
#include "ops/conv_transpose.h"
#include "ops/pool.h"
#include "ops/reduce.h"

static fac_error err;

static void assert_dims(const fac_value *v, fac_dims want) {
    fac_dims have = fac_value_type(v).dims;
    assert_int_equal(have.n, want.n);
    for (int k = 0; k < have.n; k++) assert_int_equal(have.d[k], want.d[k]);
}

/* ---- symbols ---- */

static void windows_keep_or_name_unknown_sizes(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    int64_t N = fac_symbol(g, "N"), H = fac_symbol(g, "H"), W = fac_symbol(g, "W");
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(N, 3, H, W));
    fac_value *w3 = fac_input(g, "w3", FAC_F32, fac_shape(8, 3, 3, 3)),
              *w1 = fac_input(g, "w1", FAC_F32, fac_shape(8, 3, 1, 1));

    /* the same symbol where the size provably stays */
    assert_dims(fac_conv2d(x, w3, NULL, &(fac_conv2d_opts){ .pad = { 1, 1, 1, 1 } }),
                fac_shape(N, 8, H, W));
    assert_dims(fac_conv2d(x, w3, NULL, &(fac_conv2d_opts){ .auto_pad = FAC_AUTO_SAME_LOWER }),
                fac_shape(N, 8, H, W));
    assert_dims(
        fac_conv2d(x, w3, NULL, &(fac_conv2d_opts){ .pad = { 4, 0, 0, 2 }, .dilation = { 2, 1 } }),
        fac_shape(N, 8, H, W));
    assert_dims(
        fac_avg_pool2d(x, 3, 1, &(fac_pool2d_opts){ .stride = { 1, 1 }, .pad = { 1, 0, 1, 0 } }),
        fac_shape(N, 3, H, W));
    assert_dims(fac_conv_transpose2d(x, fac_input(g, "t", FAC_F32, fac_shape(3, 4, 3, 3)), NULL,
                                     &(fac_conv_transpose2d_opts){ .pad = { 1, 1, 1, 1 } }),
                fac_shape(N, 4, H, W));

    /* two windows that shrink a size alike agree, so that a residual connection stays provable */
    fac_value *a =
        fac_conv2d(x, w3, NULL, &(fac_conv2d_opts){ .stride = { 2, 2 }, .pad = { 1, 1, 1, 1 } });
    fac_value *b = fac_conv2d(x, w1, NULL, &(fac_conv2d_opts){ .stride = { 2, 2 } });
    fac_dims half = fac_value_type(a).dims;
    assert_true(half.d[2] < 0 && half.d[3] < 0 && half.d[2] != H && half.d[3] != W &&
                half.d[2] != half.d[3]);
    assert_dims(b, half);
    fac_value *c = fac_conv2d(x, w1, NULL, &(fac_conv2d_opts){ .stride = { 3, 2 } });
    assert_true(fac_value_type(c).dims.d[2] != half.d[2] &&
                fac_value_type(c).dims.d[3] == half.d[3]);

    /* a number beside a symbol is still computed */
    fac_value *y = fac_input(g, "y", FAC_F32, fac_shape(N, 3, 9, W));
    y = fac_max_pool2d(y, 3, 3, &(fac_pool2d_opts){ .stride = { 2, 2 } });
    assert_int_equal(fac_value_type(y).dims.d[2], 4);
    assert_true(fac_value_type(y).dims.d[3] < 0);
    assert_int_equal(fac_graph_check(g, &err), FAC_OK);
    fac_graph_free(g);
}

static void products_and_reductions_pass_symbols_on(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    int64_t N = fac_symbol(g, "N"), S = fac_symbol(g, "S");
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(N, S, 16)),
              *w = fac_input(g, "w", FAC_F32, fac_shape(4, 16));
    assert_dims(fac_linear(x, w, NULL), fac_shape(N, S, 4));
    assert_dims(fac_matmul(x, fac_input(g, "m", FAC_F32, fac_shape(16, 5))), fac_shape(N, S, 5));
    assert_dims(fac_matmul(x, fac_input(g, "k", FAC_F32, fac_shape(N, 16, S))), fac_shape(N, S, S));
    assert_dims(fac_sum(x, fac_shape(1), true), fac_shape(N, 1, 16));
    assert_dims(fac_mean(x, fac_shape(-1), false), fac_shape(N, S));
    assert_dims(fac_arg_max(x, 0, false), fac_shape(S, 16));
    assert_dims(fac_sum_like(x, fac_input(g, "l", FAC_F32, fac_shape(S, 1))), fac_shape(S, 1));

    /* which axes is known only when it runs: how many is enough */
    fac_value *axes = fac_input(g, "axes", FAC_I64, fac_shape(2));
    fac_value *y = fac_emit(&fac_op_sum, NULL, 2, (fac_value *[]){ x, axes });
    assert_int_equal(fac_value_type(y).dims.n, 1);
    y = fac_emit(&fac_op_sum, &(fac_reduce_attrs){ .keep = true }, 2, (fac_value *[]){ x, axes });
    assert_int_equal(fac_value_type(y).dims.n, 3);
    assert_true(fac_value_type(y).dims.d[2] < 0);
    assert_int_equal(fac_graph_check(g, &err), FAC_OK);
    fac_graph_free(g);
}

/* ---- refusals ---- */

static void nonsense_is_refused_with_reasons(void **state) {
    (void)state;
    static const struct {
        const char *problem;
        fac_status status;
        const char *says;
    } bad[] = {
        { "conv2d(f32[1,3,8,8], f32[4,4,3,3])", FAC_E_SHAPE,
          "w has 4 input channels in each of 1 groups, x has 3 channels" },
        { "conv2d(f32[1,4,8,8], f32[3,2,3,3]) groups=2", FAC_E_SHAPE,
          "3 output channels do not divide into 2 groups" },
        { "conv2d(f32[1,3,8,8], f32[4,3,3,3], f32[3])", FAC_E_SHAPE,
          "b must have one number for each of the 4 output channels" },
        { "conv2d(f32[1,3,8,8], f64[4,3,3,3])", FAC_E_DTYPE, "one dtype" },
        { "conv2d(f32[3,8,8], f32[4,3,3,3])", FAC_E_SHAPE, "4 dims" },
        { "conv2d(f32[1,3,8,4], f32[4,3,3,5])", FAC_E_SHAPE,
          "width: the kernel does not fit into the padded input" },
        { "conv2d(f32[1,3,8,8], f32[4,3,3,3]) stride=-1,1", FAC_E_ARGUMENT, "stride" },
        { "conv2d(f32[1,3,8,8], f32[4,3,3,3]) pad=-1,0,0,0", FAC_E_ARGUMENT, "pad" },
        { "conv2d(f32[1,3,8,8], f32[4,3,0,3])", FAC_E_SHAPE, "empty or absurdly large kernel" },
        { "conv2d(f32[1,3,8,8], f32[4,3,3,3]) dilation=2147483647,1", FAC_E_SHAPE, "height" },
        { "conv2d(f32[1,1,1,1], f32[0,1,4611686018427387904,1]) dilation=2147483647,1", FAC_E_SHAPE,
          "absurdly large" },
        { "conv2d(i32[1,3,8,8], i32[4,3,3,3])", FAC_E_DTYPE, "floats" },
        { "conv_transpose2d(f32[1,3,8,8], f32[4,3,3,3])", FAC_E_SHAPE,
          "w has 4 input channels, x has 3" },
        { "conv_transpose2d(f32[1,3,1,1], f32[3,3,3,3]) pad=2,0,2,0", FAC_E_SHAPE,
          "height: more padding than output" },
        { "max_pool2d(f32[1,3,8,8]) kernel=9,2", FAC_E_SHAPE, "height: the kernel does not fit" },
        { "max_pool2d(f32[3,8,8]) kernel=2,2", FAC_E_SHAPE, "4 dims" },
        { "max_pool2d(bool[1,3,8,8]) kernel=2,2", FAC_E_DTYPE, "x is bool" },
        { "avg_pool2d(i8[1,3,8,8]) kernel=2,2", FAC_E_DTYPE, "x is i8" },
        { "matmul(f32[3,4], f32[5,6])", FAC_E_SHAPE, "a has 4 columns, b 5 rows" },
        { "matmul(f32[2,3,4], f32[3,4,5])", FAC_E_SHAPE, "broadcast" },
        { "matmul(f32[], f32[5,6])", FAC_E_SHAPE, "at least one dim" },
        { "matmul(f32[3,4], i32[4,6])", FAC_E_DTYPE, "one dtype" },
        { "gemm(f32[3,4], f32[5,6])", FAC_E_SHAPE, "the inner sizes differ: 4 of a, 5 of b" },
        { "gemm(f32[3,4], f32[4,6], f32[3])", FAC_E_SHAPE, "c must broadcast to 3 x 6" },
        { "linear(f32[3,4], f32[4,6])", FAC_E_SHAPE, "w takes 6 features, x has 4" },
        { "sum(f32[3,4], i64{2})", FAC_E_SHAPE, "axis 2 of a tensor with 2 dims" },
        { "sum(f32[3,4], i64{1,-1})", FAC_E_SHAPE, "there twice" },
        { "sum(bool[3,4], i64{1})", FAC_E_DTYPE, "x is bool" },
        { "sum_like(f32[3,4], f32[3])", FAC_E_SHAPE, "like does not broadcast to x" },
        { "sum_like(f32[4], f32[3,4])", FAC_E_SHAPE, "like does not broadcast to x" },
        { "arg_max(f32[3,0]) axis=1", FAC_E_SHAPE, "axis 1 is empty" },
        { "softmax(f32[3,4]) axis=2", FAC_E_SHAPE, "axis 2 of a tensor with 2 dims" },
        { "softmax(i32[3,4]) axis=1", FAC_E_DTYPE, "x is i32" },
        { "batch_norm(f32[2,3,4], f32[3], f32[3], f32[4], f32[3])", FAC_E_SHAPE,
          "mean must have one number for each of the 3" },
        { "layer_norm(f32[2,3,4], f32[3], -) axis=-1", FAC_E_SHAPE, "scale does not broadcast" },
        { "group_norm(f32[2,3,4], -, -) groups=2", FAC_E_SHAPE,
          "3 channels do not divide into 2 groups" },
        { "instance_norm(f32[2,3,4], f32[2], -)", FAC_E_SHAPE,
          "scale must have one number for each channel" },
        { "lrn(f32[3]) size=3", FAC_E_SHAPE, "channel" }
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        fac_graph *g = NULL;
        fac_status s = fac_problem_graph(bad[k].problem, false, &g, &err);
        if (!s) fail_msg("%s: not refused", bad[k].problem);
        if (s != bad[k].status || !strstr(err.text, bad[k].says))
            fail_msg("%s: %s: %s; expected %s: %s", bad[k].problem, fac_status_name(s), err.text,
                     fac_status_name(bad[k].status), bad[k].says);
    }
}

/* ---- geometry ---- */

static fac_node *node_of(const char *problem, fac_graph **g) {
    if (fac_problem_graph(problem, false, g, &err)) fail_msg("%s: %s", problem, err.text);
    return fac_graph_output(*g, 0)->node;
}

static void geometry_is_resolved(void **state) {
    (void)state;
    fac_graph *g;
    fac_conv_geom c;
    assert_true(fac_conv_geometry(
        node_of("conv2d(f32[2,6,9,8], f32[4,3,3,2]) stride=2,3 groups=2 auto_pad=same_upper", &g),
        &c));
    assert_true(c.rank == 2 && c.N == 2 && c.C == 6 && c.K == 4 && c.groups == 2 && c.D == 1 &&
                c.T == 1 && c.O == 1);
    assert_true(c.H == 9 && c.W == 8 && c.R == 3 && c.S == 2 && c.P == 5 &&
                c.Q == 3); /* ceil(9 / 2), ceil(8 / 3) */
    assert_true(c.stride[0] == 1 && c.stride[1] == 2 && c.stride[2] == 3 && c.dilation[2] == 1);
    assert_true(c.pad[1] == 1 && c.pad_end[1] == 1 && c.pad[2] == 0 && c.pad_end[2] == 0);
    fac_graph_free(g);
    assert_true(fac_conv_geometry(
        node_of("conv2d(f32[1,1,8,8], f32[1,1,4,4]) auto_pad=same_lower", &g), &c));
    assert_true(c.P == 8 && c.pad[1] == 2 && c.pad_end[1] == 1);
    fac_graph_free(g);
    assert_true(fac_conv_geometry(
        node_of("conv1d(f32[1,2,10], f32[3,2,4]) stride=2 pad=1,3 dilation=3", &g), &c));
    assert_true(c.rank == 1 && c.H == 1 && c.R == 1 && c.W == 10 && c.S == 4 && c.Q == 3 &&
                c.pad[2] == 1 && c.pad_end[2] == 3);
    fac_graph_free(g);
    assert_false(fac_conv_geometry(node_of("max_pool2d(f32[1,1,8,8]) kernel=2,2", &g), &c));
    fac_graph_free(g);

    const char *transposed =
        "conv_transpose2d(f32[1,6,4,5], f32[6,2,3,3]) stride=2,2 pad=1,0,0,0 groups=3";
    assert_true(fac_conv_transpose_geometry(node_of(transposed, &g), &c));
    assert_true(c.K == 6 && c.C == 6 && c.groups == 3 && c.P == 4 && c.Q == 5 && c.H == 8 &&
                c.W == 11 && c.pad[1] == 1);
    fac_graph_free(g);

    fac_pool_geom p;
    const char *mean =
        "avg_pool2d(f32[1,3,7,6]) kernel=3,2 pad=1,0,0,1 ceil_mode count_include_pad";
    assert_true(fac_pool_geometry(node_of(mean, &g), &p));
    assert_true(p.rank == 2 && p.C == 3 && p.count_include_pad && p.window[1].stride == 3 &&
                p.window[2].stride == 2);
    assert_int_equal(p.window[1].out,
                     3); /* rows -1.. 2.. 5..: the last sees two rows and what is after them */
    assert_int_equal(p.window[2].out, 3); /* columns 0.. 2.. 4..: a fourth would begin after x */
    fac_graph_free(g);
}

/* Every tap of every output, asked one by one, against the two ways the header gives. */
static void taps_and_outputs_agree(void **state) {
    (void)state;
    for (int64_t in = 0; in < 8; in++)
        for (int64_t kernel = 1; kernel < 5; kernel++)
            for (int64_t stride = 1; stride < 4; stride++)
                for (int64_t dilation = 1; dilation < 4; dilation++)
                    for (int64_t pad = 0; pad < 16; pad++)
                        for (int ceil = 0; ceil < 2; ceil++) {
                            fac_window w = { in, kernel, stride, dilation, pad % 4, pad / 4, 0 };
                            if (fac_window_settle(&w, FAC_AUTO_NONE, ceil)) continue;
                            for (int64_t i = 0; i < w.out; i++)
                                for (int64_t k = 0; k < kernel; k++) {
                                    int64_t at = i * stride + k * dilation - w.pad, first, last, lo,
                                            hi;
                                    bool inside = at >= 0 && at < in;
                                    int64_t padded = fac_window_taps(&w, i, &first, &last);
                                    fac_window_inside(&w, k, &lo, &hi);
                                    assert_int_equal(k >= first && k < last, inside);
                                    assert_int_equal(i >= lo && i < hi, inside);
                                    assert_int_equal(k < padded, at < in + w.pad_end);
                                }
                        }
}

/* ---- cost ---- */

static void costs_follow_the_core_convention(void **state) {
    (void)state;
    static const struct {
        const char *problem;
        double macs, other, read, written;
    } cost[] = { { "conv2d(f32[1,3,224,224], f32[64,3,7,7]) stride=2,2 pad=3,3,3,3", 118013952, 0,
                   4. * (150528 + 9408), 3211264 },
                 { "conv2d(f32[2,6,9,8], f32[4,3,3,3], f32[4]) pad=1,1,1,1 groups=2",
                   2. * 4 * 72 * 27, 576, 4. * (864 + 108 + 4), 2304 },
                 { "conv1d(f32[1,2,10], f32[3,2,4])", 3. * 7 * 8, 0, 4. * 44, 84 },
                 { "conv3d(f32[1,1,4,4,4], f32[2,1,3,3,3])", 2. * 8 * 27, 0, 4. * (64 + 54), 64 },
                 { "conv_transpose2d(f32[1,4,5,5], f32[4,3,2,2]) stride=2,2", 100. * 12, 0,
                   4. * 148, 1200 },
                 { "gemm(f32[5,7], f32[3,7], f32[3]) trans_b", 105, 15, 4. * (35 + 21 + 3), 60 },
                 { "matmul(f16[2,4,5,7], f16[7,3])", 8. * 105, 0, 2. * (280 + 21), 240 },
                 { "matmul(f32[7], f32[7])", 7, 0, 56, 4 },
                 { "linear(f32[2,3,7], f32[4,7], f32[4])", 168, 24, 4. * (42 + 28 + 4), 96 },
                 { "max_pool2d(f32[1,2,8,8]) kernel=2,2", 0, 128, 512, 128 },
                 { "sum(f32[3,4], i64{1})", 0, 12, 48 + 8, 12 },
                 { "batch_norm(f32[2,3,4], f32[3], f32[3], f32[3], f32[3])", 0, 48, 96 + 48, 96 } };
    for (size_t k = 0; k < sizeof cost / sizeof *cost; k++) {
        fac_graph *g;
        fac_node *n = node_of(cost[k].problem, &g);
        fac_cost c = { -1, -1, -1, -1 };
        n->op->cost(n, &c);
        if (c.macs != cost[k].macs || c.other != cost[k].other || c.read != cost[k].read ||
            c.written != cost[k].written)
            fail_msg("%s: %g macs, %g other, %g read, %g written", cost[k].problem, c.macs, c.other,
                     c.read, c.written);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_keep_or_name_unknown_sizes),
        cmocka_unit_test(products_and_reductions_pass_symbols_on),
        cmocka_unit_test(nonsense_is_refused_with_reasons),
        cmocka_unit_test(geometry_is_resolved),
        cmocka_unit_test(taps_and_outputs_agree),
        cmocka_unit_test(costs_follow_the_core_convention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
