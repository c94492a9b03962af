/* How products are cut, by classes of devices.  Tables say which tiles suit a class and what share
 * of the peak they reach where there is enough to do; the estimate adds what edges, few groups and
 * split sums cost. */
#include <math.h>
#include <string.h>
#include "backends/gpu/product/product.h"
#include "backends/gpu/speed.h"
#include "tensor/tensor_internal.h"

/* TM x TN elements by a group, TK terms a slab, RM x RN elements an item; share of the peak that
 * matrices, patches, taps reach. */
typedef struct candidate {
    int TM, TN, TK, RM, RN;
    double share, patches, taps;
} candidate;

static const candidate nvidia[] = { /* measured on an H200 */
                                    { 256, 128, 8, 16, 8, 0.66, 0.57, 0.52 },
                                    { 128, 128, 16, 8, 8, 0.65, 0.5, 0.47 },
                                    { 128, 64, 16, 8, 8, 0.64, 0.6, 0.52 },
                                    { 64, 128, 16, 8, 8, 0.63, 0.57, 0.46 },
                                    { 64, 64, 16, 8, 4, 0.57, 0.55, 0.45 },
                                    { 32, 64, 16, 4, 4, 0.4, 0.3, 0.31 },
                                    { 16, 128, 16, 4, 4, 0.35, 0.25, 0.21 },
                                    { 0 }
};
static const candidate amd[] = { { 128, 128, 8, 8, 8, 0.7, 0.5, 0.5 },
                                 { 64, 64, 16, 4, 4, 0.5, 0.4, 0.4 },
                                 { 32, 64, 16, 4, 4, 0.35, 0.3, 0.3 },
                                 { 16, 128, 16, 4, 4, 0.25, 0.2, 0.2 },
                                 { 0 } };
static const candidate intel[] = { { 64, 64, 8, 8, 8, 0.5, 0.4, 0.4 },
                                   { 32, 64, 8, 8, 8, 0.45, 0.35, 0.35 },
                                   { 32, 64, 16, 4, 4, 0.4, 0.35, 0.35 },
                                   { 16, 128, 8, 4, 4, 0.25, 0.2, 0.2 },
                                   { 0 } };
static const candidate apple[] = { { 64, 64, 16, 8, 4, 0.5, 0.4, 0.4 },
                                   { 64, 32, 16, 4, 4, 0.35, 0.3, 0.3 },
                                   { 32, 64, 16, 4, 4, 0.35, 0.3, 0.3 },
                                   { 16, 128, 16, 4, 4, 0.25, 0.2, 0.2 },
                                   { 0 } };
static const candidate mobile[] = { { 32, 32, 8, 4, 4, 0.3, 0.25, 0.25 },
                                    { 16, 64, 8, 4, 4, 0.3, 0.25, 0.25 },
                                    { 0 } };
/* Other element types: registers for sums of eight bytes, and compilers that nobody has looked at.
 */
static const candidate other[] = { { 64, 64, 8, 4, 4, 0.4, 0.3, 0.3 },
                                   { 16, 64, 8, 4, 4, 0.3, 0.25, 0.25 },
                                   { 0 } };

static const struct {
    const char *vendor;
    const candidate *tiles;
} classes[] = { { "NVIDIA", nvidia },   { "AMD", amd },           { "Advanced Micro", amd },
                { "Intel", intel },     { "Apple", apple },       { "ARM", mobile },
                { "QUALCOMM", mobile }, { "Imagination", mobile } };

static const candidate *tiles_of(const fac_gpu_limits *l, fac_dtype t) {
    if (t != FAC_F32) return other;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (l->gpu && strstr(l->vendor, classes[i].vendor)) return classes[i].tiles;
    return other;
}

