/* Tiles for a product: sizes that obey limits, alignment and SRAM, and what they cost.
 *
 * The model.  A dim of size D in tiles of `step` has ceil(D / step) of them; the unit spends
 * ceil(tile / granule) granules on each, so its work is the product of three sums over dims.  A
 * tile of A passes the border of the SRAM once for each column of tiles, one of B once for each
 * row, one of the result once; with all of K in one tile the larger operand stays where it is
 * through the inner loop.  Partial results that are added afterwards are written and read once
 * more.
 *
 *   seconds = max(work / rate, bytes / bandwidth) + tiles x overhead */
#include <math.h>
#include "base/error.h"
#include "rewrite/tile.h"

/* ---- what has to be obeyed ---- */

static const char dim_names[] = "mnk";
static const int64_t LARGEST =
    (int64_t)1 << 40; /* no limit at all; sizes rounded up to it still fit in 62 bits */

static fac_status check_dim(int i, int64_t limit, int64_t align, fac_error *err) {
    if (limit < 0 || align < 0)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "%c: a limit of %lld aligned to %lld: both are 1 or more, 0 for none",
                         dim_names[i], (long long)limit, (long long)align);
    if (limit && align > limit)
        return fac_raise(err, FAC_E_ARGUMENT, "%c: nothing up to %lld is a multiple of %lld",
                         dim_names[i], (long long)limit, (long long)align);
    return FAC_OK;
}

fac_status fac_tile_unit_of(const fac_tile_opts *o, fac_tile_unit *to, fac_error *err) {
    static const fac_tile_target none = { 0 };
    const fac_tile_target *t = o->target ? o->target : &none;
    const int64_t own[3] = { o->m, o->n, o->k }, its[3] = { t->m, t->n, t->k };
    fac_tile_unit u = { .align = { t->align_m, t->align_n, t->align_k },
                        .pad = o->pad,
                        .best = o->best,
                        .sum = o->sum,
                        .target = t };
    bool any = t->sram_bytes > 0;
    for (int i = 0; i < 3; i++) {
        u.limit[i] = own[i] ? own[i] : its[i];
        FAC_TRY(check_dim(i, u.limit[i], u.align[i], err));
        if (u.limit[i] > LARGEST) u.limit[i] = LARGEST;
        if (u.align[i] > LARGEST) u.align[i] = LARGEST;
        if (u.align[i]) u.limit[i] -= u.limit[i] % u.align[i];
        u.granule[i] = u.limit[i] ? u.limit[i] : 1;
        if (u.align[i]) u.granule[i] = u.align[i];
        any |= u.limit[i] > 0;
    }
    if (!any)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "tiles without any limit: give one of m, n, k, or the bytes of an SRAM");
    if (o->mode == FAC_TILE_LOOP && o->sum != FAC_TILE_CHAIN)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "loops add up along K as a chain: no tree, and no sum of all");
    if (t->sram_bytes < 0 || t->macs_per_second < 0 || t->bytes_per_second < 0 || t->overhead < 0)
        return fac_raise(err, FAC_E_ARGUMENT, "a target with a size, rate or time below zero");
    if (o->best && !(t->macs_per_second > 0 || t->bytes_per_second > 0))
        return fac_raise(
            err, FAC_E_ARGUMENT,
            "the best tiles are those of the least time: that needs a target with rates");
    *to = u;
    return FAC_OK;
}

int64_t fac_tile_times(int64_t a, int64_t b) {
    int64_t y;
    return __builtin_mul_overflow(a, b, &y) ? INT64_MAX : y;
}

/* ---- one dim ---- */

static int64_t up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

fac_tile_line fac_tile_line_of(const fac_tile_shape *s, int64_t size, int dim) {
    const int64_t step = s->step[dim], align = s->pad && s->align ? s->align[dim] : 0;
    const int64_t count = step ? (size + step - 1) / step : 0;
    return (fac_tile_line){ size, step, count, align, s->pad && (align > 1 || count > 1) };
}

int64_t fac_tile_length(const fac_tile_line *c, int64_t i) {
    const int64_t rest = c->size - i * c->step,
                  own = rest < c->step && !(c->pad && !c->align) ? rest : c->step;
    return c->pad && c->align ? up(own, c->align) : own;
}

