/* conv/wgmma_stream where wgmma works: all tiles on odd shapes against the reference driver.  Its
 * texts are in test_nv_conv_stream_texts.c. */
#include "opencl_solver_check.h"
#include "backends/opencl/nvidia/conv/conv_stream.h"
#include "backends/opencl/device/probe.h"
#include "opencl_solvers.h"

static int64_t number(int64_t least, int64_t most) {
    return least + (int64_t)(fac_random_bits(seed, ++stream, 0) % (uint64_t)(most - least + 1));
}

typedef struct mode {
    const char *type;
    fac_precision precision;
    double tolerance;
    int channels;
} mode;
static const mode modes[] = { { "f32", FAC_PRECISION_HIGH, 2e-3, 4 },
                              { "f32", FAC_PRECISION_HIGHEST, 4e-6, 4 },
                              { "bf16", FAC_PRECISION_HIGH, 2e-2, 8 },
                              { "f16", FAC_PRECISION_HIGH, 3e-3, 8 } };
enum { MODES = sizeof modes / sizeof *modes, FORMS = 6 };

/* 3 x 3 with a halo, 1 x 1, any window, and gradients by x, of 1 x 1 at last; sizes, bodies and
 * what is added at random. */
static void write_problem(int form, const mode *m, char *to, size_t size) {
    static const char *const bodies[] = { "", " {relu}", " {add(_, x1) relu}" };
    const char *t = m->type;
    const int channels = (int)(m->channels * (number(0, 2) ? number(2, 30) : 16)),
              rows = 4 * (int)number(1, 70);
    const int images = (int)number(1, 5);
    const int h = (int)number(5, 30), w = (int)number(5, 30), body = (int)number(0, 2);
    const bool any = form == 2 || form == 4, pixel = form == 1 || form == 5;
    int down = 1, r = pixel ? 1 : 3;
    int s = r, pad = pixel ? 0 : 1;
    if (any) {
        down = (int)number(1, 3);
        r = (int)number(1, 4);
        s = (int)number(1, 5);
    }
    if (form == 2) pad = (int)number(0, 2);
    const int p = (h + 2 * pad - r) / down + 1, q = (w + 2 * pad - s) / down + 1;
    char more[64] = "";
    if (body == 2) snprintf(more, sizeof more, ", %s[%d,%d,%d,%d]", t, images, rows, p, q);
    if (form < 3)
        snprintf(
            to, size,
            "conv2d(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], %s[%d]%s) stride=%d,%d pad=%d,%d,%d,%d%s", t,
            images, channels, h, w, t, rows, channels, r, s, t, rows, more, down, down, pad, pad,
            pad, pad, bodies[body]);
    else /* dy, w, x */
        snprintf(to, size,
                 "conv2d_grad_x(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], %s[%d,%d,%d,%d]) stride=%d,%d "
                 "pad=%d,%d,%d,%d",
                 t, images, channels, p, q, t, channels, rows, r, s, t, images, rows, h, w, down,
                 down, pad, pad, pad, pad);
}

static void odd_shapes(void **state) {
    (void)state;
    if (!device || !fac_cl_has_path(fac_opencl_of(device), FAC_CL_WGMMA)) skip();
    const char *all = getenv("FACULA_ALL");
    fac_opencl *o = fac_opencl_of(device);
    static const fac_cl_path maps[] = { FAC_CL_MAPS, FAC_CL_MAPS_16 };
    int found[2];
    for (int k = 0; k < 2; k++) found[k] = fac_cl_has_path(o, maps[k]) ? FAC_CL_GOOD : FAC_CL_BAD;
    int solved = 0, asked = 0;
    for (int i = 0; i < FORMS * MODES * (all ? atoi(all) : 1); i++) {
        const mode *m = &modes[i % MODES];
        char text[512];
        fac_graph *g = NULL;
        write_problem(i / MODES % FORMS, m, text, sizeof text);
        OK(fac_problem_graph(text, false, &g, &err));
        const fac_case c = { text, -1, 1, m->tolerance };
        const int last = all ? fac_nv_stream_variants() : 1, form = i / MODES % FORMS;
        precision = m->precision;
        of_largest = true;
        channels_last = number(0, 1);
        slices = channels_last && number(0, 1);
        for (int k = 0; k <= (form == 1 || form == 5 ? 2 * last + 1 : last); k++) {
            const int tile = k % (last + 1);
            variant = all ? tile : tile * (int)number(1, fac_nv_stream_variants());
            for (int way = 0; way < 2; way++)
                o->paths[maps[way]] = k > last ? FAC_CL_BAD : found[way];
            const bool taken = solve(&fac_cl_conv_wgmma_stream, g->last, &c, number(0, 3) == 0);
            solved += taken;
            asked += tile == 0;
            if (taken)
                print_message("%-3d%s %.1e  %s\n", variant, k > last ? " without maps" : "", worst,
                              text);
            if (tile == 0 && !taken) print_message("no offer: %s\n", text);
        }
        for (int k = 0; k < 2; k++) o->paths[maps[k]] = found[k];
        fac_graph_free(g);
    }
    variant = 0;
    precision = FAC_PRECISION_DEFAULT;
    channels_last = slices = false;
    print_message("%d runs of %d problems\n", solved, asked);
    assert_true(solved >= asked);
}

/* With the pool after them: odd sizes lose a line or a column, small images end within tiles. */
static void pooled_shapes(void **state) {
    (void)state;
    if (!device || !fac_cl_has_path(fac_opencl_of(device), FAC_CL_WGMMA)) skip();
    enum { TIMES = 16 };
    int solved = 0;
    for (int i = 0; i < TIMES; i++) {
        const mode *m = &modes[i % 3 + (i % 3 > 0)]; /* not by three products */
        const int images = (int)number(1, 4), channels = m->channels * (int)number(2, 40),
                  rows = 4 * (int)number(1, 70);
        const int highest = i % 4 ? 30 : 80;
        const int widest = i % 4 ? 30 : 150;
        const int h = (int)number(2, highest), w = (int)number(2, widest), body = (int)number(0, 2);
        char text[512], more[64] = "", clip[64];
        const char *const bodies[] = { "", " {relu}", clip };
        fac_graph *g = NULL;
        write_clip(channels * 9, clip, sizeof clip);
        if (body == 2)
            snprintf(more, sizeof more, ", %s[%d,%d,%d,%d]", m->type, images, rows, h / 2, w / 2);
        snprintf(text, sizeof text,
                 "conv2d_max_pool(%s[%d,%d,%d,%d], %s[%d,%d,3,3], %s[%d]%s) pad=1,1,1,1%s", m->type,
                 images, channels, h, w, m->type, rows, channels, m->type, rows, more,
                 bodies[body]);
        OK(fac_problem_graph(text, false, &g, &err));
        const fac_case c = { text, -1, 1, m->tolerance };
        precision = m->precision;
        of_largest = true;
        const char *all = getenv("FACULA_ALL");
        for (variant = 0; variant <= 4; variant++) {
            if (variant && variant != 1 + i % 4 && !all) continue;
            channels_last = number(0, 1);
            const bool taken = solve(&fac_cl_conv_wgmma_stream, g->last, &c, number(0, 3) == 0);
            if (!taken && (variant < 3 || rows > 64))
                fail_msg("no offer of tile %d: %s", variant, text);
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
    const struct CMUnitTest tests[] = { cmocka_unit_test(odd_shapes),
                                        cmocka_unit_test(pooled_shapes) };
    return cmocka_run_group_tests_name("nv_conv_stream", tests, open_device, close_device);
}
