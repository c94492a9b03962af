/* How gradients by weights are cut, and the text of their kernels: see grad_w.h. */
#include <string.h>
#include "backends/opencl/gemm.h"
#include "backends/opencl/nvidia/grad_w.h"
#include "cl_nv_common.h"
#include "cl_nv_conv_grad_w.h"
#include "cl_nv_conv_grad_w_sum.h"
#include "cl_nv_conv_grad_w_taps.h"
#include "cl_nv_conv_grad_w_tiles.h"

enum { LOCAL = 230000, AGAIN = 32, BLOCK = 64, PROMOTE = 4 };

static int64_t parts(int64_t n, int64_t each) { return (n + each - 1) / each; }
static bool split(const fac_nv_grad_w *q) { return q->mode == FAC_NV_3XTF32; }
static bool halves(const fac_nv_grad_w *q) { return q->dtype != FAC_F32; }

/* ---- kinds of cuts ------------------------------------------------------------------------------------------------------- */

/* Columns of the second kernel, and what turns; columns 0: the kernel of taps. */
static const struct { int columns; bool turned; } kinds[] = { { 0, false },   { 64, false },  { 64, true }, { 128, false },
                                                              { 128, true }, { 256, false }, { 256, true } };
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Rows or columns of positions: every pixel of x behind the pad in front, and as many behind it as taps reach across: what they
 * see there are pads of the next row or image. */
static int64_t positions(const fac_conv_geom *g, int k) {
    const int64_t pad = g->pad[k] > g->pad_end[k] ? g->pad[k] : g->pad_end[k], all = g->in[k] + pad;
    return all > g->out[k] ? all : g->out[k];
}

static bool cut_taps(const fac_nv_grad_w *q, fac_nv_grad_w_cut *c) {
    const fac_conv_geom *g = &q->g;
    for (int k = 1; k < 3; k++) if (g->kernel[k] != 3 || g->stride[k] != 1 || g->dilation[k] > 4) return false;
    c->tall = positions(g, 1), c->broad = positions(g, 2);
    c->chunk = split(q) ? 32 : 64, c->stages = 4;
    c->lead = parts(2 * (g->dilation[1] * c->broad + g->dilation[2]), BLOCK);
    c->ring = BLOCK * (c->lead + c->stages);
    const int64_t both = split(q) ? 2 : 1;
    if (both * (c->stages * BLOCK * 128 + (c->ring + AGAIN) * c->chunk * 2) > LOCAL) return false;
    c->tiles_m = parts(q->K, 64), c->tiles_n = parts(q->C, c->chunk);
    return true;
}

static bool cut_tiles(const fac_nv_grad_w *q, fac_nv_grad_w_cut *c) {
    const fac_conv_geom *g = &q->g;
    const int64_t seen = g->R * g->S * parts(q->C, 64), rows = parts(q->K, 64);
    const int across = c->columns / 64, chunks = 2 + across;
    if (split(q) && across > 2) return false;
    c->tall = g->P, c->broad = g->Q, c->chunk = 64;
    c->stages = LOCAL / (chunks * BLOCK * 128 * (split(q) ? 2 : 1));
    if (c->stages > 8) c->stages = 8;
    c->ahead = halves(q) ? chunks : across == 2 ? 2 : 3;
    c->tiles_m = parts(c->turned ? seen : rows, 2), c->tiles_n = parts(c->turned ? rows : seen, across);
    return true;
}

/* Measured on an H200, of a multiprocessor: bytes a second out of the second cache, and shares of the matrix units' rate with
 * operands that are rounded, split, and taken as they are. */
static const double UNIT_LOADS = 47e9, ROUNDED = 0.5, SPLIT = 0.64, AS_THEY_ARE = 0.7;

static void price(const fac_opencl *o, const fac_nv_grad_w *q, fac_nv_grad_w_cut *c) {
    const double units = o->limits.units, element = halves(q) ? 2 : 4, steps = (double)(c->each / BLOCK);
    const double macs = c->taps ? 64.0 * 9 * c->chunk : 128.0 * c->columns;
    const double across = c->taps ? 64 + c->chunk : 128 + c->columns;
    const double loads = BLOCK * element * across;
    const double rate = fac_nv_rate(o, FAC_NV_BF16) / units * (split(q) ? SPLIT / 3 : halves(q) ? AS_THEY_ARE : ROUNDED);
    const double multiply = macs * BLOCK / rate, load = loads / UNIT_LOADS;
    const int64_t groups = c->tiles_m * c->tiles_n * q->g.groups * c->splits;
    const double waves = (double)parts(groups, o->limits.units);
    const double each = multiply > load ? multiply : load, pixels = (double)q->g.N * (double)(q->g.P * q->g.Q);
    const double images = element * ((double)q->g.N * (double)(q->g.H * q->g.W) * (double)q->g.C + pixels * (double)q->g.K);
    const double memory = images / (1.2 * fac_cl_bandwidth(o));
    const double busy = waves * ((steps + (double)c->lead) * each + 6e-6);
    c->seconds = 8e-6 + (busy > memory ? busy : memory) + (double)fac_nv_grad_w_work(q, c) / fac_cl_bandwidth(o);
}

