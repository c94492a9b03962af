/* Batch normalization of x[N, C, P], dense, channels last or pixels last.  Three launches:
 *   moments   for each channel and part of it: sums of x - k, of its square and (GRAD) of dy and of dy (x - k),
 *             where k is the mean of a few elements of the channel, so that nothing is lost when the mean is large against the
 *             deviation
 *   settle    for each channel: mean, and factors a, b, g; running statistics, or gradients of scale and bias
 *   apply     y = (x - mean) a + b, or (GRAD) dx = dy a - b - (x - mean) g; then FINISH, the node's body
 * Options: those of elements.cl and team.cl; X; SCALE, BIAS, RUNNING: tags; GIVEN: mean and var are inputs; FINISH; MASK: dy
 * counts where lo < y < hi only. */
enum { SAMPLES = 8, BLOCK = 64 };

/* What passes the activation whose result was y. */
#ifdef MASK
#define MASKED(g, y) ((((y) > (TV)REAL(s.lo)) & ((y) < (TV)REAL(s.hi))) ? (g) : (TV)(T)0)
#else
#define MASKED(g, y) (g)
#endif

#ifdef MOMENTS
typedef struct { long x, dy, mask, to, units, parts, across, channels, outer, inner, step, columns, lo, hi,
                 kept[KEPT], from[KEPT], out[KEPT], reduced[REDUCED], by[REDUCED]; } numbers;

LOADER(load_x, X)
FOLDER(fold, PLUS)

#if defined(UNIT) && !defined(COLUMNS)
#define AT(row, i, fill) load_x((row) + (i), end - (i), fill)
#elif defined(COLUMNS)
#define AT(row, i, fill) load_x((row) + (i) * step, left, 0)
#else
#define AT(row, i, fill) LOAD(X, row, (i) * step)
#endif

/* Partial sums lie as to[part][quantity][channel]; behind them k[channel]. */
static inline void put(global T *to, pos left, folded x) {
#ifdef COLUMNS
    lanes r = { .v = x };
    for (pos l = 0; l < V && l < left; l++) to[l] = r.lane[l];
#else
    to[0] = x;
#endif
}

kernel void moments(const numbers s, global const MEMORY(X) *x, global const MEMORY(X) *dy, global const MEMORY(X) *mask,
                    global T *to) {
    TREE_OF_TEAM
    const pos parts = (pos)s.parts, part = (pos)get_group_id(0) % parts, step = (pos)s.step, channels = (pos)s.channels;
    LINE_OF_TEAM(get_group_id(0) / parts)
#ifdef COLUMNS
    const pos channel = unit * V, left = channels - channel;
    x += s.x + channel, dy += s.dy + channel, mask += s.mask + channel;
#else
    const pos channel = unit, left = 1;
    const pos at = channel * (pos)s.from[0];
    x += s.x + at, dy += s.dy + at, mask += s.mask + at;
#endif
    pos first = 0, last = (pos)s.outer, begin = 0, end = (pos)s.inner;
    /* k: of the first row */
    TV around = (TV)(T)0;
    const pos samples = end < SAMPLES ? end : SAMPLES;
    for (pos i = 0; i < samples; i++) {
#ifdef COLUMNS
        around += AT(x, i, 0);
#else
        around += (TV)LOAD(X, x, i * step);
#endif
    }
    around /= (T)samples;
#ifdef COLUMNS
#define K_OF_LINE around
#else
    const lanes k = { .v = around };
#define K_OF_LINE k.lane[0]
#endif
    part_of(parts, part, &first, &last, &begin, &end);
    const pos across = (pos)s.across, down = G / across, stride = across * WIDE_STEP;
    TV sum = (TV)(T)0, squares = (TV)(T)0, dsum = (TV)(T)0, along = (TV)(T)0;
    if (live)
        for (pos o = first + MY_PART / across; o < last; o += down) {
            const pos row = place(s.reduced, s.by, REDUCED - 1, o);
            pos i = begin + MY_PART % across * WIDE_STEP;
            while (i < end) {
                TV a = (TV)(T)0, b = (TV)(T)0, c = (TV)(T)0, d = (TV)(T)0;
                const pos stop = i + min((end - i + stride - 1) / stride, (pos)BLOCK) * stride;
#pragma unroll 4
                for (; i < stop; i += stride) {
                    const TV e = AT(x + row, i, K_OF_LINE) - around;       /* what is not there is k, so that it adds nothing */
                    a += e, b += e * e;
#ifdef GRAD
                    const TV g = MASKED(AT(dy + row, i, 0), AT(mask + row, i, 0));
                    c += g, d += g * e;
#endif
                }
                sum += a, squares += b, dsum += c, along += d;
            }
        }
    const folded all = fold(tree, sum), all_squares = fold(tree, squares);
#ifdef GRAD
    const folded all_dsum = fold(tree, dsum), all_along = fold(tree, along);
#endif
    if (!live || MY_PART) return;
#ifdef GRAD
    enum { QUANTITIES = 4 };
#else
    enum { QUANTITIES = 2 };
#endif
    to += s.to + channel;
    if (part == 0) put(to + (long)parts * QUANTITIES * channels, left, K_OF_LINE);
    to += (long)part * QUANTITIES * channels;
    put(to, left, all);
    put(to + channels, left, all_squares);
#ifdef GRAD
    put(to + 2 * channels, left, all_dsum);
    put(to + 3 * channels, left, all_along);
#endif
}
#endif

