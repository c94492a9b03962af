/* conv/wgmma_grad_w.  On any machine: the texts of its kernels (written to the folder
 * FACULA_KERNELS, for scripts/check_ptx.sh), and that every cut covers the sum and fits a unit.
 * Where wgmma works: all cuts on odd shapes against the reference driver, and numbers far from one,
 * which f16 holds only as they are scaled. */
#include "backends/opencl/nvidia/grad_w/grad_w.h"
#include "backends/opencl/device/probe.h"
#include "base/optional.h"
#include "opencl_solvers.h"
#include "nv_check.h"

static int setup(void **state) {
    pretended.limits = (fac_gpu_limits){ .units = 132, .gpu = true, .group = 1024, .local = 49152 };
    return open_device(state);
}

/* ---- texts ---- */

static const struct {
    const char *name, *problem;
    fac_precision precision;
    int cuts;
} cases[] = {
    { "high_3x3", "conv2d_grad_w(f32[64,64,56,56], f32[64,64,56,56], f32[64,64,3,3]) pad=1,1,1,1",
      FAC_PRECISION_HIGH, 27 },
    { "high_224",
      "conv2d_grad_w(f32[64,64,224,224], f32[64,64,224,224], f32[64,64,3,3]) pad=1,1,1,1",
      FAC_PRECISION_HIGH, 27 },
    { "f32_3x3", "conv2d_grad_w(f32[64,512,7,7], f32[64,512,7,7], f32[512,512,3,3]) pad=1,1,1,1",
      FAC_PRECISION_DEFAULT, 11 },
    { "highest_1x1", "conv2d_grad_w(f32[16,256,14,14], f32[16,1024,14,14], f32[1024,256,1,1])",
      FAC_PRECISION_HIGHEST, 12 },
    { "high_1x1", "conv2d_grad_w(f32[64,256,56,56], f32[64,64,56,56], f32[64,256,1,1])",
      FAC_PRECISION_HIGH, 24 },
    { "medium_stride",
      "conv2d_grad_w(f32[64,128,56,56], f32[64,128,28,28], f32[128,128,3,3]) stride=2,2 "
      "pad=1,1,1,1",
      FAC_PRECISION_MEDIUM, 24 },
    { "bf16_3x3",
      "conv2d_grad_w(bf16[64,256,14,14], bf16[64,256,14,14], bf16[256,256,3,3]) pad=1,1,1,1",
      FAC_PRECISION_DEFAULT, 19 },
    { "f16_1x1", "conv2d_grad_w(f16[8,64,28,28], f16[8,256,28,28], f16[256,64,1,1])",
      FAC_PRECISION_DEFAULT, 24 },
    { "high_stem",
      "conv2d_grad_w(f32[64,3,224,224], f32[64,64,112,112], f32[64,3,7,7]) stride=2,2 pad=3,3,3,3",
      FAC_PRECISION_HIGH, 8 },
    { "f32_stem",
      "conv2d_grad_w(f32[64,3,224,224], f32[64,64,112,112], f32[64,3,7,7]) stride=2,2 pad=3,3,3,3",
      FAC_PRECISION_DEFAULT, 4 },
    { "bf16_stem",
      "conv2d_grad_w(bf16[64,3,224,224], bf16[64,64,112,112], bf16[64,3,7,7]) stride=2,2 "
      "pad=3,3,3,3",
      FAC_PRECISION_DEFAULT, 8 },
    { "high_first",
      "conv2d_grad_w(f32[64,3,224,224], f32[64,64,224,224], f32[64,3,3,3]) pad=1,1,1,1",
      FAC_PRECISION_HIGH, 8 },
    { "bf16_first",
      "conv2d_grad_w(bf16[64,3,224,224], bf16[64,64,224,224], bf16[64,3,3,3]) pad=1,1,1,1",
      FAC_PRECISION_DEFAULT, 8 },
    { "high_alex",
      "conv2d_grad_w(f32[64,3,224,224], f32[64,64,55,55], f32[64,3,11,11]) stride=4,4 pad=2,2,2,2",
      FAC_PRECISION_HIGH, 4 },
    { "high_lite",
      "conv2d_grad_w(f32[64,3,224,224], f32[64,32,112,112], f32[32,3,3,3]) stride=2,2 pad=1,1,1,1",
      FAC_PRECISION_HIGH, 8 },
    { "high_5x5", "conv2d_grad_w(f32[64,1,28,28], f32[64,32,28,28], f32[32,1,5,5]) pad=2,2,2,2",
      FAC_PRECISION_HIGH, 8 },
};

