/* Batch normalization of x[N, C, P], dense, channels last or pixels last.  Three launches:
 *   moments   for each channel and part of it: sums of x - k, of its square and (GRAD) of dy and of
 *             dy (x - k), where k is the mean of a few elements of the channel, so that nothing is
 *             lost when the mean is large against the deviation
 *   settle    for each channel: mean, and factors a, b, g; running statistics, or gradients of
 *             scale and bias
 *   apply     y = (x - mean) a + b, or (GRAD) dx = dy a - b - (x - mean) g; then FINISH, the node's
 *             body
 *             STRAIGHT: the only launch, since the batch's mean and variance are operands
 * With channels last operands may be slices of others' channels: `step` is from pixel to pixel.
 * Options: those of elements.cl and team.cl; X; SCALE, BIAS, RUNNING: tags; GIVEN: mean and var are
 * inputs; FINISH; MASK: dy counts as 0 where y <= lo or y >= hi; AHEAD: how many vectors of each
 * operand an item asks for before it adds the first; BACKWARDS: what is read last is applied first;
 * SETTLES: of the groups that have parts of the same channels the one that comes last adds the
 * parts, in their order, and does what settle does: a launch less (last.cl). */
enum { SAMPLES = 8, BLOCK = 64 };
#ifdef GRAD
enum { QUANTITIES = 4 };
#else
enum { QUANTITIES = 2 };
#endif

/* What passes the activation whose result was y. */
#ifdef MASK
#define MASKED(g, y) ((((y) <= (TV)REAL(s.lo)) | ((y) >= (TV)REAL(s.hi))) ? (TV)(T)0 : (g))
#else
#define MASKED(g, y) (g)
#endif

#if defined(SETTLE) || defined(SETTLES)
#define SETTLED_PARAMS                                                                             \
    global T *to, global const MEMORY(SCALE) * scale, global const MEMORY(BIAS) * bias,            \
        global const MEMORY(MEAN) * mean_in, global const MEMORY(VAR) * var_in,                    \
        global MEMORY(FIRST) * out1, global MEMORY(SECOND) * out2
#define SETTLED_ARGS to, scale, bias, mean_in, var_in, out1, out2
#define SETTLED_PLACES to, scale, bias, mean, var, out1, out2
#define SETTLED_NUMBERS count, epsilon, keep, has
#endif
#ifdef SETTLES
typedef struct {
    long x, dy, mask, parts_at, SETTLED_PLACES, done, units, parts, across, channels, outer, inner,
        step, dy_step, mask_step, lo, hi, SETTLED_NUMBERS, kept[KEPT], from[KEPT], out[KEPT],
        reduced[REDUCED], by[REDUCED];
} numbers;
#elif defined(MOMENTS)
typedef struct {
    long x, dy, mask, parts_at, units, parts, across, channels, outer, inner, step, dy_step,
        mask_step, lo, hi, kept[KEPT], from[KEPT], out[KEPT], reduced[REDUCED], by[REDUCED];
} numbers;
#elif defined(SETTLE)
typedef struct { long parts_at, SETTLED_PLACES, units, parts, SETTLED_NUMBERS; } numbers;
#endif

#if defined(SETTLE) || defined(SETTLES)
/* Coefficients lie as to[which][channel]: mean, a, b, g.  has: which of the further outputs are
 * wanted. */
static inline void settle_one(const numbers s, pos c, pos channels, T mean, T var, T dsum, T along,
                              SETTLED_PARAMS) {
    const T inverse = (T)1 / sqrt(var + REAL(s.epsilon)),
            a = LOAD(SCALE, scale, s.scale + c) * inverse;
    to += s.to;
    to[c] = mean;
    to[channels + c] = a;
#ifdef GRAD
    const T n = (T)(s.count ? s.count : 1);
    to[2 * channels + c] = a * dsum / n;
    to[3 * channels + c] = a * inverse * inverse * along / n;
    if (s.has & 1) STORE(FIRST, out1, s.out1 + c, along * inverse);
    if (s.has & 2) STORE(SECOND, out2, s.out2 + c, dsum);
#else
    const T keep = REAL(s.keep);
    to[2 * channels + c] = LOAD(BIAS, bias, s.bias + c);
    if (s.has & 1)
        STORE(FIRST, out1, s.out1 + c, LOAD(MEAN, mean_in, s.mean + c) * keep + mean * (1 - keep));
    if (s.has & 2)
        STORE(SECOND, out2, s.out2 + c, LOAD(VAR, var_in, s.var + c) * keep + var * (1 - keep));
#endif
}

