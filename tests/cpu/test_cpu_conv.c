/* Convolutions of the cpu against the reference: random and awkward shapes, all instruction sets.
 * Others are in test_cpu_conv_groups.c; how exact they are, test_cpu_conv_exact.c asks. */
#include "backends/cpu/device/shared_cache.h"
#include "cpu_conv_check.h"
#include "op_list.h"
#include "ops/conv_pool.h"

static void direct(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 25; k++) {
        shape s = random_shape(seed + k, check_pick(seed + k, 20, 1, 70));
        assert_true(conv(d, "conv2d/direct", &s, seed + k));
    }
    /* groups of whole blocks, rows of 7 and less, many chunks of few pixels, weights larger than a
     * cache */
    static const shape fixed[] = {
        { 1, 96, 9, 9, 64, 3, 3, 2, { .pad = { 1, 1, 1, 1 } }, true, 1 },
        { 2, 32, 5, 7, 96, 3, 3, 2, { .pad = { 1, 1, 1, 1 } }, true, 3 },
        { 1, 17, 7, 7, 33, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 3 },
        { 1, 40, 7, 7, 272, 1, 1, 1, { .groups = 1 }, true, 3 },
        { 1, 19, 3, 3, 90, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, false, 0 },
        { 1, 20, 1, 1, 50, 1, 1, 1, { .groups = 1 }, true, 4 },
        { 1, 256, 14, 14, 512, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 1 },
        { 1, 64, 30, 29, 64, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 1 },
        { 1, 16, 20, 20, 16, 3, 3, 1, { .pad = { 4, 4, 4, 4 }, .dilation = { 4, 4 } }, true, 1 },
        { 1, 33, 57, 56, 48, 1, 1, 1, { .stride = { 2, 2 } }, true, 0 },
        /* chunks of weights so large that channels come in slices */
        { 1, 300, 7, 7, 70, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 3 },
        { 2, 290, 6, 7, 40, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 4 },
        { 1, 311, 13, 9, 48, 3, 3, 1, { .pad = { 1, 1, 1, 1 }, .stride = { 2, 2 } }, false, 5 },
        { 1, 1900, 5, 5, 66, 1, 1, 1, { .groups = 1 }, true, 3 },
        { 1, 2048, 7, 7, 64, 1, 1, 1, { .groups = 1 }, true, 2 }
    };
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++)
        assert_true(conv(d, "conv2d/direct", &fixed[k], seed));
    for (uint64_t k = 0; k < 12; k++) { /* groups that share blocks, of any width on either side */
        shape s = random_shape(seed + 100 + k, 1);
        s.groups = check_pick(seed + k, 20, 2, 5);
        s.C = s.groups * check_pick(seed + k, 21, 1, 37);
        s.K = s.groups * check_pick(seed + k, 22, 1, 37);
        assert_true(conv(d, "conv2d/direct", &s, seed + k));
    }
}

static void first(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 25; k++) {
        shape s = random_shape(seed + k, check_pick(seed + k, 20, 1, 4));
        assert_true(conv(d, "conv2d/first", &s, seed + k));
    }
    static const shape fixed[] = {
        { 1, 3, 67, 65, 64, 7, 7, 1, { .pad = { 3, 3, 3, 3 }, .stride = { 2, 2 } }, true, 1 },
        { 2, 3, 63, 63, 40, 11, 11, 1, { .pad = { 2, 2, 2, 2 }, .stride = { 4, 4 } }, true, 1 },
        { 1, 1, 9, 9, 6, 5, 5, 1, { .pad = { 9, 9, 9, 9 } }, true, 4 }
    };
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++)
        assert_true(conv(d, "conv2d/first", &fixed[k], seed));
    shape wide = { 1, 5, 8, 8, 12, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 0 };
    assert_false(conv(d, "conv2d/first", &wide, seed));
}

/* Its kinds by columns and stride; rows of any kind.  Other kinds and what is added after it are
 * refused. */
