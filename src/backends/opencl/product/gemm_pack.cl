/* Weights in the order in which products read them: to[batch][k][m], rows of m padded with zeros to
 * a multiple of four; or with PANEL rows in a panel, to[batch][panel][k][m].  The terms are
 * consecutive where they lie, or as a table says (below zero: a term that only fills a block). */
typedef struct {
    long batch, K, M, padded, from, to, row, z, terms;
} packing;

kernel void pack(const packing s, global const MEM *restrict from,
                 global MEM *restrict to TERMS_PARAM) {
    const long count = s.batch * s.K * s.padded;
    for (long i = get_global_id(0); i < count; i += get_global_size(0)) {
#ifdef PANEL
        const long z = i / s.padded / s.K, in_z = i - z * s.padded * s.K, k = in_z / PANEL % s.K;
        const long m = in_z / PANEL / s.K * PANEL + in_z % PANEL;
#else
        const long m = i % s.padded, k = i / s.padded % s.K, z = i / s.padded / s.K;
#endif
        const long term = TERM(k);
        to[s.to + i] = m < s.M && term >= 0 ? from[s.from + z * s.z + m * s.row + term] : 0;
    }
}
