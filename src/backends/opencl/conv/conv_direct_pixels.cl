/* Convolutions with few channels in a group, as sums over their window: an item makes PX
 * neighbouring pixels of one channel. Memory bound, so there is no local memory: what windows share
 * is in the caches.
 *
 * WINDOW: the item reads what its pixels see of a row once, then multiplies; for items of scalars.
 * Else a vector for each tap. STRIP: an item makes so many rows of a channel that comes from one
 * other, for items with vectors of their own.
 *
 * In front of this: KT, KR, KS the window, ST, SR, SS its strides, DT, DR, DS its dilations; GRAD_X
 * for the gradient by x, whose pixel sees those outputs of which it was an input. */
typedef struct {
    long image, channel, at, d, h, w;
} planes; /* steps in elements */
typedef struct {
    long at, group, row, channel, t, r, s;
} window;
typedef struct {
    int D, H, W, P, Q, O, channels, rows, pad_t, pad_r, pad_s, across;
    planes x;
    window w;
} direct;

#if PX == 1
#define VEC ACC
#else
#define VEC FAC_CAT(ACC, PX)
#endif

/* Where tap k of pixel i looks; -1 far outside where it sees nothing. */
#ifdef GRAD_X
#define LOOK(i, k, stride, dilation, pad)                                                          \
    (((i) + (pad) - (k) * (dilation)) % (stride) ? -1 : ((i) + (pad) - (k) * (dilation)) / (stride))
#define STEP 1
#else
#define LOOK(i, k, stride, dilation, pad) ((i) * (stride) + (k) * (dilation) - (pad))
#define STEP SS
#endif

#define UNROLL _Pragma("unroll")
#if PX > 1
typedef union {
    VEC all;
    FAC_CAT(ACC, HALF) part[2];
} halves; /* in place of (VEC)(lo, hi), which ends a simulator */
#endif
#ifdef STRIP
/* The rows of x that a strip sees are brought into local memory first, with zeros around them and
 * columns in the order in which taps see them, [row][column % SS][column / SS]: then there are no
 * edges, and neighbours of one tap are neighbours in memory. */
#define SPAN ((STRIP - 1) * SR + (KR - 1) * DR + 1)
#ifdef GRAD_X
#define BEFORE(pad, taps, dilation) (((taps)-1) * (dilation) - (pad))
#define TAP(down, across) ((KR - 1 - (down)) * d.w.r + (KS - 1 - (across)) * d.w.s)
#else
#define BEFORE(pad, taps, dilation) (pad)
#define TAP(down, across) ((down)*d.w.r + (across)*d.w.s)
#endif