static void first_winograd(fac_device *d, uint64_t seed) {
    static const int64_t columns[] = { 3, 7, 11 }, strides[] = { 1, 2, 4 };
    const char *const solver = "conv2d/first_winograd";
    check_largest = true; /* the outputs of a tile share their rounding errors */
    for (uint64_t k = 0; k < 40; k++) {
        shape s = random_shape(seed + k, check_pick(seed + k, 20, 1, 4));
        s.S = columns[k % 3];
        s.o.stride[1] = strides[k % 3];
        s.o.dilation[1] = 1;
        s.W = check_pick(seed + k, 21, 1, 90) + s.S;
        const bool added = s.body == 3 || s.body == 5;
        assert_int_equal(conv(d, solver, &s, seed + k), !added);
    }
    static const shape fixed[] = {
        { 1, 3, 67, 65, 64, 7, 7, 1, { .pad = { 3, 3, 3, 3 }, .stride = { 2, 2 } }, true, 1 },
        { 2, 3, 63, 250, 40, 11, 11, 1, { .pad = { 2, 2, 2, 2 }, .stride = { 4, 4 } }, true, 1 },
        { 1, 4, 30, 200, 33, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 4 },
        { 1, 1, 2, 3, 6, 3, 3, 1, { .pad = { 9, 40, 9, 50 } }, true, 2 }
    };
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++)
        assert_true(conv(d, solver, &fixed[k], seed));
    static const shape refused[] = {
        { 1, 5, 8, 8, 12, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 0 },
        { 1, 3, 9, 9, 12, 3, 3, 1, { .stride = { 1, 2 } }, true, 0 },
        { 1, 3, 9, 9, 12, 3, 3, 1, { .dilation = { 1, 2 } }, true, 0 },
        { 1, 3, 19, 19, 12, 7, 7, 1, { .groups = 1 }, true, 0 },
        { 1, 4, 9, 9, 12, 3, 3, 2, { .groups = 2 }, true, 0 }
    };
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++)
        assert_false(conv(d, solver, &refused[k], seed));
    check_largest = false;
}

static void winograd(fac_device *d, uint64_t seed) {
    static const char *const solvers[] = { "conv2d/winograd_2x2", "conv2d/winograd_4x4",
                                           "conv2d/winograd_5x5", "conv2d/winograd_4x4_5x5" };
    for (uint64_t k = 0; k < 60; k++) {
        shape s = random_shape(seed + k, check_pick(seed + k, 20, 1, 70));
        s.R = s.S = k % 4 >= 2 ? 5 : 3;
        for (int i = 0; i < 2; i++) s.o.stride[i] = s.o.dilation[i] = 1;
        s.H += 5;
        s.W += 5;
        check_largest = k % 4 > 0; /* the outputs of a tile share their rounding errors */
        check_tolerance = k % 4 == 3 ? 4e-6f : 1e-6f;
        assert_true(conv(d, solvers[k % 4], &s, seed + k));
    }
    check_tolerance = 1e-6f;
    /* both schedules, blocks of tiles that do not come out even, images of one tile */
    static const shape fixed[] = {
        { 1, 200, 7, 7, 260, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 3 },
        { 3, 40, 2, 2, 20, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 4 },
        { 1, 50, 61, 57, 24, 3, 3, 1, { .pad = { 1, 0, 1, 2 } }, true, 1 }
    };
    fac_cpu *cpu = (fac_cpu *)d;
    const size_t l2 = cpu->l2;
    int offers[2] = { 0 };
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++)
        for (int i = 0; i < 2; i++) {
            assert_true(conv(d, solvers[i], &fixed[k], seed));
            for (check_variant = 1; check_variant <= 8; check_variant++)
                for (int small = 0; small < 2;
                     small++) { /* V fits the second cache, or is shared */
                    cpu->l2 = small ? 4096 : l2;
                    offers[check_variant > 4] += conv(d, solvers[i], &fixed[k], seed);
                }
            check_variant = 0;
            cpu->l2 = l2;
        }
    assert_true(offers[0] > 0 && offers[1] > 0); /* by tiles, by chunks */
    const int64_t lanes = cpu->simd->lanes;
    for (int i = 0; i < 4; i++) { /* groups of whole blocks; others are refused */
        const int64_t r = i < 2 ? 3 : 5;
        shape two = { 2, 4 * lanes, 11, 9, 6 * lanes, r, r, 2, { .pad = { 1, 1, 1, 1 } }, true, i },
              odd = two;
        check_tolerance = i == 3 ? 4e-6f : 1e-6f;
        assert_true(conv(d, solvers[i], &two, seed));
        odd.C = 2 * (lanes + 1);
        assert_false(conv(d, solvers[i], &odd, seed));
    }
    check_tolerance = 1e-6f;
    check_largest = false;
    shape strided = { 1, 8, 9, 9, 8, 3, 3, 1, { .stride = { 1, 2 } }, true, 0 };
    assert_false(conv(d, solvers[0], &strided, seed));
}

