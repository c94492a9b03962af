/* How a product is cut for wgmma, and what that costs: see matmul.h. */
#include <limits.h>
#include <string.h>
#include "backends/gpu/nvidia/product/matmul.h"
#include "backends/gpu/nvidia/speed.h"
#include "tensor/dtype.h"
#include "tensor/tensor_internal.h"

enum {
    ALIGN = 1024,
    FEW = 64,
    PARTS = 32
}; /* FEW: rows of y that become the short side of a tile */

/* Tiles by mode; what fits the 227 KiB of local memory and the registers of two consumers.  Shares
 * are measured on an H200 on large matrices. */
static const fac_nv_cut single[] = { { 128, 256, 4, 1, 0.78 },
                                     { 256, 128, 4, 1, 0.77 },
                                     { 128, 128, 6, 1, 0.7 },
                                     { 128, 64, 8, 1, 0.55 },
                                     { 128, 192, 5, 1, 0.75 } };
/* These are each one consumer's. */
static const fac_nv_cut owned[] = { { 128, 128, 6, 1, 0.7 }, { 128, 64, 8, 1, 0.55 } };
static const fac_nv_cut split[] = { { 128, 128, 4, 1, 0.82 }, { 128, 64, 6, 1, 0.65 } };
static const fac_nv_cut short_single[] = { { 128, 16, 5, 2, 0.2 },
                                           { 128, 32, 5, 2, 0.35 },
                                           { 128, 64, 8, 1, 0.5 } };
static const fac_nv_cut short_split[] = { { 128, 16, 5, 2, 0.3 },
                                          { 128, 32, 4, 2, 0.5 },
                                          { 128, 64, 6, 1, 0.65 } };

#define COUNT(x) ((int)(sizeof(x) / sizeof *(x)))
typedef struct cuts {
    const fac_nv_cut *shared, *owned;
    int count, owned_count;
} cuts;
static cuts cuts_of(const fac_nv_matmul *m) {
    const bool three = m->mode == FAC_NV_3XTF32;
    if (m->swap && three) return (cuts){ short_split, NULL, COUNT(short_split), 0 };
    if (m->swap) return (cuts){ short_single, NULL, COUNT(short_single), 0 };
    if (three) return (cuts){ split, NULL, COUNT(split), 0 };
    return (cuts){ single, owned, COUNT(single), COUNT(owned) };
}

