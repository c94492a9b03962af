/* Every convolution and pooling solver of the cpu against the reference: random and awkward shapes,
 * all instruction sets. */
#include "backends/cpu/device/shared_cache.h"
#include "cpu_check.h"
#include "op_list.h"
#include "ops/conv_pool.h"

static fac_value *input(fac_graph *g, int i, fac_dims d) {
    char name[8];
    snprintf(name, sizeof name, "x%d", i);
    return fac_input(g, name, FAC_F32, d);
}

/* ---- convolution ---- */

typedef struct shape {
    int64_t N, C, H, W, K, R, S, groups;
    fac_conv2d_opts o;
    bool bias;
    int body; /* 0 none, 1 relu, 2 clip, 3 add + relu, 4 silu, 5 add */
} shape;

static fac_graph *body_of(int kind, fac_type y) {
    if (!kind) return NULL;
    fac_graph *b = fac_graph_new();
    fac_value *v = fac_input(b, "y", y.dtype, y.dims);
    if (kind == 3 || kind == 5) v = fac_add(v, fac_input(b, "r", y.dtype, y.dims));
    if (kind == 1 || kind == 3) v = fac_relu(v);
    if (kind == 2) v = fac_clip(v, fac_number(b, FAC_F32, -0.5), fac_number(b, FAC_F32, 0.75));
    if (kind == 4) v = fac_silu(v);
    fac_output(b, "y", v);
    return b;
}

/* Whether the solver took it. */
static bool conv(fac_device *d, const char *solver, const shape *s, uint64_t seed) {
    fac_error err = { 0 };
    fac_graph *g = fac_graph_new();
    fac_conv2d_opts o = s->o;
    o.groups = s->groups;
    fac_value *in[4] = { input(g, 0, fac_shape(s->N, s->C, s->H, s->W)),
                         input(g, 1, fac_shape(s->K, s->C / s->groups, s->R, s->S)),
                         s->bias ? input(g, 2, fac_shape(s->K)) : NULL };
    fac_value *bare = fac_conv2d(in[0], in[1], in[2], &o);
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    in[3] = input(g, 3, bare->type.dims);
    fac_graph *body = body_of(s->body, bare->type);
    int extra = s->body == 3 || s->body == 5;
    fac_value *y =
        body ? fac_emit_body(g, bare->node->op, bare->node->attrs, 3 + extra, 3, in, body, NULL)
             : bare;
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    bool took = check_solver(d, solver, y->node, bare->node, seed);
    fac_graph_free(g);
    return took;
}

static shape random_shape(uint64_t seed, int64_t channels) {
    shape s = { .N = check_pick(seed, 0, 1, 3),
                .C = channels,
                .K = check_pick(seed, 1, 1, 70),
                .R = check_pick(seed, 2, 1, 5),
                .S = check_pick(seed, 3, 1, 5),
                .groups = 1,
                .bias = check_pick(seed, 4, 0, 1),
                .body = (int)check_pick(seed, 5, 0, 5) };
    for (uint64_t k = 0; k < 2; k++) {
        s.o.stride[k] = check_pick(seed, 6 + k, 1, 3);
        s.o.dilation[k] = check_pick(seed, 8 + k, 1, 2);
    }
    for (int k = 0; k < 4; k++) s.o.pad[k] = check_pick(seed, 10 + (uint64_t)k, 0, 3);
    s.H = check_pick(seed, 14, 1, 20) + (s.R - 1) * s.o.dilation[0];
    s.W = check_pick(seed, 15, 1, 40) + (s.S - 1) * s.o.dilation[1];
    if (check_pick(seed, 16, 0, 3) == 0) { /* the one that may be flat */
        s.R = s.S = 1;
        s.o = (fac_conv2d_opts){ { 1, 1 }, { 0 }, { 1, 1 }, 0, 0 };
    }
    return s;
}

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
        s.C = s.groups * check_pick(seed + k, 21, 1, 37),
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
        s.S = columns[k % 3], s.o.stride[1] = strides[k % 3], s.o.dilation[1] = 1;
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
        s.H += 5, s.W += 5;
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
            check_variant = 0, cpu->l2 = l2;
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
        for (int i = 0; i < 2; i++) s.o.stride[i] = 2, s.o.dilation[i] = 1;
        s.H += 3, s.W += 3;
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
    odd.C += 1, mixed.o.stride[1] = 1, whole.o.stride[0] = whole.o.stride[1] = 1;
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
        s.H += 5, s.W += 5;
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

