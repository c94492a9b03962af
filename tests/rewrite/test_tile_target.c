/* Tiles for a device: alignment, SRAM, types, what the model of its time says, and advice; the
 * counts of whole networks. */
#include <math.h>
#include "tile_check.h"
#include "op_list.h"

static fac_tiling *tiled(const char *problem, const fac_tile_opts *o, fac_graph **g,
                         fac_graph **cut) {
    fac_tiling *t = NULL;
    *cut = NULL;
    OK(fac_problem_graph(problem, true, g, &err));
    fill_params(*g);
    OK(fac_graph_tile(*g, o, cut, &t, &err));
    return t;
}

static void done(fac_tiling *t, fac_graph *g, fac_graph *cut) {
    fac_tiling_free(t);
    fac_graph_free(cut);
    fac_graph_free(g);
}

/* Calls see(product, self) for each product of the graph. */
static void each_gemm(const fac_graph *g, void (*see)(const int64_t d[3], const void *self),
                      const void *self) {
    int n = 0;
    for (const fac_node *m = g->first; m; m = m->next) {
        if (!FAC_IS(m, gemm)) continue;
        const fac_dims *y = &m->out[0]->type.dims;
        see((int64_t[]){ y->d[0], y->d[1], m->in[0]->type.dims.d[!fac_attr_flag(m, "trans_a")] },
            self);
        n++;
    }
    assert_true(n > 0);
}

static void is_aligned(const int64_t d[3], const void *self) {
    const fac_tile_target *t = self;
    if (d[0] % t->align_m || d[1] % t->align_n || d[2] % t->align_k)
        fail_msg("a product of %lld x %lld x %lld", (long long)d[0], (long long)d[1],
                 (long long)d[2]);
}

static void fits_sram(const int64_t d[3], const void *self) {
    const fac_tile_target *t = self;
    const double bytes = 2 * 4 * (double)(d[0] * d[2] + d[2] * d[1]) + 8 * (double)(d[0] * d[1]);
    if (bytes > t->sram_bytes)
        fail_msg("a product of %lld x %lld x %lld", (long long)d[0], (long long)d[1],
                 (long long)d[2]);
}

static const char *const some[] = {
    "linear(f32[3,7], f32[5,7], f32[5])", "matmul(f32[2,5,13], f32[2,13,6])",
    "gemm(f32[17,9], f32[9,15], f32[15])", "conv2d(f32[1,3,9,8], f32[7,3,3,3], f32[7]) pad=1,1,1,1",
    "conv_transpose2d(f32[1,5,4,5], f32[5,6,4,4], f32[6]) stride=2,2"
};

static void sizes_are_multiples(void **state) {
    (void)state;
    const fac_tile_target target = {
        .m = 9, .n = 8, .k = 12, .align_m = 4, .align_n = 8, .align_k = 3
    };
    fac_graph *g, *cut;
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        fac_tiling *t =
            tiled(some[k], &(fac_tile_opts){ .target = &target, .pad = true }, &g, &cut);
        each_gemm(cut, is_aligned, &target);
        assert_int_equal(products(some[k], cut, (int64_t[]){ 8, 8, 12 }), tiles_reported(t));
        assert_int_equal(fac_tiling_row(t, 0)->unaligned, 0);
        assert_true(same_function(g, cut));
        done(t, g, cut);
    }
    fac_tiling *t =
        tiled("matmul(f32[17,16], f32[16,9])", &(fac_tile_opts){ .target = &target }, &g, &cut);
    const fac_tile_row *r =
        fac_tiling_row(t, 0); /* 8 8 1, 8 1, 12 4: even are 2 of 3, 1 of 2, 1 of 2 */
    assert_int_equal(r->tiles, 12);
    assert_int_equal(r->unaligned, 10);
    assert_non_null(strstr(r->advice, "10 of 12"));
    done(t, g, cut);
}

static void tiles_fit_the_sram(void **state) {
    (void)state;
    fac_tile_target target = {
        .m = 16, .n = 16, .k = 16, .sram_bytes = 300, .double_buffer = true, .accumulator = FAC_F64
    };
    fac_graph *g, *cut;
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        fac_tiling *t = tiled(some[k], &(fac_tile_opts){ .target = &target }, &g, &cut);
        assert_null(fac_tiling_row(t, 0)->kept);
        each_gemm(cut, fits_sram, &target);
        assert_true(fac_tiling_row(t, 0)->sram <= target.sram_bytes);
        assert_true(same_function(g, cut));
        done(t, g, cut);
    }
    const fac_tile_target no_other_limit = { .sram_bytes = 100 };
    target.sram_bytes = 20; /* one number of each: 2 4 + 2 4 + 8 = 24 */
    fac_tiling *t = tiled(some[0], &(fac_tile_opts){ .target = &target }, &g, &cut);
    assert_non_null(strstr(fac_tiling_row(t, 0)->kept, "1 x 1 x 1 takes 24"));
    assert_string_equal(cut->first->op->name, "linear");
    done(t, g, cut);
    t = tiled(some[0], &(fac_tile_opts){ .target = &no_other_limit }, &g, &cut);
    assert_true(fac_tiling_row(t, 0)->sram <= 100 && fac_tiling_row(t, 0)->tiles > 1);
    assert_true(same_function(g, cut));
    done(t, g, cut);
}

