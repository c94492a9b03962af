/* The texts of conv/wgmma_stream's kernels, on any machine (written to the folder FACULA_KERNELS,
 * for scripts/check_ptx.sh), and that every tile it chooses fits a unit. */
#include "nv_check.h"
#include "backends/opencl/nvidia/conv/conv_stream.h"
#include "backends/opencl/device/probe.h"
#include "opencl_solvers.h"

static void with_maps(bool there) {
    pretended.paths[FAC_CL_MAPS] = there ? FAC_CL_GOOD : FAC_CL_BAD;
}

static int setup(void **state) {
    pretended.limits = (fac_gpu_limits){ .units = 132, .gpu = true, .group = 1024, .local = 49152 };
    pretended.paths[FAC_CL_MAPS_16] = FAC_CL_BAD;
    (void)state;
    with_maps(true);
    return 0;
}

static const struct {
    const char *name, *problem;
    fac_precision precision;
} cases[] = {
    { "tf32_3x3", "conv2d(f32[64,256,14,14], f32[256,256,3,3], f32[256]) pad=1,1,1,1 {relu}",
      FAC_PRECISION_HIGH },
    { "tf32_1x1_sum",
      "conv2d(f32[64,64,56,56], f32[256,64,1,1], f32[256], f32[64,256,56,56]) {add(_, x1) relu}",
      FAC_PRECISION_HIGH },
    { "tf32_1x1", "conv2d(f32[64,256,56,56], f32[64,256,1,1], f32[64]) {relu}",
      FAC_PRECISION_HIGH },
    { "tf32_3x3_sum",
      "conv2d(f32[64,64,56,56], f32[64,64,3,3], f32[64], f32[64,64,56,56]) pad=1,1,1,1 {add(_, x1) "
      "relu}",
      FAC_PRECISION_HIGH },
    { "tf32_stride", "conv2d(f32[64,128,56,56], f32[128,128,3,3]) stride=2,2 pad=1,1,1,1",
      FAC_PRECISION_HIGH },
    { "bf16_3x3", "conv2d(bf16[64,256,14,14], bf16[256,256,3,3], bf16[256]) pad=1,1,1,1 {relu}",
      FAC_PRECISION_HIGH },
    { "bf16_1x1_sum",
      "conv2d(bf16[64,64,56,56], bf16[256,64,1,1], bf16[256], bf16[64,256,56,56]) {add(_, x1) "
      "relu}",
      FAC_PRECISION_HIGH },
    { "f16_1x1_sum",
      "conv2d(f16[8,64,28,28], f16[256,64,1,1], f16[256], f16[8,256,28,28]) {add(_, x1) relu}",
      FAC_PRECISION_HIGH },
    { "grad_x", "conv2d_grad_x(f32[64,64,56,56], f32[64,64,3,3], f32[64,64,56,56]) pad=1,1,1,1",
      FAC_PRECISION_HIGH },
    { "split_3x3", "conv2d(f32[64,256,14,14], f32[256,256,3,3], f32[256]) pad=1,1,1,1 {relu}",
      FAC_PRECISION_DEFAULT },
    { "split_1x1_sum",
      "conv2d(f32[64,64,56,56], f32[256,64,1,1], f32[256], f32[64,256,56,56]) {add(_, x1) relu}",
      FAC_PRECISION_HIGHEST },
    { "grad_x_stride",
      "conv2d_grad_x(f32[64,128,28,28], f32[128,64,3,3], f32[64,64,56,56]) stride=2,2 pad=1,1,1,1",
      FAC_PRECISION_HIGH },
    { "split_stride",
      "conv2d_grad_x(f32[64,128,28,28], f32[128,64,3,3], f32[64,64,56,56]) stride=2,2 pad=1,1,1,1",
      FAC_PRECISION_HIGHEST },
    { "sums_stride",
      "conv2d_grad_x_norm(f32[64,128,28,28], f32[128,128,3,3], f32[64,128,56,56], "
      "f32[64,128,56,56], f32[128], "
      "f32[128], f32[128], f32[128]) stride=2,2 pad=1,1,1,1 epsilon=0.1 lo=0 hi=inf",
      FAC_PRECISION_HIGH },
    { "sums_thin",
      "conv2d_grad_x_norm(f32[64,64,56,56], f32[64,256,1,1], f32[64,256,56,56], f32[64,256,56,56], "
      "f32[256], "
      "f32[256], f32[256], f32[256], f32[64,256,28,28], f32[64,256,56,56]) epsilon=0.1 lo=0 hi=inf "
      "apart=2",
      FAC_PRECISION_HIGH },
    { "moments_3x3", "conv2d_moments(f32[64,256,14,14], f32[256,256,3,3]) pad=1,1,1,1",
      FAC_PRECISION_HIGH },
    { "moments_1x1", "conv2d_moments(f32[64,64,56,56], f32[256,64,1,1])", FAC_PRECISION_HIGH },
    { "moments_bf16", "conv2d_moments(bf16[64,64,56,56], bf16[256,64,1,1])", FAC_PRECISION_HIGH },
    NV_CONV_NORMS,
    { "norm_bits_thin",
      "conv2d_grad_x_norm(bf16[64,128,28,28], bf16[128,512,1,1], bf16[64,512,28,28], "
      "bf16[64,512,28,28], "
      "f32[512], f32[512], f32[512], f32[512], bf16[64,512,14,14], -, u8[64,128,28,28]) "
      "epsilon=1e-5 lo=0 hi=inf apart=2",
      FAC_PRECISION_HIGH },
    { "pool_64", "conv2d_max_pool(f32[64,64,224,224], f32[64,64,3,3], f32[64]) pad=1,1,1,1 {relu}",
      FAC_PRECISION_HIGH },
    { "pool_256",
      "conv2d_max_pool(f32[16,256,56,56], f32[256,256,3,3], f32[256]) pad=1,1,1,1 {relu}",
      FAC_PRECISION_HIGH },
    { "pool_bf16",
      "conv2d_max_pool(bf16[16,128,112,112], bf16[128,128,3,3], bf16[128]) pad=1,1,1,1 {relu}",
      FAC_PRECISION_HIGH },
    { "moments_split", "conv2d_moments(f32[64,64,56,56], f32[256,64,1,1])", FAC_PRECISION_HIGHEST },
};

