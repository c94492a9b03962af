/* What convolutions on NVIDIA's matrix units read: phases and packed weights against formulas, on
 * any machine. */
#include "nv_conv_check.h"
#include "backends/opencl/nvidia/conv/conv_rows.h"
#include "backends/opencl/nvidia/unit/pack.h"
#include "backends/opencl/device/probe.h"
#include "opencl_solvers.h"

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
            const int64_t K = c->kind == FAC_GPU_GRAD_X ? group * c->channels + channel
                                                        : group * c->rows + row,
                          C = c->kind == FAC_GPU_GRAD_X ? row : channel;
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_meet_all_taps),
        cmocka_unit_test(weights_are_packed),
        cmocka_unit_test(many_weights_are_packed),
    };
    return cmocka_run_group_tests_name("nv_conv_packed", tests, open_device, close_device);
}
