/* The moments of parts (nv_moments.cl) become mean and variance of each channel: a group of ITEMS
 * does ACROSS times four of them, and joins its items' sums about the mean of the first part. NORM:
 * gradients of scale and bias, of their sums. */
#define DOWN (ITEMS / ACROSS)
#define AT_ONCE 4
typedef struct {
    long at, first, second, var;
    int parts, channels;
} sizes;

static inline float4 load4(global const float *p) { return *(global const float4 *)p; }

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void moments_end(
    const sizes s, global const float *restrict from, global float *first, global float *second,
    global const float *var) {
    local float4 sums[ITEMS], squares[ITEMS];
    local float counts[ITEMS];
    const int item = get_local_id(0), down = item / ACROSS,
              own = (get_group_id(0) * ACROSS + item % ACROSS) * 4;
    const bool there = own < s.channels;
    const int channel = there ? own : 0;
    from += s.at;
    global const float *count = from + (size_t)s.parts * 2 * s.channels;
    const float4 around = load4(from + channel);
    float4 sum = 0, square = 0;
    float n = 0;
    for (int i = down; i < s.parts; i += AT_ONCE * DOWN) {
        float4 a[AT_ONCE], b[AT_ONCE]; /* all are on their way before the first is needed */
        float have[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int part = min(i + u * DOWN, s.parts - 1);
            global const float *p = from + (size_t)part * 2 * s.channels + channel;
            a[u] = load4(p);
            b[u] = load4(p + s.channels);
            have[u] = count[part];
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            if (i + u * DOWN >= s.parts) continue;
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
    squares[item] = square;
    counts[item] = n;
    for (int apart = DOWN / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (down < apart) {
            sums[item] += sums[item + apart * ACROSS];
            squares[item] += squares[item + apart * ACROSS];
            counts[item] += counts[item + apart * ACROSS];
        }
    }
    if (down || !there) return;
#ifdef NORM
    const float4 v = load4(var + s.var + channel) + EPSILON;
    *(global float4 *)(first + s.first + channel) =
        squares[item] / (float4)(sqrt(v.s0), sqrt(v.s1), sqrt(v.s2), sqrt(v.s3));
    *(global float4 *)(second + s.second + channel) = sums[item];
#else
    n = counts[item];
    sum = sums[item] / n;
    const float4 spread = squares[item] / n - sum * sum;
    *(global float4 *)(first + s.first + channel) = around + sum;
    *(global float4 *)(second + s.second + channel) = fmax(spread, (float4)(0));
#endif
}
