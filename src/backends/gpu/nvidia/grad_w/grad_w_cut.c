/* How gradients by weights are cut, and the text of their kernels: see grad_w.h. */
#include <string.h>
#include "base/clamp.h"
#include "backends/gpu/nvidia/grad_w/grad_w.h"
#include "backends/gpu/nvidia/speed.h"
#include "backends/gpu/speed.h"

enum { AGAIN = 32, BLOCK = 64 };

static bool split(const fac_nv_grad_w *q) { return q->mode == FAC_NV_3XTF32; }

/* ---- kinds of cuts ---- */

/* Columns of the second kernel, and what is transposed; columns 0: the kernel of taps.  How many
 * fill: f32 are rounded by one warp group or, where registers allow, two. */
static const struct {
    int columns;
    bool transposed;
    int fillers;
} kinds[] = { { 0, false, 128 },   { 64, false, 128 },  { 64, true, 128 },
              { 128, false, 128 }, { 128, true, 128 },  { 256, false, 128 },
              { 256, true, 128 },  { 128, false, 256 }, { 128, true, 256 } };
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Rows or columns of positions: every pixel of x after the pad in front, and as many after it as
 * taps reach across: what they see there are pads of the next row or image. */
static int64_t positions(const fac_conv_geom *g, int k) {
    const int64_t pad = g->pad[k] > g->pad_end[k] ? g->pad[k] : g->pad_end[k], all = g->in[k] + pad;
    return all > g->out[k] ? all : g->out[k];
}

static bool cut_taps(const fac_nv_grad_w *q, fac_nv_grad_w_cut *c) {
    const fac_conv_geom *g = &q->g;
    for (int k = 1; k < 3; k++)
        if (g->kernel[k] != 3 || g->stride[k] != 1 || g->dilation[k] > 4) return false;
    c->tall = positions(g, 1);
    c->broad = positions(g, 2);
    c->chunk = split(q) ? 32 : 64;
    c->stages = 4;
    c->lead = fac_gpu_parts(2 * (g->dilation[1] * c->broad + g->dilation[2]), BLOCK);
    c->ring = BLOCK * (c->lead + c->stages);
    const int64_t both = split(q) ? 2 : 1;
    const int64_t room =
        FAC_NV_GRAD_W_LOCAL - both * (c->stages * BLOCK * 128 + (c->ring + AGAIN) * c->chunk * 2);
    c->ahead = fac_nv_grad_w_halves(q)
                   ? 1
                   : (int)(room / (BLOCK * 4 * (64 + c->chunk))); /* blocks of f32 as they come */
    if (room < 0 || c->ahead < 1) return false;
    if (c->ahead > 4) c->ahead = 4;
    c->tiles_m = fac_gpu_parts(q->K, 64);
    c->tiles_n = fac_gpu_parts(q->C, c->chunk);
    return true;
}

int fac_nv_grad_w_stage(const fac_nv_grad_w *q, const fac_nv_grad_w_cut *c) {
    return (2 + c->columns / 64) * BLOCK * 128 * (split(q) ? 2 : 1);
}

static bool cut_tiles(const fac_nv_grad_w *q, fac_nv_grad_w_cut *c) {
    const fac_conv_geom *g = &q->g;
    const int64_t seen = g->R * g->S * fac_gpu_parts(q->C, 64), rows = fac_gpu_parts(q->K, 64);
    const int across = c->columns / 64, chunks = 2 + across;
    if (split(q) && across > 2) return false;
    c->maps = q->maps;
    if (c->maps) c->fillers = 64; /* a warp makes a map */
    c->tall = g->P;
    c->broad = g->Q;
    c->chunk = 64;
    const int stage = fac_nv_grad_w_stage(q, c), chunk = BLOCK * 64 * 4; /* as it comes, of f32 */
    c->stages = (FAC_NV_GRAD_W_LOCAL - (fac_nv_grad_w_halves(q) ? 0 : 5 * chunk)) / stage;
    const int most = fac_nv_grad_w_halves(q) ? 8 : 4;
    if (c->stages > most) c->stages = most;
    c->ahead = fac_nv_grad_w_halves(q) ? chunks : (FAC_NV_GRAD_W_LOCAL - c->stages * stage) / chunk;
    if (c->ahead > 8) c->ahead = 8;
    c->tiles_m = fac_gpu_parts(c->transposed ? seen : rows, 2);
    c->tiles_n = fac_gpu_parts(c->transposed ? rows : seen, across);
    return true;
}

/* Of few channels: registers of an item that fills for what is on its way, by how many groups of 8
 * warps fill and of 4 multiply. */