/* Four neighbours at once: unit steps, and nothing that begins between them. */
static bool whole(int64_t step, int64_t size) { return step % 4 == 0 || size <= 1; }
static bool fours_of(const fac_gpu_matrix *m, const fac_gpu_shape *s, int64_t other_step,
                     int64_t other_size, bool split) {
    bool good = m->at % 4 == 0 && whole(other_step, other_size) && (!split || whole(m->outer, 2));
    for (int k = 0; k < FAC_GPU_BATCH; k++) good &= whole(m->z[k], s->z[k]);
    return good;
}

/* In which direction items read, and how much at once. */
static void accesses(const fac_gpu_product *r, fac_gpu_tile *t) {
    const fac_gpu_shape *s = &r->s;
    const bool floats = r->dtype == FAC_F32, split_n = s->inner_n < s->N,
               fits = s->inner_n % 4 == 0 && s->N % 4 == 0;
    const bool terms = s->K % 4 == 0 && (!r->split_k || s->inner_k % 4 == 0);
    t->a_along_m = s->a.row == 1 || (s->a.row < s->a.column && s->a.row);
    t->b_along_n = s->b.column == 1 || s->b.column < s->b.row || r->right == FAC_GPU_PATCHES;
    if (r->right == FAC_GPU_TAPS) t->b_along_n = false;
    t->VA = t->VB = t->VY = 1;
    if (floats && t->a_along_m && s->a.row == 1 && (r->padded || s->M % 4 == 0) &&
        fours_of(&s->a, s, s->a.column, s->K, r->split_k))
        t->VA = 4;
    if (floats && !t->a_along_m && s->a.column == 1 && terms &&
        fours_of(&s->a, s, s->a.row, s->M, r->split_k))
        t->VA = 4;
    if (floats && r->right == FAC_GPU_MATRIX) {
        const bool split = split_n || r->split_k;
        if (t->b_along_n && s->b.column == 1 && fits && fours_of(&s->b, s, s->b.row, s->K, split))
            t->VB = 4;
        if (!t->b_along_n && s->b.row == 1 && terms && fours_of(&s->b, s, s->b.column, s->N, split))
            t->VB = 4;
    }
    if (floats && r->result == FAC_F32 && !r->places && s->y.column == 1 && fits &&
        fours_of(&s->y, s, s->y.row, s->M, split_n))
        t->VY = 4;
}

/* What every item loads must come out even. */
static bool fits_group(const fac_gpu_limits *l, const fac_gpu_product *r, const candidate *c,
                       const fac_gpu_tile *t) {
    const int items = c->TM / c->RM * (c->TN / c->RN);
    const size_t local = (size_t)(2 * c->TK * (c->TM + c->TN + 8)) * fac_gpu_sum_bytes(r->dtype);
    if ((size_t)items > l->group || local > l->local) return false;
    if (r->right == FAC_GPU_PATCHES && items % c->TN) return false;
    if (r->right == FAC_GPU_TAPS && items % c->TK) return false;
    /* one pass of all items reads whole lines, or some columns were never read */
    if (items % ((t->a_along_m ? c->TM : c->TK) / t->VA) ||
        items % ((t->b_along_n ? c->TN : c->TK) / t->VB))
        return false;
    return c->TM * c->TK % (items * t->VA) == 0 && c->TN * c->TK % (items * t->VB) == 0;
}

/* What results and whole extras take of a GPU's memory.  Neighbouring items hold neighbouring
 * columns: where those lie apart, as pixels with their channels last do, six times as long
 * (measured on an H200). */
static double results_seconds(const fac_gpu_limits *l, const fac_gpu_product *r) {
    enum { APART = 6 };
    const fac_gpu_shape *s = &r->s;
    const double elements = (double)(s->M * s->N * s->batch);
    double bytes =
        elements * (double)fac_dtype_get(r->result)->block_bytes * (s->y.column == 1 ? 1 : APART);
    for (int i = 0; i < r->extras; i++)
        if (s->e[i].row && s->e[i].column)
            bytes += elements * 4 * (s->e[i].column == 1 ? 1 : APART);
    return l->gpu && !r->places ? bytes / fac_gpu_bandwidth(l) : 0;
}

