/* A matrix product by single items, for devices whose items have vector registers of their own: a
 * cpu.  An item computes NR = NV vectors of VW columns of MB rows, MR rows at a time in registers.
 * Slabs of KC rows of b are brought into its own memory first, in the order of their use; sums wait
 * there between slabs, and each slab is summed by itself: rounding errors grow with the root of KC
 * and of the number of slabs, not of all of K.  PANELS: a lies in the order of its use, too, [panel
 * of MR rows][k][row]. REACH: an integer that holds the steps from the first image of the columns
 * on: the wider, the fewer a vector has. */
#define NR (NV * VW)
#define VEC FAC_CAT(ACC, VW)
#define VLOAD FAC_CAT(vload, VW)
#define VSTORE FAC_CAT(vstore, VW)
#define UNROLL _Pragma("unroll")

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void product(
    const shape s, global const MEM *restrict a, global const MEM *restrict b,
    global RESULT *y TABLES_PARAMS PLACES_PARAMS EXTRA_PARAMS) {
    local ACC slab[KC * NR] __attribute__((aligned(64))),
        sums[MB * NR] __attribute__((aligned(64)));
    const int m0 = get_group_id(0) * MB, n0 = get_group_id(1) * NR, M = s.M, N = s.N,
              inner_n = s.inner_n;
    const int m1 = min(M, m0 + MB), columns = min(NR, N - n0);
    const bool straight =
        n0 / inner_n == (n0 + columns - 1) / inner_n; /* all columns of one image */
    const long zi = get_group_id(2) % s.batch, part = get_group_id(2) / s.batch;
    BATCH(zi);
    const int first = part * s.each_k, end = min((int)s.K, first + (int)s.each_k);
    a += START(s.a);
    b += START(s.b);
#if defined(PATCHES)
    int depth[NR], height[NR], width[NR];
    const int of = n0 / inner_n;
    REACH image[NR]; /* from the first one of these columns */
    b += of * s.b.outer;
    int run = 1; /* pixels that are neighbours in one row */
    for (int j = 0; j < NR; j++) {
        const int n = min(n0 + j, N - 1);
        const int4 pixel = pixels[s.pixels + n % inner_n];
        image[j] = (n / inner_n - of) * (REACH)s.b.outer + pixel.x;
        depth[j] = pixel.y;
        height[j] = pixel.z;
        width[j] = pixel.w;
        run += j && image[j] == image[0] + j && width[j] == width[0] + j;
    }
#endif
    /* all of the last panel, too: its rows after the last are computed, but not written */
    for (int i = 0; i < (m1 - m0 + MR - 1) / MR * MR * NR; i++) sums[i] = 0;
#if !defined(PATCHES) && !defined(TAPS)
    const long first_column = n0 / inner_n * s.b.outer + n0 % inner_n;
    if (columns < NR)
        for (int i = 0; i < min(KC, end - first) * NR; i++) slab[i] = 0;
#endif
    for (int k0 = first; k0 < end; k0 += KC) {
        const int kc = min(KC, end - k0);
        for (int k = 0; k < kc; k++) {
            local ACC *to = slab + k * NR;
#if defined(PATCHES)
            const int4 t = taps[s.taps + k0 + k];
            const int D = s.in[0], H = s.in[1], W = s.in[2];
            const bool lines = INSIDE(depth[0] + t.y, D) & INSIDE(height[0] + t.z, H);
            if (run == NR && lines && INSIDE(width[0] + t.w, W) && INSIDE(width[NR - 1] + t.w, W))
                for (int j = 0; j < NR; j++) to[j] = LOAD(b, image[0] + t.x + j);
            else {
                /* without branches, so that it becomes vectors; what is not there is read from the
                 * first element */
                _Pragma("clang loop vectorize(assume_safety)") for (int j = 0; j < NR; j++) {
                    const bool in = INSIDE(width[j] + t.w, W) & INSIDE(height[j] + t.z, H) &
                                    INSIDE(depth[j] + t.y, D);
                    const ACC v = LOAD(b, in ? image[j] + t.x : 0);
                    to[j] = in ? v : 0;
                }
            }
#elif defined(TAPS)
            const int pixel = k0 + k;
            const int4 p = pixels[s.pixels + pixel % (int)s.inner_k];
            global const MEM *from = b + (pixel / (int)s.inner_k * s.b.outer + p.x);
            for (int j = 0; j < NR; j++) {
                const int4 t = taps[s.taps + min(n0 + j, N - 1)];
                to[j] = 0;
                if (SEES(p, t)) to[j] = LOAD(from, t.x);
            }
#else
#ifdef SPLIT_K
            global const MEM *from =
                b + ((k0 + k) / (int)s.inner_k * s.b.outer + (k0 + k) % (int)s.inner_k * s.b.row);
#else
            global const MEM *from = b + (k0 + k) * s.b.row;
#endif
            if (straight && s.b.column == 1 && columns == NR) {
                from += first_column;
                for (int j = 0; j < NR; j++) to[j] = LOAD(from, j);
            } else if (straight && s.b.column == 1) {
                int j = 0; /* eights are vectors */
                from += first_column;
                for (; j + 8 <= columns; j += 8) UNROLL
                for (int l = 0; l < 8; l++) to[j + l] = LOAD(from, j + l);
                for (; j < columns; j++) to[j] = LOAD(from, j);
            } else
#ifdef SPLIT_K
                for (int j = 0; j < columns; j++) to[j] = LOAD(from, (n0 + j) * s.b.column);
#else
                for (int j = 0; j < columns; j++) {
                    const int n = n0 + j;
                    to[j] = LOAD(from, n / inner_n * s.b.outer + n % inner_n * s.b.column);
                }
#endif
#endif
        }
        for (int m = m0; m < m1; m += MR) {
            VEC sum[MR][NV];
            global const MEM *row[MR];
            UNROLL
            for (int i = 0; i < MR; i++) {
#ifdef PANELS
                row[i] = a + m * (long)s.K + i;
#else
                row[i] = a + min(m + i, m1 - 1) * s.a.row;
#endif
                UNROLL
                for (int j = 0; j < NV; j++) sum[i][j] = 0;
            }
            for (int k = 0; k < kc; k++) {
#ifdef SPLIT_K
                const long at =
                    (k0 + k) / (int)s.inner_k * s.a.outer + (k0 + k) % (int)s.inner_k * s.a.column;
#else
#ifdef PANELS
                const long at = (k0 + k) * MR;
#else
                const long at = (k0 + k) * s.a.column;
#endif
#endif
                VEC vb[NV];
                UNROLL
                for (int j = 0; j < NV; j++) vb[j] = VLOAD(j, slab + k * NR);
                UNROLL
                for (int i = 0; i < MR; i++) {
                    const VEC va = (VEC)(LOAD(row[i], at));
                    UNROLL
                    for (int j = 0; j < NV; j++) sum[i][j] = MULTIPLY_ADD(va, vb[j], sum[i][j]);
                }
            }
            UNROLL
            for (int i = 0; i < MR; i++) UNROLL
            for (int j = 0; j < NV; j++) {
                local ACC *to = sums + (m + i - m0) * NR;
                VSTORE(VLOAD(j, to) + sum[i][j], j, to);
            }
        }
    }
#ifdef PARTIAL
    y += s.parts + (part * s.batch + zi) * M * (long)N;
    for (int m = m0; m < m1; m++)
        for (int j = 0; j < columns; j++) y[m * (long)N + n0 + j] = sums[(m - m0) * NR + j];
#else
    EXTRA_STARTS
    y += START(s.y);
    for (int m = m0; m < m1; m++) {
        local const ACC *x = sums + (m - m0) * NR;
        if (straight)
            for (int j = 0; j < columns; j++) {
                const long outer = n0 / inner_n, column = PLACE(n0 % inner_n + j);
                STORE(y, m * s.y.row + outer * s.y.outer + column * Y_COLUMN,
                      FINISH(x[j], m, outer, column));
            } else
            for (int j = 0; j < columns; j++) {
                const long outer = (n0 + j) / inner_n, column = PLACE((n0 + j) % inner_n);
                STORE(y, m * s.y.row + outer * s.y.outer + column * Y_COLUMN,
                      FINISH(x[j], m, outer, column));
            }
    }
#endif
}