/* Stride 2, of whole blocks of channels. */
static void strided_winograd(fac_device *d, uint64_t seed) {
    static const char *const solvers[] = { "conv2d/winograd_2x2_strided",
                                           "conv2d/winograd_4x4_strided" };
    const int64_t lanes = ((const fac_cpu *)d)->simd->lanes;
    check_largest = true;
    for (uint64_t k = 0; k < 40; k++) {
        shape s = random_shape(seed + k, lanes * check_pick(seed + k, 20, 1, 4));
        s.R = s.S = 3;
        for (int i = 0; i < 2; i++) {
            s.o.stride[i] = 2;
            s.o.dilation[i] = 1;
        }
        s.H += 3;
        s.W += 3;
        assert_true(conv(d, solvers[k % 2], &s, seed + k));
    }
    /* both schedules, blocks of tiles that do not come out even, images of one tile, groups */
    const shape fixed[] = {
        { 1,
          12 * lanes,
          14,
          14,
          260,
          3,
          3,
          1,
          { .pad = { 1, 1, 1, 1 }, .stride = { 2, 2 } },
          true,
          3 },
        { 3, 2 * lanes, 2, 2, 20, 3, 3, 1, { .pad = { 1, 1, 1, 1 }, .stride = { 2, 2 } }, true, 4 },
        { 1,
          3 * lanes,
          61,
          57,
          24,
          3,
          3,
          1,
          { .pad = { 1, 0, 1, 2 }, .stride = { 2, 2 } },
          true,
          1 },
        { 2,
          4 * lanes,
          11,
          9,
          6 * lanes,
          3,
          3,
          2,
          { .pad = { 1, 1, 1, 1 }, .stride = { 2, 2 } },
          true,
          2 }
    };
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++)
        for (int i = 0; i < 2; i++) assert_true(conv(d, solvers[i], &fixed[k], seed));
    check_largest = false;
    shape odd = fixed[0], mixed = fixed[0], whole = fixed[0];
    odd.C += 1;
    mixed.o.stride[1] = 1;
    whole.o.stride[0] = whole.o.stride[1] = 1;
    for (int i = 0; i < 2; i++) {
        assert_false(conv(d, solvers[i], &odd, seed));
        assert_false(conv(d, solvers[i], &mixed, seed));
        assert_false(conv(d, solvers[i], &whole, seed));
    }
}

/* A convolution and the 2 x 2 pool after it, as one node.  pool_stride 2: what the solvers take.
 */
static bool conv_pool(fac_device *d, const char *solver, const shape *s, int64_t pool_stride,
                      uint64_t seed) {
    fac_error err = { 0 };
    fac_graph *g = fac_graph_new();
    fac_conv_pool_attrs a = { .conv = s->o, .pool = { 2, 2 }, .pool_stride = { pool_stride, 2 } };
    fac_value *in[4] = { input(g, 0, fac_shape(s->N, s->C, s->H, s->W)),
                         input(g, 1, fac_shape(s->K, s->C / s->groups, s->R, s->S)),
                         s->bias ? input(g, 2, fac_shape(s->K)) : NULL };
    a.conv.groups = s->groups;
    for (int k = 0; k < 2; k++) a.conv.stride[k] = a.conv.dilation[k] = 1;
    fac_value *bare = fac_emit(&fac_op_conv2d_max_pool, &a, 3, in);
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    in[3] = input(g, 3, bare->type.dims);
    fac_graph *body = body_of(s->body, bare->type);
    const int extra = s->body == 3 || s->body == 5;
    fac_value *y =
        body ? fac_emit_body(g, bare->node->op, bare->node->attrs, 3 + extra, 3, in, body, NULL)
             : bare;
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    const bool took = check_solver(d, solver, y->node, bare->node, seed);
    fac_graph_free(g);
    return took;
}