static void keep(const char *name, int k, const fac_nv_stream *q, const fac_text *t) {
    const char *folder = getenv("FACULA_KERNELS");
    char path[512];
    if (!folder) return;
    snprintf(path, sizeof path, "%s/conv_stream_%s_%d.cl", folder, name, k);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "// -cl-nv-maxrregcount=%d\n%s", 65536 / (128 * (q->t.consumers + 1)) / 8 * 8, t->s);
    fclose(f);
}

/* Of every tile, with tensor maps or without; how many. */
static int write_kernels(const char *name, const fac_node *n, fac_precision asked, bool maps) {
    int written = 0;
    with_maps(maps);
    for (int k = 0; k <= fac_nv_stream_variants(); k++) {
        fac_operand o[OPERANDS];
        fac_problem p;
        fac_text t = { 0 };
        fac_nv_stream q;
        as_problem(n, asked, o, &p);
        p.variant = k;
        if (!fac_nv_stream_read(&pretended, &p, &q) || (!maps && !q.step)) continue;
        assert_true(fac_nv_stream_local(&q, &q.t) <= FAC_NV_STREAM_LOCAL);
        assert_true(q.t.a_rows % 8 == 0 && q.t.bn % 16 == 0 && q.t.sa >= 2 && q.t.sb >= 2 &&
                    q.seconds > 0);
        assert_true(!q.maps || q.t.a_rows <= 256); /* what a box may have */
        assert_int_equal(q.maps, maps && q.step);
        assert_true(fac_nv_stream_text(&q, false, &t));
        if (k)
            written++;
        else
            print_message("%-16s %dx%d%s of %d, %d and %d stages%s%s: %.4f ms\n", name,
                          fac_nv_stream_rows(&q.t), q.t.bn, q.t.halo ? " with halo" : "",
                          q.t.consumers, q.t.sa, q.t.sb, q.t.slots ? ", staged" : "",
                          q.maps ? ", mapped" : "", q.seconds * 1e3);
        keep(name, k, &q, &t);
        fac_text_free(&t);
    }
    with_maps(true);
    return written;
}

static void kernels_are_written(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char without[64];
        fac_graph *g = NULL;
        OK(fac_problem_graph(cases[i].problem, false, &g, &err));
        assert_true(write_kernels(cases[i].name, g->last, cases[i].precision, true) >= 2);
        snprintf(without, sizeof without, "%s_copied", cases[i].name);
        write_kernels(without, g->last, cases[i].precision, false);
        fac_graph_free(g);
    }
}

/* Tensor maps are for windows of one pixel whose pixels lie one as far from the other as all are.
 */