#ifdef SETTLE
typedef struct { long from, to, scale, bias, mean, var, first, second, units, parts, count, epsilon, keep, has; } numbers;

FOLDER(fold, PLUS)

/* Coefficients lie as to[which][channel]: mean, a, b, g.  has: which of the further outputs are wanted. */
TEAM_KERNEL settle(const numbers s, global const T *from, global T *to, global const MEMORY(SCALE) *scale,
                   global const MEMORY(BIAS) *bias, global const MEMORY(MEAN) *mean_in, global const MEMORY(VAR) *var_in,
                   global MEMORY(FIRST) *first, global MEMORY(SECOND) *second) {
    TREE_OF_TEAM
    LINE_OF_TEAM(get_group_id(0))
    const pos c = unit, channels = (pos)s.units, parts = (pos)s.parts;
#ifdef GRAD
    const T n = (T)(s.count ? s.count : 1);
#else
    const T n = (T)s.count;
#endif
    from += s.from, to += s.to;
#ifdef GIVEN
    const T mean = LOAD(MEAN, mean_in, s.mean + c), var = LOAD(VAR, var_in, s.var + c);
#else
#ifdef GRAD
    enum { QUANTITIES = 4 };
#else
    enum { QUANTITIES = 2 };
#endif
    const long each = (long)QUANTITIES * channels;
    T sum = 0, squares = 0, dsum = 0, along = 0;
#pragma unroll 4
    for (pos i = MY_PART; i < parts; i += G) {
        global const T *at = from + i * each + c;
        sum += at[0], squares += at[channels];
#ifdef GRAD
        dsum += at[2 * channels], along += at[3 * channels];
#endif
    }
    sum = fold(tree, sum), squares = fold(tree, squares);
    const T around = parts ? from[parts * each + c] : 0;
#ifdef GRAD
    dsum = fold(tree, dsum), along = fold(tree, along) - sum / n * dsum;
#endif
    const T mean = around + sum / n, spread = (squares - sum * (sum / n)) / n, var = spread > 0 || spread != spread ? spread : 0;
#endif
    if (!live || MY_PART) return;
    const T inverse = (T)1 / sqrt(var + REAL(s.epsilon)), a = LOAD(SCALE, scale, s.scale + c) * inverse;
    to[c] = mean;
    to[channels + c] = a;
#ifdef GRAD
    to[2 * channels + c] = a * dsum / n;
    to[3 * channels + c] = a * inverse * inverse * along / n;
    if (s.has & 1) STORE(FIRST, first, s.first + c, along * inverse);
    if (s.has & 2) STORE(SECOND, second, s.second + c, dsum);
#else
    const T keep = REAL(s.keep);
    to[2 * channels + c] = LOAD(BIAS, bias, s.bias + c);
    if (s.has & 1) STORE(FIRST, first, s.first + c, LOAD(MEAN, mean_in, s.mean + c) * keep + mean * (1 - keep));
    if (s.has & 2) STORE(SECOND, second, s.second + c, LOAD(VAR, var_in, s.var + c) * keep + var * (1 - keep));
#endif
}
#endif

#ifdef APPLY
typedef struct { long x, dy, mask, y, from, units, runs, run, inner, channels, pixels, lo, hi; } numbers;

