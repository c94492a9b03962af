/* y[to] = x[from] where both places are affine in the same R coordinates: reorders, transpositions,
 * windows, repetitions. Options: M, a type as large as an element; R, how many dims, the last one
 * the one that moves least in y; WIDE; AHEAD; TILE. */
typedef struct {
    long x, y, units, runs, run, size[R], from[R], to[R];
} numbers;

#ifdef AHEAD
/* On a GPU a unit is an element; an item does AHEAD of them, a group's width from one another,
 * which are all on their way before the first has come. */
kernel void copy(const numbers s, global const M *x, global M *y) {
    const pos side = (pos)get_local_size(0), units = (pos)s.units,
              unit = (pos)get_group_id(0) * side * AHEAD + (pos)get_local_id(0);
    M v[AHEAD];
    pos to[AHEAD];
    x += s.x;
    y += s.y;
#pragma unroll
    for (int n = 0; n < AHEAD; n++) {
        pos rest = min(unit + n * side, units - 1), from = 0;
        to[n] = 0;
        for (int k = R - 1; k >= 0; k--) {
            const pos c = k ? rest % (pos)s.size[k] : rest;
            if (k) rest /= (pos)s.size[k];
            from += c * (pos)s.from[k];
            to[n] += c * (pos)s.to[k];
        }
        v[n] = x[from];
    }
#pragma unroll
    for (int n = 0; n < AHEAD; n++)
        if (unit + n * side < units) y[to[n]] = v[n];
}
#else
/* A unit is a run of neighbours along the last dim. */
kernel void copy(const numbers s, global const M *x, global M *y) {
    if ((pos)get_global_id(0) >= (pos)s.units) return;
    const pos unit = (pos)get_global_id(0), first = unit % (pos)s.runs * (pos)s.run,
              left = (pos)s.size[R - 1] - first;
    const pos n = left < (pos)s.run ? left : (pos)s.run, a = (pos)s.from[R - 1],
              b = (pos)s.to[R - 1];
    pos rest = unit / (pos)s.runs, from = first * a, to = first * b;
    for (int k = R - 2; k >= 0; k--) {
        const pos c = rest % (pos)s.size[k];
        rest /= (pos)s.size[k];
        from += c * (pos)s.from[k];
        to += c * (pos)s.to[k];
    }
    x += s.x + from;
    y += s.y + to;
    if (a == 1 && b == 1)
        for (pos i = 0; i < n; i++) y[i] = x[i];
    else if (a == 0 && b == 1)
        for (pos i = 0; i < n; i++) y[i] = x[0];
    else
        for (pos i = 0; i < n; i++) y[i * b] = x[i * a];
}
#endif

/* Neighbours in x lie along dim R - 2, neighbours in y along dim R - 1: squares of TILE x TILE go
 * through local memory, read and written in rows.  A group is TILE items in a row, ROWS rows; its
 * local rows are one longer, so that columns meet all banks. */
#ifdef TILE
/* Where the square of this group begins, along both dims and in both tensors. */
#define SQUARE_OF_GROUP                                                                            \
    const pos np = (pos)s.size[R - 2], nq = (pos)s.size[R - 1];                                    \
    pos rest = (pos)get_group_id(0), from = 0, to = 0;                                             \
    const pos p = rest % (pos)s.units * TILE, q = rest / (pos)s.units % (pos)s.runs * TILE;        \
    rest /= (pos)s.units * (pos)s.runs;                                                            \
    for (int k = R - 3; k >= 0; k--) {                                                             \
        const pos c = rest % (pos)s.size[k];                                                       \
        rest /= (pos)s.size[k];                                                                    \
        from += c * (pos)s.from[k];                                                                \
        to += c * (pos)s.to[k];                                                                    \
    }                                                                                              \
    x += s.x + from;                                                                               \
    y += s.y + to;

#ifdef PAIRS
/* Elements of 16 bits, eight an access on both sides; in local memory two neighbours in x are a
 * word.  An item reads and writes SHARE accesses, the former all on their way before the first is
 * needed; two of the latter come from the same eight words. */
enum { LANES = TILE / 8, SHARE = TILE * LANES / ITEMS, BESIDE = 8 };

