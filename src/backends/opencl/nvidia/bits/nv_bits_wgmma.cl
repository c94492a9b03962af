/* Products of bits by wgmma, for nv_bits_product.cl: four warps have MS blocks of 64 rows and NS
 * blocks of 8 columns, and both operands are read from local memory.  Those of the last k-tile run
 * while the next one is waited for. */
#define AHEAD (STAGES - 2)
#define COPIES_WAIT()                                                                              \
    do {                                                                                           \
        NV_COPIES_WAIT(AHEAD - 1);                                                                 \
        nv_proxy_fence();                                                                          \
    } while (0)

INLINE void multiply(SUMS, PLACE a_tile, PLACE b_tile, int item) {
    const uint a = a_tile + item / TEAM % WARPS_M * (MS * ROWS_M * ROW);
    const uint b = b_tile + COLUMN_OF(item) * ROW;
    NV_WGMMA_FENCE();
    UNROLL
    for (int k = 0; k < ROW / 32; k++) UNROLL
    for (int m = 0; m < MS; m++)
        wgmma_bits(sum[m][0], nv_descriptor64(a + m * (ROWS_M * ROW)) + 2 * k,
                   nv_descriptor64(b) + 2 * k);
    NV_WGMMA_COMMIT();
}
#define MULTIPLIED(sum) wgmma_wait1(&sum[0][0][0])
#define ALL_MULTIPLIED(sum) wgmma_wait0(&sum[0][0][0])
