/* A matrix of any strides as the images that nv_matmul.cl copies in one piece: [matrix][block of
 * ROWS rows][k-tile][row][128 bytes], the 16-byte chunks of a row swizzled for wgmma, what is
 * outside of the matrix zero.
 *
 *   MEM, LOAD(p, i)  elements of the matrix as floats
 *   ROWS             of a tile;  LINES: those of a group of items;  PERMUTED: in the order in
 *                    which lanes hold four neighbours
 *   MAKE             FLOATS as they are, ROUNDED to TF32, SPLIT into high and low parts (two
 *                    tiles), HALVES: PAIR(a, b)
 *   ALONG_K          terms are neighbours in memory, else rows;  FOURS: read by fours, LOAD4(v,
 *                    p) */
#define FLOATS 0
#define ROUNDED 1
#define SPLIT 2
#define HALVES 3
#define CHUNK (MAKE == HALVES ? 8 : 4)
#define TERMS (8 * CHUNK)
#define ITEMS 256

typedef struct {
    long at, row, term, z[4], to;
    int size[4], rows, terms, k_tiles, blocks;
} packing;

INLINE int lying(int c) {
    return PERMUTED ? (c & ~15) | (c & 2) << 2 | (c & 12) >> 1 | (c & 1) : c;
}
/* Infinity and NaN stay what they are. */
INLINE uint rounded(float x) {
    const uint bits = as_uint(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : bits + 0x1000u;
}
INLINE uint high_of(float x) {
    if (MAKE == FLOATS) return as_uint(x);
    return MAKE == ROUNDED ? rounded(x) : nv_high(x);
}

/* One chunk of row r, to a tile's image. */
INLINE void put(global uint4 *image, int r, int chunk, const float *v) {
    const int lies = lying(r), to = lies * 8 + (chunk ^ (lies & 7));
    uint u[4], low[4];
    UNROLL
    for (int e = 0; e < 4; e++) {
#if MAKE == HALVES
        u[e] = PAIR(v[2 * e], v[2 * e + 1]);
#else
        u[e] = high_of(v[e]);
        low[e] = nv_low(v[e]);
#endif
    }
    image[to] = (uint4)(u[0], u[1], u[2], u[3]);
    if (MAKE == SPLIT) image[to + ROWS * 8] = (uint4)(low[0], low[1], low[2], low[3]);
}

/* Four neighbours from element i on, those below `left` of them; others are zero. */
INLINE void take4(float *v, global const MEM *x, long i, long step, int left) {
#if FOURS
    if (left > 0)
        LOAD4(v, x + i);
    else
        UNROLL
    for (int e = 0; e < 4; e++) v[e] = 0;
#else
    UNROLL
    for (int e = 0; e < 4; e++) v[e] = e < left ? LOAD(x, i + e * step) : 0;
#endif
}

kernel GROUP(ITEMS) void pack(const packing w, global const MEM *restrict x,
                              global uint4 *restrict image) {
    const int id = get_local_id(0), k0 = get_group_id(0) * TERMS, r0 = get_group_id(1) * LINES,
              zi = get_group_id(2);
    const int z3 = zi % w.size[3], z2 = zi / w.size[3] % w.size[2],
              z1 = zi / w.size[3] / w.size[2] % w.size[1],
              z0 = zi / w.size[3] / w.size[2] / w.size[1];
    x += w.at + z0 * w.z[0] + z1 * w.z[1] + z2 * w.z[2] + z3 * w.z[3] + r0 * w.row + k0 * w.term;
    image += w.to + (((long)zi * w.blocks + r0 / ROWS) * w.k_tiles + get_group_id(0)) *
                        (ROWS * 8 * (MAKE == SPLIT ? 2 : 1));
    const int rows = w.rows - r0, terms = w.terms - k0;
#if ALONG_K
    float v[(LINES * 8 + ITEMS - 1) / ITEMS][CHUNK];
    UNROLL
    for (int i = 0; i < LINES * 8; i += ITEMS) {
        const int r = (i + id) >> 3, k = ((i + id) & 7) * CHUNK;
        UNROLL
        for (int e = 0; e < CHUNK; e += 4)
            take4(v[i / ITEMS] + e, x, r * w.row + (k + e) * w.term, w.term,
                  r < rows ? terms - k - e : 0);
    }
    UNROLL
    for (int i = 0; i < LINES * 8; i += ITEMS)
        if (i + id < LINES * 8) put(image, r0 % ROWS + ((i + id) >> 3), (i + id) & 7, v[i / ITEMS]);
#else
    local float tile[TERMS][LINES + 1];
    UNROLL
    for (int i = 0; i < TERMS * LINES / 4; i += ITEMS) {
        const int r = (i + id) % (LINES / 4) * 4, k = (i + id) / (LINES / 4);
        float v[4];
        take4(v, x, r * w.row + k * w.term, w.row, k < terms ? rows - r : 0);
        if (k < TERMS) UNROLL
        for (int e = 0; e < 4; e++) tile[k][r + e] = v[e];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL
    for (int i = 0; i < LINES * 8; i += ITEMS) {
        const int r = (i + id) >> 3, chunk = (i + id) & 7;
        float v[CHUNK];
        if (i + id >= LINES * 8) continue;
        UNROLL
        for (int e = 0; e < CHUNK; e++) v[e] = tile[chunk * CHUNK + e][r];
        put(image, r0 % ROWS + r, chunk, v);
    }
#endif
}
