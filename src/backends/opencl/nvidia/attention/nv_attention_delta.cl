/* Before gradients of attention: stats[row] = lse in units of ln 2, sum of dy y.  Rows after the
 * last one get a weight of zero. Eight items a row. */
typedef struct args {
    long y, dy, lse, stats, H, rows, padded, e, y_batch, y_head, y_row, dy_batch, dy_head, dy_row;
} args;
kernel GROUP(256) void delta(const args a, global const MEMORY(X) * y, global const MEMORY(X) * dy,
                             global const float *lse, global float2 *stats) {
    const int lane = get_local_id(0) & 7;
    const int row = (int)get_group_id(0) * 32 + (get_local_id(0) >> 3);
    const long bh = get_group_id(1), b = bh / a.H, h = bh % a.H;
    float sum = 0;
    if (row < a.rows) {
        global const MEMORY(X) *p = y + a.y + b * a.y_batch + h * a.y_head + row * a.y_row;
        global const MEMORY(X) *q = dy + a.dy + b * a.dy_batch + h * a.dy_head + row * a.dy_row;
#if defined(ALIGNED) && defined(SAME)
        for (int i = lane * 8; i < a.e; i += 64) {
            const uint4 v = *(global const uint4 *)(p + i), w = *(global const uint4 *)(q + i);
            const uint x[] = { v.x, v.y, v.z, v.w }, z[] = { w.x, w.y, w.z, w.w };
            UNROLL
            for (int j = 0; j < 4; j++) {
                float m[2], n[2];
                FAC_CAT(apart_, X)(m, x[j]), FAC_CAT(apart_, X)(n, z[j]);
                sum = fma(m[1], n[1], fma(m[0], n[0], sum));
            }
        }
#else
        for (int i = lane * 4; i < a.e; i += 32) {
            UNROLL
            for (int j = 0; j < 4; j++)
                if (i + j < a.e) sum = fma(FROM(X, p[i + j]), FROM(X, q[i + j]), sum);
        }
#endif
    }
    sum += nv_other_lane(sum, 1);
    sum += nv_other_lane(sum, 2);
    sum += nv_other_lane(sum, 4);
    if (lane == 0 && row < a.padded)
        stats[a.stats + bh * a.padded + row] =
            row < a.rows ? (float2)(lse[a.lse + bh * a.rows + row] * LOG2E, sum)
                         : (float2)(INFINITY, 0);
}
