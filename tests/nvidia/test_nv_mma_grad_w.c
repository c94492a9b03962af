/* conv/mma_grad_w: on any machine that every cut covers the sum and keeps within local memory, and
 * its texts (written to the folder FACULA_KERNELS, for scripts/check_ptx.sh DIR sm_80); where
 * mma.sync works all cuts on odd shapes against the reference. */
#include "nv_conv_check.h"
#include "backends/opencl/nvidia/grad_w/grad_w.h"
#include "backends/opencl/nvidia/unit/mma.h"
#include "backends/opencl/device/probe.h"
#include "opencl_solvers.h"

enum { GOOD = 1, BAD = 2 };

static void pretend(int card) {
    pretended.limits = (fac_gpu_limits){ .units = 108, .gpu = true, .group = 1024, .local = 49152 };
    for (int k = 0; k < FAC_CL_PATHS; k++) pretended.paths[k] = BAD;
    pretended.paths[FAC_CL_LOCAL_99] = card > 0 ? GOOD : BAD;
    pretended.paths[FAC_CL_LOCAL_163] = card > 1 ? GOOD : BAD;
}

static const struct {
    const char *name, *problem;
    fac_precision precision;
} cases[] = {
    { "high_3x3", "conv2d_grad_w(f32[64,64,56,56], f32[64,64,56,56], f32[64,64,3,3]) pad=1,1,1,1",
      FAC_PRECISION_HIGH },
    { "f32_3x3", "conv2d_grad_w(f32[64,512,7,7], f32[64,512,7,7], f32[512,512,3,3]) pad=1,1,1,1",
      FAC_PRECISION_DEFAULT },
    { "medium",
      "conv2d_grad_w(f32[64,128,56,56], f32[64,128,28,28], f32[128,128,3,3]) stride=2,2 "
      "pad=1,1,1,1",
      FAC_PRECISION_MEDIUM },
    { "bf16",
      "conv2d_grad_w(bf16[64,256,14,14], bf16[64,256,14,14], bf16[256,256,3,3]) pad=1,1,1,1",
      FAC_PRECISION_DEFAULT },
    { "f16_1x1", "conv2d_grad_w(f16[8,64,28,28], f16[8,256,28,28], f16[256,64,1,1])",
      FAC_PRECISION_DEFAULT },
    { "high_deep",
      "conv3d_grad_w(f32[4,64,8,28,28], f32[4,128,8,28,28], f32[128,64,3,3,3]) pad=1,1,1,1,1,1",
      FAC_PRECISION_HIGH },
    { "f32_deep",
      "conv3d_grad_w(f32[4,64,8,28,28], f32[4,128,4,14,14], f32[128,64,3,3,3]) stride=2,2,2 "
      "pad=1,1,1,1,1,1",
      FAC_PRECISION_DEFAULT },
    { "bf16_deep",
      "conv3d_grad_w(bf16[4,64,8,28,28], bf16[4,128,8,28,28], bf16[128,64,3,3,3]) pad=1,1,1,1,1,1",
      FAC_PRECISION_DEFAULT }
};

static void kernels_are_written(void **state) {
    static const int room[] = { 48, 99, 163 };
    (void)state;
    for (int card = 0; card < 3; card++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            fac_graph *g = NULL;
            int written = 0;
            pretend(card);
            OK(fac_problem_graph(cases[i].problem, false, &g, &err));
            for (int k = 0; k <= fac_mma_grad_w_variants(); k++) {
                fac_operand o[OPERANDS];
                fac_problem p;
                fac_nv_grad_w q;
                fac_mma_grad_w_cut c;
                fac_text t = { 0 };
                as_problem(g->last, cases[i].precision, o, &p);
                assert_true(fac_nv_grad_w_read(&p, 3, 0, &q));
                const fac_mma_unit unit = fac_mma_unit_of(&pretended);
                if (!fac_mma_grad_w_choose(&pretended.limits, &unit, &q, k, &c)) continue;
                const int64_t pixels = q.g.N * q.g.O * q.g.P * q.g.Q;
                const int64_t row = (c.k.rows + c.k.columns) * (q.dtype == FAC_F32 ? 4 : 2);
                assert_in_range(c.stages * row * c.k.pixels, 1, 1024 * room[card]);
                assert_true(c.tiles_m * c.k.rows >= q.K &&
                            c.tiles_n * c.k.columns >= q.C * fac_nv_grad_w_taps(&q));
                assert_true(c.each % c.k.pixels == 0 && c.each * c.splits >= pixels &&
                            c.each * (c.splits - 1) < pixels);
                const int64_t width = c.k.rows * row / (c.k.rows + c.k.columns);
                assert_true(c.items * 16 / width <= c.k.pixels &&
                            c.k.pixels <= 32); /* a pass of copies is within a step */
                fac_mma_grad_w_text(&q, &c, &t);
                assert_false(t.failed);
                assert_null(strstr(t.s, FAC_NV_MARK));
                if (card != 1) keep(card ? "grad_w_sm_80" : "grad_w_48k", cases[i].name, k, &t);
                written++;
                fac_text_free(&t);
            }
            print_message("%-12s card %d: %d variants\n", cases[i].name, card, written);
            assert_true(written > 1);
            fac_graph_free(g);
        }
}

