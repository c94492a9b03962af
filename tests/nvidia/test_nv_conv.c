/* Convolutions on NVIDIA's matrix units.  On any machine: the texts of their kernels (written to
 * the folder FACULA_KERNELS, for scripts/check_ptx.sh), phases and packed weights against formulas.
 * Where wgmma works: the solvers on odd shapes against the reference driver; FACULA_ALL=1 tries all
 * shapes and variants, FACULA_FORM=0 .. 5 one form. */
#include "nv_conv_check.h"
#include "backends/opencl/nvidia/conv/conv_rows.h"
#include "backends/opencl/nvidia/unit/pack.h"
#include "backends/opencl/device/probe.h"
#include "opencl_solvers.h"

enum { VARIANTS = 16 };

/* ---- texts ---- */

static bool write_rows(fac_problem *p, fac_text *to) {
    fac_nv_conv c;
    fac_nv_tile t;
    return fac_nv_conv_read(&pretended, p, &c) &&
           fac_nv_tile_choose(&pretended, &c, p->variant, &t) &&
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
    pretended.limits = (fac_cl_limits){ .units = 132, .gpu = true, .group = 1024, .local = 49152 };
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

/* ---- phases ---- */

static fac_graph *read_conv(const char *text, fac_precision asked, fac_nv_conv *c) {
    fac_graph *g = NULL;
    fac_operand o[OPERANDS];
    fac_problem p;
    OK(fac_problem_graph(text, false, &g, &err));
    as_problem(g->last, asked, o, &p);
    if (!fac_nv_conv_read(&pretended, &p, c)) fail_msg("not read: %s", text);
    return g;
}

/* Every pair of a pixel of dx and one of dy that a tap joins is met by exactly one phase, with that
 * tap. */
static void phases_meet_all_taps(void **state) {
    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        const int k = (int)number(1, 5), stride = (int)number(1, 4), dilation = (int)number(1, 3),
                  pad = (int)number(0, 2), size = (int)number(13, 20),
                  out = (size + 2 * pad - (k - 1) * dilation - 1) / stride + 1;
        char text[256];
        fac_nv_conv c;
        int met[24][8] = { { 0 } }, want = 0, found = 0;
        snprintf(text, sizeof text,
                 "conv2d_grad_x(f32[1,16,1,%d], f32[16,4,1,%d], f32[1,4,1,%d]) stride=1,%d "
                 "pad=0,%d,0,%d dilation=1,%d",
                 out, k, size, stride, pad, pad, dilation);
        fac_graph *g = read_conv(text, FAC_PRECISION_HIGH, &c);
        for (int i = 0; i < c.phases; i++) {
            const fac_nv_phase f = fac_nv_phase_of(&c, i);
            const fac_nv_axis *a = &f.axis[2];
            assert_int_equal(f.taps, a->taps);
            for (int o = 0; o < a->out; o++)
                for (int t = 0; t < a->taps; t++) {
                    const int tap = a->first + a->each * t,
                              from = a->origin + a->stride * o + a->far * t,
                              to = a->place + a->step * o;
                    assert_true(tap < k && to < size && from * stride + tap * dilation - pad == to);
                    found += from >= 0 && from < out && !met[to][tap]++;
                }
        }
        for (int o = 0; o < out; o++)
            for (int tap = 0; tap < k; tap++) {
                const int to = o * stride + tap * dilation - pad;
                want += to >= 0 && to < size;
            }
        assert_int_equal(found, want);
        fac_graph_free(g);
    }
}

/* ---- packed weights ---- */

/* Where channel c of a k-tile stands in its row: the lane and register that hold it, and the term
 * that wgmma takes them for. */
static int term_of(const fac_nv_packing *k, int c) {
    const bool half = k->mode == FAC_NV_BF16 || k->mode == FAC_NV_F16;
    if (k->order == FAC_NV_IN_ORDER) return c;
    const int each = k->order == FAC_NV_BY_EIGHTS ? 8 : 4, load = c / (4 * each),
              lane = c / each % 4, e = c % each;
    if (!half) return (2 * load + e / 2) * 8 + lane + 4 * (e % 2);
    const int reg = e / 2,
              step = each / 4 * load + reg / 2; /* a step takes two registers of each pixel */
    return step * 16 + 2 * lane + 8 * (reg % 2) + e % 2;
}

