/* Batch normalization of x[N, C, P], dense, channels last or pixels last.  Three launches:
 *   moments   for each channel and part of it: sums of x - k, of its square and (GRAD) of dy and of dy (x - k),
 *             where k is the mean of a few elements of the channel, so that nothing is lost when the mean is large against the
 *             deviation
 *   settle    for each channel: mean, and factors a, b, g; running statistics, or gradients of scale and bias
 *   apply     y = (x - mean) a + b, or (GRAD) dx = dy a - b - (x - mean) g; then FINISH, the node's body
 *             STRAIGHT: the only launch, since the batch's mean and variance are operands
 * With channels last operands may be slices of others' channels: `step` is from pixel to pixel.
 * Options: those of elements.cl and team.cl; X; SCALE, BIAS, RUNNING: tags; GIVEN: mean and var are inputs; FINISH; MASK: dy
 * counts where lo < y < hi only; SETTLES: of the groups that have parts of the same channels the one that comes last adds the
 * parts, in their order, and does what settle does: a launch less, by instructions of NVIDIA's. */
enum { SAMPLES = 8, BLOCK = 64 };
#ifdef GRAD
enum { QUANTITIES = 4 };
#else
enum { QUANTITIES = 2 };
#endif

/* What passes the activation whose result was y. */
#ifdef MASK
#define MASKED(g, y) ((((y) > (TV)REAL(s.lo)) & ((y) < (TV)REAL(s.hi))) ? (g) : (TV)(T)0)
#else
#define MASKED(g, y) (g)
#endif

#if defined(SETTLE) || defined(SETTLES)
#define SETTLED_PARAMS \
    global T *to, global const MEMORY(SCALE) *scale, global const MEMORY(BIAS) *bias, global const MEMORY(MEAN) *mean_in, \
    global const MEMORY(VAR) *var_in, global MEMORY(FIRST) *out1, global MEMORY(SECOND) *out2
#define SETTLED_ARGS to, scale, bias, mean_in, var_in, out1, out2
#define SETTLED_PLACES to, scale, bias, mean, var, out1, out2
#define SETTLED_NUMBERS count, epsilon, keep, has
#endif
#ifdef SETTLES
typedef struct { long x, dy, mask, parts_at, SETTLED_PLACES, done, units, parts, across, channels, outer, inner, step, dy_step,
                 mask_step, lo, hi, SETTLED_NUMBERS, kept[KEPT], from[KEPT], out[KEPT], reduced[REDUCED], by[REDUCED]; } numbers;
#elif defined(MOMENTS)
typedef struct { long x, dy, mask, parts_at, units, parts, across, channels, outer, inner, step, dy_step, mask_step, lo, hi,
                 kept[KEPT], from[KEPT], out[KEPT], reduced[REDUCED], by[REDUCED]; } numbers;
#elif defined(SETTLE)
typedef struct { long parts_at, SETTLED_PLACES, units, parts, SETTLED_NUMBERS; } numbers;
#endif

#if defined(SETTLE) || defined(SETTLES)
/* Coefficients lie as to[which][channel]: mean, a, b, g.  has: which of the further outputs are wanted. */
static inline void settle_one(const numbers s, pos c, pos channels, T mean, T var, T dsum, T along, SETTLED_PARAMS) {
    const T inverse = (T)1 / sqrt(var + REAL(s.epsilon)), a = LOAD(SCALE, scale, s.scale + c) * inverse;
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
    if (s.has & 1) STORE(FIRST, out1, s.out1 + c, LOAD(MEAN, mean_in, s.mean + c) * keep + mean * (1 - keep));
    if (s.has & 2) STORE(SECOND, out2, s.out2 + c, LOAD(VAR, var_in, s.var + c) * keep + var * (1 - keep));
#endif
}

