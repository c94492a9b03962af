/* Convolutions on NVIDIA's matrix units.  On any machine: the texts of their kernels (written to
 * the folder FACULA_KERNELS, for scripts/check_ptx.sh), phases and packed weights against formulas.
 * Where wgmma works: the solvers on odd shapes against the reference driver; FACULA_ALL=1 tries all
 * shapes and variants, FACULA_FORM=0 .. 5 one form. */
#include "nv_conv_check.h"
#include "backends/opencl/nvidia/conv/conv_rows.h"
#include "backends/opencl/nvidia/unit/pack.h"
#include "backends/opencl/device/probe.h"
#include "base/optional.h"
#include "opencl_solvers.h"

enum { VARIANTS = 16 };

/* ---- texts ---- */

static bool write_rows(fac_problem *p, fac_text *to) {
    fac_nv_conv c;
    fac_nv_tile t;
    return fac_nv_conv_read(&pretended, p, &c) &&
           fac_nv_tile_choose(&pretended.limits, &c, p->variant, &t) &&
           fac_nv_rows_text(&pretended, &c, &t, to);
}

static void write_all(const char *name, const char *problem, fac_precision asked) {
    int written = 0;
    fac_graph *g = NULL;
    OK(fac_problem_graph(problem, false, &g, &err));
    for (int k = 0; k < VARIANTS; k++) {
        fac_operand o[OPERANDS];
        fac_problem p;
        fac_text t = { 0 };
        as_problem(g->last, asked, o, &p);
        p.variant = k;
        if (write_rows(&p, &t)) written++, keep("conv_rows", name, k, &t);
        fac_text_free(&t);
    }
    print_message("%-16s %d variants\n", name, written);
    assert_true(written > 0);
    fac_graph_free(g);
}

static void kernels_are_written(void **state) {
    (void)state;
    pretended.limits = (fac_gpu_limits){ .units = 132, .gpu = true, .group = 1024, .local = 49152 };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        write_all(texts[i].name, texts[i].problem, texts[i].precision);
    write_all("tf32_pool",
              "conv2d_max_pool(f32[64,512,28,28], f32[512,512,3,3], f32[512]) pad=1,1,1,1 {relu}",
              FAC_PRECISION_HIGH);
    write_all("split_pool",
              "conv2d_max_pool(f32[64,64,224,224], f32[64,64,3,3], f32[64]) pad=1,1,1,1 {relu}",
              FAC_PRECISION_DEFAULT);
    write_all("few_pool", "conv2d_max_pool(f32[64,3,32,32], f32[64,3,3,3], f32[64]) {relu}",
              FAC_PRECISION_HIGH);
    write_all("bf16_pool",
              "conv2d_max_pool(bf16[1,512,14,14], bf16[512,512,3,3], bf16[512]) pad=1,1,1,1 {relu}",
              FAC_PRECISION_DEFAULT);
}

/* What the test below asks for is taken: said without a device. */
static void odd_shapes_are_read(void **state) {
    (void)state;
    pretended.limits = (fac_gpu_limits){ .units = 132, .gpu = true, .group = 1024, .local = 49152 };
    for (int i = 0; i < 4 * FORMS * MODES; i++) {
        const mode *m = &modes[i % MODES];
        char text[512];
        fac_graph *g = NULL;
        fac_operand o[OPERANDS];
        fac_problem p;
        fac_text t = { 0 };
        write_problem(i / MODES % FORMS, m, text, sizeof text);
        OK(fac_problem_graph(text, false, &g, &err));
        as_problem(g->last, m->precision, o, &p);
        if (!write_rows(&p, &t)) fail_msg("not read: %s", text);
        fac_text_free(&t);
        fac_graph_free(g);
    }
}

