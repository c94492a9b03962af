/* Products of rows of x with weights in blocks, in f32: y[m][n] = sum over k of x[m][k] w[n][k]
 * (+ b[n]), and then what finish() says (linear_blocks.c).  After blocks.cl.
 *
 * LANES items share a row of w: each takes every LANES-th unit of eight numbers, two fours that lie
 * `apart` in x, and meets TM rows of x with them.  Weights are read once for TM rows, neighbours
 * together; they begin at multiples of four.  Options: those of elements.cl; TYPE_*, BYTES of a
 * block, UNITS in one; LANES, ROWS of w in a group, TM. */
typedef struct {
    long x, w, b, y;
#if EXTRAS
    long e[EXTRAS];
#endif
    long M, N, K, biased;
} numbers;

#ifdef FAC_EXCHANGE
EXCHANGER(exchanged, float)
#endif

kernel void rows(const numbers s, global const float *x, global const uchar *w,
                 global const float *b, global float *y EXTRA_PARAMS) {
    const int item = (int)get_local_id(0), lane = item % LANES;
    const long n = (long)get_group_id(0) * ROWS + item / LANES;
    const long first = (long)get_group_id(1) * TM;
    const long blocks = s.K / (8 * UNITS);
    float sum[TM];
    for (int m = 0; m < TM; m++) sum[m] = 0;
    if (n < s.N) {
        global const uchar *row = w + s.w + n * blocks * BYTES;
        for (long i = lane; i < blocks * UNITS; i += LANES) {
            const long block = i / UNITS;
            const unit v = unit_of(row + block * BYTES, (int)(i % UNITS));
            for (int m = 0; m < TM; m++) {
                const long at = min(first + m, s.M - 1) * s.K + block * (8 * UNITS) + v.at;
                global const float4 *of = (global const float4 *)(x + s.x + at);
                sum[m] += dot(v.a, of[0]) + dot(v.b, of[v.apart / 4]);
            }
        }
    }
#if LANES > 1
    /* items of a subgroup read each other's registers, what is left goes through local memory */
    local float part[ROWS * LANES];
    for (int m = 0; m < TM; m++) {
        int near = 1;
#ifdef FAC_EXCHANGE
        for (; near < LANES && near < fac_lanes(); near *= 2) sum[m] += exchanged(sum[m], near);
#endif
        if (near == LANES) continue;
        part[item] = sum[m];
        for (int step = LANES / 2; step >= near; step /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane < step) part[item] += part[item + step];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        sum[m] = part[item];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif
    if (lane || n >= s.N) return;
    for (int m = 0; m < TM; m++) {
        if (first + m >= s.M) continue;
        if (s.biased) sum[m] += b[s.b + n];
        const long at = (first + m) * s.N + n;
        y[s.y + at] = finish(sum[m], at EXTRA_ARGS);
    }
}
