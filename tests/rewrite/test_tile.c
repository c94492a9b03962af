/* Products in tiles compute the same: on small integers every order of adding gives the same bits,
 * so bits are compared.  The limits hold in the graph that comes out, and it has as many products
 * as are reported. */
#include "tile_check.h"

static const char *const problems[] = {
    "linear(f32[3,7], f32[5,7], f32[5])",
    "linear(f32[2,3,8], f32[9,8], -)",
    "gemm(f32[7,5], f32[5,9], f32[7,9])",
    "gemm(f32[5,7], f32[9,5], f32[9]) trans_a trans_b alpha=2 beta=3",
    "gemm(f32[7,5], f32[5,9], f32[7,1])",
    "gemm(f32[6,6], f32[6,6], -)",
    "gemm(f64[6,7], f64[7,6], f64[])",
    "gemm(i32[6,7], i32[7,6], i32[6])",
    "matmul(f32[7,9], f32[9,5])",
    "matmul(f32[2,3,5,7], f32[2,3,7,6])",
    "matmul(f32[2,1,5,7], f32[3,7,6])",
    "matmul(f32[3,5,7], f32[7,6])",
    "matmul(f32[9], f32[9,7])",
    "matmul(f32[3,5,9], f32[9])",
    "matmul(f32[9], f32[2,9,7])",
    "matmul(f32[9], f32[9])",
    "matmul(f32[5,9], f32[2,9,7])",
    "conv2d(f32[1,3,9,8], f32[7,3,3,3], f32[7]) pad=1,1,1,1",
    "conv2d(f32[2,6,9,7], f32[8,3,3,2], f32[8]) stride=2,1 groups=2 pad=1,0,0,1",
    "conv2d(f32[1,5,8,8], f32[6,5,1,1], -)",
    "conv2d(f32[1,4,11,11], f32[5,4,3,3], f32[5]) dilation=2,2 stride=2,2",
    "conv2d(f32[2,9,4,4], f32[5,9,1,1], f32[5]) stride=2,2",
    "conv1d(f32[2,4,13], f32[6,4,5], f32[6]) pad=2,2 stride=2",
    "conv1d(f32[1,6,9], f32[4,3,3], -) groups=2 dilation=2",
    "conv3d(f32[1,3,5,4,6], f32[4,3,2,3,2], f32[4]) stride=1,2,1 pad=1,0,1,0,1,1",
    "conv3d(f32[2,4,4,5,5], f32[6,2,3,1,2], -) dilation=1,1,3 groups=2",
    "conv_transpose1d(f32[2,5,7], f32[5,4,3], f32[4]) stride=2 pad=1,0",
    "conv_transpose1d(f32[1,6,5], f32[6,2,4], f32[4]) groups=2 stride=3 dilation=2 output_pad=2",
    "conv_transpose1d(f32[1,5,6], f32[5,4,2], f32[4]) stride=5",
    "conv_transpose2d(f32[1,5,4,5], f32[5,6,4,4], f32[6]) stride=2,2 pad=1,1,1,1",
    "conv_transpose2d(f32[2,4,5,4], f32[4,3,3,2], -) stride=2,3 pad=1,0,2,1 output_pad=1,2",
    "conv_transpose2d(f32[1,6,4,5], f32[6,3,3,3], f32[6]) stride=1,2 pad=2,1,2,1 dilation=3,2 "
    "groups=2",
    "conv_transpose2d(f32[1,2,4,5], f32[2,7,4,3]) stride=2,2 auto_pad=same_upper",
    "conv_transpose2d(f32[1,5,4,5], f32[5,3,2,2], f32[3]) stride=3,3 output_size=13,15",
    "conv_transpose3d(f32[1,5,3,4,3], f32[5,3,2,3,3], f32[3]) stride=2,1,2 pad=1,0,1,0,1,1",
    "conv_transpose3d(f32[1,4,3,2,3], f32[4,6,2,2,2]) groups=2 dilation=1,2,1 stride=1,2,1",
};