/* Where row r of 16 stands, so that lane t's sums, columns 8 j + 2 t and 2 t + 1, are rows 4 t .. 4
 * t + 3. */
static int position_of(int r) { return r / 16 * 16 + 8 * (r % 4 / 2) + 2 * (r % 16 / 4) + r % 2; }

static double packed_number(const fac_nv_packing *k, const void *from, size_t at) {
    double x;
    const fac_dtype t = k->mode == FAC_NV_BF16  ? FAC_BF16
                        : k->mode == FAC_NV_F16 ? FAC_F16
                                                : FAC_F32;
    fac_convert(FAC_F64, &x, t, (const char *)from + at * (size_t)fac_dtype_get(t)->block_bytes, 1);
    return x;
}

static void check_packed(const char *text, const fac_nv_conv *c, const fac_nv_packing *k,
                         const double *w, const void *packed) {
    const fac_conv_geom *g = &c->g;
    const int bytes = k->mode == FAC_NV_BF16 || k->mode == FAC_NV_F16 ? 2 : 4,
              parts = k->mode == FAC_NV_3XTF32 ? 2 : 1;
    const int chunk = 16 / bytes, long_rows = k->terms * bytes == 128;
    const int64_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2];
    const bool cut = k->mode == FAC_NV_TF32 && k->order == FAC_NV_IN_ORDER && !k->whole;
    const double larger = 1 + (cut                        ? 0x1p-12 / log(2)
                               : k->mode == FAC_NV_3XTF32 ? FAC_NV_LOST * k->run
                                                          : 0);
    const double near = k->whole                 ? 0
                        : parts == 2             ? 1e-6
                        : k->mode == FAC_NV_BF16 ? 1.0 / 256
                                                 : 1.0 / 2048;
    for (int phase = 0; phase < c->phases; phase++) {
        const fac_nv_phase f = fac_nv_phase_of(c, phase);
        const size_t start = fac_nv_packed_at(c, k, phase) / (size_t)bytes;
        for (int64_t e = 0; e < (int64_t)c->groups * c->rows * c->channels * f.taps; e++) {
            const int channel = (int)(e % c->channels), tap = (int)(e / c->channels % f.taps),
                      row = (int)(e / c->channels / f.taps % c->rows),
                      group = (int)(e / c->channels / f.taps / c->rows);
            int64_t source = 0;
            for (int d = 0, left = f.taps, rest = tap; d < 3; d++) {
                left /= f.axis[d].taps;
                source = source * g->kernel[d] + f.axis[d].first + f.axis[d].each * (rest / left);
                rest %= left;
            }
            const int64_t K = c->kind == FAC_CL_GRAD_X ? group * c->channels + channel
                                                       : group * c->rows + row,
                          C = c->kind == FAC_CL_GRAD_X ? row : channel;
            const double want = larger * w[(K * (g->C / g->groups) + C) * taps + source];
            const int term = k->few ? 4 * tap + channel : channel,
                      k_tile = k->few ? term / k->terms : term / k->terms * f.taps + tap;
            const int p = term_of(k, term % k->terms), r = position_of(row % k->rows),
                      turn = long_rows ? r % 8 : r / 2 % 4;
            const size_t tile =
                ((size_t)group * (size_t)fac_nv_row_tiles(c, k) + (size_t)(row / k->rows)) *
                    (size_t)fac_nv_k_tiles(c, k, &f) +
                (size_t)k_tile;
            const size_t at = start + tile * (size_t)(fac_nv_tile_bytes(k) / bytes) +
                              (size_t)(r * k->terms) +
                              (size_t)(((p / chunk) ^ turn) * chunk + p % chunk);
            double have = packed_number(k, packed, at);
            if (parts == 2) have += packed_number(k, packed, at + (size_t)(k->rows * k->terms));
            if (fabs(have - want) > near * fabs(want) + 1e-12)
                fail_msg("%s: phase %d row %d tap %d channel %d is %g, not %g", text, phase, row,
                         tap, channel, have, want);
        }
    }
}