/* From the sums about `around` of all elements. */
static inline void settle_sums(const numbers s, pos c, pos channels, T around, T sum, T squares,
                               T dsum, T along, SETTLED_PARAMS) {
#ifdef GRAD
    const T n = (T)(s.count ? s.count : 1);
#else
    const T n = (T)s.count;
#endif
    const T spread = (squares - sum * (sum / n)) / n,
            var = spread > 0 || spread != spread ? spread : 0;
    settle_one(s, c, channels, around + sum / n, var, dsum, along - sum / n * dsum, SETTLED_ARGS);
}
#endif

#ifdef MOMENTS
LOADER(load_x, X)
FOLDER(fold, PLUS)

#if defined(UNIT) && !defined(COLUMNS)
#define AT(row, i, by, fill) load_x((row) + (i), end - (i), fill)
#elif defined(COLUMNS)
#define AT(row, i, by, fill) load_x((row) + (i) * (by), left, 0)
#else
#define AT(row, i, by, fill) LOAD(X, row, (i) * step)
#endif

#ifdef MASK
#define MASK_AT(row, i) AT(mask + (row), i, (pos)s.mask_step, 0)
#else
#define MASK_AT(row, i) (TV)(T)0
#endif

/* One more element in the four sums; what is not there is k, so that it adds nothing. */
#ifdef GRAD
#define ADD(x_, dy_, mask_) { \
        const TV e = (x_) - around, g = MASKED(dy_, mask_); \
        a += e; \
        b += e * e; \
        c += g; \
        d += g * e; \
    }
#else
#define ADD(x_, dy_, mask_) { \
        const TV e = (x_) - around; \
        a += e; \
        b += e * e; \
    }
#endif

/* Partial sums lie as to[part][quantity][channel]; after them k[channel]. */
static inline void put(global T *to, pos left, folded x) {
#ifdef COLUMNS
    lanes r = { .v = x };
    for (pos l = 0; l < V && l < left; l++) to[l] = r.lane[l];
#else
    to[0] = x;
#endif
}

#ifdef SETTLES
/* What put() wrote, in one access where it can be. */
static inline folded get(global const T *from, pos left) {
#if defined(COLUMNS) && defined(ALIGNED)
    return *(global const TV *)from;
#elif defined(COLUMNS)
    lanes r = { .v = (TV)(T)0 };
    for (pos l = 0; l < V && l < left; l++) r.lane[l] = from[l];
    return r.v;
#else
    return from[0];
#endif
}
#endif