bool fac_tile_fits(const fac_tile_unit *u, const fac_tile_shape *s, const int64_t d[3]) {
    for (int i = 0; i < 3; i++)
        if (s->step[i] < d[i] || (u->pad && u->align[i] && d[i] % u->align[i])) return false;
    return true;
}

/* Sums over the tiles of a dim: of their sizes, and of what the unit spends on them; how many are
 * no multiple of `align`. */
typedef struct totals {
    int64_t sizes, spent, odd;
} totals;

static totals add_line(const fac_tile_line *c, int64_t granule, int64_t align) {
    if (!c->count) return (totals){ 0, 0, 0 };
    const int64_t last = fac_tile_length(c, c->count - 1);
    const int64_t odd =
        align > 1 ? (c->count - 1) * (c->step % align != 0) + (last % align != 0) : 0;
    return (totals){ (c->count - 1) * c->step + last,
                     (c->count - 1) * up(c->step, granule) + up(last, granule), odd };
}

/* ---- costs ---- */

static double element(const fac_tile_unit *u, fac_dtype dtype) {
    const double own = u->target->bytes[dtype];
    return own > 0 ? own : fac_dtype_get(dtype)->block_bytes;
}

static double result_bytes(const fac_tile_unit *u, fac_dtype dtype) {
    return u->target->accumulator ? fac_dtype_get(u->target->accumulator)->block_bytes
                                  : element(u, dtype);
}

static double sram_of(const fac_tile_unit *u, const int64_t t[3], fac_dtype dtype) {
    const double m = (double)t[0], n = (double)t[1], k = (double)t[2],
                 times = u->target->double_buffer ? 2 : 1;
    return times * element(u, dtype) * (m * k + k * n) + result_bytes(u, dtype) * m * n;
}

/* Bytes of operands and results of one product. */
static double traffic_of(const fac_tile_unit *u, const fac_tile_line line[3], const totals sum[3],
                         fac_dtype dtype) {
    const double size[3] = { (double)sum[0].sizes, (double)sum[1].sizes, (double)sum[2].sizes };
    const double a = size[0] * size[2], b = size[2] * size[1], c = size[0] * size[1];
    double a_times = (double)line[1].count, b_times = (double)line[0].count;
    if (line[2].count == 1 && a * (a_times - 1) > b * (b_times - 1))
        a_times = 1;
    else if (line[2].count == 1)
        b_times = 1;
    const double partial = u->sum == FAC_TILE_CHAIN ? 0 : 2 * (double)(line[2].count - 1);
    return element(u, dtype) * (a * a_times + b * b_times + c) +
           result_bytes(u, dtype) * c * partial;
}

static void time_of(const fac_tile_unit *u, fac_tile_row *row) {
    const fac_tile_target *t = u->target;
    row->compute = t->macs_per_second > 0 ? row->work / t->macs_per_second : 0;
    row->traffic = t->bytes_per_second > 0 ? row->bytes / t->bytes_per_second : 0;
    row->overhead = t->overhead * (double)row->tiles;
    row->seconds = fmax(row->compute, row->traffic) + row->overhead;
    row->bound = row->seconds <= 0                                  ? NULL
                 : row->overhead > fmax(row->compute, row->traffic) ? "overhead"
                 : row->compute >= row->traffic                     ? "compute"
                                                                    : "memory";
}

void fac_tile_cost(const fac_tile_unit *u, const fac_tile_shape *s, fac_tile_row *row) {
    const int64_t size[3] = { row->m, row->n, row->k };
    fac_tile_line line[3];
    totals sum[3];
    int64_t tiles = 1, even = 1;
    double work = 1;
    for (int i = 0; i < 3; i++) {
        line[i] = fac_tile_line_of(s, size[i], i);
        sum[i] = add_line(&line[i], u->granule[i], u->align[i]);
        tiles = fac_tile_times(tiles, line[i].count);
        even = fac_tile_times(even, line[i].count - sum[i].odd);
        work *= (double)sum[i].spent;
    }
    row->tile_m = fac_tile_length(&line[0], 0);
    row->tile_n = fac_tile_length(&line[1], 0);
    row->tile_k = fac_tile_length(&line[2], 0);
    row->tiles = fac_tile_times(row->count, tiles);
    row->unaligned = fac_tile_times(row->count, tiles - even);
    row->work = work * (double)row->count;
    row->utilisation = row->work > 0 ? row->macs / row->work : 0;
    row->bytes = traffic_of(u, line, sum, row->dtype) * (double)row->count;
    row->sram = sram_of(u, (int64_t[]){ row->tile_m, row->tile_n, row->tile_k }, row->dtype);
    time_of(u, row);
}

