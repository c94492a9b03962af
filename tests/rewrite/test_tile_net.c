/* Whole networks in tiles are the same networks, whatever the mode; along M and N alone they have
 * the same bits; parts of models are tiled and analysed like models. */
#include <unistd.h>
#include "tile_check.h"

/* A block of 12 heads at a sequence of 128, narrow. */
static fac_graph *encoder(void) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1, 128, 48));
    const fac_nn_transformer_opts block = { .feedforward = 80,
                                            .batch_first = true,
                                            .activation = fac_gelu };
    fac_output(g, "y", fac_nn_transformer_encoder_layer(x, "layer", 12, &block));
    fac_graph *still = fac_graph_inference(g);
    fac_graph_free(g);
    OK(fac_graph_check(still, &err));
    return still;
}

static void same(const fac_graph *a, const fac_graph *b, fac_verify_mode mode) {
    fac_verdict v;
    OK(fac_verify(a, b, device, &(fac_verify_opts){ .mode = mode, .seed = seed, .rounds = 1 }, &v,
                  &err));
    const fac_sameness best = mode == FAC_VERIFY_EXACT ? FAC_SAME : FAC_NO_DIFFERENCE;
    if (v.same != best) fail_msg("%s", v.why);
}

static void attention_network(void **state) {
    (void)state;
    fac_graph *g = encoder(), *cut = NULL;
    fac_tiling *t = NULL;
    OK(fac_graph_tile(g, &(fac_tile_opts){ .m = 64, .n = 64, .k = 64 }, &cut, &t, &err));
    /* 128 rows are 2 tiles: 144 and 48 and 80 columns 3, 1, 2; 80 deep 2; each head 2 x 2 scores
     * and 2 x 2 (of K) values */
    assert_int_equal(products("encoder", cut, (int64_t[]){ 64, 64, 64 }),
                     2 * (3 + 1 + 2 + 2) + 12 * 8);
    assert_int_equal(tiles_reported(t), 112);
    same(g, cut, FAC_VERIFY_EXACT);
    same(g, cut, FAC_VERIFY_DATA);
    fac_tiling_free(t);
    fac_graph_free(cut);
    fac_graph_free(g);
}

/* Attention and its projections, which have bounds from end to end. */
static void attention_within_bounds(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new(), *cut = NULL;
    fac_value *x =
        fac_input(g, "x", FAC_F32, fac_shape(1, 128, 12)); /* a scale of 1/2: integers stay */
    fac_output(g, "y",
               fac_nn_multihead_attention(x, x, x, "attn", 3,
                                          &(fac_nn_attention_opts){ .batch_first = true }));
    OK(fac_graph_tile(g, &(fac_tile_opts){ .m = 64, .n = 64, .k = 64, .mode = FAC_TILE_LOOP }, &cut,
                      NULL, &err));
    same(g, cut, FAC_VERIFY_EXACT);
    same(g, cut, FAC_VERIFY_BOUND);
    fac_graph_free(cut);
    fac_graph_free(g);
}

static void every_mode_is_the_same(void **state) {
    (void)state;
    fac_graph *g = NULL;
    int64_t n[3];
    OK(fac_zoo_new("lenet", NULL, 1, &g, &err));
    for (int mode = 0; mode < 3; mode++) {
        fac_graph *cut = NULL;
        OK(fac_graph_tile(
            g, &(fac_tile_opts){ .m = 16, .n = 32, .k = 24, .mode = (fac_tile_mode)mode }, &cut,
            NULL, &err));
        n[mode] = products("lenet", cut, (int64_t[]){ 16, 32, 24 });
        same(g, cut, FAC_VERIFY_EXACT);
        same(g, cut, FAC_VERIFY_BOUND);
        fac_graph_free(cut);
    }
    assert_int_equal(n[0], n[1]);
    assert_int_equal(n[0], n[2]);
    fac_graph_free(g);
}

/* Sums in the order of k are not touched by tiles along M and N; kernels choose that order by the
 * sizes, the reference does not. */
