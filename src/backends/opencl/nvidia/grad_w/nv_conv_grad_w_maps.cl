/* How the stages of nv_conv_grad_w_tiles.cl are filled where both tensors are matrices of 16 bits
 * with a row for each pixel (1 x 1, stride 1): the copy engine brings boxes of them as wgmma takes
 * them, by tensor maps (nv_maps.cl) that each group makes when it begins.  One item asks for whole
 * stages; the others neither load nor store.  After nv_conv_grad_w.cl.
 *
 * Chunks after the last channel are zeros, written once. */
INLINE global uchar *maps_of_group(global uchar *maps) {
    return (global uchar *)(((ulong)maps + 127) / 128 * 128) +
           ((long)get_group_id(1) * get_num_groups(0) + get_group_id(0)) * 256;
}
/* By the first warp x's, by the second one dy's. */
INLINE void make_maps(const sizes s, global const MEM *x, global const MEM *dy, global uchar *maps,
                      uint room, int me) {
    const ulong x_step = s.x_column * sizeof(MEM), dy_step = s.dy_column * sizeof(MEM);
    const nv_rows of_x = {
        (ulong)x, (uint)s.channels, (uint)s.positions, 1, 1, x_step, x_step, x_step, 64
    };
    const nv_rows of_dy = { (ulong)dy, (uint)s.rows, (uint)s.positions, 1, 1,
                            dy_step,   dy_step,      dy_step,           64 };
    if (me < 32)
        nv_map_make(room, maps, of_x, me);
    else
        nv_map_make(room + 128, maps + 128, of_dy, me - 32);
}
INLINE void fill_mapped(const sizes s, global const MEM *x, global const MEM *dy,
                        global uchar *maps, local const int4 *chunks, uint base, uint room,
                        uint full, int first, int steps, int me) {
    const bool transposed = s.transposed;
    const uint empty = full + 8 * STAGES;
    uint bytes = 0, parity = 1;
    int stage = 0;
    make_maps(s, x, dy, maps, room, me);
    UNROLL
    for (int i = 0; i < CHUNKS; i++) {
        if (chunks[i].w > 0)
            bytes += 8192;
        else
            for (int k = me; k < STAGES * 512; k += FILLERS)
                store_words(base + k / 512 * STAGE + i * 8192 + k % 512 * 16, 0, 0, 0, 0);
    }
    nv_meet(1, FILLERS);
    if (me) return;
    for (int t = 0; t < steps; t++) {
        nv_barrier_wait(empty + 8 * stage, parity);
        nv_barrier_expect(full + 8 * stage, bytes);
        UNROLL
        for (int i = 0; i < CHUNKS; i++)
            if (chunks[i].w > 0)
                nv_map_load(base + stage * STAGE + i * 8192,
                            (i < 2) == transposed ? maps : maps + 128,
                            chunks[i].z, first + t * 64, 0, 0, full + 8 * stage);
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
}
