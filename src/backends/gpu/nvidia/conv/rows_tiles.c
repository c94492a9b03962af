/* How convolutions are cut for nv_conv_rows.cl: see tiles.h.
 *
 * By an estimate: rounds of tiles over the units, each as long as its products at the rate that so
 * many teams reach, or as waiting for pixels takes, and as storing its results.  Few tiles are
 * split along the sum.  The numbers were fitted to measurements on an H200: those of TF32 all
 * together, and with those of stream_tiles.c, to what choosing by estimates costs (the layers
 * of five networks at three batches and of ResNet-50's training); those of other modes to
 * ResNet-50's and VGG16's layers, each cut in all ways. */
#include <math.h>
#include <string.h>
#include "backends/gpu/nvidia/conv/tiles.h"
#include "backends/gpu/nvidia/speed.h"

enum { TAPS = 32, TAPS_FEW = 256, LOCAL_BYTES = 232448, REGISTERS = 65536, SPLITS = 32 };

static const fac_nv_conv_cut single[] = { /* TF32 */
                                          { 256, 2, 128, 4, true, 0, false, false, 1.00 },
                                          { 128, 4, 128, 6, false, 128, false, false, 0.72 },
                                          { 128, 2, 128, 5, false, 128, false, true, 0.46 },
                                          { 128, 2, 128, 6, true, 0, false, true, 0.47 },
                                          { 64, 4, 128, 6, false, 128, false, false, 0.35 },
                                          { 64, 2, 128, 4, false, 0, false, true, 0.40 },
                                          { 64, 1, 128, 5, true, 0, false, true, 0.32 },
                                          { 128, 1, 128, 5, true, 0, false, true, 0.49 },
                                          { 64, 2, 64, 4, false, 0, true, false, 0.88 },
                                          { 64, 4, 64, 4, false, 128, true, false, 0.14 },
                                          { 128, 2, 64, 4, true, 0, false, true, 0.46 },
                                          { 64, 2, 64, 4, true, 0, false, true, 0.24 },
                                          { 64, 1, 64, 4, false, 0, true, true, 0.21 },
                                          { 64, 1, 128, 4, false, 0, true, true, 0.23 },
                                          { 0 }
};
static const fac_nv_conv_cut half[] = { /* BF16, F16 */
                                        { 256, 2, 128, 4, true, 0, false, false, 0.80 },
                                        { 128, 4, 128, 6, false, 128, false, false, 0.62 },
                                        { 128, 2, 128, 5, false, 128, false, true, 0.45 },
                                        { 128, 2, 128, 6, true, 0, false, true, 0.50 },
                                        { 64, 4, 128, 6, false, 128, false, false, 0.41 },
                                        { 64, 2, 128, 4, false, 0, false, true, 0.52 },
                                        { 64, 1, 128, 5, true, 0, false, true, 0.42 },
                                        { 128, 1, 128, 5, true, 0, false, true, 0.39 },
                                        { 64, 2, 64, 4, false, 0, true, false, 0.20 },
                                        { 64, 4, 64, 4, false, 128, true, false, 0.21 },
                                        { 128, 2, 64, 4, true, 0, false, true, 0.41 },
                                        { 64, 2, 64, 4, true, 0, false, true, 0.38 },
                                        { 64, 1, 64, 4, false, 0, true, true, 0.20 },
                                        { 0 }
};
static const fac_nv_conv_cut triple[] = { /* 3XTF32 */
                                          { 128, 2, 64, 5, true, 0, false, true, 0.80 },
                                          { 128, 2, 64, 5, false, 0, false, true, 0.93 },
                                          { 64, 2, 64, 6, false, 0, false, true, 0.90 },
                                          { 64, 4, 64, 6, false, 128, false, false, 0.81 },
                                          { 64, 2, 128, 4, false, 0, false, true, 0.95 },
                                          { 64, 1, 128, 4, false, 0, false, true, 0.94 },
                                          { 64, 1, 128, 3, false, 128, false, true, 0.90 },
                                          { 64, 1, 64, 6, true, 0, false, true, 0.60 },
                                          { 64, 2, 64, 4, false, 0, true, false, 0.88 },
                                          { 64, 4, 64, 4, false, 128, true, false, 0.87 },
                                          { 64, 1, 64, 4, false, 0, true, true, 0.55 },
                                          { 64, 1, 128, 3, false, 0, true, true, 0.55 },
                                          { 0 }
};

