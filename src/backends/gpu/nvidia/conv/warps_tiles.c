/* How convolutions of few pixels are cut for nv_conv_warps.cl.
 *
 * By an estimate: a unit runs some groups at once, in turns; each takes a while to start and to
 * end, one wait for memory for each DEPTH k-tiles of a warp, and as long as its bytes take on their
 * way to the unit. */
#include <math.h>
#include <string.h>
#include "backends/gpu/nvidia/conv/tiles.h"
#include "backends/gpu/nvidia/speed.h"

enum { TAPS = 32, LOCAL_BYTES = 47 << 10 };

/* Pixels and channels of a tile, warps, bytes of a row of weights, k-tiles at once. */
typedef struct cut {
    int pixels, columns, warps, row, depth;
} cut;

static const cut single[] = { /* TF32, BF16, F16 */
                              { 16, 16, 8, 128, 4 },  { 16, 16, 16, 128, 2 },
                              { 16, 32, 8, 128, 3 },  { 32, 16, 8, 128, 3 },
                              { 32, 32, 8, 128, 2 },  { 64, 16, 8, 128, 2 },
                              { 16, 16, 8, 64, 4 },   { 16, 16, 16, 64, 4 },
                              { 32, 32, 4, 64, 4 },   { 32, 32, 8, 64, 4 },
                              { 32, 16, 16, 128, 2 }, { 64, 32, 4, 64, 2 },
                              { 32, 16, 4, 128, 4 },  { 0 }
};
static const cut triple[] = { /* 3XTF32 */
                              { 16, 16, 8, 64, 4 },  { 16, 16, 16, 64, 2 },
                              { 16, 32, 8, 64, 4 },  { 32, 16, 8, 64, 4 },
                              { 32, 32, 8, 64, 2 },  { 64, 16, 8, 64, 2 },
                              { 16, 16, 8, 128, 2 }, { 32, 32, 4, 64, 3 },
                              { 32, 16, 16, 64, 2 }, { 0 }
};

static const cut *cuts(const fac_nv_conv *c) { return c->mode == FAC_NV_3XTF32 ? triple : single; }

int fac_nv_warps_variants(const fac_nv_conv *c) {
    int n = 0;
    while (cuts(c)[n].pixels) n++;
    return n;
}

static bool fits(const fac_nv_conv *c, const cut *k, fac_nv_tile *t) {
    const bool x16 = c->r.dtype != FAC_F32;
    const int bytes = x16 ? 2 : 4;
    if (c->few || (c->mode == FAC_NV_BF16 && !x16)) return false;
    *t = (fac_nv_tile){ .c = { .columns = k->columns },
                        .rows = k->pixels,
                        .splits = 1,
                        .warps = k->warps,
                        .depth = k->depth,
                        .k = { .rows = k->columns,
                               .terms = k->row / bytes,
                               .mode = c->mode,
                               .order = FAC_NV_IN_ORDER } };
    return k->warps * k->pixels * k->columns * (int)sizeof(float) <= LOCAL_BYTES;
}

/* Registers of an item, about: operands on the way, sums, addresses. */
static int registers_of(const fac_nv_conv *c, const fac_nv_tile *t, int row) {
    const int loads = row / 64, parts = c->mode == FAC_NV_3XTF32 ? 2 : 1,
              most = 65536 / (32 * t->warps);
    const int all = t->depth * loads * (t->rows / 2 + parts * t->c.columns / 2) +
                    t->rows * t->c.columns / 32 + 40;
    if (!(all < most)) return most;
    return all < 255 ? all : 255;
}

static double estimate(const fac_gpu_limits *l, const fac_nv_conv *c, const fac_nv_phase *f,
                       const fac_nv_tile *t) {
    const fac_nv_warps_speed *v = &fac_nv_warps_speeds;
    const int k_tiles = fac_nv_k_tiles(c, &t->k, f),
              row = t->k.terms * (c->r.dtype == FAC_F32 ? 4 : 2);
    const double groups =
        (double)fac_gpu_parts(f->pixels, t->rows) * fac_nv_row_tiles(c, &t->k) * c->groups;
    const double each = ceil(groups / l->units),
                 waits = ceil((double)fac_gpu_parts(k_tiles, t->warps) / t->depth);
    const int by_registers = 65536 / (32 * t->warps * registers_of(c, t, row)),
              by_warps = 64 / t->warps;
    const double turns = ceil(each / (by_registers < by_warps ? by_registers : by_warps));
    const double bytes = (double)k_tiles * (t->rows * row + fac_nv_tile_bytes(&t->k));
    return v->launch + v->turn * turns + v->wait * turns * waits +
           each * (v->group + bytes / v->unit_cache);
}

static void consider(const fac_gpu_limits *l, const fac_nv_conv *c, const cut *k,
                     fac_nv_tile *best) {
    fac_nv_tile t;
    if (!fits(c, k, &t)) return;
    for (int i = 0; i < c->phases; i++) {
        const fac_nv_phase f = fac_nv_phase_of(c, i);
        if (f.taps > TAPS) return;
        if (f.pixels) t.seconds += estimate(l, c, &f, &t);
        if (fac_nv_k_tiles(c, &t.k, &f) > t.each_k) t.each_k = fac_nv_k_tiles(c, &t.k, &f);
    }
    if (!best->c.columns || t.seconds < best->seconds) *best = t;
}

bool fac_nv_warps_choose(const fac_gpu_limits *l, const fac_nv_conv *c, int variant,
                         fac_nv_tile *t) {
    const cut *all = cuts(c);
    memset(t, 0, sizeof *t);
    for (int k = 0; all[k].pixels; k++)
        if (!variant || variant == k + 1) consider(l, c, &all[k], t);
    return t->c.columns != 0;
}
