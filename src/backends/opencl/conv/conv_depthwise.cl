/* Depthwise convolution with channels last, and (GRAD_X) its gradient by x: a sum over the window
 * for each channel alone. Weights lie as [channel][tap]; a group brings those of its channels into
 * local memory as [tap][channel] (conv_taps.cl).  FINISH is bias and body (quads.c). */
typedef struct {
    long x, w, y;
    EXTRA_PLACES quads g;
    EXTRA_STEPS
} numbers;

/* Rows that are asked for before they are used: a small tile of a large window would wait for each,
 * and registers have room. */
#define EARLY (TAPS > 9 && TP * TQ <= 2 ? 3 : 1)

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void depthwise(
    const numbers s, global const MEMORY(IN) *restrict x, global const MEMORY(IN) *restrict w,
    global MEMORY(OUT) * y EXTRA_PARAMS) {
    local float taps[TAPS * (LANES + 1) * 4] __attribute__((aligned(16)));
    const spot at = spot_of(&s.g);
    const int h0 = FIRST_ROW(at.p), w0 = FIRST_COLUMN(at.q),
              height = at.live ? (int)s.g.in.height : 0;
    float4 seen[EARLY + 1][COLUMNS]; /* this row and the next */
    x += s.x + at.image * s.g.in.step.n + at.channel;
    UNROLL
    for (int a = 0; a < EARLY; a++) SEE_ROW(seen[a], x, h0 + a, w0, s.g, height, 0);
    const int lanes = s.g.lanes, base = get_group_id(0) % (int)s.g.blocks * lanes * 4;
    bring_taps(taps, w, s.w, lanes * 4, base, s.g.channels);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!at.live) return;
    local const float4 *tap = (local const float4 *)taps + get_local_id(0) % lanes;
#if TAPS <= 9
    float4 own[TAPS]; /* few enough for registers */
    UNROLL
    for (int t = 0; t < TAPS; t++) own[t] = tap[t * (lanes + 1)];
#define TAP(t) own[t]
#else
#define TAP(t) tap[(t) * (lanes + 1)]
#endif
    float4 sum[TP][TQ];
    UNROLL
    for (int i = 0; i < TP; i++) UNROLL
    for (int j = 0; j < TQ; j++) sum[i][j] = 0;
    EXTRA_ONCE
    global MEMORY(OUT) *to = y + s.y + at.image * s.g.out.step.n + at.channel;
    UNROLL
    for (int a = 0; a < ROWS; a++) {
        if (a + EARLY < ROWS)
            SEE_ROW(seen[(a + EARLY) % (EARLY + 1)], x, h0 + a + EARLY, w0, s.g, height, 0);
        UNROLL
        for (int i = 0; i < TP; i++) {
            if (ROW_TAP(i, a) < 0) continue;
            UNROLL
            for (int b = 0; b < COLUMNS; b++) UNROLL
            for (int j = 0; j < TQ; j++) {
                const int k = COLUMN_TAP(j, b);
                if (k >= 0) sum[i][j] += seen[a % (EARLY + 1)][b] * TAP(ROW_TAP(i, a) * KS + k);
            }
            UNROLL
            for (int j = 0; j < TQ; j++) MADE4(sum[i][j]);
        }
        UNROLL
        for (int i = 0; i < TP; i++) { /* what is complete makes room */
            if (LAST_ROW(i) != a) continue;
            UNROLL
            for (int j = 0; j < TQ; j++) {
                const int p = at.p + i, q = at.q + j;
                if (p < s.g.out.height && q < s.g.out.width)
                    STORE_EXACT4(OUT, to + (p * (int)s.g.out.step.h + q * (int)s.g.out.step.w),
                                 FINISH(sum[i][j], at.image, p, q, at.channel));
            }
        }
    }
}
