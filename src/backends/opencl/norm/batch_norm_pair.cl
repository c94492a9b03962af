/* Two batch norms at once, by statistics that are operands; images lie with channels last, one
 * pixel after the other.
 *   y = finish(norm 0 of x0 + norm 1 of x1),   norm: (x - mean) a + bias,   a = scale / sqrt(var +
 *   epsilon)
 *   GRAD: dx0 and dx1, each (dy - dbias / n - (x - mean) / sqrt(var + epsilon) dscale / n) a
 * An item keeps its V channels and does PIXELS pixels, `side` from one another, all of whose loads
 * are on their way before the first is needed; from the end to the beginning, since what a
 * convolution wrote last is in the cache still, but GRAD after batch_norm_sums.cl, which ends at
 * the beginning.  Options: those of elements.cl, where V > 1 with ALIGNED alone; X; COMPUTED: the
 * tag of T; FINISH: the node's body; BITS: which sums are not at or below 0, a byte for four
 * channels. */
typedef struct { TV mean, a, b, g; } factors;

#ifdef GRAD
#define PLACES(n) scale##n, mean##n, var##n, dscale##n, dbias##n
#define PARAMS(n)                                                                                  \
    global const T *scale##n, global const T *mean##n, global const T *var##n,                     \
        global const T *dscale##n, global const T *dbias##n