static const fac_nv_conv_cut *cuts(const fac_nv_conv *c) {
    if (c->mode == FAC_NV_3XTF32) return triple;
    return fac_nv_is_half(c->mode) ? half : single;
}

int fac_nv_tile_variants(const fac_nv_conv *c) {
    int n = 0;
    while (cuts(c)[n].columns) n++;
    return n;
}

/* Registers of an item, about: sums (twice when promoted), operands, addresses. */
static int registers_of(const fac_nv_tile *t, const fac_nv_conv *c) {
    const int raw = t->k.terms / 2, made = t->c.ahead ? 2 : 1,
              low = c->mode == FAC_NV_3XTF32 ? 2 : 1;
    const int all = t->c.columns / 2 * (t->promote ? 2 : 1) + 2 * raw + made * low * raw + 40;
    return t->c.registers && all > t->c.registers ? t->c.registers : all;
}

/* How many groups a unit has room for. */
static int room_for(const fac_nv_tile *t, const fac_nv_conv *c) {
    const int items = 128 * t->c.teams, local = t->c.stages * fac_nv_tile_bytes(&t->k) + 2048;
    const int by_registers = REGISTERS / (items * ((registers_of(t, c) + 7) / 8 * 8));
    const int n = by_registers < LOCAL_BYTES / local ? by_registers : LOCAL_BYTES / local;
    if (n < 1) return 1;
    return n * items > 2048 ? 2048 / items : n;
}

/* Extras that differ between pixels; bits are few bytes. */
static int images_read(const fac_nv_conv *c) {
    int n = 0;
    for (int i = 0; i < c->r.extras; i++) {
        const fac_nv_place *p = &c->ends.p[1 + i];
        n += (p->image | p->depth | p->row | p->column) != 0 && c->r.extra_dtype[i] != FAC_U8;
    }
    return n;
}

/* Seconds of one phase in so many splits. */
static double estimate(const fac_gpu_limits *l, const fac_nv_conv *c, const fac_nv_phase *f,
                       int splits, const fac_nv_tile *t) {
    const bool tf32 = c->mode == FAC_NV_TF32;
    const fac_nv_tile_speed *of = tf32 ? &fac_nv_tile_tf32 : &fac_nv_tile_others;
    const int rows = 64 * t->c.teams, k_tiles = fac_nv_k_tiles(c, &t->k, f), room = room_for(t, c);
    const double tiles = (double)fac_gpu_parts(f->pixels, rows) * fac_nv_row_tiles(c, &t->k) *
                         c->groups,
                 units = l->units;
    const double each_k = (double)fac_gpu_parts(k_tiles, splits),
                 count = tiles * (k_tiles ? ceil(k_tiles / each_k) : 1);
    const double full = (double)fac_gpu_parts((int64_t)count, (int64_t)units),
                 at_once = full < room ? full : room;
    const double teams = at_once * t->c.teams, busy = teams >= 4   ? 1
                                                      : teams >= 3 ? of->three
                                                      : teams >= 2 ? of->two
                                                                   : of->one;
    const double rate =
        fac_nv_rate(l, c->mode) / units * t->c.share * busy * (t->promote ? 0.86 : 1);
    const double product = (double)rows * t->c.columns * t->k.terms / rate;
    const double tap = f->taps < 2 ? of->one_tap : of->taps;
    const double wait = tap * (t->c.ahead ? of->ahead : 1) / at_once;
    const int stored = c->rows < t->c.columns ? c->rows : t->c.columns;
    const double stores = (double)rows * stored * (c->r.result == FAC_F32 ? 4 : 2),
                 end =
                     stores * (1 + of->images * images_read(c) + of->sums * c->sums) / of->results;
    /* units get out of step in time, so that the last round is not full */
    const double rounds =
        full < 3 || full < count / units + of->apart ? full : count / units + of->apart;
    double seconds =
        rounds * (each_k * fac_nv_both(product, wait, of->power) + end + of->start / at_once);
    if (splits > 1)
        seconds += fac_nv_speeds.split_launch +
                   8.0 * count * rows * t->c.columns / fac_nv_speeds.split_memory;
    return seconds;
}

