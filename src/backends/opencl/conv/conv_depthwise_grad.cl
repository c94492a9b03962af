/* The gradient of a depthwise convolution with channels last by its weights.  A group takes some
 * channels and every splits-th tile of all images: items sum all taps of their tiles, then the sums
 * of the group's items are added, always in the same order, to parts [split][tap][channel].
 * depthwise_sum adds these. */
#define TAPS (KR * KS)

#ifndef SUM
typedef struct {
    long x, dy, parts;
    quads g;
    long images, down_tiles, across_tiles, splits;
} numbers;

enum { AT_ONCE = 8 }; /* taps in local memory */

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void depthwise_weights(
    const numbers s, global const MEMORY(IN) *restrict x, global const MEMORY(IN) *restrict dy,
    global float *parts) {
    local float4 team[AT_ONCE][GROUP];
    const int id = get_local_id(0), lanes = s.g.lanes, lane = id % lanes, items = GROUP / lanes,
              me = id / lanes;
    const int channel = (get_group_id(0) * lanes + lane) * 4, down = s.down_tiles,
              across = s.across_tiles;
    const int tiles = (int)s.images * down * across, split = get_group_id(1), splits = s.splits;
    float4 sum[TAPS];
    UNROLL
    for (int t = 0; t < TAPS; t++) sum[t] = 0;
    x += s.x + channel;
    dy += s.dy + channel;
    for (int tile = split * items + me; tile < tiles && me < items && channel < s.g.channels;
         tile += splits * items) {
        const int q = tile % across * TQ, p = tile / across % down * TP, n = tile / across / down;
        float4 grad[TP][TQ];
        UNROLL
        for (int i = 0; i < TP; i++) UNROLL
        for (int j = 0; j < TQ; j++)
            grad[i][j] = FETCH4(IN,
                                dy + n * s.g.out.step.n +
                                    ((p + i) * (int)s.g.out.step.h + (q + j) * (int)s.g.out.step.w),
                                p + i < s.g.out.height && q + j < s.g.out.width, 0);
        const int h0 = FIRST_ROW(p), w0 = FIRST_COLUMN(q);
        UNROLL
        for (int a = 0; a < ROWS; a++) {
            float4 seen[COLUMNS];
            SEE_ROW(seen, x + n * s.g.in.step.n, h0 + a, w0, s.g, s.g.in.height, 0);
            UNROLL
            for (int i = 0; i < TP; i++) {
                if (ROW_TAP(i, a) < 0) continue;
                UNROLL
                for (int b = 0; b < COLUMNS; b++) UNROLL
                for (int j = 0; j < TQ; j++)
                    if (COLUMN_TAP(j, b) >= 0)
                        sum[ROW_TAP(i, a) * KS + COLUMN_TAP(j, b)] += seen[b] * grad[i][j];
            }
        }
    }
    UNROLL
    for (int first = 0; first < TAPS; first += AT_ONCE) {
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL
        for (int t = 0; t < AT_ONCE; t++)
            if (first + t < TAPS) team[t][id] = sum[first + t < TAPS ? first + t : 0];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = id; i < lanes * AT_ONCE; i += GROUP) {
            const int t = i / lanes, l = i % lanes, to = (get_group_id(0) * lanes + l) * 4;
            if (first + t >= TAPS || to >= s.g.channels) continue;
            float4 all = team[t][l];
            for (int k = 1; k < items; k++) all += team[t][k * lanes + l];
            *(global float4 *)(parts + s.parts + (split * (long)TAPS + first + t) * s.g.channels +
                               to) = all;
        }
    }
}
#else
typedef struct {
    long parts, dw, channels, splits;
} numbers;

/* dw [channel][tap]: GROUP / 16 items share the parts of 16 neighbours. */
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void depthwise_sum(
    const numbers s, global const float *parts, global MEMORY(OUT) * dw) {
    local float team[GROUP];
    const int id = get_local_id(0), count = s.channels * TAPS, at = get_group_id(0) * 16 + id % 16;
    float sum = 0;
    if (at < count)
        for (int k = id / 16; k < s.splits; k += GROUP / 16)
            sum += parts[s.parts + k * (long)count + at];
    team[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id >= 16 || at >= count) return;
    for (int k = 1; k < GROUP / 16; k++) sum += team[k * 16 + id];
    STORE1(OUT, dw, s.dw + at % s.channels * TAPS + at / s.channels, sum);
}
#endif
