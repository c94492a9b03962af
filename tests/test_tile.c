/* Products in tiles compute the same: on small integers every order of adding gives the same bits, so bits are compared.  The
 * limits hold in the graph that comes out, and the counts are those of the published table. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "base/rng.h"
#include "facula/backend.h"
#include "facula/facula.h"
#include "graph/graph_internal.h"
#include "passes/attr.h"

static fac_error err;
static fac_device *device;
static uint64_t seed, stream;
#define OK(call) do { if (call) fail_msg("%s: %s", #call, err.text); } while (0)

static int open_device(void **state) {
    (void)state;
    const char *again = getenv("FACULA_SEED");
    seed = again ? strtoull(again, NULL, 10) : (uint64_t)time(NULL);
    print_message("FACULA_SEED=%llu\n", (unsigned long long)seed);
    return fac_device_open("cpu", NULL, &device, &err);
}

static int close_device(void **state) {
    (void)state;
    fac_device_free(device);
    return 0;
}

/* Integers from -4 to 4. */
static void fill(fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims);
    float *x = calloc((size_t)n + 1, sizeof *x);
    stream++;
    for (int64_t i = 0; i < n; i++) x[i] = (float)(int64_t)(fac_random_bits(seed, stream, (uint64_t)i) % 9) - 4;
    OK(fac_tensor_write(t, x, (size_t)n * sizeof *x, &err));
    free(x);
}

static fac_tensor *random_tensor(fac_type type) {
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, type.dtype, type.dims, &t, &err));
    fill(t);
    return t;
}

static void run_graph(const fac_graph *g, fac_tensor *const in[], fac_tensor *out[]) {
    fac_program *p = NULL;
    OK(fac_program_new(g, device, NULL, &p, &err));
    OK(fac_program_run(p, in, out, &err));
    fac_program_free(p);
}

static void compare(const char *text, fac_tensor *a, fac_tensor *b) {
    const fac_type type = fac_tensor_type(a);
    const size_t bytes = fac_type_bytes(&type);
    char *x = malloc(bytes + 1), *y = malloc(bytes + 1);
    assert_true(fac_tensor_type(b).dims.n == type.dims.n);
    OK(fac_tensor_read(a, x, bytes, &err));
    OK(fac_tensor_read(b, y, bytes, &err));
    if (memcmp(x, y, bytes)) fail_msg("%s: not the same bits", text);
    free(x), free(y);
}

/* No product of the graph is above the limits; how many there are. */
static int64_t legal(const char *text, const fac_graph *g, const fac_tile_opts *o) {
    int64_t n = 0;
    for (const fac_node *node = g->first; node; node = node->next) {
        if (fac_node_is(node, "conv2d") || fac_node_is(node, "conv1d") || fac_node_is(node, "linear") ||
            fac_node_is(node, "matmul"))
            fail_msg("%s: %s is left", text, node->op->name);
        if (!fac_node_is(node, "gemm")) continue;
        const fac_dims *a = &node->in[0]->type.dims, *y = &node->out[0]->type.dims;
        const int64_t k = a->d[!fac_attr_flag(node, "trans_a")];
        if ((o->m && y->d[0] > o->m) || (o->n && y->d[1] > o->n) || (o->k && k > o->k))
            fail_msg("%s: a product of %lld x %lld x %lld", text, (long long)y->d[0], (long long)y->d[1], (long long)k);
        n++;
    }
    return n;
}

