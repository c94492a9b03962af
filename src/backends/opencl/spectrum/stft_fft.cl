/* Short-time spectra by fast transforms: a group has LANES frames side by side, each of them a
 * vector of V, and ITEMS items for each.  Element i of lane f is a vector of real parts and one of
 * imaginary ones, in either of two buffers.  A stage (src/backends/cpu/simd/fft.c says what it is)
 * reads one and writes the other; the first one reads the signal.
 * Options: those of elements.cl; X, W: types of the signal and of the window; ELEMENTS: complex
 * numbers of a transform; HALF: frames are of twice as many real samples; PAIRS: signals are
 * complex, PARTS: 2 of these, else 1; WINDOW; SPACE: where the buffers are, local (IN_LOCAL) or
 * global.  In front of this text: STAGES: STAGE(r, m, s) of each stage. */
typedef struct {
    long x, window, y, turns, work, units, groups, samples, frames, step, from, wide, bins;
} numbers;

/* Lanes are apart by a place more than there are, so that neighbouring items, whose numbers are 8
 * elements apart, do not wait for each other. */
enum { ROW = LANES > 1 ? LANES + 1 : 1, BUFFER = 2 * ELEMENTS * ROW * V };

typedef struct {
    TV re, im;
} pair;

#if V == 1
#define TAKE(p) (*(p))
#define GIVE(p, v) (*(p) = (v))
#else
#define TAKE(p) VECTOR(vload)(0, p)
#define GIVE(p, v) VECTOR(vstore)(v, 0, p)
#endif

static inline pair get(SPACE const T *x, pos i) {
    const pair v = { TAKE(x + i * ROW * V), TAKE(x + (ELEMENTS + i) * ROW * V) };
    return v;
}
static inline void put(SPACE T *x, pos i, pair v) {
    GIVE(x + i * ROW * V, v.re);
    GIVE(x + (ELEMENTS + i) * ROW * V, v.im);
}
static inline pair plus(pair a, pair b) {
    const pair v = { a.re + b.re, a.im + b.im };
    return v;
}
static inline pair minus(pair a, pair b) {
    const pair v = { a.re - b.re, a.im - b.im };
    return v;
}
static inline pair times(pair a, T x) {
    const pair v = { a.re * x, a.im * x };
    return v;
}
static inline pair minus_i(pair a) { /* times -i */
    const pair v = { a.im, -a.re };
    return v;
}
static inline pair rotated(pair a, T c, T s) {
    const pair v = { a.re * c - a.im * s, a.re * s + a.im * c };
    return v;
}

/* ---- transforms of 2, 3, 4, 5 and 8 ---- */

static inline void two(pair *a) {
    const pair x = a[0];
    a[0] = plus(x, a[1]);
    a[1] = minus(x, a[1]);
}

static inline void three(pair *a) {
    const pair sum = plus(a[1], a[2]),
               side = times(minus_i(minus(a[1], a[2])), (T)0.86602540378443864676);
    const pair middle = minus(a[0], times(sum, (T)0.5));
    a[0] = plus(a[0], sum);
    a[1] = plus(middle, side);
    a[2] = minus(middle, side);
}

static inline void four(pair *a0, pair *a1, pair *a2, pair *a3) {
    const pair even = plus(*a0, *a2), odd = plus(*a1, *a3);
    const pair even_gap = minus(*a0, *a2), odd_gap = minus_i(minus(*a1, *a3));
    *a0 = plus(even, odd);
    *a1 = plus(even_gap, odd_gap);
    *a2 = minus(even, odd);
    *a3 = minus(even_gap, odd_gap);
}

static inline void five(pair *a) {
    const T c1 = (T)0.30901699437494742410, c2 = (T)-0.80901699437494742410;
    const T s1 = (T)0.95105651629515357212, s2 = (T)0.58778525229247312917;
    const pair outer = plus(a[1], a[4]), inner = plus(a[2], a[3]);
    const pair outer_gap = minus(a[1], a[4]), inner_gap = minus(a[2], a[3]);
    const pair first = plus(a[0], plus(times(outer, c1), times(inner, c2)));
    const pair second = plus(a[0], plus(times(outer, c2), times(inner, c1)));
    const pair side = minus_i(plus(times(outer_gap, s1), times(inner_gap, s2)));
    const pair other = minus_i(minus(times(outer_gap, s2), times(inner_gap, s1)));
    a[0] = plus(a[0], plus(outer, inner));
    a[1] = plus(first, side);
    a[2] = plus(second, other);
    a[3] = minus(second, other);
    a[4] = minus(first, side);
}

/* Two of 4; half of what comes out is rotated by eighths. */
static inline void eight(pair *a) {
    const T h = (T)0.70710678118654752440;
    four(&a[0], &a[2], &a[4], &a[6]);
    four(&a[1], &a[3], &a[5], &a[7]);
    const pair e0 = a[0], e1 = a[2], e2 = a[4], e3 = a[6], b0 = a[1], b2 = minus_i(a[5]);
    const pair once = { a[3].re + a[3].im, a[3].im - a[3].re },
               thrice = { a[7].im - a[7].re, -a[7].re - a[7].im };
    const pair b1 = times(once, h), b3 = times(thrice, h);
    a[0] = plus(e0, b0);
    a[4] = minus(e0, b0);
    a[1] = plus(e1, b1);
    a[5] = minus(e1, b1);
    a[2] = plus(e2, b2);
    a[6] = minus(e2, b2);
    a[3] = plus(e3, b3);
    a[7] = minus(e3, b3);
}

static inline void transform_of(const int r, pair *a) {
    if (r == 2) two(a);
    if (r == 3) three(a);
    if (r == 4) four(&a[0], &a[1], &a[2], &a[3]);
    if (r == 5) five(a);
    if (r == 8) eight(a);
}

