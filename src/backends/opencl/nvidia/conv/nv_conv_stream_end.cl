/* Moments that a group keeps while it takes tile after tile (after nv_moments.cl and
 * nv_conv_stream.cl): those of all rows that a consumer has seen, a column or two in registers of
 * each item.  So its tiles must have the same channels, `across` divides the number of groups.
 * After the last tile consumers join theirs and leave them as [part][mean, m2][channels]
 * with a count for each group.  Of the groups with the same channels, of all phases, the one that
 * comes last joins the parts, in their order, and writes what nv_moments_end.cl would write in a
 * launch of its own. */
#define CONSUMING (128 * CONSUMERS)
enum { AT_END = 12 }; /* a barrier that nothing else uses */

typedef struct {
    long first, second, var, done;
} endings;
typedef struct {
    float mean[MOMENT_COLUMNS], m2[MOMENT_COLUMNS], n;
} moments_kept;

INLINE void keep_moments(moments_kept *k, const float *mean, const float *m2, float n) {
    const float w = n > 0 ? n / (k->n + n) : 0, nw = k->n * w;
    UNROLL
    for (int i = 0; i < MOMENT_COLUMNS; i++) nv_join(&k->mean[i], &k->m2[i], mean[i], m2[i], w, nw);
    k->n += n;
}

/* The consumers' become those of the first one: own has MOMENT_FLOATS for each of them. */
INLINE void join_consumers(moments_kept *k, local float *own, int item) {
    const int consumer = item >> 7, c0 = item & 127;
    local float *mine = own + consumer * MOMENT_FLOATS;
    UNROLL
    for (int i = 0; i < MOMENT_COLUMNS; i++) {
        const int c = c0 + 128 * i;
        if (c < BN) {
            mine[c] = k->mean[i];
            mine[BN + c] = k->m2[i];
        }
    }
    if (c0 == 0) mine[8 * BN] = k->n;
    nv_meet(AT_END, CONSUMING);
    if (consumer) return;
    for (int j = 1; j < CONSUMERS; j++) {
        local const float *of = own + j * MOMENT_FLOATS;
        float mean[MOMENT_COLUMNS], m2[MOMENT_COLUMNS];
        UNROLL
        for (int i = 0; i < MOMENT_COLUMNS; i++) {
            const int c = c0 + 128 * i;
            mean[i] = c < BN ? of[c] : 0;
            m2[i] = c < BN ? of[BN + c] : 0;
        }
        keep_moments(k, mean, m2, of[8 * BN]);
    }
}

INLINE float nv_sqrt(float x) {
    float r;
    asm("sqrt.rn.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

/* Four channels an item, parts shared out among DOWN items, all loads of AT_ONCE of them on their
 * way before the first is needed. sums: 2 float4 and 1 float for each item. */
INLINE void join_parts(const sizes *s, const endings *e, global const float *moments,
                       local float4 *sums, int item, global float *first, global float *second,
                       global const float *var) {
    enum { QUADS = BN / 4, DOWN = CONSUMING / QUADS, AT_ONCE = 4 };
    const int down = item / QUADS, own = get_group_id(0) % s->across * BN + item % QUADS * 4;
    const bool there = own < s->rows;
    const int channel = there ? own : 0;
    global const float *count =
        moments + (long)s->parts * 2 * s->rows + get_group_id(0) % s->across;
    local float *counts = (local float *)(sums + 2 * CONSUMING);
    const float4 around = *(global const float4 *)(moments + channel);
    float4 sum = 0, square = 0;
    float n = 0;
    for (int i = down; i < s->parts; i += AT_ONCE * DOWN) {
        float4 a[AT_ONCE], b[AT_ONCE];
        float have[AT_ONCE];
        UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            const int part = i + u * DOWN < s->parts ? i + u * DOWN : s->parts - 1;
            global const float *p = moments + (long)part * 2 * s->rows + channel;
            a[u] = *(global const float4 *)p;
            b[u] = *(global const float4 *)(p + s->rows);
            have[u] = count[(long)part * s->across];
        }
        UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            if (i + u * DOWN >= s->parts) continue;
#ifdef NORM
            sum += a[u];
            square += b[u];
#else
            const float4 d = a[u] - around;
            sum += d * have[u];
            square += b[u] + d * d * have[u];
            n += have[u];
#endif
        }
    }
    sums[item] = sum;
    sums[CONSUMING + item] = square;
    counts[item] = n;
    nv_meet(AT_END, CONSUMING);
    if (down || !there) return;
    for (int k = 1; k < DOWN; k++) {
        sum += sums[k * QUADS + item];
        square += sums[CONSUMING + k * QUADS + item];
        n += counts[k * QUADS + item];
    }
#ifdef NORM
    const float4 v = *(global const float4 *)(var + e->var + channel) + (float)(EPSILON);
    *(global float4 *)(first + e->first + channel) =
        square / (float4)(nv_sqrt(v.s0), nv_sqrt(v.s1), nv_sqrt(v.s2), nv_sqrt(v.s3));
    *(global float4 *)(second + e->second + channel) = sum;
#else
    const float4 mean = sum / n, spread = square / n - mean * mean;
    *(global float4 *)(first + e->first + channel) = around + mean;
    *(global float4 *)(second + e->second + channel) =
        (float4)(fmax(spread.s0, 0.0f), fmax(spread.s1, 0.0f), fmax(spread.s2, 0.0f),
                 fmax(spread.s3, 0.0f));
#endif
}

/* item of CONSUMING, all of which come here.  own: MOMENT_FLOATS for each consumer; stages: no
 * longer needed by anybody. */
INLINE void end_moments(const sizes *s, const endings *e, moments_kept *k, local float *own,
                        local void *stages, local uint *last, int item, global float *moments,
                        global float *first, global float *second, global const float *var,
                        global uint *done) {
    const int block = get_group_id(0) % s->across,
              part = s->first_part + get_group_id(0) / s->across;
    moments += s->moments;
    done += e->done + block;
    join_consumers(k, own, item);
    if (item < 128) {
        global float *counted = moments + (long)s->parts * 2 * s->rows + part * s->across + block;
        nv_put_columns(k->mean, k->m2, k->n, item, block * BN, s->rows, s->rows,
                       moments + (long)part * 2 * s->rows, counted);
        if (item == 0) *counted = k->n;
        nv_fence_device();
    }
    nv_meet(AT_END, CONSUMING);
    if (item == 0) *last = nv_count(done) == (uint)s->parts - 1;
    nv_meet(AT_END, CONSUMING);
    if (!*last) return;
    nv_fence_device();
    if (item == 0) *done = 0;
    join_parts(s, e, moments, stages, item, first, second, var);
}
