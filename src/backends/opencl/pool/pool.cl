/* Pooling of x N,C,D,H,W into y N,C,O,P,Q and its gradients; any strides.
 *   pool      the largest or (AVERAGE) the mean of each window; INDEX: also where it was
 *   spread    dx from dy: what each element gave to the windows that hold it, as a sum over these
 *             windows, so nothing is added at once by two items: with indices from `pool` of the
 *             same launch order, or (AVERAGE) shares
 * A work item has V neighbours: of a row, or (LAST) of the channels.  Options: those of
 * elements.cl; X, Y;
 * POSITIVE: with INDEX_ONLY, a maximum that is at or below 0 is nowhere (relu made x, and what it
 * cut off has no gradient). */
typedef struct {
    long size[5], step[5];
} tensor; /* N, C and the three spatial dims */
typedef struct {
    long kernel_, stride, dilation, pad, pad_end;
} window;
typedef struct {
    long x, y, index, units, start, include, column_major;
    tensor in, out;
    window w[3];
} numbers;

/* Taps first..last-1 of output i that lie inside, and how many do not reach past the padding. */
static inline pos taps(const window *w, pos in, pos i, pos *first, pos *last) {
    const pos dilation = (pos)w->dilation, at = i * (pos)w->stride - (pos)w->pad,
              end = in + (pos)w->pad_end;
    *first = at < 0 ? (dilation - 1 - at) / dilation : 0;
    *last = in > at ? (in - 1 - at) / dilation + 1 : 0;
    *last = min(*last, (pos)w->kernel_);
    *first = min(*first, *last);
    return min(end > at ? (end - 1 - at) / dilation + 1 : 0, (pos)w->kernel_);
}

static inline pos at(const tensor *t, pos n, pos c, pos d, pos h, pos w) {
    return n * (pos)t->step[0] + c * (pos)t->step[1] + d * (pos)t->step[2] + h * (pos)t->step[3] +
           w * (pos)t->step[4];
}

/* The coordinates of a unit of V elements of t, the fastest last. */
static inline pos unit_of(const tensor *t, pos unit, pos *place) {
#ifdef LAST
    const int order[5] = { 1, 4, 3, 2, 0 };
#else
    const int order[5] = { 4, 3, 2, 1, 0 };
#endif
    const pos side = (pos)t->size[order[0]], tiles = (side + V - 1) / V;
    place[order[0]] = unit % tiles * V;
    unit /= tiles;
    for (int k = 1; k < 5; k++) {
        place[order[k]] = unit % (pos)t->size[order[k]];
        unit /= (pos)t->size[order[k]];
    }
    return side - place[order[0]];
}

#define LARGER(a, b) ((((a) > (b)) | ((a) != (a))) ? (a) : (b))