static void keep(const char *name, int k, const char *options, const fac_text *t) {
    const char *folder = getenv("FACULA_KERNELS");
    char path[512];
    assert_false(t->failed);
    if (!folder) return;
    snprintf(path, sizeof path, "%s/grad_w_%s_%d.cl", folder, name, k);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "// %s\n%s", options, t->s);
    fclose(f);
}

static void kernels_are_written(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int written = 0;
        fac_graph *g = NULL;
        OK(fac_problem_graph(cases[i].problem, false, &g, &err));
        for (int k = 0; k <= FAC_NV_GRAD_W_VARIANTS; k++) {
            fac_operand o[OPERANDS];
            fac_problem p;
            fac_text t = { 0 }, sum = { 0 };
            fac_nv_grad_w q;
            fac_nv_grad_w_cut c;
            as_problem(g->last, cases[i].precision, o, &p);
            if (!fac_nv_grad_w_read(&p, 2, k % 3, &q)) fail_msg("refused: %s", cases[i].problem);
            if (!fac_nv_grad_w_choose(&pretended.limits, &q, k, &c)) continue;
            int64_t rows = 128 * c.tiles_m, columns = c.columns * c.tiles_n, pixels = 1;
            if (c.few) {
                rows = 64 * c.columns * c.tiles_m;
                columns = 64 * c.tiles_n;
                pixels = c.band * c.segment;
            } else if (c.taps) {
                rows = 64 * c.tiles_m;
                columns = 9 * c.chunk * c.tiles_n;
            }
            assert_true(rows * columns >= q.K * q.C * q.g.R * q.g.S);
            assert_true(c.each * pixels % 16 == 0 && c.each * c.splits >= c.positions &&
                        c.each * (c.splits - 1) < c.positions);
            assert_true(c.positions * pixels >= q.g.N * q.g.P * q.g.Q && c.seconds > 0 &&
                        c.stages >= 2);
            fac_nv_grad_w_text(&q, &c, &t);
            fac_nv_grad_w_sum_text(&q, &sum);
            keep(cases[i].name, k, fac_nv_grad_w_options(&c), &t);
            keep(cases[i].name, 99, "", &sum);
            if (k)
                written++;
            else
                print_message(
                    "%-14s %s%d%s, %d stages of %d x %d, %d x %d tiles, %d parts: %.4f ms\n",
                    cases[i].name,
                    c.taps  ? "taps of "
                    : c.few ? "few, groups "
                            : "128 x ",
                    c.taps ? c.chunk : c.columns, fac_text_if(c.transposed, " transposed"),
                    c.stages, c.band, c.segment, (int)c.tiles_m, (int)c.tiles_n, (int)c.splits,
                    c.seconds * 1e3);
            fac_text_free(&t);
            fac_text_free(&sum);
        }
        assert_int_equal(written, cases[i].cuts);
        fac_graph_free(g);
    }
}

