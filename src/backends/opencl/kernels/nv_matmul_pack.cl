/* A matrix of any strides as the images that nv_matmul.cl copies in one piece: [matrix][block of ROWS rows][k-tile][row][128
 * bytes], the 16-byte chunks of a row swizzled for wgmma, what is outside of the matrix zero.
 *
 *   MEM, LOAD(p, i)  elements of the matrix as floats
 *   ROWS             of a tile;  PERMUTED: in the order in which lanes hold four neighbours
 *   MAKE             FLOATS as they are, ROUNDED to TF32, SPLIT into high and low parts (two tiles), HALVES: PAIR(a, b)
 *   ALONG_K          terms are neighbours in memory, else rows */
#define FLOATS 0
#define ROUNDED 1
#define SPLIT 2
#define HALVES 3
#define CHUNK (MAKE == HALVES ? 8 : 4)
#define TERMS (8 * CHUNK)
#define LINES (ROWS < 64 ? ROWS : 64)           /* rows of a group */

typedef struct { long at, row, term, z[4], to; int size[4], rows, terms, k_tiles, blocks; } packing;

INLINE int lying(int c) { return PERMUTED ? (c & ~15) | (c & 2) << 2 | (c & 12) >> 1 | (c & 1) : c; }
/* Infinity and NaN stay what they are. */
INLINE uint rounded(float x) {
    const uint bits = as_uint(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : bits + 0x1000u;
}

kernel GROUP(256)
void pack(const packing w, global const MEM *restrict x, global uint4 *restrict image) {
    local float tile[TERMS][LINES + 1];
    const int id = get_local_id(0), k0 = get_group_id(0) * TERMS, r0 = get_group_id(1) * LINES, zi = get_group_id(2);
    const int z3 = zi % w.size[3], z2 = zi / w.size[3] % w.size[2], z1 = zi / w.size[3] / w.size[2] % w.size[1],
        z0 = zi / w.size[3] / w.size[2] / w.size[1];
    x += w.at + z0 * w.z[0] + z1 * w.z[1] + z2 * w.z[2] + z3 * w.z[3] + r0 * w.row + k0 * w.term;
    UNROLL for (int i = 0; i < TERMS * LINES; i += 256) {
        const int at = i + id, k = ALONG_K ? at % TERMS : at / LINES, r = ALONG_K ? at / TERMS : at % LINES;
        tile[k][r] = r0 + r < w.rows && k0 + k < w.terms ? LOAD(x, r * w.row + k * w.term) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    image += w.to + (((long)zi * w.blocks + r0 / ROWS) * w.k_tiles + get_group_id(0)) * (ROWS * 8 * (MAKE == SPLIT ? 2 : 1));
    for (int at = id; at < LINES * 8; at += 256) {
        const int r = at >> 3, chunk = at & 7, lies = lying(r0 % ROWS + r), to = lies * 8 + (chunk ^ (lies & 7));
        float v[CHUNK];
        uint u[4], low[4];
        UNROLL for (int e = 0; e < CHUNK; e++) v[e] = tile[chunk * CHUNK + e][r];
        UNROLL for (int e = 0; e < 4; e++) {
#if MAKE == HALVES
            u[e] = PAIR(v[2 * e], v[2 * e + 1]);
#else
            u[e] = MAKE == FLOATS ? as_uint(v[e]) : MAKE == ROUNDED ? rounded(v[e]) : nv_high(v[e]);
            low[e] = nv_low(v[e]);
#endif
        }
        image[to] = (uint4)(u[0], u[1], u[2], u[3]);
        if (MAKE == SPLIT) image[to + ROWS * 8] = (uint4)(low[0], low[1], low[2], low[3]);
    }
}
