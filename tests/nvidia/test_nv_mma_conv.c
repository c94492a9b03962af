/* conv/mma: on any machine the texts of its kernels for cards with little and with much local
 * memory (written to the folder FACULA_KERNELS, for scripts/check_ptx.sh DIR sm_80) and how
 * problems are cut; where mma.sync works the solver on odd shapes against the reference.
 * FACULA_ALL=1 tries all shapes and variants, FACULA_FORM=0 .. 5 one form. */
#include "nv_conv_check.h"
#include "backends/opencl/nvidia/conv/conv_rows.h"
#include "backends/opencl/device/probe.h"
#include "opencl_solvers.h"

enum { VARIANTS = 12, GOOD = 1, BAD = 2 };

static const struct {
    const char *name;
    bool l99, l163;
    size_t local;
} cards[] = { { "48k", false, false, 49152 },
              { "sm_86", true, false, 101376 },
              { "sm_80", true, true, 166912 } };

static void pretend(int card) {
    pretended.limits = (fac_gpu_limits){ .units = 108, .gpu = true, .group = 1024, .local = 49152 };
    for (int k = 0; k < FAC_CL_PATHS; k++) pretended.paths[k] = BAD;
    pretended.paths[FAC_CL_MMA] = GOOD;
    pretended.paths[FAC_CL_LOCAL_99] = cards[card].l99 ? GOOD : BAD;
    pretended.paths[FAC_CL_LOCAL_163] = cards[card].l163 ? GOOD : BAD;
}

static bool cut(fac_problem *p, fac_nv_conv *c, fac_nv_tile *t) {
    const fac_mma_unit unit = fac_mma_unit_of(&pretended);
    return fac_nv_conv_read(&pretended, p, c) && fac_mma_conv_choose(&unit, c, p->variant, t);
}

/* Every cut keeps within local memory, has whole warps, and a text. */
static void kernels_are_written(void **state) {
    (void)state;
    for (int card = 0; card < 3; card++)
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            int written = 0;
            fac_graph *g = NULL;
            pretend(card);
            OK(fac_problem_graph(texts[i].problem, false, &g, &err));
            for (int k = 0; k < VARIANTS; k++) {
                fac_operand o[OPERANDS];
                fac_problem p;
                fac_nv_conv c;
                fac_nv_tile t;
                fac_text text = { 0 };
                as_problem(g->last, texts[i].precision, o, &p);
                p.variant = k;
                if (!cut(&p, &c, &t)) continue;
                const fac_mma_tile m = fac_mma_conv_tile(&c, &t);
                assert_true(t.c.stages * (m.rows * m.a_row + fac_nv_tile_bytes(&t.k)) <=
                            (int)cards[card].local);
                assert_true(m.rows % m.warp_rows == 0 && m.columns % m.warp_columns == 0 &&
                            fac_mma_items(&m) <= 512);
                assert_true((m.a_row == 64 || m.a_row == 128) && (m.b_row == 64 || m.b_row == 128));
                assert_true(fac_nv_rows_text(&pretended, &c, &t, &text));
                assert_null(strstr(text.s, FAC_NV_MARK)); /* nothing of sm_90a */
                written++, keep(cards[card].name, texts[i].name, k, &text);
                fac_text_free(&text);
            }
            if (card == 1) print_message("%-16s %d variants\n", texts[i].name, written);
            assert_true(written > 0);
            fac_graph_free(g);
        }
}

/* All that conv/wgmma takes is taken, on every card. */
static void odd_shapes_are_cut(void **state) {
    (void)state;
    for (int i = 0; i < 4 * FORMS * MODES; i++) {
        const mode *m = &modes[i % MODES];
        char text[512];
        fac_graph *g = NULL;
        fac_operand o[OPERANDS];
        fac_problem p;
        fac_nv_conv c;
        fac_nv_tile t;
        pretend(i % 3);
        write_problem(i / MODES % FORMS, m, text, sizeof text);
        OK(fac_problem_graph(text, false, &g, &err));
        as_problem(g->last, m->precision, o, &p);
        if (!cut(&p, &c, &t)) fail_msg("not cut: %s", text);
        fac_graph_free(g);
    }
}

static bool has_units(void) { return device && fac_cl_has_path(fac_opencl_of(device), FAC_CL_MMA); }

static int solve_all(const char *text, const mode *m, bool all) {
    fac_graph *g = NULL;
    int solved = 0;
    const fac_case c = { text, -1, 1, m->tolerance };
    OK(fac_problem_graph(text, false, &g, &err));
    precision = m->precision;
    of_largest = true;
    channels_last = number(0, 1);
    for (int k = 0; k <= (all ? VARIANTS : 1); k++) {
        variant = all ? k : k * (int)number(1, VARIANTS);
        const bool taken = solve(&fac_cl_conv_mma, g->last, &c, number(0, 3) == 0);
        if (!k && !taken) fail_msg("no offer: %s", text);
        if (taken) solved++, print_message("%-3d %.1e  %s\n", variant, worst, text);
    }
    fac_graph_free(g);
    variant = 0;
    precision = FAC_PRECISION_DEFAULT;
    return solved;
}

static void odd_shapes(void **state) {
    (void)state;
    if (!has_units()) skip();
    const bool all = getenv("FACULA_ALL");
    const char *only = getenv("FACULA_FORM");
    int solved = 0;
    for (int i = 0; i < FORMS * MODES; i++) {
        char text[512];
        if (only ? i / MODES != atoi(only) : !all && number(0, 2)) continue; /* a third of them */
        write_problem(i / MODES, &modes[i % MODES], text, sizeof text);
        solved += solve_all(text, &modes[i % MODES], all);
    }
    print_message("%d runs\n", solved);
}

/* Few pixels and many terms: sums are split in the middle of the taps; long sums keep f32's
 * accuracy. */
static void split_sums(void **state) {
    static const struct {
        const char *text;
        mode m;
    } problems[] = { { "conv2d(bf16[1,256,14,14], bf16[256,256,3,3], bf16[256]) pad=1,1,1,1",
                       { "", FAC_PRECISION_HIGHEST, 1e-2, 0 } },
                     { "conv2d(f32[1,256,14,14], f32[128,256,3,3], f32[128]) pad=1,1,1,1",
                       { "", FAC_PRECISION_HIGH, 2e-3, 0 } },
                     { "conv2d(f32[1,512,7,7], f32[512,512,3,3], f32[512]) pad=1,1,1,1",
                       { "", FAC_PRECISION_HIGHEST, 3e-6, 0 } },
                     { "conv2d(f16[3,256,21,13], f16[248,128,1,3], f16[248]) stride=3,2 groups=2",
                       { "", FAC_PRECISION_HIGHEST, 1e-2, 0 } } };
    (void)state;
    if (!has_units()) skip();
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        solve_all(problems[i].text, &problems[i].m, getenv("FACULA_ALL"));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(kernels_are_written),
                                        cmocka_unit_test(odd_shapes_are_cut),
                                        cmocka_unit_test(odd_shapes),
                                        cmocka_unit_test(split_sums) };
    return cmocka_run_group_tests_name("nv_mma_conv", tests, open_device, close_device);
}