static void others_are_refused(void **state) {
    (void)state;
    static const char *const not [] = {
        "conv2d_grad_w(f64[2,64,9,9], f64[2,64,9,9], f64[64,64,3,3]) pad=1,1,1,1",
        "conv2d_grad_w(f32[2,64,9,9], f32[2,18,9,9], f32[18,64,3,3]) pad=1,1,1,1",
        "conv2d_grad_w(bf16[2,64,9,9], bf16[2,20,9,9], bf16[20,64,3,3]) pad=1,1,1,1",
        "conv2d_grad_w(f32[2,306,9,9], f32[2,64,9,9], f32[64,306,3,3]) pad=1,1,1,1",
        "conv2d_grad_w(f32[2,6,9,9], f32[2,64,9,9], f32[64,3,3,3]) pad=1,1,1,1 groups=2",
        "conv2d_grad_w(f32[2,32,9,9], f32[2,32,9,9], f32[32,1,3,3]) pad=1,1,1,1 groups=32",
        "conv2d_grad_w(f32[0,32,9,9], f32[0,32,9,9], f32[32,32,3,3]) pad=1,1,1,1",
        "conv3d_grad_w(f32[2,64,9,9,9], f32[2,64,9,9,9], f32[64,64,3,3,3]) pad=1,1,1,1,1,1"
    };
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++) {
        fac_graph *g = NULL;
        fac_operand o[OPERANDS];
        fac_problem p;
        fac_nv_grad_w q;
        OK(fac_problem_graph(not [i], false, &g, &err));
        as_problem(g->last, FAC_PRECISION_HIGH, o, &p);
        if (fac_nv_grad_w_read(&p, 2, 1, &q)) fail_msg("taken: %s", not [i]);
        fac_graph_free(g);
    }
}

/* ---- the solver ---- */

typedef struct mode {
    const char *type;
    fac_precision precision;
    double tolerance;
} mode;
static const mode modes[] = { { "f32", FAC_PRECISION_HIGH, 2e-3 },
                              { "f32", FAC_PRECISION_HIGHEST, 3e-6 },
                              { "f32", FAC_PRECISION_MEDIUM, 1e-2 },
                              { "bf16", FAC_PRECISION_DEFAULT, 5e-3 },
                              { "f16", FAC_PRECISION_DEFAULT, 1e-3 } };
enum { MODES = sizeof modes / sizeof *modes };

/* 3 x 3 of stride 1 with any pads and dilation, 1 x 1 with strides, any window, few channels;
 * sometimes two groups; and 1 x 1 alone. */
enum { FEW = 3, ALONE, FORMS };
static void write_problem(int form, const mode *m, char *to, size_t size) {
    const int groups = form >= FEW || number(0, 3) ? 1 : 2,
              each = m->type[0] == 'f' && m->type[1] == '3' ? 4 : 8;
    const int C = form == FEW ? (int)number(1, 6) : each * (int)number(16 / each, 140 / each),
              K = each * (int)number(16 / each, 150 / each), N = (int)number(1, 4);
    const int h = (int)number(7, 31), w = (int)number(7, 31),
              r = form == 0                    ? 3
                  : form == 1 || form == ALONE ? 1
                                               : (int)number(1, 5);
    const bool one = r == 1 && (form == 1 || form == ALONE), still = !form || form == ALONE;
    const int s = form < 2 || one ? r : (int)number(1, 5);
    const int down = still ? 1 : (int)number(1, 3);
    const int across = still ? 1 : (int)number(1, 2);
    const int fifth = (h < w ? h : w) / 5;
    const int farthest = fifth < 3 ? fifth : 3;
    const int far = one ? 1 : (int)number(1, farthest);
    const int top = one ? 0 : (int)number(0, 2);
    const int left = one ? 0 : (int)number(0, 2);
    const int bottom = one ? 0 : (int)number(0, 2);
    const int p = (h + top + bottom - (r - 1) * far - 1) / down + 1,
              q = (w + left + top - (s - 1) * far - 1) / across + 1;
    snprintf(to, size,
             "conv2d_grad_w(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], %s[%d,%d,%d,%d]) stride=%d,%d "
             "pad=%d,%d,%d,%d "
             "dilation=%d,%d groups=%d",
             m->type, N, C * groups, h, w, m->type, N, K * groups, p, q, m->type, K * groups, C, r,
             s, down, across, top, left, bottom, top, far, far, groups);
}

static bool ready(void) { return device && fac_cl_has_path(fac_opencl_of(device), FAC_CL_WGMMA); }