kernel void moments(const numbers s, global const MEMORY(X) * x, global const MEMORY(X) * dy,
                    global const MEMORY(X) * mask, global T *sums
#ifdef SETTLES
                    ,
                    SETTLED_PARAMS, global uint *done
#endif
) {
    TREE_OF_TEAM
#ifdef SETTLES
    local uint before;
#endif
    const pos parts = (pos)s.parts, part = (pos)get_group_id(0) % parts, step = (pos)s.step,
              channels = (pos)s.channels;
    LINE_OF_TEAM(get_group_id(0) / parts)
#ifdef COLUMNS
    const pos channel = unit * V, left = channels - channel;
    x += s.x + channel;
    dy += s.dy + channel;
    mask += s.mask + channel;
#else
    const pos channel = unit, left = 1;
    const pos at = channel * (pos)s.from[0];
    x += s.x + at;
    dy += s.dy + at;
    mask += s.mask + at;
#endif
    pos first = 0, last = (pos)s.outer, begin = 0, end = (pos)s.inner;
    /* k: of the first row */
    TV around = (TV)(T)0;
    const pos samples = end < SAMPLES ? end : SAMPLES;
    for (pos i = 0; i < samples; i++) {
#ifdef COLUMNS
        around += AT(x, i, step, 0);
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
    const pos across = (pos)s.across, down = G / across;
    pos stride = across * WIDE_STEP;
#if defined(COLUMNS) && defined(BACKWARDS)
    /* Parts go through memory side by side: what was read last, and is in the cache still, is the
     * end of all of it. */
    if (last == 1) {
        begin = part * stride;
        stride *= parts;
    } else
#endif
    part_of(parts, part, &first, &last, &begin, &end);
    TV sum = (TV)(T)0, squares = (TV)(T)0, dsum = (TV)(T)0, along = (TV)(T)0;
    if (live)
        for (pos o = first + MY_PART / across; o < last; o += down) {
            const pos row = place(s.reduced, s.by, REDUCED - 1, o);
            pos i = begin + MY_PART % across * WIDE_STEP;
            while (i < end) {
                TV a = (TV)(T)0, b = (TV)(T)0, c = (TV)(T)0, d = (TV)(T)0;
                const pos stop = i + min((end - i + stride - 1) / stride, (pos)BLOCK) * stride;
#if AHEAD > 1
                for (; i + (AHEAD - 1) * stride < stop; i += AHEAD * stride) {
                    TV xs[AHEAD], dys[AHEAD], masks[AHEAD];
#pragma unroll
                    for (int n = 0; n < AHEAD; n++) {
                        xs[n] = AT(x + row, i + n * stride, step, K_OF_LINE);
#ifdef GRAD
                        dys[n] = AT(dy + row, i + n * stride, (pos)s.dy_step, 0);
                        masks[n] = MASK_AT(row, i + n * stride);
#endif
                    }
#pragma unroll
                    for (int n = 0; n < AHEAD; n++) ADD(xs[n], dys[n], masks[n])
                }
#else
#pragma unroll 4
#endif
                for (; i < stop; i += stride) {
                    const TV each = AT(x + row, i, step, K_OF_LINE);
#ifdef GRAD
                    const TV slope = AT(dy + row, i, (pos)s.dy_step, 0), marked = MASK_AT(row, i);
#endif
                    ADD(each, slope, marked)
                }
                sum += a;
                squares += b;
                dsum += c;
                along += d;
            }
        }
    folded all = fold(tree, sum), all_squares = fold(tree, squares), all_dsum = all,
           all_along = all;
#ifdef GRAD
    all_dsum = fold(tree, dsum);
    all_along = fold(tree, along);
#endif
    sums += s.parts_at + channel;
#ifdef SETTLES
    if (parts > 1)
#endif
    if (live && MY_PART == 0) {
        global T *to = sums + (long)part * QUANTITIES * channels;
        if (part == 0) put(sums + (long)parts * QUANTITIES * channels, left, K_OF_LINE);
        put(to, left, all);
        put(to + channels, left, all_squares);
#ifdef GRAD
        put(to + 2 * channels, left, all_dsum);
        put(to + 3 * channels, left, all_along);
#endif
    }
#ifdef SETTLES
    if (parts > 1) {
        if (!is_last(done + s.done + get_group_id(0) / parts, (uint)parts, &before)) return;
        all = all_squares = all_dsum = all_along = (folded)(T)0;
#pragma unroll 4
        for (pos i = MY_PART; i < parts; i += G) {
            global const T *from = sums + (long)i * QUANTITIES * channels;
            all += get(from, left);
            all_squares += get(from + channels, left);
#ifdef GRAD
            all_dsum += get(from + 2 * channels, left);
            all_along += get(from + 3 * channels, left);
#endif
        }
        all = fold_team(tree, all);
        all_squares = fold_team(tree, all_squares);
#ifdef GRAD
        all_dsum = fold_team(tree, all_dsum);
        all_along = fold_team(tree, all_along);
#endif
    }
    if (!live) return;
#ifdef COLUMNS
    const lanes k = { .v = around }, r = { .v = all }, r2 = { .v = all_squares },
                r3 = { .v = all_dsum }, r4 = { .v = all_along };
#pragma unroll
    for (pos l = 0; l < V; l++)
        if (l % G == MY_PART && l < left)
            settle_sums(s, channel + l, channels, k.lane[l], r.lane[l], r2.lane[l], r3.lane[l],
                        r4.lane[l], SETTLED_ARGS);
#else
    if (MY_PART == 0)
        settle_sums(s, channel, channels, K_OF_LINE, all, all_squares, all_dsum, all_along,
                    SETTLED_ARGS);
#endif
#endif
}
#endif

#ifdef SETTLE
FOLDER(fold, PLUS)

TEAM_KERNEL settle(const numbers s, global const T *from, SETTLED_PARAMS) {
    TREE_OF_TEAM
    LINE_OF_TEAM(get_group_id(0))
    const pos c = unit, channels = (pos)s.units;
#ifdef GIVEN
    if (!live || MY_PART) return;
    const T mean = LOAD(MEAN, mean_in, s.mean + c), var = LOAD(VAR, var_in, s.var + c);
    settle_one(s, c, channels, mean, var, 0, 0, SETTLED_ARGS);
#else
    const pos parts = (pos)s.parts;
    const long each = (long)QUANTITIES * channels;
    T sum = 0, squares = 0, dsum = 0, along = 0;
    from += s.parts_at;
#pragma unroll 4
    for (pos i = MY_PART; i < parts; i += G) {
        global const T *at = from + i * each + c;
        sum += at[0];
        squares += at[channels];
#ifdef GRAD
        dsum += at[2 * channels];
        along += at[3 * channels];
#endif
    }
    sum = fold(tree, sum);
    squares = fold(tree, squares);
#ifdef GRAD
    dsum = fold(tree, dsum);
    along = fold(tree, along);
#endif
    if (!live || MY_PART) return;
    settle_sums(s, c, channels, parts ? from[parts * each + c] : 0, sum, squares, dsum, along,
                SETTLED_ARGS);
#endif
}
#endif
