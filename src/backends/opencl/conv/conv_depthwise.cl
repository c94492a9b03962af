/* Depthwise convolution with channels last, and (TURNED) its gradient by x: a sum over the window
 * for each channel alone. Weights lie as [channel][tap]; a group brings those of its channels into
 * local memory as [tap][channel].  FINISH is bias and body (quads.c). */
typedef struct {
    long x, w, y;
    EXTRA_PLACES quads g;
    EXTRA_STEPS
} numbers;

#define TAPS (KR * KS)

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void depthwise(
    const numbers s, global const MEMORY(IN) *restrict x, global const MEMORY(IN) *restrict w,
    global MEMORY(OUT) * y EXTRA_PARAMS) {
    local float taps[TAPS * LANES * 4] __attribute__((aligned(16)));
    const spot at = spot_of(&s.g);
    const int h0 = FIRST_ROW(at.p), w0 = FIRST_COLUMN(at.q),
              height = at.live ? (int)s.g.in.height : 0;
    float4 seen[2][COLUMNS]; /* this row and the next */
    x += s.x + at.image * s.g.in.step.n + at.channel;
    SEE_ROW(seen[0], x, h0, w0, s.g, height, 0);
    const int lanes = s.g.lanes, base = get_group_id(0) % (int)s.g.blocks * lanes * 4;
    for (int i = get_local_id(0); i < lanes * 4 * TAPS; i += GROUP) {
        const int channel = i / TAPS, t = i % TAPS;
        if (base + channel < s.g.channels)
            taps[t * lanes * 4 + channel] = LOAD1(IN, w, s.w + (base + channel) * (long)TAPS + t);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!at.live) return;
    local const float4 *tap = (local const float4 *)taps + get_local_id(0) % lanes;
#if TAPS <= 9
    float4 own[TAPS]; /* few enough for registers */
    UNROLL
    for (int t = 0; t < TAPS; t++) own[t] = tap[t * lanes];
#define TAP(t) own[t]
#else
#define TAP(t) tap[(t)*lanes]
#endif
    float4 sum[TP][TQ];
    UNROLL
    for (int i = 0; i < TP; i++) UNROLL
    for (int j = 0; j < TQ; j++) sum[i][j] = 0;
    EXTRA_ONCE
    global MEMORY(OUT) *to = y + s.y + at.image * s.g.out.step.n + at.channel;
    UNROLL
    for (int a = 0; a < ROWS; a++) {
        if (a + 1 < ROWS) SEE_ROW(seen[(a + 1) % 2], x, h0 + a + 1, w0, s.g, height, 0);
        UNROLL
        for (int i = 0; i < TP; i++) {
            if (ROW_TAP(i, a) < 0) continue;
            UNROLL
            for (int b = 0; b < COLUMNS; b++) UNROLL
            for (int j = 0; j < TQ; j++)
                if (COLUMN_TAP(j, b) >= 0)
                    sum[i][j] += seen[a % 2][b] * TAP(ROW_TAP(i, a) * KS + COLUMN_TAP(j, b));
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