/* ---- choice ---- */

enum { STEPS = 64 };

/* The size to begin with: the limit or the whole dim, then halves, all multiples of the alignment.
 * Returns how many. */
static int candidates(const fac_tile_unit *u, int dim, int64_t size, int64_t to[STEPS]) {
    const int64_t align = u->align[dim] ? u->align[dim] : 1,
                  limit = u->limit[dim] ? u->limit[dim] : INT64_MAX;
    int n = 0;
    for (int64_t step = size < limit ? size : limit; n < STEPS; step = up((step + 1) / 2, align)) {
        if (n && step >= to[n - 1]) break;
        to[n++] = step;
    }
    return n;
}

/* What lies in the SRAM: whole granules where sizes are padded. */
static bool in_sram(const fac_tile_unit *u, const fac_tile_shape *s, fac_dtype dtype) {
    int64_t t[3];
    for (int i = 0; i < 3; i++)
        t[i] = u->pad && u->align[i] ? up(s->step[i], u->align[i]) : s->step[i];
    return !(u->target->sram_bytes > 0) || sram_of(u, t, dtype) <= u->target->sram_bytes;
}

/* By time where there are rates, else by the number of tiles, then by traffic. */
static bool better(const fac_tile_row *a, const fac_tile_row *b) {
    if (a->seconds > 0 || b->seconds > 0) return a->seconds < b->seconds * (1 - 1e-9);
    return a->tiles != b->tiles ? a->tiles < b->tiles : a->bytes < b->bytes;
}

bool fac_tile_best(const fac_tile_unit *u, const int64_t d[3], fac_dtype dtype,
                   fac_tile_shape *to) {
    int64_t step[3][STEPS];
    fac_tile_row least = { 0 };
    bool found = false;
    int n[3];
    for (int i = 0; i < 3; i++) n[i] = candidates(u, i, d[i], step[i]);
    for (int i = 0; i < n[0]; i++)
        for (int j = 0; j < n[1]; j++)
            for (int l = 0; l < n[2]; l++) {
                const fac_tile_shape s = { { step[0][i], step[1][j], step[2][l] },
                                           u->pad,
                                           u->align };
                fac_tile_row row = { .m = d[0], .n = d[1], .k = d[2], .count = 1, .dtype = dtype };
                if (!in_sram(u, &s, dtype)) continue;
                fac_tile_cost(u, &s, &row);
                if (found && !better(&row, &least)) continue;
                least = row;
                *to = s;
                found = true;
            }
    return found;
}

static bool takes(const fac_tile_unit *u, fac_dtype dtype) {
    bool any = false;
    for (int k = 0; k < FAC_DTYPES; k++) any |= u->target->bytes[k] > 0;
    return !any || u->target->bytes[dtype] > 0;
}

const char *fac_tile_choose(const fac_tile_unit *u, const int64_t d[3], fac_dtype dtype,
                            fac_tile_shape *to, fac_arena *memory) {
    fac_tile_shape s = { .pad = u->pad, .align = u->align };
    int64_t least[3];
    for (int i = 0; i < 3; i++) {
        s.step[i] = u->limit[i] && u->limit[i] < d[i] ? u->limit[i] : d[i];
        least[i] = u->align[i] && u->align[i] < s.step[i] ? u->align[i] : 1;
    }
    *to = s;
    if (!takes(u, dtype))
        return fac_arena_print(memory, "the unit does not take %s", fac_dtype_get(dtype)->name);
    if (!u->best && in_sram(u, &s, dtype)) return NULL;
    if (fac_tile_best(u, d, dtype, to)) return NULL;
    return fac_arena_print(memory, "no tile fits %.0f bytes: %lld x %lld x %lld takes %.0f",
                           u->target->sram_bytes, (long long)least[0], (long long)least[1],
                           (long long)least[2], sram_of(u, least, dtype));
}
