/* Does wgmma work here?  D = A B with A[r][k] = r + k (64 x 8) and B[k][n] = 1 + n (8 x 8): D[r][n]
 * = (1 + n) (8 r + 28). */
kernel GROUP(128) void probe(global int *y) {
    local float a[64 * 32] __attribute__((aligned(1024))), b[8 * 32] __attribute__((aligned(1024)));
    const int i = get_local_id(0);
    for (int e = i; e < 64 * 8; e += 128) {
        const int r = e / 8, k = e % 8, place = r * 32 + ((k / 4) ^ (r & 7)) * 4 + k % 4;
        a[place] = r + k;
        if (r < 8) b[place] = 1 + r;
    }
    nv_proxy_fence();
    barrier(CLK_LOCAL_MEM_FENCE);
    float d[4] = { 0, 0, 0, 0 };
    NV_WGMMA_FENCE();
    wgmma_tf32_n8_ss(d, nv_descriptor128(LOCAL_AT(a)), nv_descriptor128(LOCAL_AT(b)));
    NV_WGMMA_COMMIT();
    NV_WGMMA_WAIT(0);
    if (i < 64) y[i] = (int)(d[0] + d[1] + d[2] + d[3]);
}
