/* Which tile conv/wgmma_stream takes: estimates by what a unit must do for each tile, and how
 * evenly tiles go round.  The numbers were fitted to measurements on an H200, together with those
 * of rows_tiles.c. */
#include <math.h>
#include "backends/gpu/nvidia/conv/stream.h"
#include "backends/gpu/nvidia/speed.h"

/* Consumers, those of a team, blocks of 64 rows, channels, places for results, halo.  Where memory
 * is what limits, the first of them is taken: it keeps most on the way. */
static const fac_nv_stream_tile tiles[] = {
    { 2, 1, 1, 128, 2, false, 0, 0, 0 }, { 3, 1, 1, 128, 1, false, 0, 0, 0 },
    { 2, 2, 1, 128, 1, false, 0, 0, 0 }, { 2, 1, 1, 256, 1, false, 0, 0, 0 },
    { 3, 3, 1, 128, 1, false, 0, 0, 0 }, { 2, 1, 2, 128, 1, false, 0, 0, 0 },
    { 2, 1, 2, 64, 1, false, 0, 0, 0 },  { 2, 1, 1, 128, 0, false, 0, 0, 0 },
    { 2, 2, 1, 128, 0, false, 0, 0, 0 }, { 2, 2, 1, 256, 0, false, 0, 0, 0 },
    { 2, 1, 1, 256, 0, false, 0, 0, 0 }, { 3, 3, 1, 64, 0, false, 0, 0, 0 },
    { 2, 2, 1, 64, 0, false, 0, 0, 0 },  { 2, 2, 1, 128, 0, true, 0, 0, 0 },
    { 2, 2, 1, 256, 0, true, 0, 0, 0 },  { 3, 3, 1, 128, 0, true, 0, 0, 0 },
    { 2, 1, 1, 256, 0, true, 0, 0, 0 },  { 2, 1, 2, 128, 0, true, 0, 0, 0 },
    { 2, 2, 2, 64, 0, true, 0, 0, 0 },   { 3, 3, 1, 64, 0, true, 0, 0, 0 },
    { 2, 2, 2, 64, 1, true, 0, 0, 0 },   { 3, 3, 1, 128, 0, false, 0, 0, 0 },
};
enum { TILES = sizeof tiles / sizeof *tiles, MOST_STAGES = 8, STEP = 128 };

static int parts(const fac_nv_stream *q) { return q->c.mode == FAC_NV_3XTF32 ? 2 : 1; }

static const fac_nv_stream_speed *numbers_of(const fac_nv_stream *q) {
    return q->maps ? &fac_nv_stream_mapped : &fac_nv_stream_copied;
}

int fac_nv_stream_variants(void) { return TILES; }

size_t fac_nv_stream_local(const fac_nv_stream *q, const fac_nv_stream_tile *t) {
    const size_t stages = (size_t)((t->sa * t->a_rows + t->sb * t->bn) * parts(q)) * STEP,
                 results =
                     (size_t)(64 * t->rows * t->consumers * t->slots * (t->bn + 16) * q->bytes),
                 moments =
                     q->c.moments ? sizeof(float) * (size_t)(t->consumers * (8 * t->bn + 4)) : 0;
    const int places = q->maps ? 128 / 8 : t->a_rows;
    return stages + results + moments + 1024 +
           8 * (size_t)(places + 2 * (t->sa + t->sb + t->consumers * t->slots) + t->consumers);
}

/* As many stages as there is room for.  With a halo one of A lasts for all taps, else both rings go
 * round together. */