#define FACTORS(n)                                                                                 \
    factors_of(REAL(s.epsilon##n), (T)s.pixels, scale##n + s.scale##n + c,                         \
               mean##n + s.mean##n + c, var##n + s.var##n + c, dscale##n + s.dscale##n + c,        \
               dbias##n + s.dbias##n + c)
#define IMAGES dy, x0, x1, dx0, dx1
#else
#define PLACES(n)                                                                                  \
    scale##n, bias##n, mean##n, var##n, old_mean##n, old_var##n, new_mean##n, new_var##n
#define PARAMS(n)                                                                                  \
    global const T *scale##n, global const T *bias##n, global const T *mean##n,                    \
        global const T *var##n, global const T *old_mean##n, global const T *old_var##n,           \
        global T *new_mean##n, global T *new_var##n
#define FACTORS(n)                                                                                 \
    factors_of(REAL(s.epsilon##n), scale##n + s.scale##n + c, bias##n + s.bias##n + c,             \
               mean##n + s.mean##n + c, var##n + s.var##n + c)
#define KEEP(n, what, bit)                                                                         \
    if (s.has & (bit))                                                                             \
    keep(REAL(s.keep##n), c, old_##what##n + s.old_##what##n, what##n + s.what##n,                 \
         new_##what##n + s.new_##what##n)
#ifdef BITS
#define IMAGES x0, x1, y, bits
#else
#define IMAGES x0, x1, y
#endif
#endif
/* has: which of the further results are wanted, one bit each */
typedef struct {
    long IMAGES, PLACES(0),
        PLACES(1), units, across, side, pixels, channels, has, epsilon0, epsilon1
#ifndef GRAD
        ,
        keep0, keep1
#endif
        ; } numbers;

#ifdef GRAD
static inline factors factors_of(T epsilon, T count, global const T *scale, global const T *mean,
                                 global const T *var, global const T *dscale,
                                 global const T *dbias) {
    const TV inverse = (TV)(T)1 / sqrt(LOADV(COMPUTED, var, 0) + epsilon),
             a = LOADV(COMPUTED, scale, 0) * inverse;
    const factors f = { LOADV(COMPUTED, mean, 0), a, a * LOADV(COMPUTED, dbias, 0) / count,
                        a * inverse * LOADV(COMPUTED, dscale, 0) / count };
    return f;
}

static inline TV slope(const factors f, TV x, TV dy) { return dy * f.a - f.b - (x - f.mean) * f.g; }
#else
static inline factors factors_of(T epsilon, global const T *scale, global const T *bias,
                                 global const T *mean, global const T *var) {
    const factors f = { LOADV(COMPUTED, mean, 0),
                        LOADV(COMPUTED, scale, 0) / sqrt(LOADV(COMPUTED, var, 0) + epsilon),
                        LOADV(COMPUTED, bias, 0), (TV)(T)0 };
    return f;
}

static inline TV norm(const factors f, TV x) { return (x - f.mean) * f.a + f.b; }

/* Running statistics of an item's channels. */
static inline void keep(T share, pos c, global const T *old, global const T *own, global T *to) {
    for (pos l = c; l < c + V; l++) to[l] = old[l] * share + own[l] * (1 - share);
}
#endif

#ifdef BITS
static inline void store_bits(global uchar *to, TV v) {
    const lanes r = { .v = v };
    for (int k = 0; k < V; k += 4) {
        uint byte = 0;
        for (int l = 0; l < 4; l++) byte |= (uint)!(r.lane[k + l] <= 0) << l;
        to[k / 4] = (uchar)byte;
    }
}
#endif

static inline TV finished(TV v) {
#ifdef FINISH
    lanes r = { .v = v };
    for (int l = 0; l < V; l++) r.lane[l] = finish(r.lane[l]);
    return r.v;
#else
    return v;
#endif
}

#ifdef GRAD
kernel void pair(const numbers s, global const MEMORY(X) * dy, global const MEMORY(X) * x0,
                 global const MEMORY(X) * x1, global MEMORY(X) * dx0, global MEMORY(X) * dx1,
                 PARAMS(0), PARAMS(1)) {
#else
kernel void pair(const numbers s, global const MEMORY(X) * x0, global const MEMORY(X) * x1,
                 global MEMORY(X) * y,
#ifdef BITS
                 global uchar *bits,
#endif
                 PARAMS(0), PARAMS(1)) {
#endif
    const pos units = (pos)s.units, across = (pos)s.across, side = (pos)s.side,
              pixels = (pos)s.pixels, step = (pos)s.channels;
#ifdef GRAD
    const pos unit = (pos)get_global_id(0);
#else
    const pos unit = units - 1 - (pos)get_global_id(0);
#endif
    if (unit < 0 || unit >= units) return;
    const pos first = unit / across, top = first / side * (side * PIXELS) + first % side,
              c = unit % across * V;
    const factors f0 = FACTORS(0), f1 = FACTORS(1);
#ifndef GRAD
    if (first == 0) {
        KEEP(0, mean, 1);
        KEEP(0, var, 2);
        KEEP(1, mean, 4);
        KEEP(1, var, 8);
    }
#endif
    CAME(X) xs0[PIXELS], xs1[PIXELS];
    x0 += s.x0 + c;
    x1 += s.x1 + c;
#ifdef GRAD
    CAME(X) dys[PIXELS];
    dy += s.dy + c;
    dx0 += s.dx0 + c;
    dx1 += s.dx1 + c;
#else
    y += s.y + c;
#ifdef BITS
    bits += s.bits;
#endif
#endif
#pragma unroll
    for (int n = 0; n < PIXELS; n++) {
        const pos at = min(top + n * side, pixels - 1) * step;
        xs0[n] = COME(X, x0, at);
        xs1[n] = COME(X, x1, at);
#ifdef GRAD
        dys[n] = COME(X, dy, at);
#endif
    }
#pragma unroll
    for (int n = 0; n < PIXELS; n++) {
        const pos p = top + n * side, at = p * step;
        if (p >= pixels) break;
#ifdef GRAD
        const TV g = SEEN(X, dys[n]);
        STOREV(X, dx0, at, slope(f0, SEEN(X, xs0[n]), g));
        if (s.has) STOREV(X, dx1, at, slope(f1, SEEN(X, xs1[n]), g));
#else
        const TV sum = norm(f0, SEEN(X, xs0[n])) + norm(f1, SEEN(X, xs1[n]));
        STOREV(X, y, at, finished(sum));
#ifdef BITS
        store_bits(bits + (at + c) / 4, sum);
#endif
#endif
    }
}
