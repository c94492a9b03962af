/* The bits that are set in both of a row of 256 and of a column, counted by mma.sync, or with WGMMA
 * by wgmma: a_of and b_of of words 0 .. 7, as bits_probe.c has them. */
static uint a_of(int r, int w) {
    if (w == (r & 7)) return (2u << r) - 1u;
    return w == ((r + 1) & 7) ? ~0u : 0u;
}
static uint b_of(int n, int w) {
    if (w == n) return ~0u;
    return w == ((n + 1) & 7) ? (1u << 4 * n) - 1u : 0u;
}
#ifdef WGMMA
kernel GROUP(128) void probe(global int *y) {
    local uchar tiles[72 * 64] __attribute__((aligned(1024))); /* 64 rows and 8 columns */
    const int i = (int)get_local_id(0);
    int d[4] = { 0, 0, 0, 0 };
    for (int k = i; k < 72 * 16; k += 128) {
        const int row = k / 16, word = k % 16;
        const uint bits = row < 64 ? a_of(row & 15, word) : b_of(row - 64, word);
        const int at = row * 64 + (((word >> 2) ^ (row >> 1 & 3)) << 4) + (word & 3) * 4;
        *(local uint *)(tiles + at) = word < 8 ? bits : 0;
    }
    nv_proxy_fence();
    barrier(CLK_LOCAL_MEM_FENCE);
    NV_WGMMA_FENCE();
    wgmma_bits(d, nv_descriptor64(LOCAL_AT(tiles)), nv_descriptor64(LOCAL_AT(tiles) + 64 * 64));
    NV_WGMMA_COMMIT();
    wgmma_wait0(d);
    if (i < 64) y[i] = d[0] + 100 * d[1] + 10000 * d[2] + 1000000 * d[3];
}
#else
kernel void probe(global int *y) {
    const int i = (int)get_local_id(0), g = (i & 31) >> 2, t = i & 3;
    int d0, d1, d2, d3;
    asm volatile(
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%10,%10,%10,%10};"
        : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)
        : "r"(a_of(g, t)), "r"(a_of(g + 8, t)), "r"(a_of(g, t + 4)), "r"(a_of(g + 8, t + 4)),
          "r"(b_of(g, t)), "r"(b_of(g, t + 4)), "r"(0));
    y[i] = d0 + 100 * d1 + 10000 * d2 + 1000000 * d3;
}
#endif