/* Operands as inputs and as parameters: data is sliced in the run, weights are cut in the model. */
static void check(const char *text, const fac_tile_opts *o) {
    const int64_t limit[3] = { o->m, o->n, o->k };
    for (int params = 0; params < 2; params++) {
        fac_graph *g = NULL, *cut = NULL;
        fac_tiling *report = NULL;
        OK(fac_problem_graph(text, params, &g, &err));
        fill_params(g);
        OK(fac_graph_tile(g, o, &cut, &report, &err));
        assert_true(fac_tiling_rows(report) >= 1);
        for (int i = 0; i < fac_tiling_rows(report); i++)
            assert_null(fac_tiling_row(report, i)->kept);
        const int64_t found = products(text, cut, limit), told = tiles_reported(report);
        if (found != told)
            fail_msg("%s: %lld products, %lld are reported", text, (long long)found,
                     (long long)told);
        if (!same_function(g, cut))
            fail_msg(
                "%s, limits %lld %lld %lld, sum %d, pad %d, mode %d, taps %d: not the same bits",
                text, (long long)o->m, (long long)o->n, (long long)o->k, (int)o->sum, o->pad,
                (int)o->mode, (int)o->conv);
        fac_tiling_free(report);
        fac_graph_free(cut);
        fac_graph_free(g);
    }
}

static void in_many_ways(fac_tile_mode mode) {
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        for (int pad = 0; pad < 2; pad++) {
            fac_tile_opts o = { .sum = (fac_tile_sum)(mode == FAC_TILE_LOOP ? 0 : random_below(3)),
                                .pad = pad,
                                .mode = mode };
            o.conv = (fac_tile_conv)random_below(2);
            o.m = 2 + random_below(2);
            o.n = 4 + random_below(4);
            o.k = 1 + (o.conv == FAC_TILE_TAPS ? 0 : 1 + random_below(4));
            check(problems[k], &o);
        }
}

static void products_in_tiles(void **state) {
    (void)state;
    in_many_ways(FAC_TILE_UNROLL);
}
static void products_in_functions(void **state) {
    (void)state;
    in_many_ways(FAC_TILE_FUNCTION);
}
static void products_in_loops(void **state) {
    (void)state;
    in_many_ways(FAC_TILE_LOOP);
}

/* Sizes around the limit: one less, the same, one more, twice, twice and one. */
static void sizes_around_the_limit(void **state) {
    (void)state;
    static const int64_t sizes[] = { 1, 3, 4, 5, 8, 9 };
    for (int m = 0; m < 6; m++)
        for (int n = 0; n < 6; n++)
            for (int k = 0; k < 6; k++) {
                char text[96];
                fac_graph *g = NULL, *cut = NULL;
                fac_tiling *t = NULL;
                snprintf(text, sizeof text, "matmul(f32[%lld,%lld], f32[%lld,%lld])",
                         (long long)sizes[m], (long long)sizes[k], (long long)sizes[k],
                         (long long)sizes[n]);
                if (sizes[m] > 4 || sizes[n] > 4 || sizes[k] > 4) {
                    check(text, &(fac_tile_opts){ .m = 4, .n = 4, .k = 4 });
                    continue;
                }
                OK(fac_problem_graph(text, false, &g, &err)); /* small enough: stays as it is */
                OK(fac_graph_tile(g, &(fac_tile_opts){ .m = 4, .n = 4, .k = 4 }, &cut, &t, &err));
                assert_int_equal(fac_tiling_row(t, 0)->tiles, 1);
                assert_string_equal(cut->first->op->name, "matmul");
                fac_tiling_free(t);
                fac_graph_free(cut);
                fac_graph_free(g);
            }
}

