/* How products with few rows are shared out (gemm_thin.cl): the whole device must read b at
 * once, neighbours together. */
#include "backends/gpu/product/product.h"
#include "backends/gpu/speed.h"
#include "tensor/tensor_internal.h"

/* LINE: items side by side, each with four columns; MANY: columns that are done in pairs, unless
 * each has LONG terms, which give loads enough; CACHED: bytes of a second cache */
enum {
    ROWS = 8,
    ITEMS = 256,
    WARP = 32,
    LINE = 8,
    WAVES = 4,
    SPLITS = 32,
    MANY = 4096,
    LONG = 4096,
    CACHED = 48 << 20
};

static int least(int a, int b) { return a < b ? a : b; }

/* Few groups do not have as many loads on the way as the memory could answer; one row alone reads
 * nothing twice. */
static double seconds(const fac_gpu_limits *l, double bytes, double groups, bool alone) {
    const double want = 2.0 * l->units, share = groups < want     ? groups / want
                                                : alone && l->gpu ? 1.2
                                                                  : 1;
    return bytes / (fac_gpu_bandwidth(l) * share);
}

/* Neighbours that a load takes; 0: it cannot be.  An item of a cpu has vectors of its own, which
 * need not be aligned. */
static int vector(const fac_gpu_limits *l, const fac_gpu_product *r, const fac_gpu_tile *t) {
    const fac_gpu_shape *s = &r->s;
    const bool straight = r->dtype == FAC_F32 || r->dtype == FAC_F64;
    const int64_t most = t->b_along_n ? s->N : s->K;
    if (r->b_f16) return t->VA == 4 && !t->a_along_m ? 8 : 0;
    if (l->gpu) return t->VB == 4 && (t->b_along_n || (t->VA == 4 && !t->a_along_m)) ? 4 : 1;
    int v = r->dtype == FAC_F64 ? 8 : 16;
    if (!straight || (!t->b_along_n && s->a.column != 1)) v = 1;
    while (v > most) v /= 2;
    return v ? v : 1;
}

/* Loads of a column that an item has on the way at once: as many as come out even, if any do. */
static int ahead(const fac_gpu_shape *s, const fac_gpu_tile *t) {
    const int64_t steps = s->K / ((int64_t)t->lanes * t->VB);
    int most = t->RN == 2 ? 4 : 2;
    if (t->RN == 1) most = 8;
    for (int n = most; n > 1; n--)
        if (steps >= n && steps % n == 0 && 2 * n >= most) return n;
    if (steps >= most) return most;
    return steps > 1 ? (int)steps : 1;
}

bool fac_gpu_tile_thin(const fac_gpu_limits *l, const fac_gpu_product *r, fac_gpu_tile *t) {
    const fac_gpu_shape *s = &r->s;
    const double units = l->units;
    int items = l->group < ITEMS || l->local < (48 << 10) ? ITEMS / 4 : ITEMS;
    if (!l->gpu) items = 1;
    if (r->right != FAC_GPU_MATRIX || s->M > ROWS || s->inner_n != s->N || r->split_k ||
        r->places || r->padded)
        return false;
    if ((s->K && (t->b_along_n ? s->b.column : s->b.row) != 1) || (size_t)items > l->group)
        return false;
    t->aligned = l->gpu;
    t->ahead = 1;
    t->VB = vector(l, r, t);
    if (!t->VB) return false;
    t->TM = (int)s->M;
    t->items = items;
    if (t->b_along_n) {
        t->RN = t->VB;
        t->lanes = 1;
        if (l->gpu) t->lanes = items / least(items, t->VB == 4 ? LINE : WARP);
        t->TN = items / t->lanes * t->VB;
    } else {
        t->RN = s->M <= 4 ? 2 : 4;
        if (s->M == 1) t->RN = s->N * s->batch >= MANY && s->K < LONG ? 2 : 1;
        if (!l->gpu) t->RN = s->M <= 4 ? 4 : 2;
        t->lanes = least(items, WARP);
        while (t->lanes < items &&
               fac_gpu_parts(s->N, items / t->lanes * t->RN) * s->batch < WAVES * units &&
               s->K >= 8L * t->lanes * t->VB)
            t->lanes *= 2;
        t->TN = items / t->lanes * t->RN;
        if (l->gpu) t->ahead = ahead(s, t);
    }
    const double groups = (double)fac_gpu_parts(s->N, t->TN) * (double)s->batch;
    const double element = r->b_f16 ? 2 : fac_dtype_get(r->dtype)->block_bytes;
    const double bytes = (double)(s->K * s->N * s->batch) * element,
                 grain = 4.0 * t->lanes * (t->b_along_n ? 1 : t->VB);
    t->once = l->gpu && r->dtype == FAC_F32 && t->VB >= 4 && !t->b_along_n && s->batch == 1 &&
              bytes > CACHED;
    for (int64_t splits = 1;
         splits <= SPLITS && (splits == 1 || (double)s->K >= (double)splits * grain); splits *= 2) {
        const int64_t each = fac_gpu_parts(fac_gpu_parts(s->K ? s->K : 1, splits), 8) * 8;
        double time = fac_gpu_speed_of(l)->launch +
                      seconds(l, bytes, groups * (double)splits, s->M == 1 && t->VB >= 4);
        if (splits > 1)
            time += fac_gpu_costs.second_launch +
                    8.0 * (double)(s->M * s->N * s->batch * splits) / fac_gpu_bandwidth(l);
        if (splits > 1 && time >= t->seconds) continue;
        t->seconds = time;
        t->splits = fac_gpu_parts(s->K ? s->K : 1, each);
        t->each_k = each;
    }
    return true;
}
