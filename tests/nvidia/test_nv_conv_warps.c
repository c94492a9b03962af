/* conv/warps: on any machine the texts of its kernels (written to the folder FACULA_KERNELS, for
 * scripts/check_ptx.sh DIR sm_80) and how problems are cut; where mma.sync works the solver on odd
 * shapes against the reference, every variant.  FACULA_ALL=1 tries all shapes. */
#include "nv_conv_check.h"
#include "backends/opencl/nvidia/conv/conv_warps.h"
#include "backends/opencl/device/probe.h"
#include "opencl_solvers.h"

enum { VARIANTS = 16, LOCAL_BYTES = 48 << 10 };

/* Few channels and bf16 products of f32 are for others. */
static bool is_ours(const fac_nv_conv *c) {
    return !c->few && !(c->mode == FAC_NV_BF16 && c->r.dtype == FAC_F32);
}

/* Every cut keeps within local memory, and has a text without anything of sm_90a. */
static void kernels_are_written(void **state) {
    (void)state;
    pretended.limits =
        (fac_gpu_limits){ .units = 132, .gpu = true, .group = 1024, .local = LOCAL_BYTES };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fac_graph *g = NULL;
        OK(fac_problem_graph(texts[i].problem, false, &g, &err));
        for (int k = 0; k < VARIANTS; k++) {
            fac_operand o[OPERANDS];
            fac_problem p;
            fac_nv_conv c;
            fac_nv_tile t;
            fac_text text = { 0 };
            as_problem(g->last, texts[i].precision, o, &p);
            assert_true(fac_nv_conv_read(&pretended, &p, &c));
            assert_int_equal(fac_nv_warps_choose(&pretended.limits, &c, k, &t),
                             is_ours(&c) && k <= fac_nv_warps_variants(&c));
            if (!t.warps) continue;
            assert_true(t.warps * t.rows * t.c.columns * (int)sizeof(float) + 1024 <= LOCAL_BYTES);
            assert_true(fac_nv_rows_text(&pretended, &c, &t, &text));
            assert_null(strstr(text.s, FAC_NV_MARK));
            keep("conv_warps", texts[i].name, k, &text);
            fac_text_free(&text);
        }
        fac_graph_free(g);
    }
}

static bool has_units(void) { return device && fac_cl_has_path(fac_opencl_of(device), FAC_CL_MMA); }

static void solve_all(const char *text, const mode *m) {
    fac_graph *g = NULL;
    const fac_case c = { text, -1, 1, m->tolerance };
    OK(fac_problem_graph(text, false, &g, &err));
    precision = m->precision;
    of_largest = true;
    channels_last = number(0, 1);
    for (variant = 0; variant < VARIANTS; variant++)
        if (solve(&fac_cl_conv_warps, g->last, &c, number(0, 3) == 0))
            print_message("%-3d %.1e  %s\n", variant, worst, text);
        else if (!variant)
            fail_msg("no offer: %s", text);
    fac_graph_free(g);
    variant = 0;
    precision = FAC_PRECISION_DEFAULT;
}

static void odd_shapes(void **state) {
    (void)state;
    if (!has_units()) skip();
    for (int i = 0; i < FORMS * MODES; i++) {
        const mode *m = &modes[i % MODES];
        char text[512];
        if (i / MODES == 2 || m->precision == FAC_PRECISION_MEDIUM ||
            (!getenv("FACULA_ALL") && number(0, 2)))
            continue;
        write_problem(i / MODES, m, text, sizeof text);
        solve_all(text, m);
    }
}

/* Few pixels and many terms, as in networks at batch 1; long sums keep f32's accuracy. */
static void long_sums(void **state) {
    static const struct {
        const char *text;
        mode m;
    } problems[] = { { "conv2d(f32[1,512,7,7], f32[512,512,3,3], f32[512], f32[1,512,7,7]) "
                       "pad=1,1,1,1 {add(_, x1) relu}",
                       { "", FAC_PRECISION_HIGHEST, 3e-6, 0 } },
                     { "conv2d(f32[1,960,7,7], f32[160,960,1,1], f32[160])",
                       { "", FAC_PRECISION_HIGH, 2e-3, 0 } },
                     { "conv2d(bf16[1,256,14,14], bf16[72,256,3,3], bf16[72]) pad=1,1,1,1 {relu}",
                       { "", FAC_PRECISION_HIGHEST, 1e-2, 0 } } };
    (void)state;
    if (!has_units()) skip();
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        solve_all(problems[i].text, &problems[i].m);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(kernels_are_written),
                                        cmocka_unit_test(odd_shapes), cmocka_unit_test(long_sums) };
    return cmocka_run_group_tests_name("nv_conv_warps", tests, open_device, close_device);
}