#ifdef POOL
kernel void pool(const numbers s, global const MEMORY(X) * x, global MEMORY(Y) * y,
                 global PLACE *index) {
    if ((pos)get_global_id(0) >= (pos)s.units) return;
    pos o[5], first[3], last[3], all = 1;
    const pos left = unit_of(&s.out, (pos)get_global_id(0), o), W = (pos)s.in.size[4];
    for (int k = 0; k < 3; k++) {
        const pos padded = taps(&s.w[k], (pos)s.in.size[2 + k], o[2 + k], &first[k], &last[k]);
        all *= s.include ? padded : last[k] - first[k];
    }
    const pos stride = (pos)s.w[2].stride, dilation = (pos)s.w[2].dilation,
              begin = o[4] * stride - (pos)s.w[2].pad;
#ifdef LAST
    const pos apart = 1;
    const bool whole = left >= V;
#else
    const pos apart = stride * (pos)s.in.step[4];
    const bool whole = left >= V && begin >= 0 &&
                       begin + (V - 1) * stride + ((pos)s.w[2].kernel_ - 1) * dilation < W;
    if (V > 1) {
        first[2] = 0;
        last[2] = (pos)s.w[2].kernel_;
    }
#endif
    const T start = REAL(s.start);
    lanes best = { .v = (TV)start };
    pos where = -1;
    for (pos t = first[0]; t < last[0]; t++)
        for (pos r = first[1]; r < last[1]; r++) {
            const pos z = o[2] * (pos)s.w[0].stride + t * (pos)s.w[0].dilation - (pos)s.w[0].pad;
            const pos i = o[3] * (pos)s.w[1].stride + r * (pos)s.w[1].dilation - (pos)s.w[1].pad;
            global const MEMORY(X) *row = x + s.x + at(&s.in, o[0], o[1], z, i, 0);
            for (pos q = first[2]; q < last[2]; q++) {
                const pos j = begin + q * dilation;
                lanes e;
                if (whole && apart == 1)
                    e.v = LOADV(X, row, j * (pos)s.in.step[4]);
                else if (whole)
                    for (pos l = 0; l < V; l++)
                        e.lane[l] = LOAD(X, row, j * (pos)s.in.step[4] + l * apart);
                else
                    for (pos l = 0; l < V; l++) {
#ifdef LAST
                        const bool inside = l < left;
#else
                        const bool inside = l < left && j + l * stride >= 0 && j + l * stride < W;
#endif
                        e.lane[l] =
                            inside ? LOAD(X, row, j * (pos)s.in.step[4] + l * apart) : start;
                    }
#ifdef AVERAGE
                best.v += e.v;
#elif defined(INDEX)
                const T now = e.lane[0];
                if (where < 0 || now > best.lane[0] ||
                    (now != now && best.lane[0] == best.lane[0])) {
                    best.lane[0] = now;
                    where = (z * (pos)s.in.size[3] + i) * W + j;
                }
#else
                best.v = LARGER(e.v, best.v);
#endif
            }
        }
#ifdef LAST
    const pos to = (pos)s.out.step[1];
#else
    const pos to = (pos)s.out.step[4];
#endif
    const pos place = at(&s.out, o[0], o[1], o[2], o[3], o[4]);
    for (pos l = 0; l < V && l < left; l++) {
#ifdef AVERAGE
        pos n = all;
#ifndef LAST
        if (V > 1) { /* each lane has a width of its own */
            pos a, b, c, d, e, f;
            const pos padded = taps(&s.w[2], W, o[4] + l, &a, &b);
            const pos height = taps(&s.w[1], (pos)s.in.size[3], o[3], &c, &d),
                      depth = taps(&s.w[0], (pos)s.in.size[2], o[2], &e, &f);
            n = s.include ? padded * height * depth : (b - a) * (d - c) * (f - e);
        }
#endif
        best.lane[l] = n > 0 ? best.lane[l] / (T)n : 0;
#endif
#ifndef INDEX_ONLY
        STORE(Y, y, s.y + place + l * to, best.lane[l]);
#endif
    }
#ifdef INDEX
    const pos HW = (pos)s.in.size[3] * W;
    const long plane = ((long)o[0] * s.in.size[1] + o[1]) * s.in.size[2] * HW;
    const long line =
        (((o[0] * s.out.size[1] + o[1]) * s.out.size[2] + o[2]) * s.out.size[3] + o[3]) *
            s.out.size[4] +
        o[4];
#ifdef INDEX_ONLY
#ifdef POSITIVE
    if (best.lane[0] <= 0) where = -1;
#endif
    index[s.index + line] = where;
#else
    if (s.column_major && where >= 0)
        where = where / HW + (pos)s.in.size[2] *
                                 (where / W % (pos)s.in.size[3] + (pos)s.in.size[3] * (where % W));
    index[s.index + line] = where < 0 ? -1 : plane + where;
#endif
#endif
}
#endif

#ifdef SPREAD
/* Outputs whose windows hold place i of a dim: first..last. */
static inline void windows(const window *w, pos out, pos i, pos *first, pos *last) {
    const pos reach = i + (pos)w->pad, low = reach - ((pos)w->kernel_ - 1) * (pos)w->dilation,
              stride = (pos)w->stride;
    *first = low > 0 ? (low + stride - 1) / stride : 0;
    *last = min(reach / stride, out - 1);
}

/* x: dy; y: dx, laid out as `in`. */
kernel void spread(const numbers s, global const MEMORY(X) * x, global MEMORY(Y) * y,
                   global const PLACE *index) {
    if ((pos)get_global_id(0) >= (pos)s.units) return;
    pos i[5], first[3], last[3];
    unit_of(&s.in, (pos)get_global_id(0), i);
    for (int k = 0; k < 3; k++)
        windows(&s.w[k], (pos)s.out.size[2 + k], i[2 + k], &first[k], &last[k]);
    const pos here = (i[2] * (pos)s.in.size[3] + i[3]) * (pos)s.in.size[4] + i[4];
    T sum = 0;
    for (pos o = first[0]; o <= last[0]; o++)
        for (pos p = first[1]; p <= last[1]; p++)
            for (pos q = first[2]; q <= last[2]; q++) {
                const pos from = at(&s.out, i[0], i[1], o, p, q), place[3] = { o, p, q };
#ifdef AVERAGE
                pos n = 1;
                bool inside = true;
                for (int k = 0; k < 3; k++) {
                    pos a, b;
                    const pos padded = taps(&s.w[k], (pos)s.in.size[2 + k], place[k], &a, &b);
                    n *= s.include ? padded : b - a;
                    inside &= (i[2 + k] + (pos)s.w[k].pad - place[k] * (pos)s.w[k].stride) %
                                  (pos)s.w[k].dilation ==
                              0;
                }
                if (inside && n > 0) sum += LOAD(X, x, s.x + from) / (T)n;
#else
                const long line =
                    (((i[0] * s.out.size[1] + i[1]) * s.out.size[2] + o) * s.out.size[3] + p) *
                        s.out.size[4] +
                    q;
                if (index[s.index + line] == here) sum += LOAD(X, x, s.x + from);
#endif
            }
    STORE(Y, y, s.y + at(&s.in, i[0], i[1], i[2], i[3], i[4]), sum);
}
#endif
