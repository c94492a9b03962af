/* A matrix product by tiles: a group computes TM x TN elements, each of its items RM x RN of them
 * in registers.  Slabs of TK terms go through local memory twice buffered: the next one is on its
 * way while this one is used, and there is one barrier a slab.
 *
 * Items are laid 8 x 4 in each 32 of them, so that those that run together read 8 + 4 neighbouring
 * pieces of four floats. A_ALONG_M, B_ALONG_N: neighbouring items read along m, n; else along the
 * sum.  VA, VB, VY: elements that are read, written at once, 1 or 4.  PARTIAL: sums of a part of
 * the terms go to y as they are, [part][batch][M][N].
 * FACTOR: the type of factors in local memory and registers, where it is not that of sums.  QUADS:
 * a factor is four bytes, terms that follow one another, and steps along the sum are those of
 * four. */
#define TX (TN / RN)
#define TY (TM / RM)
#define ITEMS (TX * TY)
#define LA (TM * TK / (ITEMS * VA))
#define LB (TN * TK / (ITEMS * VB))
#define ACC4 FAC_CAT(ACC, 4)
#define UNROLL _Pragma("unroll")
#ifndef FACTOR
#define FACTOR ACC
#endif
#define FACTOR4 FAC_CAT(FACTOR, 4)
#if defined(SPLIT_K) && !defined(TAPS)
#define SPLIT_B
#endif
#ifdef QUADS
static inline uint fetch(global const MEM *p, long i, long step) {
    return (uint)(uchar)p[i] | (uint)(uchar)p[i + step] << 8 | (uint)(uchar)p[i + 2 * step] << 16 |
           (uint)(uchar)p[i + 3 * step] << 24;
}
#define STEP(four) ((four) / 4)
#elif defined(HALVES)
#define fetch(p, i, step) as_half((p)[i])
#define STEP(four) 0
#else
#define fetch(p, i, step) LOAD(p, i)
#define STEP(four) 0
#endif

typedef struct {
    FACTOR v[4];
} four;

/* Without branches, so that loads overlap.  What is not there is read from a place that is; it
 * becomes zero on its way to local memory, when the slab at hand is done, so that nothing waits for
 * a load before that. */
static inline four read_a(global const MEM *p, long i, long step) {
    four r;
#if VA == 4
    const ACC4 x = *(global const ACC4 *)(p + i);
    r.v[0] = x.x;
    r.v[1] = x.y;
    r.v[2] = x.z;
    r.v[3] = x.w;
#else
    r.v[0] = fetch(p, i, step);
#endif
    return r;
}

