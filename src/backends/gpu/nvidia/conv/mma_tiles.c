/* How convolutions are cut for nv_mma_conv.cl.
 *
 * By an estimate as that of rows_tiles.c: rounds of tiles over the units, each as long as its
 * products or as its copies take, and as storing its results.  Stages are as many as local memory
 * has room for. */
#include <math.h>
#include <string.h>
#include "backends/gpu/nvidia/conv/tiles.h"
#include "backends/gpu/nvidia/speed.h"

enum { TAPS = 32, TAPS_FEW = 256, SPLITS = 32, LEAST_STAGES = 2 };

/* Rows and columns of a tile and of a warp, bytes of a row of weights, most stages, for few
 * channels, registers of an item, share of the rate that it reaches on large problems. */
typedef struct cut {
    int rows, columns, warp_rows, warp_columns, row, stages;
    bool few;
    int registers;
    double share;
} cut;

static const cut single[] = { /* TF32 */
                              { 128, 128, 64, 64, 128, 3, false, 230, 0.95 },
                              { 128, 128, 64, 32, 128, 3, false, 128, 0.76 },
                              { 256, 128, 64, 64, 128, 3, false, 230, 0.76 },
                              { 128, 128, 64, 64, 64, 3, false, 230, 0.72 },
                              { 128, 64, 64, 32, 128, 3, false, 128, 0.66 },
                              { 64, 64, 32, 32, 128, 3, false, 96, 0.55 },
                              { 64, 128, 32, 64, 128, 3, false, 128, 0.73 },
                              { 64, 128, 32, 64, 64, 4, false, 128, 0.62 },
                              { 128, 64, 64, 32, 64, 3, true, 128, 0.43 },
                              { 0 }
};
static const cut half[] = { /* BF16, F16 */
                            { 128, 128, 64, 64, 128, 3, false, 230, 0.70 },
                            { 128, 128, 64, 32, 128, 3, false, 128, 0.60 },
                            { 256, 128, 64, 64, 128, 3, false, 230, 0.56 },
                            { 128, 128, 64, 64, 64, 3, false, 230, 0.50 },
                            { 128, 64, 64, 32, 128, 3, false, 128, 0.52 },
                            { 64, 64, 32, 32, 128, 3, false, 96, 0.43 },
                            { 64, 128, 32, 64, 128, 3, false, 128, 0.53 },
                            { 64, 128, 32, 64, 64, 4, false, 128, 0.50 },
                            { 128, 64, 64, 32, 64, 3, true, 128, 0.25 },
                            { 0 }
};
static const cut triple[] = { /* 3XTF32 */
                              { 128, 128, 64, 32, 64, 3, false, 170, 0.74 },
                              { 128, 64, 64, 32, 64, 3, false, 168, 0.81 },
                              { 128, 64, 32, 32, 64, 3, false, 130, 0.73 },
                              { 64, 64, 32, 32, 64, 4, false, 130, 0.70 },
                              { 64, 128, 32, 64, 64, 3, false, 166, 0.84 },
                              { 64, 64, 32, 32, 128, 3, false, 130, 0.76 },
                              { 128, 64, 64, 32, 64, 3, true, 168, 0.79 },
                              { 0 }
};

static const cut *cuts(const fac_nv_conv *c) {
    if (c->mode == FAC_NV_3XTF32) return triple;
    return fac_nv_is_half(c->mode) ? half : single;
}
/* f32 stays f32 in local memory, a first layer's few channels become it. */
static bool is_float(const fac_nv_conv *c) { return c->few || c->r.dtype == FAC_F32; }

int fac_mma_conv_variants(const fac_nv_conv *c) {
    int n = 0;
    while (cuts(c)[n].rows) n++;
    return n;
}

fac_mma_tile fac_mma_conv_tile(const fac_nv_conv *c, const fac_nv_tile *t) {
    const int row = t->k.terms * (fac_nv_is_half(c->mode) ? 2 : 4);
    return (fac_mma_tile){ .rows = 64 * t->c.teams,
                           .columns = t->c.columns,
                           .warp_rows = t->warp_rows,
                           .warp_columns = t->warp_columns,
                           .a_row = t->k.terms * (is_float(c) ? 4 : 2),
                           .b_row = row,
                           .mode = c->mode,
                           .a_floats = is_float(c) && fac_nv_is_half(c->mode),
                           .round_a = false };
}

