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
enum { WIDE_STEP = V };
#define AT(row, i, fill) load_x((row) + (i), end - (i), fill)
#elif defined(COLUMNS)
enum { WIDE_STEP = 1 };
#define AT(row, i, fill) load_x((row) + (i) * step, left, 0)
#else
enum { WIDE_STEP = 1 };
#define AT(row, i, fill) LOAD(X, row, (i) * step)
#endif

/* Partial sums lie as to[quantity][channel][part]; behind them k[channel]. */
static inline void put(global T *to, pos channel, pos channels, pos parts, pos part, int quantity, pos left, folded x) {
    lanes r;
#ifdef COLUMNS
    r.v = x;
    for (pos l = 0; l < V && l < left; l++) to[((long)quantity * channels + channel + l) * parts + part] = r.lane[l];
#else
    to[((long)quantity * channels + channel) * parts + part] = x;
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
    const lanes k = { .v = around };
    const T middle = k.lane[0];
    part_of(parts, part, &first, &last, &begin, &end);
    const pos across = (pos)s.across, down = G / across, stride = across * WIDE_STEP;
    TV sum = (TV)(T)0, squares = (TV)(T)0, dsum = (TV)(T)0, along = (TV)(T)0;
    if (live)
        for (pos o = first + MY_PART / across; o < last; o += down) {
            const pos row = place(s.reduced, s.by, REDUCED - 1, o);
            pos i = begin + MY_PART % across * WIDE_STEP;
            while (i < end) {
                TV a = (TV)(T)0, b = (TV)(T)0, c = (TV)(T)0, d = (TV)(T)0;
                for (int n = 0; n < BLOCK && i < end; n++, i += stride) {
                    const TV e = AT(x + row, i, middle) - around;       /* what is not there is k, so that it adds nothing */
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
    to += s.to;
    put(to, channel, channels, parts, part, 0, left, all);
    put(to, channel, channels, parts, part, 1, left, all_squares);
#ifdef GRAD
    put(to, channel, channels, parts, part, 2, left, all_dsum);
    put(to, channel, channels, parts, part, 3, left, all_along);
    enum { QUANTITIES = 4 };
#else
    enum { QUANTITIES = 2 };
#endif
    if (part) return;
    to += (long)QUANTITIES * channels * parts + channel;
#ifdef COLUMNS
    for (pos l = 0; l < V && l < left; l++) to[l] = k.lane[l];
#else
    to[0] = k.lane[0];
#endif
}
#endif

#ifdef SETTLE
typedef struct { long from, to, scale, bias, mean, var, first, second, channels, parts, count, epsilon, keep, has; } numbers;

static inline T sum_of(global const T *x, pos parts) {
    T sum = 0;
    for (pos i = 0; i < parts; i++) sum += x[i];
    return sum;
}

/* Coefficients lie as to[which][channel]: mean, a, b, g.  has: which of the further outputs are wanted. */
kernel void settle(const numbers s, global const T *from, global T *to, global const MEMORY(SCALE) *scale,
                   global const MEMORY(BIAS) *bias, global const MEMORY(MEAN) *mean_in, global const MEMORY(VAR) *var_in,
                   global MEMORY(FIRST) *first, global MEMORY(SECOND) *second) {
    const pos c = (pos)get_global_id(0), channels = (pos)s.channels, parts = (pos)s.parts;
    if (c >= channels) return;
#ifdef GRAD
    const T n = (T)(s.count ? s.count : 1);
#else
    const T n = (T)s.count;
#endif
    from += s.from, to += s.to;
#ifdef GIVEN
    const T mean = LOAD(MEAN, mean_in, s.mean + c), var = LOAD(VAR, var_in, s.var + c);
#else
    const long each = (long)channels * parts;
    const T sum = sum_of(from + (long)c * parts, parts), squares = sum_of(from + each + (long)c * parts, parts);
#ifdef GRAD
    const T dsum = sum_of(from + 2 * each + (long)c * parts, parts), around = parts ? from[4 * each + c] : 0;
    const T along = sum_of(from + 3 * each + (long)c * parts, parts) - sum / n * dsum;
#else
    const T around = parts ? from[2 * each + c] : 0;
#endif
    const T mean = around + sum / n, spread = (squares - sum * (sum / n)) / n, var = spread > 0 || spread != spread ? spread : 0;
#endif
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
typedef struct { long x, dy, mask, y, from, units, runs, run, inner, channels, lo, hi; } numbers;

LOADER(load_x, X)
LOADER(load_c, COMPUTED)
STORER(store_y, X)

/* Rows of `inner` neighbours: pixels of one channel or (LAST) all channels of one pixel.  dy: of a gradient, or what FINISH
 * adds. */
kernel void apply(const numbers s, global const MEMORY(X) *x, global const MEMORY(X) *dy, global const MEMORY(X) *mask,
                  global MEMORY(X) *y, global const T *from) {
    const pos unit = (pos)get_global_id(0), channels = (pos)s.channels, inner = (pos)s.inner;
    if (unit >= (pos)s.units) return;
    const pos row = unit / (pos)s.runs, begin = unit % (pos)s.runs * (pos)s.run, end = min(begin + (pos)s.run, inner);
    from += s.from;
    x += s.x + row * inner, dy += s.dy + row * inner, mask += s.mask + row * inner, y += s.y + row * inner;
#ifndef LAST
    const pos c = row % channels;
    const TV mean = (TV)from[c], a = (TV)from[channels + c], b = (TV)from[2 * channels + c];
#ifdef GRAD
    const TV g = (TV)from[3 * channels + c];
#endif
#endif
    for (pos i = begin; i < end; i += V) {
        const pos left = end - i;
#ifdef LAST
        const TV mean = load_c(from + i, left, 0), a = load_c(from + channels + i, left, 0),
                 b = load_c(from + 2 * channels + i, left, 0);
#ifdef GRAD
        const TV g = load_c(from + 3 * channels + i, left, 0);
#endif
#endif
        const TV e = load_x(x + i, left, 0) - mean;
#ifdef GRAD
        lanes r = { .v = MASKED(load_x(dy + i, left, 0), load_x(mask + i, left, 0)) * a - b - e * g };
#else
        lanes r = { .v = e * a + b };
#endif
#ifdef FINISH
#ifdef ADDEND
        lanes other = { .v = load_x(dy + i, left, 0) };
        for (int l = 0; l < V; l++) r.lane[l] = finish(r.lane[l], other.lane[l]);
#else
        for (int l = 0; l < V; l++) r.lane[l] = finish(r.lane[l]);
#endif
#endif
        store_y(y + i, left, r.v);
    }
}
#endif