static void rows_and_columns_keep_every_bit(void **state) {
    (void)state;
    static const char *const problem[] = { "matmul(f32[70,90], f32[90,75])",
                                           "linear(f32[33,65], f32[40,65], f32[40])" };
    for (int k = 0; k < 2; k++) {
        fac_graph *g = NULL, *cut = NULL;
        OK(fac_problem_graph(problem[k], false, &g, &err));
        OK(fac_graph_tile(g, &(fac_tile_opts){ .m = 16, .n = 16 }, &cut, NULL, &err));
        fac_tensor *in[3], *was[1] = { NULL }, *is[1] = { NULL };
        for (int i = 0; i < fac_graph_inputs(g); i++) {
            const fac_type type = fac_value_type(fac_graph_input(g, i));
            const int64_t n = fac_dims_count(&type.dims);
            float *x = calloc((size_t)n, sizeof *x);
            stream++;
            for (int64_t e = 0; e < n; e++)
                x[e] = (float)fac_random_uniform(seed, stream, (uint64_t)e) - 0.5f;
            OK(fac_tensor_new(NULL, FAC_F32, type.dims, &in[i], &err));
            OK(fac_tensor_write(in[i], x, (size_t)n * sizeof *x, &err));
            free(x);
        }
        run_graph(g, "ref", in, was);
        run_graph(cut, "ref", in, is);
        assert_true(same_bits(was[0], is[0]));
        for (int i = 0; i < fac_graph_inputs(g); i++) fac_tensor_free(in[i]);
        fac_tensor_free(was[0]);
        fac_tensor_free(is[0]);
        fac_graph_free(cut);
        fac_graph_free(g);
    }
}

/* What was written is read again: the same products, the same function. */
static void files_hold_what_was_cut(void **state) {
    (void)state;
    fac_graph *g = NULL;
    OK(fac_zoo_new("lenet", NULL, 1, &g, &err));
    for (int mode = 0; mode < 3; mode++) {
        char path[] = "/tmp/facula_tile_XXXXXX";
        fac_graph *cut = NULL, *again = NULL;
        const int file = mkstemp(path);
        assert_true(file >= 0);
        close(file);
        OK(fac_graph_tile(
            g, &(fac_tile_opts){ .m = 16, .n = 32, .k = 24, .mode = (fac_tile_mode)mode }, &cut,
            NULL, &err));
        OK(fac_onnx_save(cut, path, NULL, &err));
        OK(fac_onnx_load(path, NULL, &again, &err));
        assert_int_equal(products("cut", cut, (int64_t[]){ 16, 32, 24 }),
                         products("file", again, (int64_t[]){ 16, 32, 24 }));
        same(g, again, FAC_VERIFY_EXACT);
        unlink(path);
        fac_graph_free(again);
        fac_graph_free(cut);
    }
    fac_graph_free(g);
}

/* A part of a model is a model: extracted, tiled, analysed, and the multiply-adds are those of its
 * layers in the whole. */
static void parts_are_models(void **state) {
    (void)state;
    fac_graph *g = NULL, *part = NULL, *cut = NULL;
    fac_tiling *whole = NULL, *own = NULL;
    fac_analysis *a = NULL;
    OK(fac_zoo_new("lenet", NULL, 1, &g, &err));
    fac_graph *named = fac_graph_clone(g);
    for (fac_node *n = named->first; n; n = n->next)
        if (n->scope && !strcmp(n->scope, "conv2")) fac_value_name_set(n->out[0], "middle");
    OK(fac_graph_extract(named, 0, NULL, 1, (const char *[]){ "middle" }, &part, &err));
    const fac_tile_opts o = { .m = 16, .n = 32, .k = 24 };
    OK(fac_graph_tile(g, &o, NULL, &whole, &err));
    OK(fac_graph_tile(part, &o, &cut, &own, &err));
    assert_int_equal(fac_tiling_rows(own), 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(fac_tiling_row(own, i)->tiles, fac_tiling_row(whole, i)->tiles);
    same(part, cut, FAC_VERIFY_EXACT);
    OK(fac_analyze(part, 1, &a, &err));
    assert_true(fac_analysis_totals(a).macs ==
                fac_tiling_row(whole, 0)->macs + fac_tiling_row(whole, 1)->macs);
    fac_analysis_free(a);
    fac_tiling_free(own);
    fac_tiling_free(whole);
    fac_graph_free(cut);
    fac_graph_free(part);
    fac_graph_free(named);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(attention_network),
                                        cmocka_unit_test(attention_within_bounds),
                                        cmocka_unit_test(every_mode_is_the_same),
                                        cmocka_unit_test(rows_and_columns_keep_every_bit),
                                        cmocka_unit_test(files_hold_what_was_cut),
                                        cmocka_unit_test(parts_are_models) };
    return cmocka_run_group_tests_name("tile_net", tests, open_device, close_device);
}
