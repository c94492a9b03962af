/* Pools of planes whose elements of a row lie side by side, for items with vectors of their own: an
 * item makes some rows of a plane, or some planes one after the other.  Rows of x are folded into a
 * line of local memory first, with nothing around it, then its neighbours: so there are no edges,
 * and each element is read as often as a window is high.
 *
 * In front of this, after elements.cl: KR, KS the window, SR, SS its strides, DR, DS its dilations,
 * PAD_R, PAD_S; AVERAGE; LINE. HALF is V / 2.  V is at most the width of x; what is left of a row
 * is done again together with what is in front of it. */
typedef struct {
    long x, y, channels, height, width, rows, columns, image, channel, row, to_image, to_channel,
        to_row, strip;
    long include, end_h, end_w, planes, each;
} numbers;

#define UNROLL _Pragma("unroll")
#ifdef AVERAGE
#define FOLD(a, b) ((a) + (b))
#define START 0
#else
#define FOLD(a, b) (((b) > (a)) | ((b) != (b)) ? (b) : (a)) /* a NaN wins */
#define START (-INFINITY)
#endif
#if SS == 2
typedef union {
    TV v;
    FAC_CAT(T, HALF) part[2];
} halves;
#endif
enum { FRONT = (PAD_S + V - 1) / V * V };

/* How many taps of a window that begins at `first` lie before `end`. */
static inline pos taps_before(pos end, pos first, pos count, pos dilation) {
    return end > first ? min(count, (end - 1 - first) / dilation + 1) : 0;
}
/* Taps of a window that begins at `first` that lie inside, and how many a mean divides by. */
static inline void taps(pos first, pos count, pos dilation, pos size, pos include, pos end,
                        pos *from, pos *to, pos *n) {
    *from = first < 0 ? (dilation - 1 - first) / dilation : 0;
    *to = taps_before(size, first, count, dilation);
    *n = include ? taps_before(size + end, first, count, dilation) : max(*to - *from, (pos)0);
}

/* V neighbours of the result. */
static inline TV across(local const T *line, pos q) {
    TV all = (TV)START;
    line += FRONT + q * SS - PAD_S;
    UNROLL
    for (int s = 0; s < KS; s++) {
#if SS == 1
        const TV e = VECTOR(vload)(0, line + s * DS);
#elif SS == 2
        const TV a = VECTOR(vload)(0, line + s * DS), b = VECTOR(vload)(0, line + s * DS + V);
        const halves h = { .part = { a.even, b.even } };
        const TV e = h.v;
#else
        lanes r;
        UNROLL
        for (int l = 0; l < V; l++) r.lane[l] = line[s * DS + l * SS];
        const TV e = r.v;
#endif
        all = FOLD(all, e);
    }
    return all;
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void pool_strip(const numbers s,
                                                                      global const MEMORY(X) * x,
                                                                      global MEMORY(Y) * y) {
    local T line[LINE] __attribute__((aligned(64)));
    const pos first_plane = (pos)get_global_id(1) * (pos)s.each,
              end_plane = min(first_plane + (pos)s.each, (pos)s.planes);
    const pos W = (pos)s.width, H = (pos)s.height, Q = (pos)s.columns,
              p0 = (pos)get_global_id(0) * (pos)s.strip;
    const pos p1 = min(p0 + (pos)s.strip, (pos)s.rows);
#ifdef AVERAGE
    local T shares[LINE] __attribute__((aligned(64)));
    for (pos q = 0; q < Q; q++) {
        pos a, b, all;
        taps(q * SS - PAD_S, KS, DS, W, (pos)s.include, (pos)s.end_w, &a, &b, &all);
        shares[q] = all;
    }
#endif
    x += s.x;
    y += s.y;
    for (pos i = 0; i < LINE; i++) line[i] = START;
    for (pos of = first_plane; of < end_plane; of++)
        for (pos p = p0; p < p1; p++) {
            const pos n = of / (pos)s.channels, c = of % (pos)s.channels;
            global const MEMORY(X) *from = x + n * (pos)s.image + c * (pos)s.channel;
            pos first, last, high;
            const pos h = p * SR - PAD_R;
            taps(h, KR, DR, H, (pos)s.include, (pos)s.end_h, &first, &last, &high);
            for (pos at = 0; at < W; at += V) {
                const pos w = min(at, W - V);
                TV all = (TV)START;
                for (pos r = first; r < last; r++) {
                    const TV e = LOADV(X, from, (h + r * DR) * (pos)s.row + w);
                    all = FOLD(all, e);
                }
                VECTOR(vstore)(all, 0, line + FRONT + w);
            }
            global MEMORY(Y) *to =
                y + n * (pos)s.to_image + c * (pos)s.to_channel + p * (pos)s.to_row;
            for (pos at = 0; at < Q; at += V) {
                const pos q = Q >= V ? min(at, Q - V) : at;
                lanes r = { .v = across(line, q) };
#ifdef AVERAGE
                const TV share = VECTOR(vload)(0, shares + q) * (T)high;
                r.v = share > 0 ? r.v / share : (TV)0;
#endif
                if (Q >= V)
                    STOREV(Y, to, q, r.v);
                else
                    for (pos l = 0; l < Q; l++) STORE(Y, to, l, r.lane[l]);
            }
        }
}
