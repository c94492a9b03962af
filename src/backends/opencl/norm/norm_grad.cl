/* The gradient of layer norm, for rows of x that a group holds in registers.  With e = x - k, k the
 * mean of the row's first elements, and g = dy scale, one pass gives the sums of e, e^2, g and g e;
 * from them follow
 *   hat = (x - mean) inverse,   dx = (g - mean g - hat mean(g hat)) inverse
 * RMS: of rms norm: k, mean and mean g are 0.
 * A group goes on to every `rows`-th row and adds up dy hat and dy of its columns: partial sums of
 * dscale and dbias, which the second kernel folds in the order of the groups.
 * Options: those of elements.cl and team.cl (C == 1); X; HELD: accesses of each item; FULL: which
 * are exactly the row; SCALED: there is a scale; SUMS: dscale or dbias is wanted; AHEAD: so many
 * rows are on their way while one is worked on, fewer groups having room: where elements are
 * short. */
LOADER(load_x, X)
STORER(store_x, X)

#ifdef HELD
LANES_FOLDER(PLUS)
typedef FAC_CAT(T, 4) four;
TEAM_FOLDER(fold, four, PLUS)
typedef struct { long x, dy, scale, dx, to, units, size, rows, epsilon; } numbers;
LOADER(load_t, COMPUTED)
STORER(store_t, COMPUTED)
enum { SAMPLES = V < 8 ? 8 / V : 1 };

/* What an item has of a row; where it has nothing, the last that there is once more: a branch would
 * wait for what is in it. */
#define PLACE(k) min((MY_PART + (k) * G) * V, size - V)
#define ASK(b, row)                                                                                \
    _Pragma("unroll") for (int k = 0; k < HELD; k++) {                                             \
        xs[b][k] = COME(X, x, (row)*size + PLACE(k)); \
        dys[b][k] = COME(X, dy, (row)*size + PLACE(k)); \
    }                                                                                              \
    samples[b] = *(global const uint *)(x + (row)*size);
#ifdef RMS
#define AROUND(k) (T)0
#else
#define AROUND(k) (k)
#endif
#ifdef SCALED /* read again: kept, they would take registers from other rows */
#define FACTOR(k) load_x(scale + s.scale + PLACE(k), V, 0)
#else
#define FACTOR(k) (T)1
#endif