static void what_is_refused(void **state) {
    (void)state;
    fac_graph *g = NULL, *cut = NULL;
    fac_tiling *t = NULL;
    OK(fac_problem_graph("conv2d(f32[1,8,6,6], f32[8,1,3,3], -) groups=8", false, &g, &err));
    assert_int_equal(fac_graph_tile(g, &(fac_tile_opts){ 0 }, &cut, &t, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_graph_tile(g, &(fac_tile_opts){ .m = -1 }, &cut, &t, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_graph_tile(g, &(fac_tile_opts){ .m = 4, .best = true }, &cut, &t, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(
        fac_graph_tile(g, &(fac_tile_opts){ .m = 4, .only = "nobody" }, &cut, &t, &err),
        FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "nobody"));
    assert_null(cut);
    assert_null(t);
    OK(fac_graph_tile(g, &(fac_tile_opts){ .n = 4 }, &cut, &t, &err));
    assert_non_null(strstr(fac_tiling_row(t, 0)->kept, "depthwise"));
    assert_string_equal(cut->first->op->name, "conv2d");
    fac_tiling_free(t);
    fac_graph_free(cut);
    fac_graph_free(g);
}

/* Cut into nodes they would fill any memory; reports are made all the same. */
static void what_would_be_too_large(void **state) {
    (void)state;
    static const char *const large[] = {
        "conv_transpose2d(f32[1,2,2,2], f32[2,3,2,2]) stride=100000,100000",
        "matmul(f32[3000,3000], f32[3000,3000])"
    };
    for (int k = 0; k < 2; k++) {
        fac_graph *g = NULL, *cut = NULL;
        fac_tiling *t = NULL;
        OK(fac_problem_graph(large[k], false, &g, &err));
        OK(fac_graph_tile(g, &(fac_tile_opts){ .m = 1, .n = 1, .k = 2 }, &cut, &t, &err));
        assert_non_null(strstr(fac_tiling_row(t, 0)->kept, "too many"));
        assert_int_equal(cut->nodes, 1);
        fac_tiling_free(t);
        fac_graph_free(cut);
        fac_graph_free(g);
    }
}

/* A product after a size that data decides cannot be cut, and is told apart; the rest is. */
static void sizes_that_data_decides(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new(), *cut = NULL;
    fac_tiling *t = NULL;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(5, 6)),
              *w = fac_input(g, "w", FAC_F32, fac_shape(6, 7));
    fac_value *n = fac_input(g, "n", FAC_I64, fac_shape(2));
    fac_output(g, "y", fac_matmul(x, w));
    fac_output(g, "z", fac_matmul(fac_reshape_to(x, n), w));
    OK(fac_graph_tile(g, &(fac_tile_opts){ .m = 4, .n = 4, .k = 4 }, &cut, &t, &err));
    assert_int_equal(fac_tiling_rows(t), 2);
    assert_null(fac_tiling_row(t, 0)->kept);
    assert_non_null(strstr(fac_tiling_row(t, 1)->kept, "contents"));
    fac_tiling_free(t);
    fac_graph_free(cut);
    fac_graph_free(g);
}

/* Attention of a sequence of 128, and of grouped queries: its products are cut too. */
static void attention_in_tiles(void **state) {
    (void)state;
    fac_graph *g = NULL, *cut = NULL;
    fac_tiling *t = NULL;
    OK(fac_problem_graph("attention(f32[1,2,128,16], f32[1,2,128,16], f32[1,2,128,16])", false, &g,
                         &err));
    OK(fac_graph_tile(g, &(fac_tile_opts){ .m = 64, .n = 64, .k = 64 }, &cut, &t, &err));
    /* 128 x 128 x 16, and 128 x 16 x 128: 2 x 2 of each head, and 2 x 2 along M and K */
    assert_int_equal(tiles_reported(t), 2 * 4 + 2 * 4);
    assert_int_equal(products("attention", cut, (int64_t[]){ 64, 64, 64 }), 16);
    enum { OUTPUTS = 5 };
    fac_tensor *in[3], *was[OUTPUTS] = { NULL }, *is[OUTPUTS] = { NULL };
    assert_int_equal(fac_graph_outputs(g), OUTPUTS);
    for (int i = 0; i < 3; i++) in[i] = random_tensor(fac_value_type(fac_graph_input(g, i)));
    run_graph(g, NULL, in, was);
    run_graph(cut, NULL, in, is);
    float x[2 * 128 * 16], y[2 * 128 * 16];
    OK(fac_tensor_read(was[0], x, sizeof x, &err));
    OK(fac_tensor_read(is[0], y, sizeof y, &err));
    for (int i = 0; i < 2 * 128 * 16; i++) assert_true(x[i] - y[i] < 1e-4f && y[i] - x[i] < 1e-4f);
    for (int i = 0; i < 3; i++) fac_tensor_free(in[i]);
    for (int i = 0; i < OUTPUTS; i++) fac_tensor_free(was[i]), fac_tensor_free(is[i]);
    fac_tiling_free(t);
    fac_graph_free(cut);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_in_tiles),       cmocka_unit_test(products_in_functions),
        cmocka_unit_test(products_in_loops),       cmocka_unit_test(sizes_around_the_limit),
        cmocka_unit_test(what_is_refused),         cmocka_unit_test(what_would_be_too_large),
        cmocka_unit_test(sizes_that_data_decides), cmocka_unit_test(attention_in_tiles)
    };
    return cmocka_run_group_tests_name("tile", tests, open_device, close_device);
}