kernel void transpose(const numbers s, global const M *x, global M *y) {
    local uint tile[TILE][TILE / 2 + 1];
    SQUARE_OF_GROUP
    const int item = (int)get_local_id(0), lane = item % LANES, row = item / LANES;
    uint4 v[SHARE];
#pragma unroll
    for (int n = 0; n < SHARE; n++) {
        const pos i = p + lane * 8, j = q + row + n * (ITEMS / LANES);
        v[n] =
            i < np && j < nq ? *(global const uint4 *)(x + i + j * (pos)s.from[R - 1]) : (uint4)(0);
    }
#pragma unroll
    for (int n = 0; n < SHARE; n++) {
        local uint *to = tile[row + n * (ITEMS / LANES)] + lane * 4;
        to[0] = v[n].x;
        to[1] = v[n].y;
        to[2] = v[n].z;
        to[3] = v[n].w;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int n = 0; n < SHARE / 2; n++) {
        const int column = (item % BESIDE + n % (LANES / BESIDE) * BESIDE) * 8;
        const int pair = item / BESIDE + n / (LANES / BESIDE) * (ITEMS / BESIDE);
        const pos i = p + pair * 2, j = q + column;
        uint e[8];
#pragma unroll
        for (int l = 0; l < 8; l++) e[l] = tile[column + l][pair];
        if (i >= np || j >= nq) continue;
        global M *to = y + i * (pos)s.to[R - 2] + j;
        *(global uint4 *)to = (uint4)((e[0] & 0xffff) | e[1] << 16, (e[2] & 0xffff) | e[3] << 16,
                                      (e[4] & 0xffff) | e[5] << 16, (e[6] & 0xffff) | e[7] << 16);
        *(global uint4 *)(to + s.to[R - 2]) =
            (uint4)(e[0] >> 16 | (e[1] & 0xffff0000), e[2] >> 16 | (e[3] & 0xffff0000),
                    e[4] >> 16 | (e[5] & 0xffff0000), e[6] >> 16 | (e[7] & 0xffff0000));
    }
}
#elif defined(NEAR)
/* NEAR elements an access on both sides; an item does SHARE accesses, all on their way before the
 * first is needed. */
#define MANY FAC_CAT(M, NEAR)
enum { LANES = TILE / NEAR, SHARE = TILE * LANES / ITEMS };

kernel void transpose(const numbers s, global const M *x, global M *y) {
    local M tile[TILE][TILE + 1];
    SQUARE_OF_GROUP
    const int item = (int)get_local_id(0), column = item % LANES * NEAR, row = item / LANES;
    MANY v[SHARE];
#pragma unroll
    for (int n = 0; n < SHARE; n++) {
        const pos i = p + column, j = q + row + n * (ITEMS / LANES);
        v[n] =
            i < np && j < nq ? *(global const MANY *)(x + i + j * (pos)s.from[R - 1]) : (MANY)(0);
    }
#pragma unroll
    for (int n = 0; n < SHARE; n++)
        FAC_CAT(vstore, NEAR)(v[n], 0, &tile[row + n * (ITEMS / LANES)][column]);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int n = 0; n < SHARE; n++) {
        const pos i = p + row + n * (ITEMS / LANES), j = q + column;
        M e[NEAR];
        for (int l = 0; l < NEAR; l++) e[l] = tile[column + l][row + n * (ITEMS / LANES)];
        if (i < np && j < nq)
            *(global MANY *)(y + i * (pos)s.to[R - 2] + j) = FAC_CAT(vload, NEAR)(0, e);
    }
}
#else
kernel void transpose(const numbers s, global const M *x, global M *y) {
    local M tile[TILE][TILE + 1];
    SQUARE_OF_GROUP
    const pos column = (pos)get_local_id(0), row = (pos)get_local_id(1);
#pragma unroll
    for (pos i = row; i < TILE; i += ROWS)
        if (p + column < np && q + i < nq)
            tile[i][column] = x[(p + column) * (pos)s.from[R - 2] + (q + i) * (pos)s.from[R - 1]];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (pos i = row; i < TILE; i += ROWS)
        if (q + column < nq && p + i < np)
            y[(p + i) * (pos)s.to[R - 2] + (q + column) * (pos)s.to[R - 1]] = tile[column][i];
}
#endif
#endif