static void consider(const fac_gpu_limits *l, const fac_gpu_product *r, const candidate *c,
                     fac_gpu_tile *best) {
    const fac_gpu_shape *s = &r->s;
    fac_gpu_tile t = *best;
    t.TM = c->TM;
    t.TN = c->TN;
    t.TK = c->TK;
    t.RM = c->RM;
    t.RN = c->RN;
    while (t.VA > 1 && !fits_group(l, r, c, &t)) t.VA = 1;
    while (t.VB > 1 && !fits_group(l, r, c, &t)) t.VB = 1;
    if (!fits_group(l, r, c, &t)) return;
    /* patches in blocks of channels are read with one look at the tables a slab, unless filling the
     * last block costs too much */
    const int64_t filled =
        r->right == FAC_GPU_PATCHES ? fac_gpu_parts(s->channels, t.TK) * t.TK * s->window : s->K;
    t.blocks = r->right == FAC_GPU_PATCHES && filled * 3 <= s->K * 4;
    int64_t K = s->K ? s->K : 1; /* a sum of nothing is one, too */
    if (t.blocks) K = filled;
    const double units = l->units, groups = (double)fac_gpu_parts(s->M, t.TM) *
                                            (double)fac_gpu_parts(s->N, t.TN) * (double)s->batch;
    const double unit = fac_gpu_flops(l) / units, reaches = r->right == FAC_GPU_MATRIX ? c->share
                                                            : r->right == FAC_GPU_PATCHES
                                                                ? c->patches
                                                                : c->taps;
    for (t.splits = 1; t.splits <= 64; t.splits *= 2) {
        t.each_k = fac_gpu_parts(fac_gpu_parts(K, t.splits), t.TK) * t.TK;
        if (t.splits > 1 && (t.each_k < 4 * t.TK || groups * (double)t.splits > 4 * units)) break;
        const double count = groups * (double)fac_gpu_parts(K, t.each_k),
                     waves = (double)fac_gpu_parts((int64_t)count, (int64_t)units);
        /* a unit that has one group only waits for memory now and then */
        const double share = reaches * (count > units ? 1 : 0.7);
        const double flops = 2.0 * t.TM * t.TN * (double)t.each_k;
        double seconds =
            fac_gpu_costs.product_launch +
            fmax(waves * (flops / (unit * share) + fac_gpu_costs.wave), results_seconds(l, r));
        if (t.splits > 1)
            seconds += fac_gpu_costs.second_launch + 8.0 * (double)s->M * (double)s->N *
                                                         (double)(s->batch * t.splits) /
                                                         fac_gpu_bandwidth(l);
        if (best->TM && seconds >= best->seconds) continue;
        const int64_t each = t.each_k;
        *best = t;
        best->splits = fac_gpu_parts(K, each);
        best->each_k = each;
        best->seconds = seconds;
    }
}

/* What else a cpu may like: rows and vectors in registers, rows and terms of a slab; rows 0: 12 or
 * 4, as it has registers. */
static const struct {
    int RM, RN, TM, TK;
} slabs[] = { { 0, 2, 384, 128 }, { 0, 2, 192, 256 },  { 0, 2, 384, 512 },
              { 8, 3, 384, 256 }, { 24, 1, 384, 256 }, { 6, 4, 192, 256 } };
enum { SLABS = sizeof slabs / sizeof *slabs };

/* A cpu: registers of its widest vectors, slabs for its first cache, rows enough to use a slab
 * often. */