static void pooled(fac_device *d, uint64_t seed) {
    static const char *const solvers[] = { "conv2d_max_pool/winograd_2x2",
                                           "conv2d_max_pool/winograd_4x4",
                                           "conv2d_max_pool/winograd_5x5",
                                           "conv2d_max_pool/winograd_4x4_5x5" };
    const int64_t lanes = ((const fac_cpu *)d)->simd->lanes;
    check_largest = true;
    for (uint64_t k = 0; k < 60; k++) {
        shape s = random_shape(seed + k, check_pick(seed + k, 20, 1, 70));
        s.R = s.S = k % 4 >= 2 ? 5 : 3;
        for (int i = 0; i < 4; i++) s.o.pad[i] = check_pick(seed + k, 21 + (uint64_t)i, 0, 2);
        s.H += 5;
        s.W += 5;
        check_tolerance = k % 4 == 3 ? 4e-6f : 1e-6f;
        const bool added = s.body == 3 || s.body == 5;
        assert_int_equal(conv_pool(d, solvers[k % 4], &s, 2, seed + k), !added);
        s.body = 0;
        assert_false(conv_pool(d, solvers[k % 4], &s, 1, seed + k));
    }
    check_tolerance = 1e-6f;
    shape of[] = {
        { 1, 200, 7, 7, 260, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 1 }, /* both schedules, odd
                                                                               sizes, one tile */
        { 3, 40, 2, 3, 20, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 2 },
        { 1, 50, 61, 57, 24, 3, 3, 1, { .pad = { 1, 0, 1, 2 } }, true, 4 },
        { 2, 4 * lanes, 11, 9, 6 * lanes, 3, 3, 2, { .pad = { 1, 1, 1, 1 } }, true, 1 }
    };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        for (int i = 0; i < 2; i++) assert_true(conv_pool(d, solvers[i], &of[k], 2, seed));
    check_largest = false;
}

static uint64_t seed;

/* Results past the caches, as of two cores without a cache in common; then a look at the cores
 * themselves, which takes no longer when one of them is not there. */
static void apart(fac_device *d, uint64_t from) {
    fac_cpu *c = (fac_cpu *)d;
    assert_true(c->pool.threads == 2 || !fac_cpu_apart(c));
    c->apart->until = INT64_MAX;
    c->apart->far = true;
    assert_true(fac_cpu_apart(c));
    for (uint64_t k = 0; k < 30; k++) {
        shape s = random_shape(from + k, check_pick(from + k, 20, 1, 70));
        s.R = s.S = 1;
        s.groups = 1;
        s.o = (fac_conv2d_opts){ .stride = { 1 + k % 7 / 6, 1 } };
        s.body = (int)(k % 6);
        assert_true(conv(d, "conv2d/direct", &s, from + k));
    }
    shape slices = { 1, 2048, 7, 7, 64, 1, 1, 1, { .groups = 1 }, true, 3 };
    assert_true(conv(d, "conv2d/direct", &slices, from));
    winograd(d, from);
    strided_winograd(d, from);
    first_winograd(d, from);
    pooled(d, from);
    c->apart->until = 0;
    for (int k = 0; k < 3; k++, c->apart->until = 0) (void)fac_cpu_apart(c);
}

static void test_direct(void **s) { (void)s, check_everywhere(direct, seed); }
static void test_apart(void **s) { (void)s, check_everywhere(apart, seed + 12000); }
static void test_first(void **s) { (void)s, check_everywhere(first, seed + 1000); }
static void test_first_winograd(void **s) {
    (void)s, check_everywhere(first_winograd, seed + 10000);
}
static void test_winograd(void **s) { (void)s, check_everywhere(winograd, seed + 6000); }
static void test_strided_winograd(void **s) {
    (void)s, check_everywhere(strided_winograd, seed + 11000);
}
static void test_pooled(void **s) { (void)s, check_everywhere(pooled, seed + 11000); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct),   cmocka_unit_test(test_apart),
        cmocka_unit_test(test_first),    cmocka_unit_test(test_first_winograd),
        cmocka_unit_test(test_winograd), cmocka_unit_test(test_strided_winograd),
        cmocka_unit_test(test_pooled),
    };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