static bool settle(const fac_nv_stream *q, const fac_nv_phase *f, fac_nv_stream_tile *t) {
    int best = 0;
    t->a_rows = fac_nv_stream_rows(t) + (q->c.pooled ? fac_nv_stream_rows(t) + 8
                                         : t->halo   ? 2 * (f->axis[2].out + 2)
                                                     : 0);
    t->a_rows = (t->a_rows + 7) / 8 * 8;
    fac_nv_stream_tile with = *t;
    for (with.sa = 2; with.sa <= MOST_STAGES; with.sa++)
        for (with.sb = 2; with.sb <= MOST_STAGES; with.sb++) {
            const int lasts = t->halo ? 9 * with.sa : with.sa,
                      depth = with.sb < lasts ? with.sb : lasts,
                      score = 10 * depth + (t->halo && with.sa > 3 ? 3 : with.sa);
            if (fac_nv_stream_local(q, &with) <= FAC_NV_STREAM_LOCAL && score > best) {
                best = score;
                *t = with;
            }
        }
    return best > 0;
}

/* Clocks of a unit for one step of a tile: multiplying, reading and filling local memory (128 bytes
 * a clock, of which teams read some together), the way from the second cache, which is shared by
 * the steps whose stages are on it, and rows of A, which two warps copy one after the other, or the
 * copy engine by a map.  Three products read three times, and low parts are written from what is
 * read. */
static double step_clocks(const fac_nv_stream *q, const fac_nv_stream_tile *t, int taps) {
    static const double unshared = 0.97, unhidden = 1.25;
    const fac_nv_stream_speed *of = numbers_of(q);
    const bool three = parts(q) == 2;
    const double rows = (double)t->a_rows / (t->halo ? taps : 1), a = rows * STEP,
                 b = (double)t->bn * STEP * parts(q);
    const double blocks = t->rows * t->team, stages = t->halo || t->sb < t->sa ? t->sb : t->sa;
    const double products = (three ? 3 : 1) * blocks * t->bn * 2,
                 local = ((three ? 3 : 1) * blocks * 4 * (2048 + 32 * t->bn) + a + b +
                          (three ? 2 * a : 0)) /
                         128;
    double clocks = fac_nv_both(products, of->together * local, of->steps);
    clocks = fac_nv_both(clocks, of->way / (stages - unshared), of->steps);
    return fac_nv_both(clocks, rows * of->row, of->steps) * (three ? unhidden : 1);
}

/* What tiles with a halo took on an H200, against the sum of their parts.  Pooled ones finish in
 * registers of two lanes. */
static double measured(const fac_nv_stream *q, const fac_nv_stream_tile *t) {
    const bool shared = t->consumers == t->team;
    if (!t->halo) return 1;
    if (q->c.pooled && t->bn == 64) return shared ? 1.2 : 1.15;
    if (q->c.pooled) return shared ? 1 : 0.93;
    if (t->bn == 64) return t->consumers == 3 || t->slots ? 1.2 : 1.1;
    if (shared) return 0.91;
    return t->bn == 256 ? 0.91 : 0.9;
}

/* Clocks for each byte of results on the way out.  Directly, wide tiles have few registers left for
 * what they read meanwhile, and for moments; staged, the operands of a norm do not come that way.
 */
static double end_clocks(const fac_nv_stream *q, const fac_nv_stream_tile *t) {
    const bool wide = t->rows * t->bn >= 256;
    const fac_nv_stream_speed *of = numbers_of(q);
    if (t->slots) return (1 + of->staged_moving * q->moving + 0.47 * q->c.sums) / of->staged;
    return (1 + of->moving * q->moving * (wide ? of->wide : 1) +
            of->sums * q->c.sums * (t->bn >= 128 ? of->wide_sums : 1) +
            (wide && q->c.moments ? of->wide_moments : 0)) /
           of->direct;
}