/* From the sums about `around` of all elements. */
static inline void settle_sums(const numbers s, pos c, pos channels, T around, T sum, T squares, T dsum, T along,
                               SETTLED_PARAMS) {
#ifdef GRAD
    const T n = (T)(s.count ? s.count : 1);
#else
    const T n = (T)s.count;
#endif
    const T spread = (squares - sum * (sum / n)) / n, var = spread > 0 || spread != spread ? spread : 0;
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

/* Partial sums lie as to[part][quantity][channel]; behind them k[channel]. */
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

/* Of the groups with parts of this line the last one gets true, and sees what the others wrote. */
static inline bool is_last(global uint *done, uint groups, local uint *before) {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        uint n;
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(n) : "l"(done) : "memory");
        *before = n;
        if (n == groups - 1) *done = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const bool last = *before == groups - 1;
    if (last) asm volatile("fence.acq_rel.gpu;" ::: "memory");
    return last;
}
#endif

kernel void moments(const numbers s, global const MEMORY(X) *x, global const MEMORY(X) *dy, global const MEMORY(X) *mask,
                    global T *sums
#ifdef SETTLES
                    , SETTLED_PARAMS, global uint *done
#endif
                    ) {
    TREE_OF_TEAM
#ifdef SETTLES
    local uint before;
#endif
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
                    const TV e = AT(x + row, i, step, K_OF_LINE) - around; /* what is not there is k, so that it adds nothing */
                    a += e, b += e * e;
#ifdef GRAD
                    const TV g = MASKED(AT(dy + row, i, (pos)s.dy_step, 0), AT(mask + row, i, (pos)s.mask_step, 0));
                    c += g, d += g * e;
#endif
                }
                sum += a, squares += b, dsum += c, along += d;
            }
        }
    folded all = fold(tree, sum), all_squares = fold(tree, squares), all_dsum = all, all_along = all;
#ifdef GRAD
    all_dsum = fold(tree, dsum), all_along = fold(tree, along);
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
            all += get(from, left), all_squares += get(from + channels, left);
#ifdef GRAD
            all_dsum += get(from + 2 * channels, left), all_along += get(from + 3 * channels, left);
#endif
        }
        all = fold_team(tree, all), all_squares = fold_team(tree, all_squares);
#ifdef GRAD
        all_dsum = fold_team(tree, all_dsum), all_along = fold_team(tree, all_along);
#endif
    }
    if (!live) return;
#ifdef COLUMNS
    const lanes k = { .v = around }, r = { .v = all }, r2 = { .v = all_squares }, r3 = { .v = all_dsum }, r4 = { .v = all_along };
#pragma unroll
    for (pos l = 0; l < V; l++)
        if (l % G == MY_PART && l < left)
            settle_sums(s, channel + l, channels, k.lane[l], r.lane[l], r2.lane[l], r3.lane[l], r4.lane[l], SETTLED_ARGS);
#else
    if (MY_PART == 0) settle_sums(s, channel, channels, K_OF_LINE, all, all_squares, all_dsum, all_along, SETTLED_ARGS);
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
        sum += at[0], squares += at[channels];
#ifdef GRAD
        dsum += at[2 * channels], along += at[3 * channels];
#endif
    }
    sum = fold(tree, sum), squares = fold(tree, squares);
#ifdef GRAD
    dsum = fold(tree, dsum), along = fold(tree, along);
#endif
    if (!live || MY_PART) return;
    settle_sums(s, c, channels, parts ? from[parts * each + c] : 0, sum, squares, dsum, along, SETTLED_ARGS);
#endif
}
#endif

#ifdef APPLY
#ifdef STRAIGHT
#define FROM_PLACES scale, bias, mean, var, out1, out2, own_mean, own_var
#define FROM_NUMBERS , count, epsilon, keep, has
#define FROM_PARAMS \
    global const MEMORY(SCALE) *scale, global const MEMORY(BIAS) *bias, global const MEMORY(MEAN) *mean_in, \
    global const MEMORY(VAR) *var_in, global MEMORY(FIRST) *out1, global MEMORY(SECOND) *out2, global const T *own_mean, \
    global const T *own_var
#else
#define FROM_PLACES from
#define FROM_NUMBERS
#define FROM_PARAMS global const T *from
#endif
typedef struct { long x, dy, mask, y, FROM_PLACES, units, runs, run, inner, channels, pixels, step, dy_step, mask_step, y_step,
                 lo, hi FROM_NUMBERS; } numbers;

