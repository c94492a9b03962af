/* Mean and sum of squares about it, of each column of 64 rows of a tile as wgmma leaves them, BN
 * columns wide; for texts after nv_common.cl.  Two sets of numbers are joined as Chan, Golub and
 * LeVeque (1983) do, so nothing is lost where a mean is large against the deviation:
 *
 *     mean = mean_a + d w,   m2 = m2_a + m2_b + d d n_a w      with d = mean_b - mean_a, w = n_b /
 *     (n_a + n_b)
 *
 * (NORM: two sums instead, which are just added, and of a lane's two rows were already.)
 * First the two rows of a lane, then lanes of a warp, each time giving half of the columns away and
 * keeping the others, then the four warps through local memory, always in one order.
 * MOMENTS_MEET(id): a barrier of at least these 128 items. */
#define MOMENT_FLOATS (8 * BN + 4) /* of local memory, for 128 items */
#define MOMENT_MEAN(f) v[8 * ((f) / 4) + 4 * ((f) % 4 / 2) + (f) % 2]
#define MOMENT_M2(f) v[8 * ((f) / 4) + 4 * ((f) % 4 / 2) + (f) % 2 + 2]

INLINE float nv_other_lane(float x, int apart) {
    uint r;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=r"(r)
                 : "r"(as_uint(x)), "r"(apart));
    return as_float(r);
}

INLINE void nv_join(float *mean, float *m2, float of_mean, float of_m2, float w, float nw) {
#ifdef NORM
    *mean += of_mean;
    *m2 += of_m2;
#else
    const float d = of_mean - *mean;
    *mean += d * w;
    *m2 += of_m2 + d * d * nw;
#endif
}

/* Of 2 `count` columns half goes to the lane that is `apart`, and half stays with what comes from
 * there; counts likewise.  A step of its own, since all places must be known where loops are
 * unrolled. */
INLINE float nv_halve(float *v, float n, int lane, int apart, int count) {
    const bool upper = lane & apart;
    const float of_n = nv_other_lane(n, apart), w = of_n > 0 ? of_n / (n + of_n) : 0, nw = n * w;
    UNROLL
    for (int f = 0; f < count; f++) {
        const float mean = MOMENT_MEAN(f), m2 = MOMENT_M2(f), mean1 = MOMENT_MEAN(f + count),
                    m21 = MOMENT_M2(f + count);
        const float of_mean = nv_other_lane(upper ? mean : mean1, apart),
                    of_m2 = nv_other_lane(upper ? m2 : m21, apart);
        MOMENT_MEAN(f) = upper ? mean1 : mean;
        MOMENT_M2(f) = upper ? m21 : m2;
        nv_join(&MOMENT_MEAN(f), &MOMENT_M2(f), of_mean, of_m2, w, nw);
    }
    return n + of_n;
}

/* Columns of an item of 128: item % 128 + 128 k. */
#define MOMENT_COLUMNS ((BN + 127) / 128)

/* v: rows g and g + 8 of this warp's 16, which are there or not; is used up.  item of 128, which
 * meet by MOMENTS_MEET(id).  What the 64 rows make of this item's columns, and how many of them
 * there are. */
INLINE float nv_columns(float *v, bool row0, bool row1, local float *own, int id, int item,
                        float *mean, float *m2) {
    const int lane = item & 31, warp = item >> 5 & 3, g = lane >> 2, t = lane & 3;
    float n = (float)row0 + (float)row1, have = 0;
#ifndef NORM
    const float w0 = row1 ? 1 / n : 0;
    UNROLL
    for (int f = 0; f < BN / 4; f++) {
        const float d = MOMENT_M2(f) - MOMENT_MEAN(f);
        MOMENT_MEAN(f) += d * w0;
        MOMENT_M2(f) = row0 ? d * d * w0 : 0;
    }
#endif
    n = nv_halve(v, n, lane, 16, BN / 8);
    n = nv_halve(v, n, lane, 8, BN / 16);
    n = nv_halve(v, n, lane, 4, BN / 32);
    UNROLL
    for (int k = 0; k < BN / 32; k++) {
        const int f = g * (BN / 32) + k, column = 16 * (f / 4) + 4 * t + f % 4;
        own[2 * BN * warp + column] = MOMENT_MEAN(k);
        own[2 * BN * warp + BN + column] = MOMENT_M2(k);
    }
    if (lane == 0) own[8 * BN + warp] = n;
    MOMENTS_MEET(id);
    UNROLL
    for (int i = 0; i < MOMENT_COLUMNS; i++) {
        const int c = (item & 127) + 128 * i;
        mean[i] = m2[i] = 0;
        if (BN % 128 && c >= BN) continue;
        mean[i] = own[c];
        m2[i] = own[BN + c];
        have = own[8 * BN];
        UNROLL
        for (int k = 1; k < 4; k++) {
            const float more = own[8 * BN + k], w = more > 0 ? more / (have + more) : 0;
            nv_join(&mean[i], &m2[i], own[2 * BN * k + c], own[2 * BN * k + BN + c], w, have * w);
            have += more;
        }
    }
    MOMENTS_MEET(id);
    return have;
}

/* to: means of `all` channels and after them their m2, of which this tile has those from `first` to
 * `end`. */
INLINE void nv_put_columns(const float *mean, const float *m2, float n, int item, int first,
                           int end, int all, global float *to, global float *counted) {
    UNROLL
    for (int i = 0; i < MOMENT_COLUMNS; i++) {
        const int c = (item & 127) + 128 * i;
        if (c >= BN || first + c >= end) continue;
        to[first + c] = mean[i];
        to[all + first + c] = m2[i];
        if (first + c == 0) *counted = n;
    }
}

INLINE void nv_moments(float *v, bool row0, bool row1, local float *own, int id, int item,
                       int first, int end, int all, global float *to, global float *counted) {
    float mean[MOMENT_COLUMNS], m2[MOMENT_COLUMNS];
    const float n = nv_columns(v, row0, row1, own, id, item, mean, m2);
    nv_put_columns(mean, m2, n, item, first, end, all, to, counted);
}