TEAM_KERNEL norm_grad(const numbers s, global const MEMORY(X) * x, global const MEMORY(X) * dy,
                      global const MEMORY(X) * scale, global MEMORY(X) * dx, global T *to) {
    local four tree[TREE_SIZE];
    const pos size = (pos)s.size, rows = (pos)s.rows, units = (pos)s.units,
              group = (pos)get_group_id(0);
    const T n = (T)s.size;
    TV dscale[HELD], dbias[HELD];
#ifdef AHEAD
    enum { STEPS = AHEAD };
    CAME(X) xs[AHEAD][HELD], dys[AHEAD][HELD];
    uint samples[AHEAD]; /* two elements: what is left of 16 bits is far from cancelled */
#else
    enum { STEPS = 1 };
#endif
    x += s.x;
    dy += s.dy;
    dx += s.dx;
#pragma unroll
    for (int k = 0; k < HELD; k++) dscale[k] = dbias[k] = (TV)(T)0;
#ifdef AHEAD
#pragma unroll
    for (int b = 0; b < AHEAD; b++) {
        ASK(b, min(group + b * rows, units - 1))
    }
#endif
    for (pos begin = group; begin < units; begin += STEPS * rows) {
#pragma unroll
        for (int b = 0; b < STEPS; b++) {
            const pos row = begin + b * rows;
            if (row >= units) break;
            TV e[HELD], d[HELD], sum = (TV)(T)0, squares = (TV)(T)0, gsum = (TV)(T)0,
                                 along = (TV)(T)0;
#ifdef AHEAD
            const T one = FAC_CAT(fac_from_, X)((ushort)samples[b]),
                    other = FAC_CAT(fac_from_, X)((ushort)(samples[b] >> 16));
            const T around = AROUND((one + other) / 2);
#pragma unroll
            for (int k = 0; k < HELD; k++) {
                const bool there = IN_LINE((MY_PART + k * G) * V);
                e[k] = there ? SEEN(X, xs[b][k]) - around : (TV)(T)0;
                d[k] = there ? SEEN(X, dys[b][k]) : (TV)(T)0;
            }
            ASK(b, min(row + AHEAD * rows, units - 1))
#else
#pragma unroll
            for (int k = 0; k < HELD; k++) {
                const pos i = (MY_PART + k * G) * V;
                e[k] = IN_LINE(i) ? load_x(x + row * size + i, size - i, 0) : (TV)(T)0;
                d[k] = IN_LINE(i) ? load_x(dy + row * size + i, size - i, 0) : (TV)(T)0;
            }
            TV first = (TV)(T)0;
#pragma unroll
            for (int k = 0; k < SAMPLES; k++)
                first += load_x(x + row * size + min((pos)k * V, size - V), V, 0);
            const T around = AROUND(FOLD_LANES(PLUS, first) / (T)(SAMPLES * V));
#pragma unroll
            for (int k = 0; k < HELD; k++)
                e[k] = IN_LINE((MY_PART + k * G) * V) ? e[k] - around : (TV)(T)0;
#endif
#pragma unroll
            for (int k = 0; k < HELD; k++) {
                const TV g = d[k] * FACTOR(k);
                sum += e[k];
                squares += e[k] * e[k];
                gsum += g;
                along += g * e[k];
            }
            const four all = fold(tree, (four)(FOLD_LANES(PLUS, sum), FOLD_LANES(PLUS, squares),
                                               FOLD_LANES(PLUS, gsum), FOLD_LANES(PLUS, along))) /
                             n;
            const T moved = AROUND(all.x), spread = all.y - moved * moved, mean_g = AROUND(all.z);
            const T inverse =
                (T)1 / sqrt((spread > 0 || spread != spread ? spread : 0) + REAL(s.epsilon));
            const T mean_ge = (all.w - moved * mean_g) * inverse * inverse;
#pragma unroll
            for (int k = 0; k < HELD; k++) {
                const pos i = (MY_PART + k * G) * V;
                const TV c = e[k] - moved;
                if (IN_LINE(i))
                    store_x(dx + row * size + i, size - i,
                            (d[k] * FACTOR(k) - mean_g - c * mean_ge) * inverse);
                dscale[k] += d[k] * (c * inverse);
                dbias[k] += d[k];
            }
        }
    }
#ifdef SUMS
    to += s.to + group * 2 * size;
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const pos i = (MY_PART + k * G) * V;
        if (i < size)
            store_t(to + i, size - i, dscale[k]), store_t(to + size + i, size - i, dbias[k]);
    }
#endif
}

#else

FOLDER(fold, PLUS)

/* sum over groups of from[group][which][i]: C columns side by side, G items for each, several of
 * whose numbers are on their way. The first `size` columns go to `first`, the others to `second`;
 * those before `begin` nothing wants. */
typedef struct { long from, first, second, units, size, rows, begin; } numbers;
TEAM_KERNEL gather(const numbers s, global const T *from, global MEMORY(X) * first,
                   global MEMORY(X) * second) {
    TREE_OF_TEAM
    LINE_OF_TEAM(get_group_id(0))
    const pos column = unit + (pos)s.begin, size = (pos)s.size;
    T sum = 0;
    from += s.from + column;
#pragma unroll 8
    for (pos r = MY_PART; r < (pos)s.rows; r += G) sum += from[r * 2 * size];
    const T all = fold(tree, sum);
    if (!live || MY_PART) return;
    if (column < size) STORE(X, first, s.first + column, all);
    else STORE(X, second, s.second + column - size, all);
}
#endif