static const struct {
    const char *text;
    fac_precision precision;
    fac_nv_packing k;
} tilings[] = { { "conv2d(f32[1,64,9,9], f32[76,64,3,2])",
                  FAC_PRECISION_HIGH,
                  { 64, 32, FAC_NV_TF32, FAC_NV_IN_ORDER, false, 0, 0, false } },
                { "conv2d(f32[1,32,9,9], f32[24,16,3,3]) groups=2",
                  FAC_PRECISION_HIGH,
                  { 64, 16, FAC_NV_TF32, FAC_NV_BY_FOURS, false, 0, 0, false } },
                { "conv2d(f32[1,96,9,9], f32[36,96,1,1])",
                  FAC_PRECISION_DEFAULT,
                  { 64, 32, FAC_NV_3XTF32, FAC_NV_BY_FOURS, false, 0, 2000, false } },
                { "conv2d(f32[1,64,9,9], f32[8,64,1,3])",
                  FAC_PRECISION_MEDIUM,
                  { 64, 32, FAC_NV_BF16, FAC_NV_BY_FOURS, false, 0, 0, false } },
                { "conv2d(bf16[1,128,9,9], bf16[68,128,1,3])",
                  FAC_PRECISION_DEFAULT,
                  { 64, 64, FAC_NV_BF16, FAC_NV_BY_EIGHTS, false, 0, 0, false } },
                { "conv2d(f16[1,32,9,9], f16[68,32,2,3])",
                  FAC_PRECISION_DEFAULT,
                  { 128, 32, FAC_NV_F16, FAC_NV_BY_EIGHTS, false, 0, 0, false } },
                { "conv2d(f32[1,3,19,19], f32[20,3,5,7])",
                  FAC_PRECISION_DEFAULT,
                  { 64, 16, FAC_NV_3XTF32, FAC_NV_BY_FOURS, true, 0, 0, false } },
                { "conv2d(bf16[1,1,19,19], bf16[20,1,3,3])",
                  FAC_PRECISION_DEFAULT,
                  { 64, 32, FAC_NV_BF16, FAC_NV_BY_FOURS, true, 0, 0, false } },
                { "conv2d_grad_x(f32[1,32,7,7], f32[32,20,3,3], f32[1,20,15,15]) stride=2,2",
                  FAC_PRECISION_HIGH,
                  { 64, 32, FAC_NV_TF32, FAC_NV_BY_FOURS, false, 0, 0, false } },
                { "conv2d_grad_x(f32[1,64,5,7], f32[64,8,3,5], f32[1,16,15,20]) stride=3,2 "
                  "dilation=1,2 pad=1,1,1,1 groups=2",
                  FAC_PRECISION_DEFAULT,
                  { 64, 32, FAC_NV_3XTF32, FAC_NV_BY_FOURS, false, 0, 0, false } },
                { "conv_transpose3d(f32[1,16,3,4,5], f32[16,8,2,3,2]) stride=2,1,2",
                  FAC_PRECISION_HIGH,
                  { 64, 16, FAC_NV_TF32, FAC_NV_BY_FOURS, false, 0, 0, false } },
                { "conv2d(f32[1,40,9,9], f32[136,40,1,1])",
                  FAC_PRECISION_HIGH,
                  { 128, 32, FAC_NV_TF32, FAC_NV_IN_ORDER, false, 0, 0, false } },
                { "conv2d(f32[1,16,15,15], f32[12,16,5,5])",
                  FAC_PRECISION_HIGH,
                  { 32, 16, FAC_NV_TF32, FAC_NV_BY_FOURS, false, 0, 0, false } },
                { "conv2d(f32[1,40,9,9], f32[76,40,3,2])",
                  FAC_PRECISION_DEFAULT,
                  { 64, 16, FAC_NV_TF32, FAC_NV_IN_ORDER, false, 0, 0, true } } };