static void odd_shapes(void **state) {
    (void)state;
    if (!device || !fac_cl_has_path(fac_opencl_of(device), FAC_CL_WGMMA)) skip();
    const bool all = getenv("FACULA_ALL");
    const char *only = getenv("FACULA_FORM");
    int solved = 0, asked = 0;
    for (int i = 0; i < FORMS * MODES; i++) {
        const mode *m = &modes[i % MODES];
        char text[512];
        fac_graph *g = NULL;
        if (only ? i / MODES != atoi(only) : !all && number(0, 2)) continue; /* a third of them */
        write_problem(i / MODES, m, text, sizeof text);
        OK(fac_problem_graph(text, false, &g, &err));
        const fac_case c = { text, -1, 1, m->tolerance };
        precision = m->precision;
        of_largest = true;
        channels_last = number(0, 1);
        for (int k = 0; k <= (all ? VARIANTS : 1); k++) {
            variant = all ? k : k * (int)number(1, VARIANTS);
            const bool taken = solve(&fac_cl_conv_wgmma, g->last, &c, number(0, 3) == 0);
            solved += taken;
            asked += k == 0;
            if (taken) print_message("%-3d %.1e  %s\n", variant, worst, text);
            if (k == 0 && !taken) print_message("no offer: %s\n", text);
        }
        fac_graph_free(g);
    }
    variant = 0;
    precision = FAC_PRECISION_DEFAULT;
    print_message("%d runs of %d problems\n", solved, asked);
    assert_true(solved >= asked);
}

/* Few pixels and many terms: sums are split in the middle of the taps, and pixels come from the
 * first cache at once. */
static void split_sums(void **state) {
    static const char *const problems[] = {
        "conv2d(bf16[1,256,14,14], bf16[256,256,3,3], bf16[256]) pad=1,1,1,1",
        "conv2d(bf16[1,128,28,28], bf16[256,128,3,3]) stride=2,2 pad=1,1,1,1",
        "conv2d(f16[1,256,7,7], f16[128,256,3,3], f16[128]) pad=1,1,1,1",
        "conv2d(f32[1,256,14,14], f32[128,256,3,3], f32[128]) pad=1,1,1,1",
        "conv2d(f16[3,256,21,13], f16[248,128,1,3], f16[248]) stride=3,2 groups=2"
    };
    (void)state;
    if (!device || !fac_cl_has_path(fac_opencl_of(device), FAC_CL_WGMMA)) skip();
    of_largest = true;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        fac_graph *g = NULL;
        const fac_case c = { problems[i], -1, 1, i == 3 ? 2e-3 : 1e-2 };
        OK(fac_problem_graph(c.problem, false, &g, &err));
        precision = i == 3 ? FAC_PRECISION_HIGH : FAC_PRECISION_HIGHEST;
        channels_last = true;
        for (variant = 0; variant < (getenv("FACULA_ALL") ? VARIANTS : 1); variant++)
            if (solve(&fac_cl_conv_wgmma, g->last, &c, false))
                print_message("%-3d %.1e  %s\n", variant, worst, c.problem);
        fac_graph_free(g);
    }
    variant = 0;
    precision = FAC_PRECISION_DEFAULT;
}