/* The rules of accuracy that conv_winograd.c and conv_first_winograd.c state: the largest error of
 * a layer, of its largest output, against that of the solver that does the textbook's
 * multiplications, one sum after the other: of images so large that it takes all channels at once.
 */
static void accuracy(fac_device *d, uint64_t seed) {
    static const struct {
        const char *solver;
        int64_t C, K, size, kernel, stride;
        double times;
    } of[] = { { "conv2d/winograd_2x2", 64, 48, 28, 3, 1, 1 },
               { "conv2d/winograd_2x2", 256, 32, 29, 3, 1, 1 },
               { "conv2d/winograd_4x4", 64, 48, 28, 3, 1, 4 },
               { "conv2d/winograd_4x4", 256, 32, 29, 3, 1, 4 },
               { "conv2d/winograd_5x5", 48, 32, 27, 5, 1, 2 },
               { "conv2d/winograd_4x4_5x5", 48, 32, 27, 5, 1, 10 },
               { "conv2d/winograd_2x2_strided", 64, 48, 56, 3, 2, 1 },
               { "conv2d/winograd_2x2_strided", 256, 32, 57, 3, 2, 1 },
               { "conv2d/winograd_4x4_strided", 64, 48, 56, 3, 2, 6 },
               { "conv2d/winograd_4x4_strided", 256, 32, 57, 3, 2, 6 },
               { "conv2d/first_winograd", 3, 32, 60, 3, 1, 3 },
               { "conv2d/first_winograd", 3, 32, 90, 7, 2, 3 },
               { "conv2d/first_winograd", 4, 32, 140, 11, 4, 3 } };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        const int64_t pad = of[k].kernel / 2;
        shape s = { 1,
                    of[k].C,
                    of[k].size,
                    of[k].size,
                    of[k].K,
                    of[k].kernel,
                    of[k].kernel,
                    1,
                    { .pad = { pad, pad, pad, pad }, .stride = { of[k].stride, of[k].stride } },
                    true,
                    0 };
        check_largest = true, check_tolerance = 1e-5f;
        assert_true(
            conv(d, of[k].C <= FAC_FEW_PLANES ? "conv2d/first" : "conv2d/direct", &s, seed));
        const double direct = check_error;
        assert_true(conv(d, of[k].solver, &s, seed));
        if (check_error > of[k].times * direct)
            fail_msg("%s, seed %llu: error %g, direct convolution has %g", of[k].solver,
                     (unsigned long long)seed, check_error, direct);
    }
    check_largest = false, check_tolerance = 1e-6f;
}

/* A program that wants exact results keeps F(2, 3) alone. */
static void exact(fac_device *d, uint64_t seed) {
    static const char *const inexact[] = { "conv2d/winograd_4x4", "conv2d/winograd_5x5",
                                           "conv2d/winograd_4x4_5x5", "conv2d/first_winograd",
                                           "conv2d/winograd_4x4_strided" };
    const fac_conv2d_opts strided = { .stride = { 2, 2 } };
    (void)seed;
    for (int64_t k = 0; k < 4; k++) {
        const int64_t kernel = k == 1 ? 5 : 3, channels = k == 2 ? 3 : 16;
        fac_graph *g = fac_graph_new();
        fac_value *w = input(g, 1, fac_shape(16, channels, kernel, kernel));
        fac_value *y = fac_conv2d(input(g, 0, fac_shape(1, channels, 28, 28)), w, NULL,
                                  k == 3 ? &strided : NULL);
        int offers = 0;
        for (const fac_solver *const *s = d->backend->solvers; *s; s++) {
            fac_operand in[3], out = { y->type, fac_layout_plain(&y->type.dims), FAC_RUN, NULL };
            memset(in, 0, sizeof in);
            for (int i = 0; i < 2; i++) {
                const fac_type t = y->node->in[i]->type;
                in[i] =
                    (fac_operand){ t, fac_layout_plain(&t.dims), i ? FAC_PREPARE : FAC_RUN, NULL };
            }
            fac_problem p = { .node = y->node,
                              .precision = FAC_PRECISION_HIGHEST,
                              .nin = y->node->nin,
                              .nout = 1,
                              .in = in,
                              .out = &out };
            fac_offer o = { 0 };
            if (!(*s)->op || (*s)->op != &fac_op_conv2d || !fac_solver_offer(*s, d, &p, &o))
                continue;
            for (size_t i = 0; i < sizeof inexact / sizeof *inexact; i++)
                assert_string_not_equal((*s)->name, inexact[i]);
            offers += strstr((*s)->name, "winograd") != NULL;
        }
        assert_int_equal(offers, kernel == 3 && k < 3);
        fac_graph_free(g);
    }
}

