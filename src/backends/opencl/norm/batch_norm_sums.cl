/* dbias = sum dy and dscale = sum dy (x - mean) / sqrt(var + epsilon) of each channel; x and dy lie
 * with channels last, one pixel after the other.  Groups of C x G items (team.cl): a vector of V
 * channels is a line, G items go down its pixels; parts of the lines' groups go through memory side
 * by side, from the end, which the kernel before wrote last, to the beginning, which is in the
 * cache then for the one after.
 *   sums   SETTLES: the last group of some lines adds their parts, in their order (last.cl); else
 *   join   adds them
 * Options: those of elements.cl, where V > 1 with ALIGNED alone; COLUMNS; X; COMPUTED: the tag of
 * T; AHEAD: how many vectors of x and of dy an item asks for before it adds the first. */
enum { BATCHES = 16 }; /* are added by themselves, so that long sums lose little */
typedef struct {
    long x, dy, mean, var, parts_at, dscale, dbias
#ifdef SETTLES
        ,
        done
#endif
        ,
        units, parts, pixels, channels, epsilon, has;
} numbers;

FOLDER(fold, PLUS)

#define TO_PARAMS global const T *var, global T *dscale, global T *dbias
/* V results; along: sum dy (x - mean). */
static inline void put(const numbers s, pos c, TV sum, TV along, TO_PARAMS) {
    const TV inverse = (TV)(T)1 / sqrt(LOADV(COMPUTED, var, s.var + c) + REAL(s.epsilon));
    if (s.has & 1) STOREV(COMPUTED, dscale, s.dscale + c, along * inverse);
    if (s.has & 2) STOREV(COMPUTED, dbias, s.dbias + c, sum);
}

/* Partial sums lie as parts[part][which][channel]. */
#ifdef JOIN
kernel void join(const numbers s, global const MEMORY(X) * x, global const MEMORY(X) * dy,
                 global const T *mean, global const T *var, global const T *parts, global T *dscale,
                 global T *dbias) {
    const pos unit = (pos)get_global_id(0), c = unit * V, channels = (pos)s.channels;
    if (unit >= (pos)s.units) return;
    TV sum = (TV)(T)0, along = (TV)(T)0;
    parts += s.parts_at + c;
    for (pos i = 0; i < (pos)s.parts; i++, parts += 2 * channels) {
        sum += LOADV(COMPUTED, parts, 0);
        along += LOADV(COMPUTED, parts, channels);
    }
    put(s, c, sum, along, var, dscale, dbias);
}
#else
kernel void sums(const numbers s, global const MEMORY(X) * x, global const MEMORY(X) * dy,
                 global const T *mean, global const T *var, global T *parts, global T *dscale,
                 global T *dbias
#ifdef SETTLES
                 ,
                 global uint *done
#endif
) {
    TREE_OF_TEAM
#ifdef SETTLES
    local uint before;
#endif
    const pos many = (pos)s.parts, part = (pos)get_group_id(0) % many, channels = (pos)s.channels,
              stride = many * G;
    LINE_OF_TEAM(get_group_id(0) / many)
    const pos c = unit * V;
    const TV around = LOADV(COMPUTED, mean, s.mean + c);
    TV sum = (TV)(T)0, along = (TV)(T)0;
    x += s.x + c;
    dy += s.dy + c;
    parts += s.parts_at + c;
    pos p = live ? (pos)s.pixels - 1 - (part * G + MY_PART) : -1;
    while (p >= 0) {
        TV a = (TV)(T)0, b = (TV)(T)0;
        for (int k = 0; k < BATCHES && p >= 0; k++, p -= AHEAD * stride) {
            CAME(X) xs[AHEAD], dys[AHEAD];
#pragma unroll
            for (int n = 0; n < AHEAD; n++) {
                const pos at = max(p - n * stride, (pos)0) * channels;
                xs[n] = COME(X, x, at);
                dys[n] = COME(X, dy, at);
            }
#pragma unroll
            for (int n = 0; n < AHEAD; n++) {
                const TV g = p - n * stride >= 0 ? SEEN(X, dys[n]) : (TV)(T)0;
                a += g;
                b += g * (SEEN(X, xs[n]) - around);
            }
        }
        sum += a;
        along += b;
    }
    sum = fold(tree, sum);
    along = fold(tree, along);
#ifdef SETTLES
    if (many > 1) {
#endif
        global T *to = parts + part * 2 * channels;
        if (live && MY_PART == 0) {
            STOREV(COMPUTED, to, 0, sum);
            STOREV(COMPUTED, to, channels, along);
        }
#ifdef SETTLES
        if (!is_last(done + s.done + get_group_id(0) / many, (uint)many, &before)) return;
        sum = along = (TV)(T)0;
        for (pos i = MY_PART; i < many; i += G) {
            global const T *from = parts + i * 2 * channels;
            sum += LOADV(COMPUTED, from, 0);
            along += LOADV(COMPUTED, from, channels);
        }
        sum = fold(tree, sum);
        along = fold(tree, along);
    }
    if (live && MY_PART == 0) put(s, c, sum, along, var, dscale, dbias);
#endif
}
#endif
