/* Convolutions with few channels in a group, channels last, and (GRAD_X) their gradients by x: an
 * item makes four channels of one group, after quads.cl.  EACH channels are read for one of the
 * result, MADE are made of a group.  Weights lie as [row][channel of the group][tap]; a group of
 * items brings those of its results into local memory as [channel][tap][result]. */
typedef struct {
    long x, w, y;
    EXTRA_PLACES quads g;
    EXTRA_STEPS
} numbers;

#define TAPS (KR * KS)
#ifdef GRAD_X
#define WEIGHT(made, read) (((made) / MADE * EACH + (read)) * (MADE * TAPS) + (made) % MADE * TAPS)
#else
#define WEIGHT(made, read) (((made)*EACH + (read)) * TAPS)
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void grouped(
    const numbers s, global const MEMORY(IN) *restrict x, global const MEMORY(IN) *restrict w,
    global MEMORY(OUT) * y EXTRA_PARAMS) {
    local float4 taps[EACH * TAPS * LANES];
    const spot at = spot_of(&s.g);
    const int h0 = FIRST_ROW(at.p), w0 = FIRST_COLUMN(at.q), lanes = s.g.lanes, mine = lanes * 4;
    const int base = get_group_id(0) % (int)s.g.blocks * mine;
    for (int i = get_local_id(0); i < mine * EACH * TAPS; i += GROUP) {
        const int t = i % TAPS, read = i / TAPS % EACH, made = i / (TAPS * EACH);
        if (base + made < s.g.channels)
            ((local float *)taps)[(read * TAPS + t) * mine + made] =
                LOAD1(IN, w, s.w + WEIGHT(base + made, read) + t);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!at.live) return;
    float4 sum[TP][TQ];
    UNROLL
    for (int i = 0; i < TP; i++) UNROLL
    for (int j = 0; j < TQ; j++) sum[i][j] = 0;
    x += s.x + at.image * s.g.in.step.n + at.channel / MADE * EACH;
    for (int c = 0; c < EACH; c += 4) {
        local const float4 *tap = taps + c * TAPS * lanes + get_local_id(0) % lanes;
        UNROLL
        for (int a = 0; a < ROWS; a++) {
            if ((uint)(h0 + a) >= (uint)s.g.in.height) continue;
            float4 seen[COLUMNS];
            SEE_ROW(seen, x + c, h0 + a, w0, s.g, s.g.in.height, 0);
            UNROLL
            for (int i = 0; i < TP; i++) {
                if (ROW_TAP(i, a) < 0) continue;
                UNROLL
                for (int k = 0; k < KS; k++) {
                    const int t = ROW_TAP(i, a) * KS + k;
                    const float4 u0 = tap[t * lanes], u1 = tap[(TAPS + t) * lanes],
                                 u2 = tap[(2 * TAPS + t) * lanes], u3 = tap[(3 * TAPS + t) * lanes];
                    UNROLL
                    for (int b = 0; b < COLUMNS; b++) UNROLL
                    for (int j = 0; j < TQ; j++)
                        if (COLUMN_TAP(j, b) == k) {
                            const float4 e = seen[b];
                            sum[i][j] += e.x * u0 + e.y * u1 + e.z * u2 + e.w * u3;
                        }
                }
            }
        }
    }
    EXTRA_ONCE
    global MEMORY(OUT) *to = y + s.y + at.image * s.g.out.step.n + at.channel;
    UNROLL
    for (int i = 0; i < TP; i++) UNROLL
    for (int j = 0; j < TQ; j++) {
        const int p = at.p + i, q = at.q + j;
        if (p >= s.g.out.height || q >= s.g.out.width) continue;
        STORE_EXACT4(OUT, to + (p * (int)s.g.out.step.h + q * (int)s.g.out.step.w),
                     FINISH(sum[i][j], at.image, p, q, at.channel));
    }
}