static const int ROOM[][4] = { { 0 }, { 0, 80, 60, 56 }, { 0, 56, 40, 32 } };
enum { MOST_STAGES = 4 };
/* Shapes of stages, the fastest first: the shortest segment, the most pixels. */
static const struct {
    int segment, pixels;
} shapes[] = { { 112, 224 }, { 64, 224 }, { 16, 224 }, { 16, 112 } };
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Stages of band rows x segment pixels of dy: what fits, and makes the whole cheapest.  A line in
 * local memory has place for all that a warp brings at once and one more; lines begin 5 banks
 * apart, so that the registers of a warp come from different ones. */
static bool cut_few(const fac_nv_grad_w *q, int kind, fac_nv_grad_w_cut *c) {
    const fac_conv_geom *g = &q->g;
    const int64_t groups = fac_gpu_parts(q->C * g->R * g->S, 64),
                  wide = fac_gpu_parts(g->Q, 16) * 16;
    const int shape = kind % SHAPES, rooms = kind < SHAPES ? 2 : 1, warps = 8 * rooms;
    double least = 0;
    if (kind >= 2 * SHAPES || (rooms == 2 && split(q))) return false;
    const int64_t shortest = shapes[shape].segment < wide ? shapes[shape].segment : wide;
    c->few = true;
    c->chunk = 64;
    c->fillers = 32 * warps;
    c->tiles_m = fac_gpu_parts(groups, 3);
    c->columns = (int)fac_gpu_parts(groups, c->tiles_m);
    c->tiles_n = fac_gpu_parts(q->K, 64);
    for (int64_t segment = shortest; segment <= shapes[shape].pixels; segment += 16)
        for (int64_t band = 1; band * segment <= shapes[shape].pixels; band++) {
            const int64_t lines =
                ((band - 1) * g->stride[1] + (g->R - 1) * g->dilation[1] + 1) * q->C;
            const int64_t loads =
                fac_gpu_parts((segment - 1) * g->stride[2] + (g->S - 1) * g->dilation[2] + 1, 32);
            const int64_t need = fac_gpu_parts(fac_gpu_parts(loads * 32, g->stride[2]) + 1, 2),
                          line = fac_gpu_parts(need - 5, 32) * 32 + 5;
            const int64_t pixels = band * segment, words = fac_nv_grad_w_halves(q) ? 4 : 8;
            const int64_t held =
                fac_gpu_parts(lines, warps) * loads + fac_gpu_parts(pixels, 4 * warps) * words;
            const int64_t bytes =
                fac_gpu_parts((pixels * 128 + lines * g->stride[2] * line * 8) * (split(q) ? 2 : 1),
                              1024) *
                1024;
            const int64_t bands = fac_gpu_parts(g->P, band),
                          segments = fac_gpu_parts(g->Q, segment);
            const double cost =
                (double)(bands * segments) * (double)(pixels * 64 + lines * loads * 64 + 1500);
            if (held > ROOM[rooms][c->columns] || FAC_NV_GRAD_W_LOCAL / bytes < 2 ||
                (least > 0 && cost >= least))
                continue;
            least = cost;
            c->band = (int)band;
            c->segment = (int)segment;
            c->line = (int)line;
            c->stages = (int)(FAC_NV_GRAD_W_LOCAL / bytes);
            c->broad = segments;
            c->tall = bands * segments;
        }
    if (c->stages > MOST_STAGES) c->stages = MOST_STAGES;
    return least > 0;
}

static void price(const fac_gpu_limits *l, const fac_nv_grad_w *q, fac_nv_grad_w_cut *c) {
    const fac_nv_grad_w_speed *v = &fac_nv_grad_w_speeds;
    const double units = l->units, element = fac_nv_grad_w_halves(q) ? 2 : 4;
    const double steps =
        (double)c->each * (c->few ? (double)(c->band * c->segment) / BLOCK : 1.0 / BLOCK);
    double macs = (c->few ? 64.0 * 64 : 128.0) * c->columns;
    if (c->taps) macs = 64.0 * 9 * c->chunk;
    const double across = c->taps  ? 64 + c->chunk
                          : c->few ? 64 + 8.0 * (double)q->C * (double)q->g.stride[2]
                                   : 128 + c->columns;
    const double loads = BLOCK * element * across;
    const double rate = fac_nv_rate(l, FAC_NV_BF16) / units *
                        (split(q)                  ? v->split / 3
                         : fac_nv_grad_w_halves(q) ? v->as_they_are
                                                   : v->rounded);
    const double unit_loads = c->taps || c->few         ? v->taps
                              : c->maps                 ? v->tiles
                              : c->columns == 64        ? v->narrow
                              : fac_nv_grad_w_halves(q) ? v->halves
                                                        : v->tiles;
    const double multiply = macs * BLOCK / rate, load = loads / unit_loads;
    const double last = c->taps || c->few ? v->end : 128.0 * 4 * c->columns / v->end_bytes;
    const int64_t groups = c->tiles_m * c->tiles_n * q->g.groups * c->splits;
    const double waves = (double)fac_gpu_parts(groups, l->units);
    const double each = multiply > load ? multiply : load,
                 pixels = (double)q->g.N * (double)(q->g.P * q->g.Q);
    const double all = (double)q->g.N * (double)(q->g.H * q->g.W),
                 taps = pixels * (double)(q->g.R * q->g.S);
    const double images =
        element * ((all < taps ? all : taps) * (double)q->g.C + pixels * (double)q->g.K);
    const double memory = images / (v->memory * fac_gpu_bandwidth(l)),
                 busy = waves * (steps + (double)c->lead) * each;
    c->seconds = v->launch + (busy > memory ? busy : memory) + waves * last;
    if (!c->joined)
        c->seconds += v->apart + 2 * (double)fac_nv_grad_w_work(q, c) / fac_gpu_bandwidth(l);
}

