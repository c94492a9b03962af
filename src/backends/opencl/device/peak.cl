/* What the device can do at best: see ../peaks.c.  One of FMA, READ, COPY, TENSOR, WGMMA, NOTHING
 * is defined. */
#ifdef FMA
enum { CHAINS = 16 };
/* Sixteen sums for each item, none of which waits for another. */
kernel void peak_fma(global float *y, float a, float b, int times) {
    float x[CHAINS];
    for (int k = 0; k < CHAINS; k++) x[k] = get_local_id(0) + k;
    for (int i = 0; i < times; i++)
        for (int k = 0; k < CHAINS; k++) x[k] = fma(x[k], a, b);
    float sum = 0;
    for (int k = 0; k < CHAINS; k++) sum += x[k];
    if (sum == 0.5f) y[get_global_id(0)] = sum; /* never, which the compiler cannot know */
}
#endif

#ifdef READ
/* Four loads of an item on their way at once. */
kernel void peak_read(global const float4 *x, global float *y, ulong n) {
    const ulong all = get_global_size(0);
    float4 sum = 0;
    ulong i = get_global_id(0);
    for (; i + 3 * all < n; i += 4 * all)
        sum += x[i] + x[i + all] + (x[i + 2 * all] + x[i + 3 * all]);
    for (; i < n; i += all) sum += x[i];
    if (sum.x + sum.y + sum.z + sum.w == 0.5f) y[0] = sum.x;
}
#endif

#ifdef COPY
kernel void peak_copy(global const float4 *x, global float4 *y, ulong n) {
    const ulong all = get_global_size(0);
    ulong i = get_global_id(0);
    for (; i + 3 * all < n; i += 4 * all) {
        const float4 a = x[i], b = x[i + all], c = x[i + 2 * all], d = x[i + 3 * all];
        y[i] = a;
        y[i + all] = b;
        y[i + 2 * all] = c;
        y[i + 3 * all] = d;
    }
    for (; i < n; i += all) y[i] = x[i];
}
#endif

#ifdef TENSOR
/* Eight tiles of 16 x 8 sums for each warp; TENSOR names shapes and types. */
enum { TILES = 8 };
kernel void peak_tensor(global float *y, int times) {
    float d[TILES][4];
    const uint a = get_local_id(0), b = a ^ 1;
    for (int k = 0; k < TILES; k++) d[k][0] = d[k][1] = d[k][2] = d[k][3] = 0;
    for (int i = 0; i < times; i++)
        for (int k = 0; k < TILES; k++)
            asm volatile("mma.sync.aligned." TENSOR
                         " {%0,%1,%2,%3}, {%4,%5,%4,%5}, {%4,%5}, {%0,%1,%2,%3};"
                         : "+f"(d[k][0]), "+f"(d[k][1]), "+f"(d[k][2]), "+f"(d[k][3])
                         : "r"(a), "r"(b));
    float sum = 0;
    for (int k = 0; k < TILES; k++) sum += d[k][0] + d[k][1] + d[k][2] + d[k][3];
    if (sum == 0.5f) y[get_global_id(0)] = sum;
}
#endif

#ifdef WGMMA
/* 64 x 128 sums for each group of four warps, both operands in local memory (what lies there does
 * not matter). */
kernel GROUP(128) void peak_wgmma(global float *y, int times) {
    local uint a[64 * 32] __attribute__((aligned(1024))),
        b[128 * 32] __attribute__((aligned(1024)));
    float d[64];
    for (int i = get_local_id(0); i < 128 * 32; i += 128) a[i % (64 * 32)] = b[i] = 0;
    UNROLL
    for (int k = 0; k < 64; k++) d[k] = 0;
    nv_proxy_fence();
    barrier(CLK_LOCAL_MEM_FENCE);
    const ulong at = nv_descriptor128(LOCAL_AT(a)), bt = nv_descriptor128(LOCAL_AT(b));
    for (int i = 0; i < times; i++) {
        NV_WGMMA_FENCE();
        WGMMA(d, at, bt);
        WGMMA(d, at + 2, bt + 2);
        WGMMA(d, at + 4, bt + 4);
        WGMMA(d, at + 6, bt + 6);
        NV_WGMMA_COMMIT();
        NV_WGMMA_WAIT(0);
    }
    float sum = 0;
    UNROLL
    for (int k = 0; k < 64; k++) sum += d[k];
    if (sum == 0.5f) y[get_global_id(0)] = sum;
}
#endif

#ifdef NOTHING
kernel void peak_nothing(global float *y) {
    if (get_global_id(0) > 1u << 30) y[0] = 0;
}
#endif
