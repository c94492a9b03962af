/* The parts of a gradient by weights, [part][k][tap][c], added in a fixed order and written as dw[k][c][tap]: eight items add
 * every eighth part of four neighbours, then one adds the eight. */
typedef struct sizes { long parts, dw, count, splits, channels, taps; } sizes;     /* count: elements of dw */

kernel GROUP(256) void grad_w_sum(const sizes s, global const float *restrict parts, global RESULT *restrict dw) {
    local float4 sums[8][32];
    const int id = get_local_id(0), lane = id % 32, turn = id / 32, C = (int)s.channels, taps = (int)s.taps;
    const long i = ((long)get_group_id(0) * 32 + lane) * 4;
    float4 x = (float4)(0);
    if (i < s.count) {
        global const float *from = parts + s.parts + i;
        for (int z = turn; z < (int)s.splits; z += 8) x += *(global const float4 *)(from + z * s.count);
    }
    sums[turn][lane] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (turn || i >= s.count) return;
    UNROLL for (int z = 1; z < 8; z++) x += sums[z][lane];
    const int n = (int)(i % (taps * C)), tap = n / C, c = n % C;
    dw += s.dw + i / (taps * C) * taps * C + (long)c * taps + tap;
    STORE(dw, 0, x.x);
    STORE(dw, taps, x.y);
    STORE(dw, 2 * taps, x.z);
    STORE(dw, 3 * taps, x.w);
}
