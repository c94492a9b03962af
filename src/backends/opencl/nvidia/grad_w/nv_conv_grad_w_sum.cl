/* The parts of a gradient by weights, [part][k][tap][c], added in a fixed order and written as
 * dw[k][c][tap].  A group has `block` channels of one k: `lanes` items of four neighbours each, in
 * as many turns as there is room for; through local memory, where they lie as in dw. */
typedef struct sizes {
    long parts, dw, count, splits, channels, taps, block;
} sizes; /* count: elements of dw */

kernel GROUP(256) void grad_w_sum(const sizes s, global const float *restrict parts,
                                  global RESULT *restrict dw) {
    local float sums[1024];
    const int id = get_local_id(0), C = (int)s.channels, taps = (int)s.taps,
              blocks = (C + (int)s.block - 1) / (int)s.block;
    const int k = get_group_id(0) / blocks, c0 = get_group_id(0) % blocks * (int)s.block;
    const int wide = C - c0 < (int)s.block ? C - c0 : (int)s.block, c_lanes = (int)s.block / 4,
              lanes = c_lanes * taps;
    const int turns = 256 / lanes, turn = id / lanes, lane = id % lanes, tap = lane / c_lanes,
              c = lane % c_lanes * 4;
    if (turn < turns && c < wide) {
        float4 x = (float4)(0);
        global const float *from = parts + s.parts + (long)k * taps * C + tap * C + c0 + c;
        for (int z = turn; z < (int)s.splits; z += turns)
            x += *(global const float4 *)(from + z * s.count);
        local float *to = sums + turn * lanes * 4 + c * taps + tap;
        to[0] = x.x;
        to[taps] = x.y;
        to[2 * taps] = x.z;
        to[3 * taps] = x.w;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    dw += s.dw + ((long)k * C + c0) * taps;
    for (int i = id; i < wide * taps; i += 256) {
        float x = sums[i];
        for (int t = 1; t < turns; t++) x += sums[t * lanes * 4 + i];
        STORE(dw, i, x);
    }
}