static const mode grads[] = { { "f32", FAC_PRECISION_HIGH, 2e-3, 4 },
                              { "f32", FAC_PRECISION_HIGHEST, 3e-6, 4 },
                              { "f32", FAC_PRECISION_MEDIUM, 1e-2, 4 },
                              { "bf16", FAC_PRECISION_DEFAULT, 5e-3, 8 },
                              { "f16", FAC_PRECISION_DEFAULT, 1e-3, 8 } };
enum { GRADS = sizeof grads / sizeof *grads };

/* Any window, stride, dilation and pads, sometimes two groups; every other one with a depth. */
static void write_grad(const mode *m, bool deep, char *to, size_t size) {
    const int groups = number(0, 3) ? 1 : 2,
              C = m->channels * (int)number(16 / m->channels, 140 / m->channels);
    const int K = m->channels * (int)number(16 / m->channels, 150 / m->channels),
              N = (int)number(1, 4), r = (int)number(1, 4);
    const int s = (int)number(1, 4), h = (int)number(12, 30), w = (int)number(12, 30),
              down = (int)number(1, 3);
    const int across = (int)number(1, 2), far = (int)number(1, 2), top = (int)number(0, 2),
              left = (int)number(0, 2);
    const int p = (h + 2 * top - (r - 1) * far - 1) / down + 1,
              q = (w + 2 * left - (s - 1) * far - 1) / across + 1;
    const int t = (int)number(1, 3), in = (int)number(3, 6), inward = (int)number(1, 2),
              front = (int)number(0, 2);
    const int out = (in + 2 * front - (t - 1) * far - 1) / inward + 1;
    if (deep && in + 2 * front > (t - 1) * far) {
        snprintf(to, size,
                 "conv3d_grad_w(%s[%d,%d,%d,%d,%d], %s[%d,%d,%d,%d,%d], %s[%d,%d,%d,%d,%d]) "
                 "stride=%d,%d,%d "
                 "pad=%d,%d,%d,%d,%d,%d dilation=%d,%d,%d groups=%d",
                 m->type, N, C * groups, in, h, w, m->type, N, K * groups, out, p, q, m->type,
                 K * groups, C, t, r, s, inward, down, across, front, top, left, front, top, left,
                 far, far, far, groups);
        return;
    }
    snprintf(to, size,
             "conv2d_grad_w(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], %s[%d,%d,%d,%d]) stride=%d,%d "
             "pad=%d,%d,%d,%d "
             "dilation=%d,%d groups=%d",
             m->type, N, C * groups, h, w, m->type, N, K * groups, p, q, m->type, K * groups, C, r,
             s, down, across, top, left, top, left, far, far, groups);
}

static void odd_shapes(void **state) {
    (void)state;
    if (!device || !fac_cl_has_path(fac_opencl_of(device), FAC_CL_MMA)) skip();
    const bool all = getenv("FACULA_ALL");
    const char *only = getenv("FACULA_FORM");
    for (int i = 0; i < GRADS * (all ? 6 : 4); i++) {
        const mode *m = &grads[i % GRADS];
        char text[512];
        fac_graph *g = NULL;
        write_grad(m, i / GRADS % 2, text, sizeof text);
        if (only && i % GRADS != atoi(only)) continue;
        OK(fac_problem_graph(text, false, &g, &err));
        const fac_case c = { text, -1, 1, m->tolerance };
        precision = m->precision;
        of_largest = true;
        channels_last = number(0, 1);
        for (int k = 0; k <= (all ? fac_mma_grad_w_variants() : 1); k++) {
            variant = all ? k : k * (int)number(1, fac_mma_grad_w_variants());
            const bool taken = solve(&fac_cl_conv_mma_grad_w, g->last, &c, number(0, 3) == 0);
            if (!k && !taken) fail_msg("no offer: %s", text);
            if (taken) print_message("%-3d %.1e  %s\n", variant, worst, text);
        }
        fac_graph_free(g);
    }
    variant = 0;
    precision = FAC_PRECISION_DEFAULT;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(kernels_are_written),
                                        cmocka_unit_test(odd_shapes) };
    return cmocka_run_group_tests_name("nv_mma_grad_w", tests, open_device, close_device);
}