static void only_even_pixels_are_mapped(void **state) {
    (void)state;
    enum { WHOLE, SLICE, GAPS };
    static const struct {
        const char *problem;
        int lie, step;
    } each[] = { { "conv2d(f32[2,44,9,7], f32[64,44,1,1])", WHOLE, 44 },
                 { "conv2d(f32[2,44,9,7], f32[64,44,1,1])", SLICE, 52 },
                 { "conv2d(f32[2,44,9,7], f32[64,44,1,1])", GAPS, 0 },
                 { "conv2d(f32[2,44,1,7], f32[64,44,1,1])", GAPS, 0 },
                 { "conv2d(f32[1,44,1,7], f32[64,44,1,1])", GAPS, 44 },
                 { "conv2d(f32[2,44,9,1], f32[64,44,1,1])", SLICE, 52 },
                 { "conv2d(f32[1,44,9,1], f32[64,44,1,1])", GAPS, 64 },
                 { "conv2d(f32[5,44,1,1], f32[64,44,1,1])", WHOLE, 44 },
                 { "conv2d(bf16[5,48,1,19], bf16[64,48,1,1])", WHOLE, 48 },
                 { "conv2d_grad_x(f32[2,64,9,7], f32[64,44,1,1], f32[2,44,9,7])", WHOLE, 64 },
                 { "conv2d_moments(f32[2,44,9,7], f32[64,44,1,1])", SLICE, 52 },
                 { "conv2d(f32[2,44,9,7], f32[64,44,1,1]) stride=2,2", WHOLE, 0 },
                 { "conv2d(f32[2,44,9,7], f32[64,44,1,1]) pad=1,1,1,1", WHOLE, 0 },
                 { "conv2d(f32[2,44,9,7], f32[64,44,3,3]) pad=1,1,1,1", WHOLE, 0 },
                 { "conv2d_grad_x(f32[2,64,5,4], f32[64,44,1,1], f32[2,44,9,7]) stride=2,2", WHOLE,
                   0 } };
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        fac_graph *g = NULL;
        fac_operand o[OPERANDS];
        fac_problem p;
        fac_nv_stream q;
        OK(fac_problem_graph(each[i].problem, false, &g, &err));
        as_problem(g->last, FAC_PRECISION_HIGH, o, &p);
        const fac_dims *d = &o[0].type.dims;
        int64_t *s = o[0].layout.stride, step = d->d[1] + (each[i].lie == SLICE ? 8 : 0);
        s[1] = 1;
        for (int k = d->n - 1; k >= 0; k--) {
            if (k == 1) continue;
            s[k] = step;
            step = step * d->d[k] + (each[i].lie == GAPS ? 20 : 0);
        }
        if (!fac_nv_stream_read(&pretended, &p, &q)) fail_msg("not read: %s", each[i].problem);
        if (q.step != each[i].step) fail_msg("steps of %d: %s", (int)q.step, each[i].problem);
        assert_int_equal(q.maps, q.step > 0);
        fac_graph_free(g);
    }
}

static void others_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *problem;
        fac_precision precision;
    } not [] = {
        { "conv2d(f32[2,64,9,9], f32[64,64,3,3])", FAC_PRECISION_MEDIUM },
        { "conv2d(f32[2,42,9,9], f32[64,42,3,3])", FAC_PRECISION_HIGH },
        { "conv2d(f32[2,64,9,9], f32[66,64,3,3])", FAC_PRECISION_HIGH },
        { "conv2d(bf16[2,92,9,9], bf16[64,92,3,3])", FAC_PRECISION_HIGH },
        { "conv2d(f32[2,64,9,9], f32[64,32,3,3]) groups=2", FAC_PRECISION_HIGH },
        { "conv2d(f32[2,64,19,19], f32[64,64,7,7])", FAC_PRECISION_HIGH },
        { "conv3d(f32[2,64,9,9,9], f32[64,64,3,3,3])", FAC_PRECISION_HIGH },
        { "conv2d_max_pool(f32[2,64,9,9], f32[64,64,3,3]) pad=1,1,1,1", FAC_PRECISION_HIGHEST },
        { "conv2d_max_pool(f32[2,64,9,9], f32[64,64,3,3])", FAC_PRECISION_HIGH },
        { "conv2d_max_pool(f32[2,64,9,9], f32[64,64,1,1])", FAC_PRECISION_HIGH },
        { "conv2d_max_pool(f32[2,64,9,9], f32[64,64,3,3]) pad=1,1,1,1 pool=3,3 pool_stride=2,2",
          FAC_PRECISION_HIGH },
        { "conv2d_max_pool(f32[2,64,9,9], f32[64,64,3,3]) pad=1,1,1,1 pool_pad=1,1,1,1",
          FAC_PRECISION_HIGH }
    };
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++) {
        fac_graph *g = NULL;
        fac_operand o[OPERANDS];
        fac_problem p;
        fac_nv_stream q;
        OK(fac_problem_graph(not [i].problem, false, &g, &err));
        as_problem(g->last, not [i].precision, o, &p);
        if (fac_nv_stream_read(&pretended, &p, &q)) fail_msg("taken: %s", not [i].problem);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(kernels_are_written),
                                        cmocka_unit_test(only_even_pixels_are_mapped),
                                        cmocka_unit_test(others_are_refused) };
    return cmocka_run_group_tests_name("nv_conv_stream_texts", tests, setup, NULL);
}