static bool fits(const fac_mma_unit *u, const fac_nv_conv *c, const cut *k, fac_nv_tile *t) {
    const int bytes = fac_nv_is_half(c->mode) ? 2 : 4, least = 64 / bytes;
    if (k->few != c->few || (k->columns > 64 && c->rows <= k->columns / 2)) return false;
    *t = (fac_nv_tile){ .c = { .columns = k->columns,
                               .teams = k->rows / 64,
                               .row = k->row,
                               .few = k->few,
                               .split = true,
                               .share = k->share },
                        .warp_rows = k->warp_rows,
                        .warp_columns = k->warp_columns };
    const bool whole = c->mode == FAC_NV_3XTF32;
    t->k = (fac_nv_packing){ .rows = k->columns,
                             .terms = k->row / bytes,
                             .mode = whole ? FAC_NV_TF32 : c->mode,
                             .few = c->few,
                             .whole = whole,
                             .order = is_float(c) && fac_nv_is_half(c->mode) ? FAC_NV_BY_FOURS
                                                                             : FAC_NV_IN_ORDER };
    if (is_float(c) && fac_nv_is_half(c->mode))
        t->k.terms = least; /* rows of pixels are twice as long */
    if (!c->few && fac_gpu_parts(c->channels, least) * least <
                       fac_gpu_parts(c->channels, t->k.terms) * t->k.terms)
        t->k.terms = least;
    const fac_mma_tile m = fac_mma_conv_tile(c, t);
    const size_t fixed = c->few ? sizeof(int32_t[4]) * TAPS_FEW : 0;
    const size_t each = (size_t)(k->rows * m.a_row + fac_nv_tile_bytes(&t->k)),
                 most = u->local - fixed;
    t->c.stages = most / each < (size_t)k->stages ? (int)(most / each) : k->stages;
    t->at_once =
        fac_mma_room(u, fac_mma_items(&m), (size_t)t->c.stages * each + fixed, k->registers);
    return t->c.stages >= LEAST_STAGES && t->at_once;
}

/* Seconds of one phase in so many splits. */
static double estimate(const fac_mma_unit *u, const fac_nv_conv *c, const fac_nv_phase *f,
                       int splits, const fac_nv_tile *t) {
    const fac_mma_conv_speed *v = &fac_mma_conv_speeds;
    const fac_mma_tile m = fac_mma_conv_tile(c, t);
    const int k_tiles = fac_nv_k_tiles(c, &t->k, f);
    const double tiles =
        (double)fac_gpu_parts(f->pixels, m.rows) * fac_nv_row_tiles(c, &t->k) * c->groups;
    const double units = u->units;
    const double each_k = (double)fac_gpu_parts(k_tiles, splits),
                 count = tiles * (k_tiles ? ceil(k_tiles / each_k) : 1);
    const double full = ceil(count / units), at_once = full < t->at_once ? full : t->at_once;
    const double warps = at_once * fac_mma_items(&m) / 32, busy = warps >= 8   ? 1
                                                                  : warps >= 4 ? v->some
                                                                               : v->few;
    const double rate =
        fac_mma_rate(u, c->mode) / units * t->c.share * busy * (t->c.stages < 3 ? v->shallow : 1);
    const double product = (double)m.rows * m.columns * t->k.terms / rate, wait = v->wait / at_once;
    const int stored = c->rows < m.columns ? c->rows : m.columns;
    const double end = (double)m.rows * stored * (c->r.result == FAC_F32 ? 4 : 2) *
                       (1 + c->r.extras - c->r.biased) / v->results;
    const double rounds =
        full < 3 || full < count / units + v->apart ? full : count / units + v->apart;
    double seconds =
        rounds * (each_k * (product > wait ? product : wait) + end + v->tile / at_once);
    if (splits > 1)
        seconds += fac_nv_speeds.split_launch +
                   8.0 * count * m.rows * m.columns / fac_nv_speeds.split_memory;
    return seconds;
}

/* The next number of splits that is tried. */
static int more_than(int splits) {
    if (splits < 8) return splits + 1;
    return splits + (splits < 16 ? 2 : 4);
}

static void consider(const fac_mma_unit *u, const fac_nv_conv *c, const cut *k, fac_nv_tile *best) {
    fac_nv_tile t;
    double most = -1;
    fac_nv_phase heavy = { 0 };
    if (!fits(u, c, k, &t)) return;
    for (int i = 0; i < c->phases; i++) {
        const fac_nv_phase f = fac_nv_phase_of(c, i);
        const double work = (double)f.pixels * (1 + f.taps);
        if (f.taps > (c->few ? TAPS_FEW : TAPS)) return;
        if (work > most) {
            most = work;
            heavy = f;
        }
    }
    const int k_tiles = fac_nv_k_tiles(c, &t.k, &heavy);
    const int limit = c->phases == 1 ? SPLITS : 1;
    for (int splits = 1; splits <= limit; splits = more_than(splits)) {
        if (splits > 1 && k_tiles < 4 * splits) break;
        t.seconds = 0;
        for (int i = 0; i < c->phases; i++) {
            const fac_nv_phase f = fac_nv_phase_of(c, i);
            if (f.pixels) t.seconds += estimate(u, c, &f, splits, &t);
        }
        t.each_k = k_tiles ? (int)fac_gpu_parts(k_tiles, splits) : 1;
        t.splits = k_tiles ? (int)fac_gpu_parts(k_tiles, t.each_k) : 1;
        if (!best->c.columns || t.seconds < best->seconds) *best = t;
    }
}

bool fac_mma_conv_choose(const fac_mma_unit *u, const fac_nv_conv *c, int variant, fac_nv_tile *t) {
    const cut *all = cuts(c);
    memset(t, 0, sizeof *t);
    for (int k = 0; all[k].rows; k++)
        if (!variant || variant == k + 1) consider(u, c, &all[k], t);
    return t->c.columns != 0;
}