static void odd_shapes(void **state) {
    (void)state;
    if (!ready()) skip();
    const char *all = getenv("FACULA_ALL");
    int solved = 0, asked = 0;
    for (int i = 0; i < FORMS * MODES * (all ? atoi(all) : 1); i++) {
        const mode *m = &modes[i % MODES];
        char text[512];
        fac_graph *g = NULL;
        write_problem(i / MODES % FORMS, m, text, sizeof text);
        OK(fac_problem_graph(text, false, &g, &err));
        const fac_case c = { text, -1, 1, m->tolerance };
        precision = m->precision;
        of_largest = true;
        channels_last = number(0, 1);
        for (int k = 0; k <= (all ? FAC_NV_GRAD_W_VARIANTS : 1); k++) {
            variant = all ? k : k * (int)number(1, FAC_NV_GRAD_W_VARIANTS);
            const bool taken = solve(&fac_cl_conv_wgmma_grad_w, g->last, &c, number(0, 3) == 0);
            solved += taken;
            asked += k == 0;
            if (taken) print_message("%-3d %.1e  %s\n", variant, worst, text);
            if (k == 0 && !taken && i / MODES % FORMS != FEW) fail_msg("no offer: %s", text);
        }
        fac_graph_free(g);
    }
    print_message("%d runs of %d problems\n", solved, asked);
}

/* All of a magnitude far from one; and the scale must be found again where the sample saw too
 * little of it. */
static void far_from_one(void **state) {
    (void)state;
    if (!ready()) skip();
    static const char problem[] =
        "conv2d_grad_w(f32[3,64,21,17], f32[3,72,21,17], f32[72,64,3,3]) pad=1,1,1,1";
    static const double sizes[] = { 1e-17, 1e-6, 1e6, 1e17 };
    fac_graph *g = NULL;
    OK(fac_problem_graph(problem, false, &g, &err));
    of_largest = true;
    channels_last = true;
    for (int i = 0; i < 16; i++) {
        const fac_case c = { problem, -sizes[i % 4], sizes[i % 4], i & 8 ? 2e-3 : 3e-6 };
        precision = i & 8 ? FAC_PRECISION_HIGH : FAC_PRECISION_HIGHEST;
        variant = i & 4 ? 1 : 5;
        assert_true(solve(&fac_cl_conv_wgmma_grad_w, g->last, &c, false));
    }
    fac_graph_free(g);
}

/* More groups that wait for each other than the device holds at once: the first ones leave, the
 * last ones do their shares. */
static void groups_that_leave(void **state) {
    (void)state;
    if (!ready()) skip();
    static const char *const problems[] = {
        "conv2d_grad_w(f32[9,64,61,57], f32[9,64,61,57], f32[64,64,3,3]) pad=1,1,1,1",
        "conv2d_grad_w(f32[9,72,61,57], f32[9,136,61,57], f32[136,72,1,1])",
        "conv2d_grad_w(f32[40,3,61,57], f32[40,64,31,29], f32[64,3,7,7]) stride=2,2 pad=3,3,3,3"
    };
    fac_opencl *o = fac_opencl_of(device);
    const unsigned units = o->limits.units;
    of_largest = true;
    channels_last = true;
    precision = FAC_PRECISION_HIGH;
    variant = 0;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        const fac_case c = { problems[i], -1, 1, 2e-3 };
        fac_graph *g = NULL;
        OK(fac_problem_graph(problems[i], false, &g, &err));
        o->limits.units = 2 * units + 50;
        for (int k = 0; k < 2; k++)
            assert_true(solve(&fac_cl_conv_wgmma_grad_w, g->last, &c, false));
        o->limits.units = units;
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(kernels_are_written),
                                        cmocka_unit_test(others_are_refused),
                                        cmocka_unit_test(odd_shapes),
                                        cmocka_unit_test(far_from_one),
                                        cmocka_unit_test(groups_that_leave) };
    return cmocka_run_group_tests_name("nv_conv_grad_w", tests, setup, close_device);
}
