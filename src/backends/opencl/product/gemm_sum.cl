/* The parts of a sum that was split, [part][batch][M][N], added in their order (so the same bits
 * every time), and finished. */
kernel void sum_parts(const shape s, global const ACC *restrict parts,
                      global RESULT *y PLACES_PARAMS EXTRA_PARAMS) {
    const long count = s.batch * s.M * s.N;
    for (long i = get_global_id(0); i < count; i += get_global_size(0)) {
        const long n = i % s.N, m = i / s.N % s.M, zi = i / s.N / s.M;
        ACC x = parts[s.parts + i];
        for (long part = 1; part < s.splits; part++) x += parts[s.parts + i + part * count];
        BATCH(zi);
        EXTRA_STARTS
        const long outer = n / s.inner_n, column = PLACE(n % s.inner_n);
        STORE(y, START(s.y) + m * s.y.row + outer * s.y.outer + column * s.y.column,
              FINISH(x, m, outer, column));
    }
}
