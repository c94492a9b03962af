/* y[to] = x[from] where both places are affine in the same R coordinates: reorders, transpositions, windows, repetitions.
 * Options: M, a type as large as an element; R, how many dims, the last one the one that moves least in y; WIDE; TILE. */
typedef struct { long x, y, units, runs, run, size[R], from[R], to[R]; } numbers;

/* A unit is a run of neighbours along the last dim. */
kernel void copy(const numbers s, global const M *x, global M *y) {
    if ((pos)get_global_id(0) >= (pos)s.units) return;
    const pos unit = (pos)get_global_id(0), first = unit % (pos)s.runs * (pos)s.run, left = (pos)s.size[R - 1] - first;
    const pos n = left < (pos)s.run ? left : (pos)s.run, a = (pos)s.from[R - 1], b = (pos)s.to[R - 1];
    pos rest = unit / (pos)s.runs, from = first * a, to = first * b;
    for (int k = R - 2; k >= 0; k--) {
        const pos c = rest % (pos)s.size[k];
        rest /= (pos)s.size[k];
        from += c * (pos)s.from[k];
        to += c * (pos)s.to[k];
    }
    x += s.x + from;
    y += s.y + to;
    if (a == 1 && b == 1) for (pos i = 0; i < n; i++) y[i] = x[i];
    else if (a == 0 && b == 1) for (pos i = 0; i < n; i++) y[i] = x[0];
    else for (pos i = 0; i < n; i++) y[i * b] = x[i * a];
}

/* Neighbours in x lie along dim R - 2, neighbours in y along dim R - 1: squares of TILE x TILE go through local memory, read and
 * written in rows.  A group is TILE items in a row, ROWS rows; its local rows are one longer, so that columns meet all banks. */
#ifdef TILE
kernel void transpose(const numbers s, global const M *x, global M *y) {
    local M tile[TILE][TILE + 1];
    const pos np = (pos)s.size[R - 2], nq = (pos)s.size[R - 1], column = (pos)get_local_id(0), row = (pos)get_local_id(1);
    pos rest = (pos)get_group_id(0), from = 0, to = 0;
    const pos p = rest % (pos)s.units * TILE, q = rest / (pos)s.units % (pos)s.runs * TILE;     /* squares along both dims */
    rest /= (pos)s.units * (pos)s.runs;
    for (int k = R - 3; k >= 0; k--) {
        const pos c = rest % (pos)s.size[k];
        rest /= (pos)s.size[k];
        from += c * (pos)s.from[k];
        to += c * (pos)s.to[k];
    }
    x += s.x + from;
    y += s.y + to;
#pragma unroll
    for (pos i = row; i < TILE; i += ROWS)
        if (p + column < np && q + i < nq) tile[i][column] = x[(p + column) * (pos)s.from[R - 2] + (q + i) * (pos)s.from[R - 1]];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (pos i = row; i < TILE; i += ROWS)
        if (q + column < nq && p + i < np) y[(p + i) * (pos)s.to[R - 2] + (q + column) * (pos)s.to[R - 1]] = tile[column][i];
}
#endif