/* Forward and by x, groups, pads that differ, extras: 3 x 3 of stride 1. */
static void winograd_shapes(void **state) {
    (void)state;
    if (!device || !fac_cl_has_path(fac_opencl_of(device), FAC_CL_WGMMA)) skip();
    exact = false;
    of_largest = true;
    precision = FAC_PRECISION_DEFAULT;
    for (int i = 0; i < (getenv("FACULA_ALL") ? 12 : 4); i++) {
        const int groups = i % 3 == 2 ? 2 : 1, channels = 16 * (int)number(1, 6),
                  rows = 4 * (int)number(1, 40);
        const int n = (int)number(1, 5), h = (int)number(3, 30), w = (int)number(3, 30),
                  p = (int)number(0, 2), q = (int)number(0, 2);
        const int H = h + 2 * p - 2, W = w + 2 * q - 2, by_x = i % 2;
        char text[512], more[64];
        fac_graph *g = NULL;
        snprintf(more, sizeof more, "f32[%d,%d,%d,%d]", n, rows * groups, H, W);
        if (by_x)
            snprintf(text, sizeof text,
                     "conv2d_grad_x(f32[%d,%d,%d,%d], f32[%d,%d,3,3], f32[%d,%d,%d,%d]) "
                     "pad=%d,%d,%d,%d groups=%d",
                     n, channels * groups, H, W, channels * groups, rows, n, rows * groups, h, w, p,
                     q, p, q, groups);
        else
            snprintf(text, sizeof text,
                     "conv2d(f32[%d,%d,%d,%d], f32[%d,%d,3,3], f32[%d]%s%s) pad=%d,%d,%d,%d "
                     "groups=%d {%srelu}",
                     n, channels * groups, h, w, rows * groups, channels, rows * groups,
                     fac_text_if(i % 4, ", "), fac_text_if(i % 4, more), p, q, p, q, groups,
                     fac_text_if(i % 4, "add(_, x1) "));
        OK(fac_problem_graph(text, false, &g, &err));
        channels_last = number(0, 1);
        variant = (int)number(0, 3);
        const fac_case c = { text, -1, 1, 2e-5 };
        if (!solve(&fac_cl_winograd_wgmma, g->last, &c, false)) fail_msg("no offer: %s", text);
        print_message("%-3d %.1e  %s\n", variant, worst, text);
        fac_graph_free(g);
    }
    variant = 0;
    exact = true;
}

/* With a max pool of 2 x 2 after any convolution; odd sizes lose a line or a column. */
static void pooled_shapes(void **state) {
    (void)state;
    if (!device || !fac_cl_has_path(fac_opencl_of(device), FAC_CL_WGMMA)) skip();
    enum { TIMES = 10 };
    int solved = 0;
    for (int i = 0; i < TIMES; i++) {
        const mode *m = &modes[i % MODES];
        const bool few = i % 4 == 3;
        const int images = (int)number(1, 3),
                  channels = few ? (int)number(1, 4) : m->channels * (int)number(1, 30);
        const int rows = 4 * (int)number(1, 40), r = (int)number(1, 4), down = (int)number(1, 2),
                  pad = (int)number(0, 2);
        const int h = (int)number(8, 30), w = (int)number(8, 30);
        const int p = (h + 2 * pad - r) / down + 1, q = (w + 2 * pad - r) / down + 1;
        char text[512], more[64] = "", clip[64];
        const char *const bodies[] = { "", " {relu}", clip };
        fac_graph *g = NULL;
        write_clip(channels * r * r, clip, sizeof clip);
        if (i % 3 == 2)
            snprintf(more, sizeof more, ", %s[%d,%d,%d,%d]", m->type, images, rows, p / 2, q / 2);
        snprintf(text, sizeof text,
                 "conv2d_max_pool(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], %s[%d]%s) stride=%d,%d "
                 "pad=%d,%d,%d,%d%s",
                 m->type, images, channels, h, w, m->type, rows, channels, r, r, m->type, rows,
                 more, down, down, pad, pad, pad, pad, bodies[i % 3]);
        OK(fac_problem_graph(text, false, &g, &err));
        const fac_case c = { text, -1, 1, m->tolerance };
        precision = m->precision;
        of_largest = true;
        for (int k = 0; k < 2; k++) {
            variant = k * (int)number(1, VARIANTS);
            channels_last = number(0, 1);
            const bool taken = solve(&fac_cl_conv_wgmma, g->last, &c, number(0, 3) == 0);
            if (!taken && !k) fail_msg("no offer: %s", text);
            if (taken) print_message("%-3d %.1e  %s\n", variant, worst, text);
            solved += taken;
        }
        fac_graph_free(g);
    }
    variant = 0;
    precision = FAC_PRECISION_DEFAULT;
    assert_true(solved >= TIMES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_written), cmocka_unit_test(odd_shapes_are_read),
        cmocka_unit_test(odd_shapes),          cmocka_unit_test(split_sums),
        cmocka_unit_test(pooled_shapes),       cmocka_unit_test(winograd_shapes),
    };
    return cmocka_run_group_tests_name("nv_conv", tests, open_device, close_device);
}