static void types_that_are_not_taken(void **state) {
    (void)state;
    const fac_tile_target halves = { .m = 4, .bytes = { [FAC_F16] = 2, [FAC_I8] = 1 } };
    fac_graph *g, *cut;
    fac_tiling *t = tiled(some[0], &(fac_tile_opts){ .target = &halves }, &g, &cut);
    assert_string_equal(fac_tiling_row(t, 0)->kept, "the unit does not take f32");
    done(t, g, cut);
    t = tiled("matmul(f16[5,3], f16[3,6])", &(fac_tile_opts){ .target = &halves }, &g, &cut);
    assert_null(fac_tiling_row(t, 0)->kept);
    /* B stays: all of K is one tile */
    assert_int_equal(fac_tiling_row(t, 0)->bytes, 2 * (5 * 3 + 3 * 6 + 5 * 6));
    done(t, g, cut);
}

#define NEAR(a, b) assert_true(fabs((a) - (b)) <= 1e-12 * fabs(b))

/* By hand: 64 + 36, 64 + 64 + 2 and 3 64 + 8. */
static void what_a_product_costs(void **state) {
    (void)state;
    const fac_tile_target unit = {
        .m = 64, .n = 64, .k = 64, .macs_per_second = 1e9, .bytes_per_second = 1e8, .overhead = 1e-6
    };
    fac_graph *g, *cut;
    fac_tiling *t =
        tiled("matmul(f32[100,200], f32[200,130])", &(fac_tile_opts){ .target = &unit }, &g, &cut);
    const fac_tile_row *r = fac_tiling_row(t, 0);
    assert_int_equal(r->tiles, 2 * 3 * 4);
    NEAR(r->work, 128.0 * 192 * 256);
    NEAR(r->utilisation, 100.0 * 130 * 200 / (128.0 * 192 * 256));
    NEAR(r->bytes, 4.0 * (100 * 200 * 3 + 200 * 130 * 2 + 100 * 130));
    NEAR(r->compute, 128.0 * 192 * 256 / 1e9);
    NEAR(r->traffic, 5e-3);
    NEAR(r->seconds, 128.0 * 192 * 256 / 1e9 + 24e-6);
    assert_string_equal(r->bound, "compute");
    done(t, g, cut);

    t = tiled("matmul(f32[100,200], f32[200,130])",
              &(fac_tile_opts){ .target = &unit, .sum = FAC_TILE_SUM }, &g, &cut);
    NEAR(fac_tiling_row(t, 0)->bytes,
         4.0 * (100 * 200 * 3 + 200 * 130 * 2 + 100 * 130 + 100 * 130 * 2 * 3));
    done(t, g, cut);

    t = tiled("matmul(f32[100,50], f32[50,130])", &(fac_tile_opts){ .target = &unit }, &g,
              &cut); /* A stays */
    NEAR(fac_tiling_row(t, 0)->bytes, 4.0 * (100 * 50 + 50 * 130 * 2 + 100 * 130));
    done(t, g, cut);
}

static void the_best_tiles(void **state) {
    (void)state;
    const fac_tile_target unit = { .m = 64,
                                   .n = 64,
                                   .k = 64,
                                   .align_m = 4,
                                   .align_n = 4,
                                   .align_k = 4,
                                   .sram_bytes = 20000,
                                   .macs_per_second = 1e9,
                                   .bytes_per_second = 1e9,
                                   .overhead = 1e-7 };
    fac_graph *g, *cut;
    for (int round = 0; round < 20; round++) {
        char text[96];
        const int64_t m = 1 + random_below(150), n = 1 + random_below(150),
                      k = 1 + random_below(150);
        snprintf(text, sizeof text, "matmul(f32[%lld,%lld], f32[%lld,%lld])", (long long)m,
                 (long long)k, (long long)k, (long long)n);
        fac_tiling *usual =
            tiled(text, &(fac_tile_opts){ .target = &unit, .count_only = true }, &g, &cut);
        fac_graph_free(cut);
        fac_graph_free(g);
        fac_tiling *best = tiled(text, &(fac_tile_opts){ .target = &unit, .best = true }, &g, &cut);
        assert_true(fac_tiling_row(best, 0)->seconds <=
                    fac_tiling_row(usual, 0)->seconds * (1 + 1e-9));
        assert_true(fac_tiling_row(best, 0)->sram <= 20000);
        assert_true(same_function(g, cut));
        fac_tiling_free(usual);
        done(best, g, cut);
    }
}