static size_t aligned(size_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

/* ---- operands ---- */

/* The step of a dim; that of a single index says nothing. */
static int64_t step_of(int64_t size, int64_t step) { return size > 1 ? step : 0; }

static bool steps_by(const fac_nv_side *s, int64_t other, int64_t chunk) {
    bool good = s->at % chunk == 0 && other % chunk == 0;
    for (int k = 0; k < FAC_GPU_BATCH; k++) good &= s->size[k] == 1 || s->z[k] % chunk == 0;
    return good;
}

/* Whether copies of 16 bytes can read it where it lies. */
static fac_nv_from from_of(const fac_nv_matmul *m, const fac_nv_side *s) {
    const bool half = m->r.dtype != FAC_F32, as_is = half || m->mode != FAC_NV_BF16;
    const int64_t chunk = half ? 8 : 4, K = m->r.s.K;
    /* low parts of a computed operand cost a third of the time where tiles are used often */
    const double much = m->swap ? 1 << 18 : 1 << 20;
    const bool often =
        !m->mma && m->mode == FAC_NV_3XTF32 && s == &m->q && (double)s->rows * (double)K >= much;
    if (!as_is || often) return FAC_NV_IMAGES;
    if (s->term == 1 && K % chunk == 0 && steps_by(s, s->rows > 1 ? s->row : 0, chunk))
        return FAC_NV_ROWS;
    if (m->mma) return FAC_NV_IMAGES;
    /* tf32 takes rows side by side from registers only, so not of q */
    const bool turns =
        half ? s->tile >= 64 && !(s->tile & (s->tile - 1)) : s == &m->p && s->tile == 128;
    const bool columns = turns && s->row == 1 && s->rows % chunk == 0;
    if (columns && steps_by(s, K > 1 ? s->term : 0, chunk)) return FAC_NV_COLUMNS;
    return FAC_NV_IMAGES;
}

static fac_nv_side side_of(const fac_nv_matmul *m, int input) {
    const fac_gpu_shape *s = &m->r.s;
    const fac_gpu_matrix *x = input ? &s->b : &s->a;
    fac_nv_side side = { .input = input,
                         .rows = input ? s->N : s->M,
                         .at = x->at,
                         .row = input ? x->column : x->row,
                         .term = input ? x->row : x->column };
    for (int k = 0; k < FAC_GPU_BATCH; k++) {
        side.z[k] = s->z[k] > 1 ? x->z[k] : 0;
        side.size[k] = side.z[k] ? s->z[k] : 1;
    }
    side.along_k = side.term == 1 || (side.row != 1 && side.term <= side.row);
    if (side.along_k)
        side.fours =
            side.term == 1 && s->K % 4 == 0 && steps_by(&side, step_of(side.rows, side.row), 4);
    else
        side.fours =
            side.row == 1 && side.rows % 4 == 0 && steps_by(&side, step_of(s->K, side.term), 4);
    return side;
}

/* What is made of it for tiles of so many rows. */
static void settle(const fac_nv_matmul *m, bool before_run, int tile, fac_nv_side *s) {
    const bool columns = s == &m->q;
    s->tile = tile;
    s->packed = before_run;
    s->from = before_run ? FAC_NV_IMAGES : from_of(m, s);
    s->permuted = columns && s->from != FAC_NV_COLUMNS;
    s->make = fac_nv_terms(m) == 64    ? FAC_NV_HALVES
              : m->mode == FAC_NV_TF32 ? FAC_NV_ROUNDED
              : columns && !m->mma     ? FAC_NV_SPLIT
                                       : FAC_NV_FLOATS;
    s->blocks = fac_gpu_parts(s->rows, tile);
    int64_t count = 1;
    for (int k = 0; k < FAC_GPU_BATCH; k++) count *= s->size[k];
    s->matrix = (size_t)(s->blocks * m->k_tiles * tile) * 128 * (s->make == FAC_NV_SPLIT ? 2 : 1);
    s->bytes = s->from == FAC_NV_IMAGES ? s->matrix * (size_t)count : 0;
    s->place = 0;
}

static double source_bytes(const fac_nv_matmul *m, const fac_nv_side *s) {
    double count = (double)s->rows * (double)m->r.s.K;
    for (int k = 0; k < FAC_GPU_BATCH; k++) count *= (double)s->size[k];
    return count * (double)fac_dtype_get(m->r.dtype)->block_bytes;
}

/* Of making the images in the run. */
static double image_seconds(const fac_nv_matmul *m, const fac_nv_side *s) {
    if (s->from != FAC_NV_IMAGES || s->packed) return 0;
    return fac_nv_speeds.launch +
           (source_bytes(m, s) + (double)s->bytes) / (0.7 * fac_nv_speeds.memory);
}

/* ---- results ---- */

/* The operand as rows of four neighbours: coordinates are the batch's dims but the first, and the
 * row. */
static bool place_of(const fac_gpu_shape *s, const fac_gpu_matrix *x, fac_nv_place *to) {
    const int64_t step[] = { step_of(s->z[1], x->z[1]), step_of(s->z[2], x->z[2]),
                             step_of(s->z[3], x->z[3]), step_of(s->M, x->row), x->column },
                  size[] = { s->z[1], s->z[2], s->z[3], s->M, s->N };
    double reach = 0;
    for (int k = 0; k < 5; k++) {
        reach += (double)(size[k] - 1) * (double)(step[k] < 0 ? -step[k] : step[k]);
        if (step[k] > INT_MAX || step[k] < -INT_MAX) return false;
    }
    *to = (fac_nv_place){ x->at,
                          (int32_t)step[0],
                          (int32_t)step[1],
                          (int32_t)step[2],
                          (int32_t)step[3],
                          (int32_t)step[4],
                          0 };
    return s->z[0] == 1 && reach < INT_MAX;
}

static bool is_float(fac_dtype t) { return t == FAC_F32 || fac_dtype_is_half(t); }

static bool ends_of(fac_nv_matmul *m) {
    const fac_gpu_product *r = &m->r;
    bool good = !m->swap && r->s.N % 4 == 0 && is_float(r->result) &&
                place_of(&r->s, &r->s.y, &m->ends.p[0]) && fac_nv_in_fours(&m->ends.p[0]);
    for (int i = 0; good && i < r->extras; i++)
        good = is_float(r->extra_dtype[i]) && place_of(&r->s, &r->s.e[i], &m->ends.p[1 + i]);
    return good;
}

/* ---- the cut ---- */

/* Of so many rounds of tiles: products, then results.  Two consumers with tiles of their own each
 * have half of what stores results, and the units for themselves while the other one does so. */
static double work_seconds(const fac_nv_matmul *m, double waves, double products, double bytes) {
    const double results = fac_nv_speeds.tile + bytes / fac_nv_speeds.unit_results;
    if (!m->own) return waves * (products + results);
    const double alone = products + fac_nv_speeds.tile + 2 * bytes / fac_nv_speeds.unit_results;
    return (waves - 1) * (2 * products > alone ? products : alone / 2) + alone;
}

/* Of the product alone; chooses the parts of the sum.  A unit works on several jobs at once where
 * they are short. */
static double product_seconds(unsigned units, fac_nv_matmul *m) {
    const fac_gpu_shape *s = &m->r.s;
    const fac_nv_cut *c = &m->cut;
    const double slots = (double)units * c->groups, batch = (double)s->batch,
                 y = (double)(s->M * s->N) * batch;
    const double rate = m->rate / slots * c->share, halves = m->mode == FAC_NV_3XTF32 ? 2 : 1;
    const double tile = (double)c->rows * c->columns * fac_nv_terms(m) / rate,
                 result = (double)c->rows * c->columns * 4;
    const double fetch =
                     (c->rows + c->columns * halves) * 128 * c->groups / fac_nv_speeds.unit_cache,
                 step = tile > fetch ? tile : fetch;
    const double operands = source_bytes(m, &m->p) + source_bytes(m, &m->q);
    const double bytes =
        operands + y * fac_dtype_get(m->r.result)->block_bytes * (m->fours || m->swap ? 1 : 1.5);
    double best = 0;
    const int64_t most = m->own ? 1 : PARTS;
    for (int64_t parts = 1; parts <= most && (parts == 1 || m->k_tiles >= 4 * parts); parts++) {
        const int64_t each = fac_gpu_parts(m->k_tiles, parts),
                      real = fac_gpu_parts(m->k_tiles, each);
        const double jobs = (double)(m->row_tiles * m->column_tiles * real) * batch,
                     waves = (double)fac_gpu_parts((int64_t)jobs, (int64_t)slots),
                     busy = jobs / (waves * slots);
        const double work = work_seconds(m, waves, (double)each * step, result);
        const double memory = bytes / (fac_nv_speeds.memory * (busy < 0.9 ? busy / 0.9 : 1));
        double seconds = fac_nv_speeds.launch + (work > memory ? work : memory);
        if (real > 1)
            seconds += fac_nv_speeds.tile + (double)real * result / fac_nv_speeds.unit_cache +
                       2 * y * 4 * (double)real / fac_nv_speeds.memory;
        if (best && seconds >= 0.97 * best) continue;
        best = seconds;
        m->each = each;
        m->parts = real;
    }
    return best;
}

static void cut(unsigned units, const fac_nv_cut *c, const bool *before_run, fac_nv_matmul *m) {
    const fac_gpu_shape *s = &m->r.s;
    m->cut = *c;
    m->k_tiles = fac_gpu_parts(s->K, fac_nv_terms(m));
    settle(m, before_run[m->p.input], c->rows, &m->p);
    settle(m, before_run[m->q.input], c->columns, &m->q);
    m->row_tiles = m->p.blocks;
    m->column_tiles = m->q.blocks;
    m->seconds = product_seconds(units, m) + image_seconds(m, &m->p) + image_seconds(m, &m->q);
    /* a wave of tiles is about square */
    m->band = c->rows >= 2 * c->columns ? 8 : 11;
    if (c->columns >= 2 * c->rows) m->band = 16;
    fac_nv_side *const sides[] = { &m->p, &m->q };
    m->work = 0;
    for (int i = 0; i < 2; i++) {
        if (sides[i]->packed) continue;
        sides[i]->place = m->work;
        m->work += aligned(sides[i]->bytes);
    }
    m->parts_at = m->work;
    m->tiles = m->row_tiles * m->column_tiles * s->batch;
    if (m->parts > 1)
        m->work += (size_t)(m->parts * m->tiles * c->rows * c->columns) * sizeof(float);
}

int fac_nv_matmul_variants(const fac_nv_matmul *m) {
    const cuts c = cuts_of(m);
    return c.count + c.owned_count;
}

/* What does not depend on the cut. */
static bool start(const fac_gpu_product *r, fac_precision precision, bool mma, fac_nv_matmul *m) {
    const fac_gpu_shape *s = &r->s;
    memset(m, 0, sizeof *m);
    m->r = *r;
    m->mma = mma;
    if (!fac_nv_mode_of(r->dtype, precision, &m->mode) || r->right != FAC_GPU_MATRIX || !s->K)
        return false;
    if (s->M > INT_MAX / 512 || s->N > INT_MAX / 512 || s->K > INT_MAX / 2 || s->batch > 65535)
        return false;
    m->swap = s->M <= FEW && s->N > s->M;
    m->p = side_of(m, m->swap);
    m->q = side_of(m, !m->swap);
    m->fours = ends_of(m);
    return true;
}

/* What gets to the units by registers is for both consumers. */
static bool is_possible(const fac_nv_matmul *m) {
    const bool registers = m->p.make == FAC_NV_ROUNDED && m->p.from == FAC_NV_COLUMNS;
    return (double)m->tiles * (double)m->parts <= INT_MAX / 2 && !(m->own && registers);
}

static void better(const fac_nv_matmul *m, fac_nv_matmul *best) {
    if (!is_possible(m)) return;
    if (!best->cut.rows || m->seconds < best->seconds) *best = *m;
}

bool fac_nv_matmul_read(const fac_gpu_limits *l, const fac_gpu_product *r, fac_precision precision,
                        const bool *before_run, int variant, fac_nv_matmul *m) {
    if (!start(r, precision, false, m)) return false;
    m->rate = fac_nv_rate(l, m->mode);
    fac_nv_matmul best = { 0 };
    const cuts c = cuts_of(m);
    for (int k = 0; k < c.count + c.owned_count; k++) {
        if (variant && variant != k + 1) continue;
        /* few rows: one tile takes them all, so that the other operand is read once; the shortest
         * one that does */
        if (!variant && m->swap && c.shared[k].columns < r->s.M && k + 1 < c.count) continue;
        if (!variant && m->swap && best.cut.rows) break;
        m->own = k >= c.count;
        cut(l->units, m->own ? &c.owned[k - c.count] : &c.shared[k], before_run, m);
        better(m, &best);
    }
    *m = best;
    return m->cut.rows != 0;
}

bool fac_mma_matmul_read(const fac_mma_unit *u, const fac_gpu_product *r, fac_precision precision,
                         const bool *before_run, int variant, fac_nv_matmul *m) {
    if (!start(r, precision, true, m)) return false;
    m->rate = fac_mma_rate(u, m->mode);
    fac_nv_matmul best = { 0 };
    for (int k = 0; fac_mma_matmul_cut(u, k, m); k++) {
        if ((variant && variant != k + 1) || !m->cut.groups) continue;
        if (!variant && m->swap && (m->cut.columns < r->s.M || best.cut.rows)) continue;
        const fac_nv_cut c = m->cut;
        cut(u->units, &c, before_run, m);
        better(m, &best);
    }
    *m = best;
    return m->cut.rows != 0;
}

int fac_mma_matmul_variants(const fac_mma_unit *u, const fac_nv_matmul *m) {
    fac_nv_matmul any = *m;
    int n = 0;
    while (fac_mma_matmul_cut(u, n, &any)) n++;
    return n;
}