static inline four read_b(global const MEM *p, long i, long step) {
    four r;
#if VB == 4
    const ACC4 x = *(global const ACC4 *)(p + i);
    r.v[0] = x.x;
    r.v[1] = x.y;
    r.v[2] = x.z;
    r.v[3] = x.w;
#else
    r.v[0] = fetch(p, i, step);
#endif
    return r;
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void product(
    const shape s, global const MEM *restrict a, global const MEM *restrict b,
    global RESULT *y TABLES_PARAMS PLACES_PARAMS EXTRA_PARAMS) {
    local FACTOR la[2][TK][TM + 4] __attribute__((aligned(32))),
        lb[2][TK][TN + 4] __attribute__((aligned(32)));
    const int id = get_local_id(0), team = id / 32;
    const int tx = id % 8 + 8 * (team % (TX / 8)), ty = id % 32 / 8 + 4 * (team / (TX / 8));
    const int m0 = get_group_id(0) * TM, n0 = get_group_id(1) * TN, M = s.M, N = s.N,
              inner_n = s.inner_n;
    const long zi = get_group_id(2) % s.batch, part = get_group_id(2) / s.batch;
    BATCH(zi);
    const int first = part * s.each_k, end = min((int)s.K, first + (int)s.each_k);
    a += START(s.a);
    b += START(s.b);

    /* where this item reads */
#if A_ALONG_M
    const int am = id % (TM / VA) * VA, ak = id / (TM / VA), am_step = 0,
              ak_step = ITEMS / (TM / VA);
#else
    const int ak = id % (TK / VA) * VA, am = id / (TK / VA), ak_step = 0,
              am_step = ITEMS / (TK / VA);
#endif
#if defined(PATCHES) || B_ALONG_N
    const int bn = id % (TN / VB) * VB, bk = id / (TN / VB), bn_step = 0,
              bk_step = ITEMS / (TN / VB);
#else
    const int bk = id % (TK / VB) * VB, bn = id / (TK / VB), bk_step = 0,
              bn_step = ITEMS / (TK / VB);
#endif
#if defined(PATCHES)
    const int pixel = min(n0 + bn, N - 1);
    const int4 sees = pixels[s.pixels + pixel % inner_n];
    const bool here = n0 + bn < N;
    const int safe = -sees.x; /* the image's first element */
    b += pixel / inner_n * s.b.outer + sees.x;
#elif defined(TAPS)
    int b_inner = (first + bk) % (int)s.inner_k, b_image = (first + bk) / (int)s.inner_k;
#elif B_ALONG_N && !defined(SPLIT_B)
    const int n_mine = min(n0 + bn, N - VB);
    b += n_mine / inner_n * s.b.outer + n_mine % inner_n * s.b.column;
#endif
#ifdef SPLIT_K
    int a_inner[LA], a_image[LA];
    UNROLL
    for (int i = 0; i < LA; i++) {
        a_inner[i] = (first + ak + i * ak_step) % (int)s.inner_k;
        a_image[i] = (first + ak + i * ak_step) / (int)s.inner_k;
    }
#endif
#ifdef SPLIT_B
    int b_inner[LB], b_image[LB];
    UNROLL
    for (int i = 0; i < LB; i++) {
        b_inner[i] = (first + bk + i * bk_step) % (int)s.inner_k;
        b_image[i] = (first + bk + i * bk_step) / (int)s.inner_k;
    }
#endif
#ifdef BLOCKS
    const int window =
        s.window > 0 ? (int)s.window : 1; /* a phase of a strided gradient may see no tap at all */
    int tap = first / TK % window, channel = first / TK / window * TK;
#endif

    ACC sum[RM][RN];
    UNROLL
    for (int i = 0; i < RM; i++) UNROLL
    for (int j = 0; j < RN; j++) sum[i][j] = 0;
    four ra[LA], rb[LB];
    bool in_a[LA], in_b[LB]; /* what was there */
    for (int k0 = first, turn = 0; k0 < end + TK; k0 += TK, turn ^= 1) {
        if (k0 < end) { /* the next slab, on its way to registers */
            UNROLL
            for (int i = 0; i < LA; i++) {
                const int m = m0 + am + i * am_step, k = k0 + ak + i * ak_step;
#ifdef SPLIT_K
                const long at = m * s.a.row + a_image[i] * s.a.outer + a_inner[i] * s.a.column;
                for (a_inner[i] += TK; a_inner[i] >= (int)s.inner_k; a_image[i]++)
                    a_inner[i] -= (int)s.inner_k;
#else
                const long at = m * s.a.row + k * s.a.column;
#endif
                in_a[i] = m < M && k < end;
                ra[i] = read_a(a, in_a[i] ? at : 0, STEP(s.a.column));
            }
#if defined(BLOCKS)
            const int4 t = taps[s.taps + tap];
            const bool inside = here & SEES(sees, t);
            UNROLL
            for (int i = 0; i < LB; i++) {
                const int c = channel + bk + i * bk_step;
                in_b[i] = inside & (c < (int)s.channels);
                rb[i] = read_b(b, in_b[i] ? t.x + c * (int)s.b.row : safe, 0);
            }
            if (++tap == (int)s.window) {
                tap = 0;
                channel += TK;
            }
#elif defined(TAPS)
            const int4 p = pixels[s.pixels + b_inner];
            global const MEM *from = b + (b_image < s.images ? b_image : 0) * s.b.outer;
            for (b_inner += TK; b_inner >= (int)s.inner_k; b_image++) b_inner -= (int)s.inner_k;
            UNROLL
            for (int i = 0; i < LB; i++) {
                const int n = n0 + bn + i * bn_step;
                const int4 t = taps[s.taps + min(n, N - 1)];
                in_b[i] = (k0 + bk < end) & (n < N) & SEES(p, t);
                rb[i] = read_b(from, in_b[i] ? p.x + t.x : 0, 0);
            }
#else
            UNROLL
            for (int i = 0; i < LB; i++) {
                const int n = n0 + bn + i * bn_step, k = k0 + bk + i * bk_step;
#if defined(PATCHES)
                const int4 t = taps[s.taps + min(k, end - 1)];
                in_b[i] = here & (k < end) & SEES(sees, t);
                rb[i] = read_b(b, in_b[i] ? t.x : safe, 0);
#elif defined(SPLIT_B)
                const long at = n * s.b.column + b_image[i] * s.b.outer + b_inner[i] * s.b.row;
                for (b_inner[i] += TK; b_inner[i] >= (int)s.inner_k; b_image[i]++)
                    b_inner[i] -= (int)s.inner_k;
                in_b[i] = n < N && k < end;
                rb[i] = read_b(b, in_b[i] ? at : 0, 0);
#elif B_ALONG_N
                in_b[i] = n < N && k < end;
                rb[i] = read_b(b, in_b[i] ? k * s.b.row : 0, STEP(s.b.row));
#else
                in_b[i] = n < N && k < end;
                rb[i] = read_b(
                    b,
                    in_b[i] ? k * s.b.row + n / inner_n * s.b.outer + n % inner_n * s.b.column : 0,
                    STEP(s.b.row));
#endif
            }
#endif
        }
        if (k0 > first) /* the slab at hand */
            UNROLL
        for (int k = 0; k < TK; k++) {
            FACTOR va[RM], vb[RN];
            UNROLL
            for (int i = 0; i < RM; i += 4) {
                const FACTOR4 x = *(local const FACTOR4 *)&la[turn ^ 1][k][i * TY + ty * 4];
                va[i] = x.x;
                va[i + 1] = x.y;
                va[i + 2] = x.z;
                va[i + 3] = x.w;
            }
            UNROLL
            for (int j = 0; j < RN; j += 4) {
                const FACTOR4 x = *(local const FACTOR4 *)&lb[turn ^ 1][k][j * TX + tx * 4];
                vb[j] = x.x;
                vb[j + 1] = x.y;
                vb[j + 2] = x.z;
                vb[j + 3] = x.w;
            }
            UNROLL
            for (int i = 0; i < RM; i++) UNROLL
            for (int j = 0; j < RN; j++) sum[i][j] = MULTIPLY_ADD(va[i], vb[j], sum[i][j]);
        }
        if (k0 < end) {
            UNROLL
            for (int i = 0; i < LA; i++) {
                const int m = am + i * am_step, k = ak + i * ak_step;
#if A_ALONG_M && VA == 4
                *(local FACTOR4 *)&la[turn][k][m] =
                    in_a[i] ? (FACTOR4)(ra[i].v[0], ra[i].v[1], ra[i].v[2], ra[i].v[3])
                            : (FACTOR4)(0);
#else
                UNROLL
                for (int c = 0; c < VA; c++) la[turn][k + c][m] = in_a[i] ? ra[i].v[c] : 0;
#endif
            }
            UNROLL
            for (int i = 0; i < LB; i++) {
                const int n = bn + i * bn_step, k = bk + i * bk_step;
#if B_ALONG_N && VB == 4
                *(local FACTOR4 *)&lb[turn][k][n] =
                    in_b[i] ? (FACTOR4)(rb[i].v[0], rb[i].v[1], rb[i].v[2], rb[i].v[3])
                            : (FACTOR4)(0);
#else
                UNROLL
                for (int c = 0; c < VB; c++) lb[turn][k + c][n] = in_b[i] ? rb[i].v[c] : 0;
#endif
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

#ifdef PARTIAL
    y += s.parts + (part * s.batch + zi) * M * (long)N;
    UNROLL
    for (int i = 0; i < RM; i++) {
        const int m = m0 + i / 4 * 4 * TY + ty * 4 + i % 4;
        UNROLL
        for (int j = 0; j < RN; j++) {
            const int n = n0 + j / 4 * 4 * TX + tx * 4 + j % 4;
            if (m < M && n < N) y[m * (long)N + n] = sum[i][j];
        }
    }
#else
    EXTRA_STARTS
    y += START(s.y);
    UNROLL
    for (int j = 0; j < RN; j += VY) {
        const int n = n0 + j / 4 * 4 * TX + tx * 4 + j % 4;
        const long outer = n / inner_n, column = PLACE(n < N ? n % inner_n : 0);
        UNROLL
        for (int i = 0; i < RM; i++) {
            const int m = m0 + i / 4 * 4 * TY + ty * 4 + i % 4;
            if (m >= M || n >= N) continue;
            const long at = m * s.y.row + outer * s.y.outer + column * s.y.column;
#if VY == 4
            *(global ACC4 *)(y + at) = (ACC4)(FINISH(sum[i][j], m, outer, column),
                                              FINISH(sum[i][j + 1], m, outer, column + 1),
                                              FINISH(sum[i][j + 2], m, outer, column + 2),
                                              FINISH(sum[i][j + 3], m, outer, column + 3));
#else
            STORE(y, at, FINISH(sum[i][j], m, outer, column));
#endif
        }
    }
#endif
}
