/* The launch `apply` of batch norms, after batch_norm.cl, which says what it does.  Options: APPLY;
 * STRAIGHT; LAST: channels last; PIXELS; BACKWARDS; FINISH, ADDEND: the node's body, and what it
 * adds; BITS, with PIXELS: which results are not at or below 0, a byte for four channels. */
#ifdef APPLY
#ifdef STRAIGHT
#define FROM_PLACES scale, bias, mean, var, out1, out2, own_mean, own_var
#define FROM_NUMBERS , count, epsilon, keep, has
#define FROM_PARAMS                                                                                \
    global const MEMORY(SCALE) * scale, global const MEMORY(BIAS) * bias,                          \
        global const MEMORY(MEAN) * mean_in, global const MEMORY(VAR) * var_in,                    \
        global MEMORY(FIRST) * out1, global MEMORY(SECOND) * out2, global const T *own_mean,       \
        global const T *own_var
#else
#define FROM_PLACES from
#define FROM_NUMBERS
#define FROM_PARAMS global const T *from
#endif
#ifdef BITS
#define BITS_PLACE bits,
#define BITS_NUMBER bits_step,
#define BITS_PARAM global uchar *bits,
#else
#define BITS_PLACE
#define BITS_NUMBER
#define BITS_PARAM
#endif
typedef struct {
    long x, dy, mask, y, BITS_PLACE FROM_PLACES, units, runs, run, inner, channels, pixels, step,
        dy_step, mask_step, y_step, BITS_NUMBER lo, hi FROM_NUMBERS;
} numbers;

LOADER(load_x, X)
LOADER(load_c, COMPUTED)
STORER(store_y, X)

typedef struct { TV mean, a, b, g; } factors;
#ifdef STRAIGHT
LOADER(load_scale, SCALE)
LOADER(load_bias, BIAS)
LOADER(load_mean, MEAN)

/* settles: this item also makes the running statistics of its channels.  GRAD: bias and mean are
 * the gradients of bias and scale. */
static inline factors factors_of(const numbers s, pos c, pos left, bool settles, FROM_PARAMS) {
    const TV var = load_c(own_var + s.own_var + c, left, 0);
#ifdef GRAD
    const TV inverse = (TV)(T)1 / sqrt(var + REAL(s.epsilon)),
             a = load_scale(scale + s.scale + c, left, 0) * inverse;
    const factors f = { load_c(own_mean + s.own_mean + c, left, 0), a,
                        a * load_bias(bias + s.bias + c, left, 0) / (T)s.count,
                        a * inverse * load_mean(mean_in + s.mean + c, left, 0) / (T)s.count };
    return f;
#else
    factors f = { load_c(own_mean + s.own_mean + c, left, 0),
                  load_scale(scale + s.scale + c, left, 0) / sqrt(var + REAL(s.epsilon)),
                  load_bias(bias + s.bias + c, left, 0), (TV)(T)0 };
    const lanes m = { .v = f.mean }, v = { .v = var };
    const T keep = REAL(s.keep);
    for (int l = 0; settles && l < V && l < left; l++) {
        if (s.has & 1)
            STORE(FIRST, out1, s.out1 + c + l,
                  LOAD(MEAN, mean_in, s.mean + c + l) * keep + m.lane[l] * (1 - keep));
        if (s.has & 2)
            STORE(SECOND, out2, s.out2 + c + l,
                  LOAD(VAR, var_in, s.var + c + l) * keep + v.lane[l] * (1 - keep));
    }
    return f;
#endif
}
#else
static inline factors factors_of(global const T *from, pos channels, pos left) {
    factors f = { load_c(from, left, 0), load_c(from + channels, left, 0),
                  load_c(from + 2 * channels, left, 0), (TV)(T)0 };
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

#ifdef BITS
static inline void store_bits(global uchar *to, TV y) {
    const lanes r = { .v = y };
    for (int k = 0; k < V; k += 4) {
        uint byte = 0;
        for (int l = 0; l < 4; l++) byte |= (uint)!(r.lane[k + l] <= 0) << l;
        to[k / 4] = (uchar)byte;
    }
}
#endif

#ifdef PIXELS
/* Channels last on a GPU: an item keeps its channels and does PIXELS pixels, `down` from one
 * another, all of whose loads are on their way before the first is needed.  BACKWARDS: from the end
 * to the beginning, a group's pixels side by side, since x was read or written from the beginning
 * to the end: what is in the cache still is read first. */
kernel void apply(const numbers s, global const MEMORY(X) * x, global const MEMORY(X) * dy,
                  global const MEMORY(X) * mask, global MEMORY(X) * y, BITS_PARAM FROM_PARAMS) {
    const pos channels = (pos)s.channels, across = (channels + V - 1) / V, pixels = (pos)s.pixels,
              units = (pos)s.units;
#ifdef BACKWARDS
    const pos unit = units - 1 - (pos)get_global_id(0), first = unit / across;
    const pos down = max((pos)get_local_size(0) / across, (pos)1),
              top = first / down * (down * PIXELS) + first % down;
    if (unit < 0) return;
#else
    const pos unit = (pos)get_global_id(0), first = unit / across, down = units / across,
              top = first;
    if (unit >= units) return;
#endif
    const pos i = unit % across * V, left = channels - i;
#ifdef STRAIGHT
    const factors f = factors_of(s, i, left, first == 0, scale, bias, mean_in, var_in, out1, out2,
                                 own_mean, own_var);
#else
    const factors f = factors_of(from + s.from + i, channels, left);
#endif
#ifdef BITS
    bits += s.bits + i / 4;
#endif
    TV xs[PIXELS], dys[PIXELS], masks[PIXELS];
    x += s.x + i;
    dy += s.dy + i;
    mask += s.mask + i;
    y += s.y + i;
#pragma unroll
    for (int n = 0; n < PIXELS; n++) {
        const pos at = min(top + n * down, pixels - 1);
        xs[n] = load_x(x + at * (pos)s.step, left, 0);
        dys[n] = LOAD_DY(at * (pos)s.dy_step, left);
        masks[n] = LOAD_MASK(at * (pos)s.mask_step, left);
    }
#pragma unroll
    for (int n = 0; n < PIXELS; n++) {
        const pos p = top + n * down;
        if (p >= pixels) continue;
        const TV made = applied(s, f, xs[n], dys[n], masks[n]);
        store_y(y + p * (pos)s.y_step, left, made);
#ifdef BITS
        store_bits(bits + p * (pos)s.bits_step, made);
#endif
    }
}
#else
/* Rows of `inner` neighbours: pixels of one channel or (LAST) all channels of one pixel. */
kernel void apply(const numbers s, global const MEMORY(X) * x, global const MEMORY(X) * dy,
                  global const MEMORY(X) * mask, global MEMORY(X) * y, global const T *from) {
    const pos unit = (pos)get_global_id(0), channels = (pos)s.channels, inner = (pos)s.inner;
    if (unit >= (pos)s.units) return;
    const pos row = unit / (pos)s.runs, begin = unit % (pos)s.runs * (pos)s.run,
              end = min(begin + (pos)s.run, inner);
    from += s.from;
    x += s.x + row * (pos)s.step;
    dy += s.dy + row * (pos)s.dy_step;
    mask += s.mask + row * (pos)s.mask_step;
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
        store_y(y + i, left,
                applied(s, f, load_x(x + i, left, 0), LOAD_DY(i, left), LOAD_MASK(i, left)));
    }
}
#endif
#endif