enum { TILINGS = sizeof tilings / sizeof *tilings };

static void weights_are_packed(void **state) {
    (void)state;
    if (!device) skip();
    for (size_t i = 0; i < TILINGS; i++) {
        fac_nv_conv c;
        fac_graph *g = read_conv(tilings[i].text, tilings[i].precision, &c);
        const fac_nv_packing *k = &tilings[i].k;
        const fac_type *t = &g->last->in[1]->type;
        const size_t n = (size_t)fac_dims_count(&t->dims), bytes = fac_nv_packed_bytes(&c, k);
        double *w = calloc(n, sizeof *w);
        void *flat = contents(*t, -1, 1), *packed = calloc(1, bytes);
        fac_span from = { 0 }, to = { 0 };
        fac_cl_kernel kernel;
        fac_convert(FAC_F64, w, t->dtype, flat, n);
        OK(fac_device_alloc(device, fac_type_bytes(t), &from.memory, &err));
        OK(fac_device_alloc(device, bytes, &to.memory, &err));
        OK(device->backend->write(device, from, flat, fac_type_bytes(t), &err));
        OK(fac_nv_pack_make(fac_opencl_of(device), &c, k, &kernel, &err));
        OK(fac_nv_pack_run(fac_opencl_of(device), &c, k, &kernel, from, to, &err));
        OK(device->backend->read(device, to, packed, bytes, &err));
        check_packed(tilings[i].text, &c, k, w, packed);
        fac_cl_kernel_free(fac_opencl_of(device), &kernel);
        fac_device_release(device, from.memory, fac_type_bytes(t));
        fac_device_release(device, to.memory, bytes);
        free(w), free(flat), free(packed);
        fac_graph_free(g);
    }
}

/* All of them at once, into one memory, two forms of each. */
static void many_weights_are_packed(void **state) {
    enum { MANY = 2 * TILINGS };
    fac_nv_conv c[TILINGS];
    fac_nv_packing k[MANY];
    fac_nv_weights w[MANY];
    fac_pack_job jobs[MANY];
    fac_graph *graphs[TILINGS];
    fac_span from[TILINGS], to = { 0 };
    double *plain[TILINGS];
    void *plan = NULL;
    size_t all = 0;
    (void)state;
    if (!device) skip();
    for (int i = 0; i < TILINGS; i++) {
        graphs[i] = read_conv(tilings[i].text, tilings[i].precision, &c[i]);
        const fac_type *t = &graphs[i]->last->in[1]->type;
        const size_t n = (size_t)fac_dims_count(&t->dims);
        void *flat = contents(*t, -1, 1);
        plain[i] = calloc(n, sizeof *plain[i]);
        fac_convert(FAC_F64, plain[i], t->dtype, flat, n);
        from[i].at = 0;
        OK(fac_device_alloc(device, fac_type_bytes(t), &from[i].memory, &err));
        OK(device->backend->write(device, from[i], flat, fac_type_bytes(t), &err));
        free(flat);
        for (int j = i; j < MANY; j += TILINGS) {
            k[j] = tilings[i].k;
            if (j != i) k[j].rows += 64;
            w[j] = (fac_nv_weights){ &c[i], &c[i], &k[j] };
            jobs[j] = (fac_pack_job){ .type = *t, .input = 1, .from = i, .to = all };
            all += (fac_nv_packed_bytes(&c[i], &k[j]) + 63) / 64 * 64;
        }
    }
    OK(fac_device_alloc(device, all, &to.memory, &err));
    OK(fac_nv_packs_make(fac_opencl_of(device), w, jobs, MANY, &plan, &err));
    OK(fac_nv_packer.run(plan, device, from, to, &err));
    char *bytes = calloc(1, all);
    OK(device->backend->read(device, to, bytes, all, &err));
    for (int j = 0, i = 0; j < MANY; i = ++j % TILINGS)
        check_packed(tilings[i].text, &c[i], &k[j], plain[i], bytes + jobs[j].to);
    fac_nv_packer.done(device, plan);
    fac_device_release(device, to.memory, all);
    free(bytes);
    for (int i = 0; i < TILINGS; i++) {
        fac_device_release(device, from[i].memory, fac_type_bytes(&graphs[i]->last->in[1]->type));
        fac_graph_free(graphs[i]);
        free(plain[i]);
    }
}

