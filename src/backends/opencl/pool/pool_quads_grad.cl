/* The gradient of a maximum by x, channels last, after quads.cl with GRAD_X: `in` is dy, `out` is x
 * and dx.  An item looks for the maxima of all windows that see its tile, and takes from each what
 * falls into the tile: no two items add to one place.  POSITIVE: those at or below 0 do not count.
 */
typedef struct {
    long x, dy, dx;
    quads g;
    steps seen;
} numbers;

/* Columns of x that the windows of a tile see. */
#define WIDE ((COLUMNS - 1) * SS + (KS - 1) * DS + 1)

/* Lane by lane, as few comparisons as there can be.  The first of equals wins, and the first NaN
 * before all others. */
#define LARGER(l)                                                                                  \
    {                                                                                              \
        const bool more = !(now.l <= best[b].l) && best[b].l == best[b].l;                         \
        best[b].l = more ? now.l : best[b].l;                                                      \
        where[b].l = more ? r * KS + k : where[b].l;                                               \
    }
#ifdef POSITIVE
#define GIVEN(l)                                                                                   \
    if (where[b].l == tap && !(best[b].l <= 0)) sum[i][j].l += g.l;
#else
#define GIVEN(l)                                                                                   \
    if (where[b].l == tap) sum[i][j].l += g.l;
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void pool_grad(
    const numbers s, global const MEMORY(IN) *restrict x, global const MEMORY(IN) *restrict dy,
    global MEMORY(OUT) * dx) {
    const spot at = spot_of(&s.g);
    if (!at.live) return;
    const int p0 = FIRST_ROW(at.p), q0 = FIRST_COLUMN(at.q), H = s.g.out.height, W = s.g.out.width;
    float4 sum[TP][TQ];
    UNROLL
    for (int i = 0; i < TP; i++) UNROLL
    for (int j = 0; j < TQ; j++) sum[i][j] = 0;
    x += s.x + at.image * s.seen.n + at.channel;
    dy += s.dy + at.image * s.g.in.step.n + at.channel;
    UNROLL
    for (int a = 0; a < ROWS; a++) {
        if ((uint)(p0 + a) >= (uint)s.g.in.height) continue;
        const int h0 = (p0 + a) * SR - PAD_R, w0 = q0 * SS - PAD_S;
        const int top = h0 < 0 ? (DR - 1 - h0) / DR : 0;
        float4 best[COLUMNS];
        int4 where[COLUMNS];
        UNROLL
        for (int b = 0; b < COLUMNS; b++) { /* where all are as small as can be, the first */
            const int w = w0 + b * SS;
            best[b] = -INFINITY;
            where[b] = top * KS + (w < 0 ? (DS - 1 - w) / DS : 0);
        }
        UNROLL
        for (int r = 0; r < KR; r++) {
            const int h = h0 + r * DR;
            if ((uint)h >= (uint)H) continue;
            float4 seen[WIDE];
            UNROLL
            for (int e = 0; e < WIDE; e++)
                seen[e] = FETCH4(IN, x + (h * (int)s.seen.h + (w0 + e) * (int)s.seen.w),
                                 (uint)(w0 + e) < (uint)W, -INFINITY);
            UNROLL
            for (int b = 0; b < COLUMNS; b++) UNROLL
            for (int k = 0; k < KS; k++) {
                const float4 now = seen[b * SS + k * DS];
                LARGER(x) LARGER(y) LARGER(z) LARGER(w)
            }
        }
        UNROLL
        for (int b = 0; b < COLUMNS; b++) {
            if ((uint)(q0 + b) >= (uint)s.g.in.width) continue;
            const float4 g =
                LOAD4(IN, dy + (p0 + a) * s.g.in.step.h + (q0 + b) * (int)s.g.in.step.w);
            UNROLL
            for (int i = 0; i < TP; i++) UNROLL
            for (int j = 0; j < TQ; j++)
                if (ROW_TAP(i, a) >= 0 && COLUMN_TAP(j, b) >= 0) {
                    const int tap = ROW_TAP(i, a) * KS + COLUMN_TAP(j, b);
                    GIVEN(x) GIVEN(y) GIVEN(z) GIVEN(w)
                }
        }
    }
    UNROLL
    for (int i = 0; i < TP; i++) UNROLL
    for (int j = 0; j < TQ; j++)
        if (at.p + i < H && at.q + j < W)
            STORE4(OUT,
                   dx + s.dx + at.image * s.g.out.step.n + (at.p + i) * s.g.out.step.h +
                       (at.q + j) * s.g.out.step.w + at.channel,
                   sum[i][j]);
}
