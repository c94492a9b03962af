/* The right factor of a product in f16, of which TF32 keeps as many bits: to[n][k], terms up to a
 * multiple of eight, the last ones zeros; after all of them a factor in f32 for each n, a power of
 * two that brings the largest of the row to 256 .. 512. */
typedef struct {
    long N, K, padded, from, to, row, column;
} packing;

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void pack(
    const packing s, global const float *restrict from, global ushort *restrict to) {
    local float largest[ITEMS];
    const int id = get_local_id(0);
    global float *factors = (global float *)(to + s.to + s.N * s.padded);
    for (long n = get_group_id(0); n < s.N; n += get_num_groups(0)) {
        global const float *w = from + s.from + n * s.column;
        float most = 0;
        for (long k = id; k < s.K; k += ITEMS) most = fmax(most, fabs(w[k * s.row]));
        largest[id] = most;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = ITEMS / 2; i > 0; i /= 2) {
            if (id < i) largest[id] = fmax(largest[id], largest[id + i]);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        most = largest[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        const int e = most > 0 && !isinf(most) ? max(ilogb(most) - 8, -126) : 0;
        const float factor = ldexp(1.0f, e), inverse = ldexp(1.0f, -e);
        for (long k = id; k < s.padded; k += ITEMS)
            to[s.to + n * s.padded + k] = fac_bits_f16(k < s.K ? w[k * s.row] * inverse : 0);
        if (!id) factors[n] = factor;
    }
}