static void depthwise(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 40; k++) {
        shape s = random_shape(seed + k, check_pick(seed + k, 20, 1, 70));
        s.K = s.groups = s.C;
        s.H += 5, s.W += 5;
        if (k % 4 == 0)
            s.R = s.S = 3, s.o.dilation[0] = s.o.dilation[1] = 1,
            s.o.stride[1] = 1 + (int64_t)(k / 4 % 2);
        if (k % 4 == 1)
            s.R = s.S = 5, s.o.dilation[0] = s.o.dilation[1] = 1,
            s.o.stride[1] = 1 + (int64_t)(k / 4 % 2);
        assert_true(conv(d, "conv2d/depthwise", &s, seed + k));
    }
}

/* Groups smaller than a vector: what is smaller depends on the instruction set. */
static void grouped(fac_device *d, uint64_t seed) {
    int64_t lanes = ((const fac_cpu *)d)->simd->lanes;
    for (uint64_t k = 0; k < 24; k++) {
        shape s = random_shape(seed + k, 1);
        int64_t group = (int64_t)2 << k % 3;
        s.groups = check_pick(seed + k, 20, 2, 9);
        s.K = s.C = s.groups * group;
        s.H += 5, s.W += 5;
        if (k % 4 < 2)
            s.R = s.S = 3, s.o.dilation[0] = s.o.dilation[1] = 1,
            s.o.stride[1] = 1 + (int64_t)(k % 4);
        assert_int_equal(conv(d, "conv2d/grouped", &s, seed + k), group < lanes);
    }
    shape odd = { 1, 9, 9, 9, 9, 3, 3, 3, { .pad = { 1, 1, 1, 1 } }, true, 0 };
    assert_false(conv(d, "conv2d/grouped", &odd, seed));
}

static void gemm(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 40; k++) {
        shape s = random_shape(seed + k, 1);
        s.groups = check_pick(seed + k, 20, 1, 3);
        s.C = s.groups * check_pick(seed + k, 21, 1, 9);
        s.K = s.groups * check_pick(seed + k, 22, 1, 25);
        assert_true(conv(d, "conv2d/gemm", &s, seed + k));
    }
    shape deep = {
        1, 130, 9, 9, 40, 3, 3, 1, { .pad = { 1, 1, 1, 1 } }, true, 3
    }; /* several slabs of the sum */
    assert_true(conv(d, "conv2d/gemm", &deep, seed));
}

static void volume(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 15; k++) {
        fac_error err = { 0 };
        fac_graph *g = fac_graph_new();
        int64_t groups = check_pick(seed + k, 0, 1, 2), T = check_pick(seed + k, 1, 1, 3),
                R = check_pick(seed + k, 2, 1, 3);
        fac_conv3d_opts o = { .groups = groups };
        for (uint64_t i = 0; i < 3; i++) {
            o.stride[i] = check_pick(seed + k, 3 + i, 1, 2);
            o.dilation[i] = check_pick(seed + k, 6 + i, 1, 2);
        }
        for (uint64_t i = 0; i < 6; i++) o.pad[i] = check_pick(seed + k, 9 + i, 0, 2);
        fac_value *x = input(g, 0, fac_shape(2, groups * 3, (int64_t)(6 + k % 3), 7, 9));
        fac_value *w = input(g, 1, fac_shape(groups * 5, 3, T, R, 3));
        fac_value *y = fac_conv3d(x, w, input(g, 2, fac_shape(groups * 5)), &o);
        if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
        assert_true(check_solver(d, "conv3d/gemm", y->node, y->node, seed + k));
        fac_graph_free(g);
    }
}

