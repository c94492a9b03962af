/* Products of bits by mma.sync, for nv_bits_product.cl.
 *
 * A warp has MS blocks of 16 rows and NS blocks of 8 columns.  mma.sync counts the bits that are
 * set in both operands, 256 at a time: its fragments are those of bf16, with words in the place of
 * two numbers, so ldmatrix reads them. */

#define AHEAD (STAGES - 1)
#define COPIES_WAIT() NV_COPIES_WAIT(AHEAD - 1)

INLINE void nv_mma_bits(int *d, const uint *a, const uint *b) {
    asm volatile(
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* A k-tile's part of all sums of a warp. */
INLINE void multiply(SUMS, PLACE a_tile, PLACE b_tile, int item) {
    const int lane = item & 31, ra = lane & 15, ca = lane >> 4;
    const int rb = (lane & 7) + (lane >> 4) * 8, cb = lane >> 3 & 1;
    const uint a_at = a_tile + (item / 32 % WARPS_M * (MS * ROWS_M) + ra) * ROW +
                      ((ca ^ TURN(ra)) << 4);
    const uint b_at = b_tile + (COLUMN_OF(item) + rb) * ROW + ((cb ^ TURN(rb)) << 4);
    UNROLL
    for (int k = 0; k < ROW / 32; k++) {
        uint a[MS][4];
        UNROLL
        for (int m = 0; m < MS; m++) nv_matrices(a[m], (a_at ^ (32 * k)) + m * (16 * ROW));
        UNROLL
        for (int n = 0; n < NS; n += 2) {
            uint b[4];
            nv_matrices(b, (b_at ^ (32 * k)) + n * (8 * ROW));
            UNROLL
            for (int m = 0; m < MS; m++) {
                nv_mma_bits(sum[m][n], a[m], b);
                nv_mma_bits(sum[m][n + 1], a[m], b + 2);
            }
        }
    }
}
#define MULTIPLIED(sum)
#define ALL_MULTIPLIED(sum)