static void check(const char *text, const fac_tile_opts *o) {
    for (int params = 0; params < 2; params++) {
        fac_graph *g = NULL, *cut = NULL;
        fac_tiling *report = NULL;
        fac_tensor *in[8], *was[4] = { NULL }, *is[4] = { NULL };
        OK(fac_problem_graph(text, params, &g, &err));
        for (int i = 0; i < fac_graph_params(g); i++) fill(fac_value_tensor(fac_graph_param(g, i)));
        const int n = fac_graph_inputs(g);
        for (int i = 0; i < n; i++) in[i] = random_tensor(fac_value_type(fac_graph_input(g, i)));
        OK(fac_graph_tile(g, o, &cut, &report, &err));
        assert_int_equal(fac_tiling_rows(report), 1);
        const fac_tile_row *row = fac_tiling_row(report, 0);
        assert_null(row->kept);
        if (legal(text, cut, o) != row->tiles) fail_msg("%s: %lld products are reported", text, (long long)row->tiles);
        run_graph(g, in, was);
        run_graph(cut, in, is);
        compare(text, was[0], is[0]);
        for (int i = 0; i < n; i++) fac_tensor_free(in[i]);
        fac_tensor_free(was[0]);
        fac_tensor_free(is[0]);
        fac_tiling_free(report);
        fac_graph_free(cut);
        fac_graph_free(g);
    }
}

static const char *const problems[] = {
    "linear(f32[3,7], f32[5,7], f32[5])", "linear(f32[2,3,8], f32[9,8], -)", "gemm(f32[7,5], f32[5,9], f32[7,9])",
    "gemm(f32[5,7], f32[9,5], f32[9]) trans_a trans_b alpha=2 beta=3", "gemm(f32[7,5], f32[5,9], f32[7,1])",
        "gemm(f32[6,6], f32[6,6], -)",
    "matmul(f32[7,9], f32[9,5])", "matmul(f32[2,3,5,7], f32[2,3,7,6])", "matmul(f32[2,1,5,7], f32[3,7,6])",
        "matmul(f32[3,5,7], f32[7,6])",
    "conv2d(f32[1,3,9,8], f32[7,3,3,3], f32[7]) pad=1,1,1,1",
        "conv2d(f32[2,6,9,7], f32[8,3,3,2], f32[8]) stride=2,1 groups=2 pad=1,0,0,1",
    "conv2d(f32[1,5,8,8], f32[6,5,1,1], -)", "conv2d(f32[1,4,11,11], f32[5,4,3,3], f32[5]) dilation=2,2 stride=2,2",
    "conv2d(f32[2,9,4,4], f32[5,9,1,1], f32[5]) stride=2,2", "conv1d(f32[2,4,13], f32[6,4,5], f32[6]) pad=2,2 stride=2",
};

static void products_in_tiles(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        for (int sum = 0; sum < 3; sum++)
            for (int pad = 0; pad < 2; pad++) {
                fac_tile_opts o = { .sum = (fac_tile_sum)sum, .pad = pad };
                o.m = 1 + (int64_t)(fac_random_bits(seed, ++stream, 0) % 5);
                o.n = 1 + (int64_t)(fac_random_bits(seed, ++stream, 0) % 5);
                o.k = 1 + (int64_t)(fac_random_bits(seed, ++stream, 0) % 4);
                check(problems[k], &o);
            }
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
                snprintf(text, sizeof text, "matmul(f32[%lld,%lld], f32[%lld,%lld])", (long long)sizes[m], (long long)sizes[k],
                         (long long)sizes[k],
                         (long long)sizes[n]);
                if (sizes[m] > 4 || sizes[n] > 4 || sizes[k] > 4) {
                    check(text, &(fac_tile_opts){ .m = 4, .n = 4, .k = 4 });
                    continue;
                }
                OK(fac_problem_graph(text, false, &g, &err));      /* small enough: stays as it is */
                OK(fac_graph_tile(g, &(fac_tile_opts){ .m = 4, .n = 4, .k = 4 }, &cut, &t, &err));
                assert_int_equal(fac_tiling_row(t, 0)->tiles, 1);
                assert_string_equal(cut->first->op->name, "matmul");
                fac_tiling_free(t);
                fac_graph_free(cut);
                fac_graph_free(g);
            }
}