/* What the test below asks for is taken: said without a device. */
static void odd_shapes_are_read(void **state) {
    (void)state;
    pretended.limits = (fac_cl_limits){ .units = 132, .gpu = true, .group = 1024, .local = 49152 };
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
        precision = m->precision, of_largest = true, channels_last = number(0, 1);
        for (int k = 0; k <= (all ? VARIANTS : 1); k++) {
            variant = all ? k : k * (int)number(1, VARIANTS);
            const bool taken = solve(&fac_cl_conv_wgmma, g->last, &c, number(0, 3) == 0);
            solved += taken, asked += k == 0;
            if (taken) print_message("%-3d %.1e  %s\n", variant, worst, text);
            if (k == 0 && !taken) print_message("no offer: %s\n", text);
        }
        fac_graph_free(g);
    }
    variant = 0, precision = FAC_PRECISION_DEFAULT;
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
        precision = i == 3 ? FAC_PRECISION_HIGH : FAC_PRECISION_HIGHEST, channels_last = true;
        for (variant = 0; variant < (getenv("FACULA_ALL") ? VARIANTS : 1); variant++)
            if (solve(&fac_cl_conv_wgmma, g->last, &c, false))
                print_message("%-3d %.1e  %s\n", variant, worst, c.problem);
        fac_graph_free(g);
    }
    variant = 0, precision = FAC_PRECISION_DEFAULT;
}

/* Forward and by x, groups, pads that differ, extras: 3 x 3 of stride 1. */
static void winograd_shapes(void **state) {
    (void)state;
    if (!device || !fac_cl_has_path(fac_opencl_of(device), FAC_CL_WGMMA)) skip();
    exact = false, of_largest = true, precision = FAC_PRECISION_DEFAULT;
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
                     i % 4 ? ", " : "", i % 4 ? more : "", p, q, p, q, groups,
                     i % 4 ? "add(_, x1) " : "");
        OK(fac_problem_graph(text, false, &g, &err));
        channels_last = number(0, 1), variant = (int)number(0, 3);
        const fac_case c = { text, -1, 1, 2e-5 };
        if (!solve(&fac_cl_winograd_wgmma, g->last, &c, false)) fail_msg("no offer: %s", text);
        print_message("%-3d %.1e  %s\n", variant, worst, text);
        fac_graph_free(g);
    }
    variant = 0, exact = true;
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
        precision = m->precision, of_largest = true;
        for (int k = 0; k < 2; k++) {
            variant = k * (int)number(1, VARIANTS), channels_last = number(0, 1);
            const bool taken = solve(&fac_cl_conv_wgmma, g->last, &c, number(0, 3) == 0);
            if (!taken && !k) fail_msg("no offer: %s", text);
            if (taken) print_message("%-3d %.1e  %s\n", variant, worst, text);
            solved += taken;
        }
        fac_graph_free(g);
    }
    variant = 0, precision = FAC_PRECISION_DEFAULT;
    assert_true(solved >= TIMES);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(kernels_are_written),
                                        cmocka_unit_test(odd_shapes_are_read),
                                        cmocka_unit_test(phases_meet_all_taps),
                                        cmocka_unit_test(weights_are_packed),
                                        cmocka_unit_test(many_weights_are_packed),
                                        cmocka_unit_test(odd_shapes),
                                        cmocka_unit_test(split_sums),
                                        cmocka_unit_test(pooled_shapes),
                                        cmocka_unit_test(winograd_shapes) };
    return cmocka_run_group_tests_name("nv_conv", tests, open_device, close_device);
}