static bool vector_tile(const fac_gpu_limits *l, const fac_gpu_product *r, fac_gpu_tile *t) {
    const fac_gpu_shape *s = &r->s;
    const unsigned width = l->vector < 4 ? 4 : l->vector;
    t->VB = width > 16 ? 16 : (int)width; /* elements of a vector; of eight bytes: half as many */
    if (fac_gpu_sum_bytes(r->dtype) == 8) t->VB /= 2;
    t->RN = 2;
    t->RM = width >= 16 ? 12 : 4;
    t->TK = 256;
    t->TM = 384;
    if (r->variant > SLABS) return false;
    if (r->variant) {
        const int k = r->variant - 1;
        if (slabs[k].RM) t->RM = slabs[k].RM;
        t->RN = slabs[k].RN;
        t->TM = slabs[k].TM;
        t->TK = slabs[k].TK;
    }
    const int64_t columns = fac_gpu_parts(s->N, t->RN * t->VB) * s->batch,
                  want = 4 * (int64_t)l->units;
    while (t->TM > 4 * t->RM && columns * fac_gpu_parts(s->M, t->TM) < want)
        t->TM = t->TM / 2 / t->RM * t->RM;
    if (t->TM > s->M) t->TM = (int)(fac_gpu_parts(s->M, t->RM) * t->RM);
    t->splits = 1;
    t->each_k = s->K;
    const int64_t tasks = columns * fac_gpu_parts(s->M, t->TM);
    if (tasks < want && s->K >= 8 * t->TK) {
        t->splits = want / tasks < s->K / (4 * t->TK) ? want / tasks : s->K / (4 * t->TK);
        t->each_k = fac_gpu_parts(fac_gpu_parts(s->K, t->splits), t->TK) * t->TK;
        t->splits = fac_gpu_parts(s->K, t->each_k);
    }
    const double rows = (double)fac_gpu_parts(s->M, t->RM) * t->RM,
                 all = (double)(fac_gpu_parts(s->N, t->RN * t->VB) * t->RN * t->VB);
    /* a gpu runs one of these items as slowly as one lane of many: only where nothing else is
     * offered */
    t->seconds = fac_gpu_costs.vector_launch + 2 * rows * all * (double)(s->K * s->batch) /
                                                   (fac_gpu_flops(l) * (l->gpu ? 0.002 : 0.5));
    return (size_t)(t->TK + t->TM) * (size_t)(t->RN * t->VB) * fac_gpu_sum_bytes(r->dtype) <=
           l->local;
}

int fac_gpu_tile_variants(const fac_gpu_limits *l, fac_dtype dtype, fac_gpu_way way) {
    const candidate *tiles = tiles_of(l, dtype);
    int n = 0;
    if (way == FAC_GPU_VECTOR) return SLABS;
    while (way == FAC_GPU_TILED && tiles[n].TM) n++;
    return n;
}

bool fac_gpu_tile_choose(const fac_gpu_limits *l, const fac_gpu_product *r, fac_gpu_way way,
                         fac_gpu_tile *t) {
    enum { MOST = 0x7fff0000 };
    const fac_gpu_shape *s = &r->s;
    memset(t, 0, sizeof *t);
    if (s->M > MOST || s->N > MOST || s->K > MOST || s->batch > MOST) return false;
    accesses(r, t);
    t->way = way;
    if (way == FAC_GPU_VECTOR) return vector_tile(l, r, t);
    if (way == FAC_GPU_THIN) return !r->variant && fac_gpu_tile_thin(l, r, t);
    const candidate *all = tiles_of(l, r->dtype);
    for (int k = 0; all[k].TM; k++)
        if (!r->variant || r->variant == k + 1) consider(l, r, &all[k], t);
    /* what a cpu does with barriers is slow */
    if (!l->gpu) t->seconds *= 20;
    return t->TM != 0;
}

size_t fac_gpu_tile_work(const fac_gpu_tile *t, const fac_gpu_product *r) {
    return t->splits > 1
               ? (size_t)(t->splits * r->s.batch * r->s.M * r->s.N) * fac_gpu_sum_bytes(r->dtype)
               : 0;
}