static void counts_of_networks(void **state) {
    (void)state;
    static const struct { const char *name; int64_t tiles; double used; } want[] = {
        { "alexnet", 17090, 0.159 }, { "vgg16", 91904, 0.642 }, { "resnet18", 8240, 0.840 }, { "resnet50", 19016, 0.820 },
        { "squeezenet1_1", 1921, 0.693 }, { "googlenet", 7521, 0.760 } };
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        fac_graph *g = NULL;
        fac_tiling *t = NULL;
        int64_t tiles = 0;
        double macs = 0, full = 0;
        OK(fac_zoo_new(want[k].name, NULL, 0, &g, &err));
        OK(fac_graph_tile(g, &(fac_tile_opts){ .m = 64, .n = 64, .k = 64, .count_only = true }, NULL, &t, &err));
        for (int i = 0; i < fac_tiling_rows(t); i++) {
            const fac_tile_row *r = fac_tiling_row(t, i);
            tiles += r->tiles;
            macs += r->macs;
            full += (double)r->tiles * 64 * 64 * 64;
        }
        assert_int_equal(tiles, want[k].tiles);
        assert_true(fabs(macs / full - want[k].used) < 0.0006);
        fac_tiling_free(t);
        fac_graph_free(g);
    }
}

static void what_is_refused(void **state) {
    (void)state;
    fac_graph *g = NULL, *cut = NULL;
    fac_tiling *t = NULL;
    OK(fac_problem_graph("conv2d(f32[1,8,6,6], f32[8,1,3,3], -) groups=8", false, &g, &err));
    assert_int_equal(fac_graph_tile(g, &(fac_tile_opts){ 0 }, &cut, &t, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_graph_tile(g, &(fac_tile_opts){ .m = -1 }, &cut, &t, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_graph_tile(g, &(fac_tile_opts){ .m = 4, .only = "nobody" }, &cut, &t, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "nobody"));
    assert_null(cut);
    assert_null(t);
    OK(fac_graph_tile(g, &(fac_tile_opts){ .n = 4 }, &cut, &t, &err));
    assert_non_null(fac_tiling_row(t, 0)->kept);
    assert_string_equal(cut->first->op->name, "conv2d");
    fac_tiling_free(t);
    fac_graph_free(cut);
    fac_graph_free(g);
}

/* Attention of a sequence of 128: its products are cut too. */
static void attention_in_tiles(void **state) {
    (void)state;
    fac_graph *g = NULL, *cut = NULL;
    fac_tiling *t = NULL;
    OK(fac_problem_graph("attention(f32[1,2,128,16], f32[1,2,128,16], f32[1,2,128,16])", false, &g, &err));
    OK(fac_graph_tile(g, &(fac_tile_opts){ .m = 64, .n = 64, .k = 64 }, &cut, &t, &err));
    int64_t tiles = 0;
    for (int i = 0; i < fac_tiling_rows(t); i++) tiles += fac_tiling_row(t, i)->tiles;
    assert_int_equal(tiles, 2 * 4 + 2 * 4);
    /* 128 x 128 x 16, and 128 x 16 x 128: 2 x 2 of each head, and 2 x 2 along M and K */
    fac_tensor *in[3], *was[4] = { NULL }, *is[4] = { NULL };
    for (int i = 0; i < 3; i++) in[i] = random_tensor(fac_value_type(fac_graph_input(g, i)));
    run_graph(g, in, was);
    run_graph(cut, in, is);
    float x[2 * 128 * 16], y[2 * 128 * 16];
    OK(fac_tensor_read(was[0], x, sizeof x, &err));
    OK(fac_tensor_read(is[0], y, sizeof y, &err));
    for (int i = 0; i < 2 * 128 * 16; i++) assert_true(fabsf(x[i] - y[i]) < 1e-4f);
    for (int i = 0; i < 3; i++) fac_tensor_free(in[i]);
    for (int i = 0; i < 4; i++) fac_tensor_free(was[i]), fac_tensor_free(is[i]);
    fac_tiling_free(t);
    fac_graph_free(cut);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_in_tiles), cmocka_unit_test(sizes_around_the_limit), cmocka_unit_test(counts_of_networks),
        cmocka_unit_test(what_is_refused), cmocka_unit_test(attention_in_tiles) };
    return cmocka_run_group_tests_name("tile", tests, open_device, close_device);
}