LOADER(load_x, X)
LOADER(load_c, COMPUTED)
STORER(store_y, X)

typedef struct { TV mean, a, b, g; } factors;
#ifdef STRAIGHT
LOADER(load_scale, SCALE)
LOADER(load_bias, BIAS)
LOADER(load_mean, MEAN)

/* settles: this item also makes the running statistics of its channels.  GRAD: bias and mean are the gradients of bias and
 * scale. */
static inline factors factors_of(const numbers s, pos c, pos left, bool settles, FROM_PARAMS) {
    const TV var = load_c(own_var + s.own_var + c, left, 0);
#ifdef GRAD
    const TV inverse = (TV)(T)1 / sqrt(var + REAL(s.epsilon)), a = load_scale(scale + s.scale + c, left, 0) * inverse;
    const factors f = { load_c(own_mean + s.own_mean + c, left, 0), a, a * load_bias(bias + s.bias + c, left, 0) / (T)s.count,
                        a * inverse * load_mean(mean_in + s.mean + c, left, 0) / (T)s.count };
    return f;
#else
    factors f = { load_c(own_mean + s.own_mean + c, left, 0),
                  load_scale(scale + s.scale + c, left, 0) / sqrt(var + REAL(s.epsilon)),
                  load_bias(bias + s.bias + c, left, 0), (TV)(T)0 };
    const lanes m = { .v = f.mean }, v = { .v = var };
    const T keep = REAL(s.keep);
    for (int l = 0; settles && l < V && l < left; l++) {
        if (s.has & 1) STORE(FIRST, out1, s.out1 + c + l, LOAD(MEAN, mean_in, s.mean + c + l) * keep + m.lane[l] * (1 - keep));
        if (s.has & 2) STORE(SECOND, out2, s.out2 + c + l, LOAD(VAR, var_in, s.var + c + l) * keep + v.lane[l] * (1 - keep));
    }
    return f;
#endif
}
#else
static inline factors factors_of(global const T *from, pos channels, pos left) {
    factors f = { load_c(from, left, 0), load_c(from + channels, left, 0), load_c(from + 2 * channels, left, 0), (TV)(T)0 };
#ifdef GRAD
    f.g = load_c(from + 3 * channels, left, 0);
#endif
    return f;
}
#endif

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
                  global MEMORY(X) *y, FROM_PARAMS) {
    const pos unit = (pos)get_global_id(0), channels = (pos)s.channels, across = (channels + V - 1) / V, pixels = (pos)s.pixels;
    const pos down = (pos)s.units / across, first = unit / across, i = unit % across * V, left = channels - i;
    if (unit >= (pos)s.units) return;
#ifdef STRAIGHT
    const factors f = factors_of(s, i, left, first == 0, scale, bias, mean_in, var_in, out1, out2, own_mean, own_var);
#else
    const factors f = factors_of(from + s.from + i, channels, left);
#endif
    TV xs[PIXELS], dys[PIXELS], masks[PIXELS];
    x += s.x + i, dy += s.dy + i, mask += s.mask + i, y += s.y + i;
#pragma unroll
    for (int n = 0; n < PIXELS; n++) {
        const pos at = min(first + n * down, pixels - 1);
        xs[n] = load_x(x + at * (pos)s.step, left, 0);
        dys[n] = LOAD_DY(at * (pos)s.dy_step, left), masks[n] = LOAD_MASK(at * (pos)s.mask_step, left);
    }
#pragma unroll
    for (int n = 0; n < PIXELS; n++) {
        const pos p = first + n * down;
        if (p < pixels) store_y(y + p * (pos)s.y_step, left, applied(s, f, xs[n], dys[n], masks[n]));
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
    x += s.x + row * (pos)s.step, dy += s.dy + row * (pos)s.dy_step, mask += s.mask + row * (pos)s.mask_step;
    y += s.y + row * (pos)s.y_step;
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