static inline void bring(local ACC *line, global const MEM *row, long step, int width, int pad) {
    UNROLL
    for (int f = 0; f < SS; f++) {
        const int first = max(0, (pad - f + SS - 1) / SS),
                  end = min(LINE, (width + pad - f + SS - 1) / SS);
        if (step == 1)
            for (int j = first; j < end; j++) line[f * LINE + j] = LOAD(row, j * SS + f - pad);
        else
            for (int j = first; j < end; j++)
                line[f * LINE + j] = LOAD(row, (j * SS + f - pad) * step);
    }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void direct_strip(
    const shape s, const direct d, global const MEM *restrict x, global const MEM *restrict w,
    global RESULT *y EXTRA_PARAMS) {
    local ACC seen[SPAN * SS * LINE] __attribute__((aligned(64))),
        sums[LINE] __attribute__((aligned(64)));
    const int p0 = get_global_id(0) * STRIP, channel = get_global_id(1), group = channel / d.rows,
              m = channel % d.rows;
    const int image = get_global_id(2), rows = min(STRIP, d.P - p0), pad = BEFORE(d.pad_s, KS, DS);
    x += d.x.at + image * d.x.image + group * d.x.channel;
    for (int i = 0; i < ((rows - 1) * SR + (KR - 1) * DR + 1) * SS * LINE; i++) seen[i] = 0;
    for (int r = 0; r < (rows - 1) * SR + (KR - 1) * DR + 1; r++) {
        const int height = p0 * SR + r - BEFORE(d.pad_r, KR, DR);
        if ((uint)height < (uint)d.H)
            bring(seen + r * SS * LINE, x + height * d.x.h, d.x.w, d.W, pad);
    }
    ACC tap[KR * KS];
    w += d.w.at + group * d.w.group + m * d.w.row;
    UNROLL
    for (int i = 0; i < KR * KS; i++) tap[i] = LOAD(w, TAP(i / KS, i % KS));
    const long z0 = 0, z1 = 0, z2 = 0, z3 = group;
    EXTRA_STARTS
    y += START(s.y) + m * s.y.row + image * s.y.outer;
    for (int p = 0; p < rows; p++) {
        local const ACC *top = seen + p * SR * SS * LINE;
        for (int q = 0; q < d.Q; q += PX) {
            VEC sum = 0;
            UNROLL
            for (int i = 0; i < KR * KS; i++) {
                const int r = i / KS * DR, k = i % KS * DS;
                sum += FAC_CAT(vload, PX)(0, top + (r * SS + k % SS) * LINE + k / SS + q) *
                       (VEC)tap[i];
            }
            FAC_CAT(vstore, PX)(sum, 0, sums + q);
        }
        const long at = (p0 + p) * (long)d.Q;
        for (int q = 0; q < d.Q; q++)
            STORE(y, (at + q) * Y_COLUMN, FINISH(sums[q], m, image, at + q));
    }
}
#else
#ifdef WINDOW
#define WIDE ((PX - 1) * STEP + (KS - 1) * DS + 1)
#ifdef GRAD_X
#define FIRST (q + d.pad_s - (KS - 1) * DS)
#define PLACE_OF(k) (KS - 1 - (k))
#else
#define FIRST (q * SS - d.pad_s)
#define PLACE_OF(k) (k)
#endif
#else

/* PX neighbours of a row of the image, zeros outside. */
static inline VEC look(global const MEM *row, long step, int q, int k, int width, int pad) {
#if PX == 1
    const int w = LOOK(q, k, SS, DS, pad);
    return w >= 0 && w < width ? LOAD(row, w * step) : 0;
#else
    ACC x[PX];
#if !defined(GRAD_X) || SS == 1
    const int first = LOOK(q, k, SS, DS, pad);
    if (first >= 0 && first + STEP * PX <= width && step == 1) {
#if STEP == 1 && defined(STRAIGHT)
        return FAC_CAT(vload, PX)(0, row + first);
#elif STEP == 2 && defined(STRAIGHT)
        const VEC a = FAC_CAT(vload, PX)(0, row + first), b = FAC_CAT(vload, PX)(1, row + first);
        const halves h = { .part = { a.even, b.even } };
        return h.all;
#endif
    }
#endif
    UNROLL
    for (int j = 0; j < PX; j++) { /* without branches: it may become vectors */
        const int w = LOOK(q + j, k, SS, DS, pad);
        const bool inside = (uint)w < (uint)width;
        const ACC v = LOAD(row, inside ? w * step : 0);
        x[j] = inside ? v : 0;
    }
    return FAC_CAT(vload, PX)(0, x);
#endif
}
#endif

kernel void direct_sum(const shape s, const direct d, global const MEM *restrict x,
                       global const MEM *restrict w, global RESULT *y EXTRA_PARAMS) {
    const int at = get_global_id(0), q = at % d.across * PX, p = at / d.across % d.P,
              o = at / d.across / d.P;
    const int channel = get_global_id(1), group = channel / d.rows, m = channel % d.rows,
              image = get_global_id(2);
    if (o >= d.O || group >= s.batch) return;
#ifdef WINDOW
    ACC sum[PX];
    UNROLL
    for (int j = 0; j < PX; j++) sum[j] = 0;
#else
    VEC sum = 0;
#endif
    for (int c = 0; c < d.channels; c++) {
        global const MEM *plane =
            x + d.x.at + image * d.x.image + (group * (long)d.channels + c) * d.x.channel;
        global const MEM *weight = w + d.w.at + group * d.w.group + m * d.w.row + c * d.w.channel;
        for (int t = 0; t < KT; t++) {
            const int depth = LOOK(o, t, ST, DT, d.pad_t);
            if (depth < 0 || depth >= d.D) continue;
            UNROLL
            for (int r = 0; r < KR; r++) {
                const int height = LOOK(p, r, SR, DR, d.pad_r);
                if (height < 0 || height >= d.H) continue;
                global const MEM *row = plane + depth * d.x.d + height * d.x.h,
                                 *taps = weight + t * d.w.t + r * d.w.r;
#ifdef WINDOW
                ACC seen[WIDE];
                UNROLL
                for (int i = 0; i < WIDE; i++) {
                    const int at_w = FIRST + i;
                    const bool inside = (uint)at_w < (uint)d.W;
                    const ACC v = LOAD(row, inside ? at_w * (int)d.x.w : 0);
                    seen[i] = inside ? v : 0;
                }
                UNROLL
                for (int k = 0; k < KS; k++) {
                    const ACC v = LOAD(taps, k * d.w.s);
                    UNROLL
                    for (int j = 0; j < PX; j++) sum[j] += seen[j * STEP + PLACE_OF(k) * DS] * v;
                }
#else
                for (int k = 0; k < KS; k++)
                    sum += look(row, d.x.w, q, k, d.W, d.pad_s) * (VEC)(LOAD(taps, k * d.w.s));
#endif
            }
        }
    }
    const long z0 = 0, z1 = 0, z2 = 0, z3 = group;
    EXTRA_STARTS
    y += START(s.y) + m * s.y.row + image * s.y.outer;
    const long column = (o * d.P + p) * (long)d.Q + q;
#if PX == 1 && !defined(WINDOW)
    STORE(y, column * s.y.column, FINISH(sum, m, image, column));
#else
#ifndef WINDOW
    ACC each[PX];
    FAC_CAT(vstore, PX)(sum, 0, each);
#else
    const ACC *each = sum;
#endif
    UNROLL
    for (int j = 0; j < PX; j++)
        if (q + j < d.Q) STORE(y, (column + j) * s.y.column, FINISH(each[j], m, image, column + j));
#endif
}
#endif