static bool fits(const fac_nv_conv *c, const fac_nv_conv_cut *k, fac_nv_tile *t) {
    const int bytes = fac_nv_is_half(c->mode) ? 2 : 4;
    const int most = k->row / bytes;
    const int least = fac_nv_is_half(c->mode) ? 32 : 16;
    t->c = *k;
    if (k->few != c->few || (k->columns > 64 && c->rows <= k->columns / 2)) return false;
    t->k = (fac_nv_packing){
        .rows = k->columns, .terms = most, .mode = c->mode, .few = c->few, .order = FAC_NV_BY_FOURS
    };
    if (c->few) return true;
    if (c->r.dtype != FAC_F32) t->k.order = FAC_NV_BY_EIGHTS;
    if (c->r.dtype == FAC_F32 && fac_nv_is_half(c->mode))
        t->k.terms = 32; /* more would not fit the registers */
    if (fac_gpu_parts(c->channels, least) * least <
        fac_gpu_parts(c->channels, t->k.terms) * t->k.terms)
        t->k.terms = least;
    return t->c.stages * fac_nv_tile_bytes(&t->k) + 2048 <= LOCAL_BYTES;
}

static void consider(const fac_gpu_limits *l, const fac_nv_conv *c, const fac_nv_conv_cut *k,
                     fac_nv_tile *best) {
    fac_nv_tile t = { 0 };
    double most = -1;
    fac_nv_phase heavy = { 0 };
    if (!fits(c, k, &t)) return;
    for (int i = 0; i < c->phases; i++) {
        const fac_nv_phase f = fac_nv_phase_of(c, i);
        const double work = (double)f.pixels * (1 + f.taps);
        if (f.taps > (c->few ? TAPS_FEW : TAPS)) return;
        if (work > most) {
            most = work;
            heavy = f;
        }
    }
    if (c->mode == FAC_NV_3XTF32 &&
        (double)heavy.taps * (c->few ? FAC_NV_FEW : c->channels) >= c->promote_from)
        t.promote = FAC_NV_PROMOTE_TERMS / t.k.terms;
    const int k_tiles = fac_nv_k_tiles(c, &t.k, &heavy);
    for (int splits = 1; splits <= (k->split && c->phases == 1 ? SPLITS : 1);
         splits += splits < 8    ? 1
                   : splits < 16 ? 2
                                 : 4) {
        if (splits > 1 && k_tiles < 4 * splits) break;
        double seconds = 0;
        for (int i = 0; i < c->phases; i++) {
            const fac_nv_phase f = fac_nv_phase_of(c, i);
            if (f.pixels) seconds += estimate(l, c, &f, splits, &t);
        }
        t.seconds = seconds;
        t.each_k = k_tiles ? (int)fac_gpu_parts(k_tiles, splits) : 1;
        t.splits = k_tiles ? (int)fac_gpu_parts(k_tiles, t.each_k) : 1;
        if (c->mode == FAC_NV_3XTF32)
            t.k.run = t.promote ? FAC_NV_PROMOTE_TERMS : t.each_k * t.k.terms;
        if (!best->c.columns || t.seconds < best->seconds) *best = t;
    }
}

bool fac_nv_tile_choose(const fac_gpu_limits *l, const fac_nv_conv *c, int variant,
                        fac_nv_tile *t) {
    const fac_nv_conv_cut *all = cuts(c);
    memset(t, 0, sizeof *t);
    for (int k = 0; all[k].columns; k++)
        if (!variant || variant == k + 1) consider(l, c, &all[k], t);
    return t->c.columns != 0;
}

size_t fac_nv_tile_work(const fac_nv_conv *c, const fac_nv_tile *t) {
    const fac_nv_phase f = fac_nv_phase_of(c, 0);
    const int64_t rows = fac_nv_tile_rows(t),
                  tiles = fac_gpu_parts(f.pixels, rows) * c->groups * fac_nv_row_tiles(c, &t->k);
    return t->splits < 2 ? 0 : (size_t)(tiles * t->splits * rows * t->c.columns) * sizeof(float);
}