/* Groups of items for one or two rounds on the device. */
static bool cut(const fac_opencl *o, const fac_nv_grad_w *q, int kind, int rounds, fac_nv_grad_w_cut *c) {
    memset(c, 0, sizeof *c);
    c->taps = !kinds[kind].columns, c->columns = kinds[kind].columns, c->turned = kinds[kind].turned;
    if (!(c->taps ? cut_taps(q, c) : cut_tiles(q, c))) return false;
    c->positions = q->g.N * c->tall * c->broad;
    if (c->positions >= INT32_MAX / 2) return false;
    const int64_t tiles = c->tiles_m * c->tiles_n * q->g.groups, most = parts(c->positions, 4 * BLOCK);
    int64_t splits = rounds * (int64_t)o->limits.units / tiles;
    splits = splits < 1 ? 1 : splits < most ? splits : most;
    c->each = parts(parts(c->positions, splits), BLOCK) * BLOCK;
    c->splits = parts(c->positions, c->each);
    price(o, q, c);
    return fac_nv_grad_w_work(q, c) < (size_t)1 << 31;
}

bool fac_nv_grad_w_choose(const fac_opencl *o, const fac_nv_grad_w *q, int variant, fac_nv_grad_w_cut *out) {
    bool found = false;
    if (variant > FAC_NV_GRAD_W_VARIANTS) return false;
    if (variant) return cut(o, q, (variant - 1) / 2, 1 + (variant - 1) % 2, out);
    for (int kind = 0; kind < KINDS; kind++)
        for (int rounds = 1; rounds <= 2; rounds++) {
            fac_nv_grad_w_cut c;
            if (!cut(o, q, kind, rounds, &c) || (found && c.seconds >= out->seconds)) continue;
            *out = c;
            found = true;
        }
    return found;
}

/* Channels that a group of the last step has: room for turns when there are parts for them. */
int64_t fac_nv_grad_w_block(const fac_nv_grad_w_cut *c, int64_t taps) {
    const int64_t turns = c->splits < 8 ? c->splits : 8, quads = 256 / turns / taps;
    return 4 * (quads ? quads : 1);
}

size_t fac_nv_grad_w_work(const fac_nv_grad_w *q, const fac_nv_grad_w_cut *c) {
    return (size_t)(c->splits * q->g.K * q->C * q->g.R * q->g.S) * sizeof(float);
}

/* ---- text --------------------------------------------------------------------------------------------------------------- */

int fac_nv_grad_w_items(const fac_nv_grad_w_cut *c) { return c->taps || !c->ahead ? 512 : 384; }

/* What 65,536 registers allow a group of so many items. */
const char *fac_nv_grad_w_options(const fac_nv_grad_w_cut *c) {
    return fac_nv_grad_w_items(c) == 512 ? "-cl-nv-maxrregcount=128" : "-cl-nv-maxrregcount=168";
}

void fac_nv_grad_w_text(const fac_nv_grad_w *q, const fac_nv_grad_w_cut *c, fac_text *to) {
    const bool bf16 = q->mode == FAC_NV_BF16;
    const int n = c->taps ? 3 * c->chunk : c->columns;
    fac_text_add(to, fac_cl_nv_common);
    fac_nv_wgmma_text(to, n, bf16 ? FAC_NV_KIND_BF16 : FAC_NV_KIND_F16, FAC_NV_A_TURNED | FAC_NV_B_TURNED);
    fac_text_print(to, "#define MULTIPLY wgmma_%s_n%d_ss_ta_tb\n#define PACK nv_pack_%s\n", bf16 ? "bf16" : "f16", n,
                   bf16 ? "bf16" : "f16");
    fac_text_print(to, "#define MEM %s\n#define TERMS %d\n", halves(q) ? "ushort" : "float", split(q) ? 3 : 1);
    if (halves(q)) fac_text_add(to, "#define HALVES\n");
    if (!halves(q) && !bf16) fac_text_add(to, "#define SCALED\n");
    fac_text_print(to, "#define STAGES %d\n#define PROMOTE %d\n", c->stages, PROMOTE);
    if (c->taps) fac_text_print(to, "#define CHUNK %d\n#define LOCAL %d\n", c->chunk, LOCAL);
    else fac_text_print(to, "#define COLUMNS %d\n#define AHEAD %d\n", c->columns, c->ahead);
    fac_text_add(to, fac_cl_nv_conv_grad_w);
    fac_text_add(to, c->taps ? fac_cl_nv_conv_grad_w_taps : fac_cl_nv_conv_grad_w_tiles);
}

void fac_nv_grad_w_sum_text(const fac_nv_grad_w *q, fac_text *to) {
    static const char *const store[] = { "p[i] = (v)", "fac_store_bf16(p, i, v)", "fac_store_f16(p, i, v)" };
    fac_text_add(to, fac_cl_nv_common);
    fac_text_print(to, "#define RESULT %s\n#define STORE(p, i, v) %s\n", halves(q) ? "ushort" : "float",
                   store[q->dtype == FAC_BF16 ? 1 : q->dtype == FAC_F16 ? 2 : 0]);
    fac_text_add(to, fac_cl_nv_conv_grad_w_sum);
}