/* ---- the signal ---- */

/* Sample i of the frames from `first` on; there is no sample past the last frame. */
static inline TV sample(const numbers *s, global const MEMORY(X) *x,
                        global const MEMORY(W) *window, pos first, pos i) {
    const pos at = i - (pos)s->from, last = (pos)s->frames - 1;
    lanes r;
    if (at < 0 || at >= (pos)s->wide) return (TV)(T)0;
    for (int l = 0; l < V; l++)
        r.lane[l] = LOAD(X, x, min(first + l, last) * (pos)s->step + i);
#ifdef WINDOW
    return r.v * (TV)LOAD(W, window, at);
#else
    return r.v;
#endif
}

static inline pair heard(const numbers *s, global const MEMORY(X) *x,
                         global const MEMORY(W) *window, pos first, pos i) {
#ifdef HALF
    const pair v = { sample(s, x, window, first, 2 * i), sample(s, x, window, first, 2 * i + 1) };
#elif defined(PAIRS)
    const pair v = { sample(s, x, window, first, i),
                     sample(s, x + (pos)s->samples, window, first, i) };
#else
    const pair v = { sample(s, x, window, first, i), (TV)(T)0 };
#endif
    return v;
}

/* ---- the spectrum ---- */

STORER(store_y, X)

typedef struct {
    global MEMORY(X) *re, *im; /* of bin 0 */
    pos row, left;             /* between bins; frames that are left */
} spectrum;

static inline void tell(const spectrum *o, pos k, pair v) {
    store_y(o->re + k * o->row, o->left, v.re);
    store_y(o->im + k * o->row, o->left, v.im);
}

/* Of 2 m real elements, which the transform took for m complex ones: with Z' conjugate to
 * Z[m - k],  X[k] = (Z[k] + Z') / 2 - i e^(-pi i k / m) (Z[k] - Z') / 2 */
static inline pair apart(SPACE const T *z, global const T *turns, pos k) {
    const pair v = get(z, k % ELEMENTS), u = get(z, (ELEMENTS - k) % ELEMENTS);
    const pair other = { u.re, -u.im };
    const pair even = times(plus(v, other), (T)0.5),
               odd = times(minus_i(minus(v, other)), (T)0.5);
    return plus(even, rotated(odd, turns[2 * k], turns[2 * k + 1]));
}

static inline void tell_all(const spectrum *o, pos bins, SPACE const T *z, global const T *turns,
                            pos item) {
    if (o->left <= 0) return;
#ifdef HALF
    for (pos k = item; k <= ELEMENTS && k < bins; k += ITEMS) {
        const pair v = apart(z, turns, k), mirrored = { v.re, -v.im };
        tell(o, k, v);
        if (k && k < ELEMENTS && 2 * ELEMENTS - k < bins) tell(o, 2 * ELEMENTS - k, mirrored);
    }
#else
    for (pos k = item; k < bins; k += ITEMS) tell(o, k, get(z, k));
#endif
}

/* ---- all of it ---- */

#if defined(IN_LOCAL)
#define MEET() barrier(CLK_LOCAL_MEM_FENCE)
#else
#define MEET() barrier(CLK_GLOBAL_MEM_FENCE)
#endif

#define STAGE(r, m, s)                                                                             \
    for (pos u = item; u < (m) * (s); u += ITEMS) {                                                \
        const pos p = u / (s), q = u % (s);                                                        \
        global const T *w = turns + 2 * p * ((r)-1);                                               \
        pair a[8];                                                                                 \
        _Pragma("unroll") for (int j = 0; j < (r); j++) a[j] =                                     \
            (s) == 1 ? heard(&n, signal, window, t, u + (m)*j) : get(from, u + (m) * (s)*j);       \
        transform_of(r, a);                                                                        \
        _Pragma("unroll") for (int k = 1; k < (r); k++) if ((m) > 1) a[k] =                        \
            rotated(a[k], w[2 * (k - 1)], w[2 * (k - 1) + 1]);                                     \
        _Pragma("unroll") for (int k = 0; k < (r); k++) put(to, q + (s) * ((r)*p + k), a[k]);      \
    }                                                                                              \
    MEET();                                                                                        \
    turns += 2 * (m) * ((r)-1);                                                                    \
    other = from;                                                                                  \
    from = to;                                                                                     \
    to = other;

kernel __attribute__((reqd_work_group_size(LANES *ITEMS, 1, 1))) void
stft(const numbers n, global const MEMORY(X) * x, global const MEMORY(W) * window,
     global MEMORY(X) * y, global const T *table, global T *work) {
    const pos lane = (pos)get_local_id(0) % LANES, item = (pos)get_local_id(0) / LANES;
#ifdef IN_LOCAL
    local T buffers[2 * BUFFER];
    local T *const mine = buffers + lane * V;
#else
    global T *const mine = work + n.work + (pos)get_group_id(0) * (2 * BUFFER) + lane * V;
#endif
    x += n.x;
    y += n.y;
    window += n.window;
    for (pos unit = (pos)get_group_id(0); unit < (pos)n.units; unit += (pos)get_num_groups(0)) {
        const pos b = unit / (pos)n.groups, t = (unit % (pos)n.groups * LANES + lane) * V,
                  plane = (pos)n.bins * (pos)n.frames;
        global const MEMORY(X) *signal = x + b * (pos)n.samples * PARTS;
        global const T *turns = table + n.turns;
        SPACE T *from = mine + BUFFER, *to = mine, *other;
        STAGES
        const spectrum o = { y + 2 * b * plane + t, y + (2 * b + 1) * plane + t, (pos)n.frames,
                             (pos)n.frames - t };
        tell_all(&o, (pos)n.bins, from, turns, item);
        MEET();
    }
}