/* Groups of items for one or two rounds on the device. */
static bool cut(const fac_gpu_limits *l, const fac_nv_grad_w *q, int kind, int rounds,
                fac_nv_grad_w_cut *c) {
    memset(c, 0, sizeof *c);
    c->taps = !kinds[kind].columns;
    c->columns = kinds[kind].columns;
    c->transposed = kinds[kind].transposed;
    c->fillers = kinds[kind].fillers;
    if (q->few) c->taps = c->transposed = false;
    if (q->few ? rounds > 1 : c->fillers > 128 && (fac_nv_grad_w_halves(q) || split(q)))
        return false;
    if (q->few && !cut_few(q, kind, c)) return false;
    if (!q->few && !(c->taps ? cut_taps(q, c) : cut_tiles(q, c))) return false;
    const int64_t block = q->few ? 1 : BLOCK;
    c->positions = q->g.N * c->tall * (q->few ? 1 : c->broad);
    if (c->positions >= INT32_MAX / 2) return false;
    const int64_t tiles = c->tiles_m * c->tiles_n * q->g.groups,
                  most = fac_gpu_parts(c->positions, 4 * block);
    int64_t splits = rounds * (int64_t)l->units / tiles;
    splits = fac_clamp(splits, 1, most);
    c->each = fac_gpu_parts(fac_gpu_parts(c->positions, splits), block) * block;
    c->splits = fac_gpu_parts(c->positions, c->each);
    /* a tile of one tap of several writes far apart: worth a launch of its own when a group would
     * have much of it */
    const bool alone = c->splits == 1, far = !c->taps && !c->few && q->g.R * q->g.S > 1;
    c->joined = alone ? !far : tiles * c->splits <= (int64_t)l->units;
    price(l, q, c);
    return fac_nv_grad_w_work(q, c) < (size_t)1 << 31;
}

bool fac_nv_grad_w_choose(const fac_gpu_limits *l, const fac_nv_grad_w *q, int variant,
                          fac_nv_grad_w_cut *out) {
    bool found = false;
    if (variant > FAC_NV_GRAD_W_VARIANTS) return false;
    if (variant) { /* after half of them: never joined */
        const bool apart = variant > 2 * KINDS;
        variant -= apart ? 2 * KINDS : 0;
        if (!cut(l, q, (variant - 1) / 2, 1 + (variant - 1) % 2, out) ||
            (apart && (q->few || !out->joined)))
            return false;
        if (apart) out->joined = false;
        return true;
    }
    for (int kind = 0; kind < KINDS; kind++)
        for (int rounds = 1; rounds <= 2; rounds++) {
            fac_nv_grad_w_cut c;
            if (!cut(l, q, kind, rounds, &c) || (found && (q->few || c.seconds >= out->seconds)))
                continue;
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

int64_t fac_nv_grad_w_pitch(const fac_nv_grad_w *q) {
    return q->few ? fac_gpu_parts(q->C * q->g.R * q->g.S, 4) * 4 : q->C;
}

size_t fac_nv_grad_w_maps_bytes(const fac_nv_grad_w *q, const fac_nv_grad_w_cut *c) {
    return c->maps ? 128 + (size_t)(c->tiles_m * c->tiles_n * q->g.groups * c->splits) * 256 : 0;
}

size_t fac_nv_grad_w_work(const fac_nv_grad_w *q, const fac_nv_grad_w_cut *c) {
    const int64_t rows = q->few ? q->g.K : q->g.K * q->g.R * q->g.S,
                  tiles = c->tiles_m * c->tiles_n * q->g.groups;
    const bool whole = c->joined && !c->taps && !c->few; /* tiles as their items have them */
    return (size_t)(c->splits *
                    (whole ? tiles * 128 * c->columns : rows * fac_nv_grad_w_pitch(q))) *
           sizeof(float);
}

int fac_nv_grad_w_multipliers(const fac_nv_grad_w_cut *c) {
    if (c->few) return 128 * c->columns;
    return c->taps ? 384 : 256;
}

int fac_nv_grad_w_items(const fac_nv_grad_w_cut *c) {
    return fac_nv_grad_w_multipliers(c) + c->fillers;
}