/* ---- pooling ---- */

static void pools(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 40; k++) {
        fac_error err = { 0 };
        fac_graph *g = fac_graph_new();
        uint64_t s = seed + k;
        fac_pool2d_opts o = { .ceil_mode = check_pick(s, 0, 0, 1),
                              .count_include_pad = check_pick(s, 1, 0, 1) };
        int64_t R = check_pick(s, 2, 1, 5), S = check_pick(s, 3, 1, 5);
        for (uint64_t i = 0; i < 2; i++)
            o.stride[i] = check_pick(s, 4 + i, 1, 3), o.dilation[i] = check_pick(s, 6 + i, 1, 2);
        for (uint64_t i = 0; i < 4; i++) o.pad[i] = check_pick(s, 8 + i, 0, i % 2 ? S / 2 : R / 2);
        int64_t W = k % 8 ? check_pick(s, 12, 10, 30) : 300;
        fac_value *x = input(g, 0,
                             fac_shape(check_pick(s, 13, 1, 2), check_pick(s, 14, 1, 40),
                                       check_pick(s, 15, 10, 30), W));
        fac_value *y = k % 2 ? fac_max_pool2d(x, R, S, &o) : fac_avg_pool2d(x, R, S, &o);
        if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
        assert_true(check_solver(d, k % 2 ? "max_pool2d/blocked" : "avg_pool2d/blocked", y->node,
                                 y->node, s));
        fac_graph_free(g);
    }
}

/* NaN stays where the definition has it, through relu, clip and maxima. */
static void nans(fac_device *d, uint64_t seed) {
    static const char *const solvers[] = { "conv2d/direct", "conv2d/gemm", "conv2d/first",
                                           "conv2d/depthwise" };
    check_nan = true;
    for (uint64_t k = 0; k < 16; k++) {
        shape s = {
            1,    k % 4 == 2 ? 2 : 5, 9, 17, 5, 2, 1, k % 4 == 3 ? 5 : 1, { .stride = { 2, 1 } },
            true, (int)(k / 4)
        };
        assert_true(conv(d, solvers[k % 4], &s, seed + k));
    }
    for (int average = 0; average < 2; average++) {
        fac_graph *g = fac_graph_new();
        fac_value *x = input(g, 0, fac_shape(1, 21, 13, 19));
        fac_value *y = average ? fac_avg_pool2d(x, 2, 2, NULL) : fac_max_pool2d(x, 2, 3, NULL);
        assert_true(check_solver(d, average ? "avg_pool2d/blocked" : "max_pool2d/blocked", y->node,
                                 y->node, seed));
        fac_graph_free(g);
    }
    check_nan = false;
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
        s.R = s.S = 1, s.groups = 1;
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
static void test_accuracy(void **s) { (void)s, check_everywhere(accuracy, seed + 9000); }
static void test_exact(void **s) { (void)s, check_everywhere(exact, seed); }
static void test_depthwise(void **s) { (void)s, check_everywhere(depthwise, seed + 2000); }
static void test_grouped(void **s) { (void)s, check_everywhere(grouped, seed + 8000); }
static void test_gemm(void **s) { (void)s, check_everywhere(gemm, seed + 3000); }
static void test_volume(void **s) { (void)s, check_everywhere(volume, seed + 4000); }
static void test_pools(void **s) { (void)s, check_everywhere(pools, seed + 5000); }
static void test_nans(void **s) { (void)s, check_everywhere(nans, seed + 7000); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct),   cmocka_unit_test(test_apart),
        cmocka_unit_test(test_first),    cmocka_unit_test(test_first_winograd),
        cmocka_unit_test(test_winograd), cmocka_unit_test(test_strided_winograd),
        cmocka_unit_test(test_pooled),   cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_exact),    cmocka_unit_test(test_depthwise),
        cmocka_unit_test(test_grouped),  cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_volume),   cmocka_unit_test(test_pools),
        cmocka_unit_test(test_nans)
    };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