LOADER(load_x, X)
LOADER(load_c, COMPUTED)
STORER(store_y, X)

typedef struct { TV mean, a, b, g; } factors;
static inline factors factors_of(global const T *from, pos channels, pos left) {
    factors f = { load_c(from, left, 0), load_c(from + channels, left, 0), load_c(from + 2 * channels, left, 0), (TV)(T)0 };
#ifdef GRAD
    f.g = load_c(from + 3 * channels, left, 0);
#endif
    return f;
}

/* dy: of a gradient, or what FINISH adds. */
static inline TV applied(const numbers s, const factors f, TV x, TV dy, TV mask) {
    const TV e = x - f.mean;
#ifdef GRAD
    return MASKED(dy, mask) * f.a - f.b - e * f.g;
#else
    lanes r = { .v = e * f.a + f.b };
#ifdef FINISH
#ifdef ADDEND
    lanes other = { .v = dy };
    for (int l = 0; l < V; l++) r.lane[l] = finish(r.lane[l], other.lane[l]);
#else
    for (int l = 0; l < V; l++) r.lane[l] = finish(r.lane[l]);
#endif
#endif
    return r.v;
#endif
}

#if defined(GRAD) || defined(ADDEND)
#define LOAD_DY(at, left) load_x(dy + (at), left, 0)
#else
#define LOAD_DY(at, left) (TV)(T)0
#endif
#ifdef MASK
#define LOAD_MASK(at, left) load_x(mask + (at), left, 0)
#else
#define LOAD_MASK(at, left) (TV)(T)0
#endif

#ifdef PIXELS
/* Channels last on a GPU: an item keeps its channels and does PIXELS pixels, `down` from one another, all of whose loads are on
 * their way before the first is needed. */
kernel void apply(const numbers s, global const MEMORY(X) *x, global const MEMORY(X) *dy, global const MEMORY(X) *mask,
                  global MEMORY(X) *y, global const T *from) {
    const pos unit = (pos)get_global_id(0), channels = (pos)s.channels, across = (channels + V - 1) / V, pixels = (pos)s.pixels;
    const pos down = (pos)s.units / across, first = unit / across, i = unit % across * V, left = channels - i;
    if (unit >= (pos)s.units) return;
    const factors f = factors_of(from + s.from + i, channels, left);
    TV xs[PIXELS], dys[PIXELS], masks[PIXELS];
    x += s.x + i, dy += s.dy + i, mask += s.mask + i, y += s.y + i;
#pragma unroll
    for (int n = 0; n < PIXELS; n++) {
        const pos at = min(first + n * down, pixels - 1) * channels;
        xs[n] = load_x(x + at, left, 0), dys[n] = LOAD_DY(at, left), masks[n] = LOAD_MASK(at, left);
    }
#pragma unroll
    for (int n = 0; n < PIXELS; n++) {
        const pos p = first + n * down;
        if (p < pixels) store_y(y + p * channels, left, applied(s, f, xs[n], dys[n], masks[n]));
    }
}
#else
/* Rows of `inner` neighbours: pixels of one channel or (LAST) all channels of one pixel. */
kernel void apply(const numbers s, global const MEMORY(X) *x, global const MEMORY(X) *dy, global const MEMORY(X) *mask,
                  global MEMORY(X) *y, global const T *from) {
    const pos unit = (pos)get_global_id(0), channels = (pos)s.channels, inner = (pos)s.inner;
    if (unit >= (pos)s.units) return;
    const pos row = unit / (pos)s.runs, begin = unit % (pos)s.runs * (pos)s.run, end = min(begin + (pos)s.run, inner);
    from += s.from;
    x += s.x + row * inner, dy += s.dy + row * inner, mask += s.mask + row * inner, y += s.y + row * inner;
#ifndef LAST
    from += row % channels;
    factors f = { (TV)from[0], (TV)from[channels], (TV)from[2 * channels], (TV)(T)0 };
#ifdef GRAD
    f.g = (TV)from[3 * channels];
#endif
#endif
    for (pos i = begin; i < end; i += V) {
        const pos left = end - i;
#ifdef LAST
        const factors f = factors_of(from + i, channels, left);
#endif
        store_y(y + i, left, applied(s, f, load_x(x + i, left, 0), LOAD_DY(i, left), LOAD_MASK(i, left)));
    }
}
#endif
#endif