static void advice_is_given(void **state) {
    (void)state;
    static const struct {
        const char *problem;
        fac_tile_opts o;
        const char *words;
    } want[] = { { "linear(f32[1,128], f32[128,128], -)",
                   { .m = 64, .n = 64, .k = 64 },
                   "a batch of 64 fills M: 100 %" },
                 { "matmul(f32[4,64], f32[64,640])",
                   { .m = 64, .n = 16, .k = 64 },
                   "M and N swapped: 25 %" },
                 { "conv2d(f32[1,64,8,8], f32[64,64,3,3], -)",
                   { .m = 64, .n = 64, .k = 64 },
                   "taps instead of patches" },
                 { "conv2d(f32[1,4,8,8], f32[64,4,3,3], -)",
                   { .m = 64, .n = 64, .k = 64, .conv = FAC_TILE_TAPS },
                   "patches instead of taps: 32 %" },
                 { "matmul(f32[64,64], f32[64,64])", { .m = 64, .n = 64, .k = 64 }, "" } };
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        fac_graph *g, *cut;
        fac_tiling *t = tiled(want[k].problem, &want[k].o, &g, &cut);
        const char *said = fac_tiling_row(t, 0)->advice;
        if (!strstr(said, want[k].words) || (!*want[k].words && *said))
            fail_msg("%s: \"%s\"", want[k].problem, said);
        done(t, g, cut);
    }
}

/* Limits beyond any size are none, and overflow nothing. */
static void limits_without_end(void **state) {
    (void)state;
    const fac_tile_target endless = { .align_m = INT64_MAX,
                                      .macs_per_second = 1e9,
                                      .bytes_per_second = 1e9 };
    fac_graph *g, *cut;
    fac_tiling *t = tiled(
        some[0], &(fac_tile_opts){ .m = INT64_MAX, .n = INT64_MAX, .k = 4, .target = &endless }, &g,
        &cut);
    assert_int_equal(fac_tiling_row(t, 0)->tiles, 2);
    assert_true(fac_tiling_row(t, 0)->work >= fac_tiling_row(t, 0)->macs);
    done(t, g, cut);
}

static void targets_that_contradict_themselves(void **state) {
    (void)state;
    static const fac_tile_target wrong[] = { { .m = 8, .align_m = 16 },
                                             { .m = 8, .align_k = -1 },
                                             { .m = -8 },
                                             { .m = 8, .overhead = -1 },
                                             { .align_m = 4 } };
    fac_graph *g = NULL;
    OK(fac_problem_graph(some[0], true, &g, &err));
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_int_equal(fac_graph_tile(g,
                                        &(fac_tile_opts){ .target = &wrong[k], .count_only = true },
                                        NULL, NULL, &err),
                         FAC_E_ARGUMENT);
    fac_graph_free(g);
}

static void counts_of_networks(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t tiles;
        double used;
    } want[] = { { "alexnet", 17090, 0.159 },      { "vgg16", 91904, 0.642 },
                 { "resnet18", 8240, 0.840 },      { "resnet50", 19016, 0.820 },
                 { "squeezenet1_1", 1921, 0.693 }, { "googlenet", 7521, 0.760 } };
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        fac_graph *g = NULL;
        fac_tiling *t = NULL;
        double macs = 0, work = 0;
        OK(fac_zoo_new(want[k].name, NULL, 0, &g, &err));
        OK(fac_graph_tile(g, &(fac_tile_opts){ .m = 64, .n = 64, .k = 64, .count_only = true },
                          NULL, &t, &err));
        for (int i = 0; i < fac_tiling_rows(t); i++) {
            macs += fac_tiling_row(t, i)->macs;
            work += fac_tiling_row(t, i)->work;
        }
        assert_int_equal(tiles_reported(t), want[k].tiles);
        assert_true(fabs(macs / work - want[k].used) < 0.0006);
        fac_tiling_free(t);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(sizes_are_multiples),
                                        cmocka_unit_test(tiles_fit_the_sram),
                                        cmocka_unit_test(types_that_are_not_taken),
                                        cmocka_unit_test(what_a_product_costs),
                                        cmocka_unit_test(the_best_tiles),
                                        cmocka_unit_test(advice_is_given),
                                        cmocka_unit_test(limits_without_end),
                                        cmocka_unit_test(targets_that_contradict_themselves),
                                        cmocka_unit_test(counts_of_networks) };
    return cmocka_run_group_tests_name("tile_target", tests, open_device, close_device);
}
