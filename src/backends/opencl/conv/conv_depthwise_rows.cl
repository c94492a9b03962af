/* Depthwise convolution with channels last, row by row, after quads.cl: an item goes down a column
 * of TQ pixels of four channels and keeps the sums of those rows of the result that it has begun,
 * so rows of x are read once, and again only by neighbours at the same time.  A turn is TP rows of
 * the result.  FLIPPED: taps from the last to the first (the gradient by x of stride 1). Weights
 * and FINISH as in conv_depthwise.cl. */
typedef struct {
    long x, w, y;
    EXTRA_PLACES quads g;
    long rows;
    EXTRA_STEPS
} numbers;

#define BEGUN ((KR - 1) / SR) /* rows of the result that the next turn goes on with */
#ifdef FLIPPED
#define TAP(r, k) tap[(TAPS - 1 - ((r)*KS + (k))) * (lanes + 1)]
#else
#define TAP(r, k) tap[((r)*KS + (k)) * (lanes + 1)]
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void depthwise_rows(
    const numbers s, global const MEMORY(IN) *restrict x, global const MEMORY(IN) *restrict w,
    global MEMORY(OUT) * y EXTRA_PARAMS) {
    local float taps[TAPS * (LANES + 1) * 4] __attribute__((aligned(16)));
    const int id = get_local_id(0), lanes = s.g.lanes, across = s.g.across, blocks = s.g.blocks,
              tile = id / lanes;
    const int rows = s.rows, block = get_group_id(0) % blocks, base = block * lanes * 4;
    const spot at = { .image = get_group_id(2),
                      .channel = base + id % lanes * 4,
                      .p = (get_group_id(1) * (int)s.g.down + tile / across) * rows,
                      .q = (get_group_id(0) / blocks * across + tile % across) * TQ };
    const int left = min(rows, (int)s.g.out.height - at.p);
    const bool live = tile < across * (int)s.g.down && at.channel < s.g.channels && left > 0 &&
                      at.q < s.g.out.width;
    const int h0 = at.p * SR - PAD_R, w0 = at.q * SS - PAD_S;
    const int end = live ? min((int)s.g.in.height, h0 + (left - 1) * SR + KR)
                         : 0; /* rows of x past it are not read */
    float4 seen[2][COLUMNS], sum[BEGUN + TP][TQ];
    x += s.x + at.image * s.g.in.step.n + at.channel;
    SEE_ROW(seen[0], x, h0, w0, s.g, end, 0);
    bring_taps(taps, w, s.w, lanes * 4, base, s.g.channels);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!live) return;
    volatile local const float4 *tap =
        (volatile local const float4 *)taps + id % lanes; /* not for registers */
    UNROLL
    for (int i = 0; i < BEGUN + TP; i++) UNROLL
    for (int j = 0; j < TQ; j++) sum[i][j] = 0;
    EXTRA_ONCE
    global MEMORY(OUT) *to = y + s.y + at.image * s.g.out.step.n + at.channel;
    for (int o = 0; o < left + BEGUN; o += TP) {
        UNROLL
        for (int a = 0; a < TP * SR; a++) {
            SEE_ROW(seen[(a + 1) % 2], x, h0 + o * SR + a + 1, w0, s.g, end, 0);
            UNROLL
            for (int i = 0; i < BEGUN + TP; i++) {
                const int r = a - (i - BEGUN) * SR;
                if (r < 0 || r >= KR) continue;
                UNROLL
                for (int k = 0; k < KS; k++) {
                    const float4 t = TAP(r, k);
                    UNROLL
                    for (int j = 0; j < TQ; j++) sum[i][j] += seen[a % 2][j * SS + k * DS] * t;
                }
                UNROLL
                for (int j = 0; j < TQ; j++) MADE4(sum[i][j]);
            }
            UNROLL
            for (int i = 0; i < BEGUN + TP; i++) {
                const int row = o + i - BEGUN;
                if (a - (i - BEGUN) * SR != KR - 1 || row < 0 || row >= left) continue;
                UNROLL
                for (int j = 0; j < TQ; j++) {
                    const int p = at.p + row, q = at.q + j;
                    if (q < s.g.out.width)
                        STORE_EXACT4(OUT, to + (p * (int)s.g.out.step.h + q * (int)s.g.out.step.w),
                                     FINISH(sum[i][j], at.image, p, q, at.channel));
                }
            }
        }
        UNROLL
        for (int i = 0; i < BEGUN; i++) UNROLL
        for (int j = 0; j < TQ; j++) sum[i][j] = sum[i + TP][j];
        UNROLL
        for (int i = BEGUN; i < BEGUN + TP; i++) UNROLL
        for (int j = 0; j < TQ; j++) sum[i][j] = (float4)0;
    }
}
