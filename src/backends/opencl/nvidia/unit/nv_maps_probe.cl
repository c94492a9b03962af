/* Do tensor maps work here?  y itself is the tensor: x[row][head], 3 rows of 2 heads of 8 numbers,
 * 32 and 16 bytes apart, and after it the map lies.  A box of 8 rows from x[1][1] on has two rows,
 * each with one piece, and zeros. */
kernel GROUP(64) void probe(global int *y) {
    local int box[8 * 32] __attribute__((aligned(1024))), room[32] __attribute__((aligned(128)));
    local ulong bar[1];
    const int i = get_local_id(0);
    if (i < 32) y[i] = 1000 + i * i;
    if (i == 0) nv_barrier_init(LOCAL_AT(bar), 1), nv_barriers_made();
    asm volatile("fence.proxy.async;" ::: "memory");
    const nv_rows m = { (ulong)y, 8, 3, 2, 1, 32, 16, 128, 8 };
    if (i < 32) nv_map_make(LOCAL_AT(room), (global uchar *)(y + 32), m, i);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (i == 0) {
        nv_barrier_expect(LOCAL_AT(bar), 1024);
        nv_map_load(LOCAL_AT(box), (global const uchar *)(y + 32), 0, 1, 1, 0, LOCAL_AT(bar));
    }
    nv_barrier_wait(LOCAL_AT(bar), 0);
    int sum = 0;
    for (int k = 0; k < 4; k++) sum += (k + 1) * box[4 * i + k];
    y[i] = sum;
}