/* joined: other phases follow in the same launch. */
static double phase_clocks(const fac_gpu_limits *l, const fac_nv_stream *q,
                           const fac_nv_stream_tile *t, const fac_nv_phase *f, bool joined) {
    const fac_nv_stream_speed *of = numbers_of(q);
    const fac_nv_stream_places places = fac_nv_stream_places_of(q, t, f);
    const double count = ceil((double)places.all / places.tile) * ceil((double)q->c.rows / t->bn),
                 units = l->units;
    const double steps = (double)fac_nv_stream_blocks(q) * f->taps;
    const double multiply = steps * step_clocks(q, t, f->taps) * measured(q, t);
    const double results = (double)fac_nv_stream_rows(t) / (q->c.pooled ? 4 : 1) * t->bn * q->bytes;
    const double finish = results * end_clocks(q, t) + of->finish;
    const double rounds = joined ? count / units : ceil(count / units),
                 teams = t->consumers / t->team;
    /* with two teams one finishes while the other one multiplies; the last to come is not hidden */
    if (teams > 1)
        return fac_nv_both(rounds * multiply, rounds / teams * (multiply + finish), of->teams) +
               (joined ? 0 : finish);
    return rounds * (multiply + (t->slots ? of->unhidden * finish : finish));
}

/* Seconds that moments take: joined by the last group, or by a launch of their own. */
static double moments_seconds(const fac_nv_stream *q, const fac_nv_stream_tile *t) {
    const fac_nv_stream_speed *of = numbers_of(q);
    if (!q->c.moments || q->kept) return q->c.moments ? fac_nv_speeds.kept_moments : 0;
    double bytes = 0;
    for (int i = 0; i < q->c.phases; i++) {
        const fac_nv_phase f = fac_nv_phase_of(&q->c, i);
        bytes += (double)fac_nv_stream_places_of(q, t, &f).all / FAC_NV_PART_ROWS * q->c.rows * 2 *
                 sizeof(float);
    }
    return of->joining + bytes / of->moments;
}

static double seconds_of(const fac_gpu_limits *l, const fac_nv_stream *q,
                         const fac_nv_stream_tile *t, double bytes) {
    const fac_nv_stream_speed *of = numbers_of(q);
    double seconds = moments_seconds(q, t);
    for (int i = 0; i < q->c.phases; i++) {
        const fac_nv_phase f = fac_nv_phase_of(&q->c, i);
        seconds += fac_nv_both(phase_clocks(l, q, t, &f, q->joined && i > 0) / fac_nv_speeds.clock,
                               bytes / q->c.phases / of->bandwidth, of->all);
    }
    return seconds + fac_nv_stream_launches(q) * of->launch;
}

bool fac_nv_stream_choose(const fac_gpu_limits *l, int variant, double bytes, fac_nv_stream *q) {
    const fac_nv_phase f = fac_nv_phase_of(&q->c, 0);
    bool found = false;
    int count = TILES;
    const fac_nv_stream_tile *all = q->c.pooled ? fac_nv_stream_pool_tiles(&count) : tiles;
    for (int i = 0; i < count; i++) {
        fac_nv_stream_tile t = all[i];
        if ((variant && variant != i + 1) || (t.bn > 64 && t.bn / 2 >= q->c.rows)) continue;
        /* two sets of sums: registers for so much */
        if (parts(q) == 2 && (t.rows * t.bn > 128 || (t.consumers == 3 && t.bn > 64) ||
                              (t.rows == 2 && t.team == 1)))
            continue;
        if (q->c.sums && t.rows * t.bn > 128) continue; /* so do the operands of a norm */
        /* four groups of warps have 128 registers each: no room for operands of pixels beside so
         * many sums */
        if (t.consumers == 3 && t.bn > 64 && !t.slots && !t.halo && (q->moving || q->c.sums))
            continue;
        if ((t.halo && !q->halo) || (t.slots && (!q->rows16 || q->moving != !!q->added))) continue;
        if (!settle(q, &f, &t)) continue;
        fac_nv_stream with = *q;
        with.t = t;
        with.kept = fac_nv_stream_keeps(l, &with);
        with.seconds = seconds_of(l, &with, &t, bytes);
        if (!found || with.seconds < q->seconds) {
            *q = with;
            found = true;
        }
    }
    q->packing.rows = q->t.bn;
    return found;
}
