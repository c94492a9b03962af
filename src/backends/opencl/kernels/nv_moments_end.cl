/* The moments of parts (nv_moments.cl) become mean and variance of each channel: a group does CHANNELS of them, four an item, and
 * joins its items' sums about the mean of the first part.  NORM: gradients of scale and bias, of their sums. */
#define CHANNELS 8
#define ACROSS (CHANNELS / 4)
#define DOWN (ITEMS / ACROSS)
typedef struct { long at, first, second, var; int parts, channels; } sizes;

INLINE float4 load4(global const float *p) { return *(global const float4 *)p; }

kernel GROUP(ITEMS) void moments_end(const sizes s, global const float *restrict from, global float *first, global float *second,
                                     global const float *var) {
    local float4 sums[ITEMS], squares[ITEMS];
    local float counts[ITEMS];
    const int item = get_local_id(0), down = item / ACROSS, channel = get_group_id(0) * CHANNELS + item % ACROSS * 4;
    const bool there = channel < s.channels;
    from += s.at;
    global const float *count = from + (size_t)s.parts * 2 * s.channels;
    float4 sum = 0, square = 0, around = there ? load4(from + channel) : (float4)(0);
    float n = 0;
    _Pragma("unroll 4") for (int i = there ? down : s.parts; i < s.parts; i += DOWN) {
        global const float *p = from + (size_t)i * 2 * s.channels + channel;
#ifdef NORM
        sum += load4(p), square += load4(p + s.channels);
#else
        const float have = count[i];
        const float4 d = load4(p) - around;
        sum += d * have, square += load4(p + s.channels) + d * d * have, n += have;
#endif
    }
    sums[item] = sum, squares[item] = square, counts[item] = n;
    for (int apart = DOWN / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (down < apart) {
            sums[item] += sums[item + apart * ACROSS], squares[item] += squares[item + apart * ACROSS];
            counts[item] += counts[item + apart * ACROSS];
        }
    }
    if (down || !there) return;
#ifdef NORM
    const float4 v = load4(var + s.var + channel) + EPSILON;
    *(global float4 *)(first + s.first + channel) = squares[item] / (float4)(sqrt(v.s0), sqrt(v.s1), sqrt(v.s2), sqrt(v.s3));
    *(global float4 *)(second + s.second + channel) = sums[item];
#else
    n = counts[item], sum = sums[item] / n;
    const float4 spread = squares[item] / n - sum * sum;
    *(global float4 *)(first + s.first + channel) = around + sum;
    *(global float4 *)(second + s.second + channel) = fmax(spread, (float4)(0));
#endif
}
