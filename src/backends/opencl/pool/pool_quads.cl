/* Pools of images with channels last, and the gradient of a mean by x (GRAD_X): after quads.cl.
 * AVERAGE: the mean, else the maximum.  Rows are folded first, then shared by the tile's windows
 * that see them.  APART: the result's channels are s.apart elements from each other. */
typedef struct {
    long x, y;
    EXTRA_PLACES quads g;
    long include, end_h, end_w, apart;
    EXTRA_STEPS
} numbers;
#ifdef APART
#define STEP_OF_CHANNELS s.apart
#define PUT(to, at, v)                                                                             \
    do {                                                                                           \
        const float4 put = v;                                                                      \
        STORE1(OUT, to, at, put.s0), STORE1(OUT, to, at + s.apart, put.s1);                        \
        STORE1(OUT, to, at + 2 * s.apart, put.s2), STORE1(OUT, to, at + 3 * s.apart, put.s3);      \
    } while (0)
#else
#define STEP_OF_CHANNELS 1
#define PUT(to, at, v) STORE_EXACT4(OUT, (to) + (at), v)
#endif

#ifdef AVERAGE
#define FOLD(a, b) ((a) + (b))
#define START 0.0f
#else
#define FOLD(a, b) (((b) > (a)) | ((b) != (b)) ? (b) : (a)) /* a NaN wins */
#define START (-INFINITY)
#endif

/* How many taps of a window that begins at `first` a mean divides by: those inside, or all that are
 * not past the padding. */
static inline int counted(int first, int taps, int dilation, int size, int include, int end) {
    const int last = include ? size + end : size;
    const int skipped = include || first >= 0 ? 0 : (dilation - 1 - first) / dilation;
    const int all = last > first ? min(taps, (last - 1 - first) / dilation + 1) : 0;
    return max(all - skipped, 0);
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void pool(
    const numbers s, global const MEMORY(IN) *restrict x, global MEMORY(OUT) * y EXTRA_PARAMS) {
    const spot at = spot_of(&s.g);
    if (!at.live) return;
    float4 all[TP][TQ];
    UNROLL
    for (int i = 0; i < TP; i++) UNROLL
    for (int j = 0; j < TQ; j++) all[i][j] = START;
    const int h0 = FIRST_ROW(at.p), w0 = FIRST_COLUMN(at.q);
    x += s.x + at.image * s.g.in.step.n + at.channel;
    UNROLL
    for (int a = 0; a < ROWS; a++) {
        float4 seen[COLUMNS], folded[TQ];
        SEE_ROW(seen, x, h0 + a, w0, s.g, s.g.in.height, START);
#ifdef GRAD_X
        const int high = counted((h0 + a) * SR - PAD_R, KR, DR, s.g.out.height, s.include, s.end_h);
        UNROLL
        for (int b = 0; b < COLUMNS; b++) {
            const int n =
                high * counted((w0 + b) * SS - PAD_S, KS, DS, s.g.out.width, s.include, s.end_w);
            seen[b] = n > 0 ? seen[b] / (float)n : 0;
        }
#endif
        UNROLL
        for (int j = 0; j < TQ; j++) {
            folded[j] = START;
            UNROLL
            for (int b = 0; b < COLUMNS; b++)
                if (COLUMN_TAP(j, b) >= 0) folded[j] = FOLD(folded[j], seen[b]);
        }
        UNROLL
        for (int i = 0; i < TP; i++) UNROLL
        for (int j = 0; j < TQ; j++)
            if (ROW_TAP(i, a) >= 0) all[i][j] = FOLD(all[i][j], folded[j]);
    }
    EXTRA_ONCE
    global MEMORY(OUT) *to = y + s.y + at.image * s.g.out.step.n + at.channel * STEP_OF_CHANNELS;
    UNROLL
    for (int i = 0; i < TP; i++) UNROLL
    for (int j = 0; j < TQ; j++) {
        const int p = at.p + i, q = at.q + j;
        if (p >= s.g.out.height || q >= s.g.out.width) continue;
#if defined(AVERAGE) && !defined(GRAD_X)
        const int n = counted(p * SR - PAD_R, KR, DR, s.g.in.height, s.include, s.end_h) *
                      counted(q * SS - PAD_S, KS, DS, s.g.in.width, s.include, s.end_w);
        all[i][j] = n > 0 ? all[i][j] / (float)n : 0;
#endif
        PUT(to, p * (int)s.g.out.step.h + q * (int)s.g.out.step.w,
            FINISH(all[i][j], at.image, p, q, at.channel));
    }
}
