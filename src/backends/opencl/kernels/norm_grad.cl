/* The gradient of layer norm, for rows of x that a group holds in registers.  With e = x - k, k the mean of the row's first
 * elements, and g = dy scale, one pass gives the sums of e, e^2, g and g e; from them follow
 *   hat = (x - mean) inverse,   dx = (g - mean g - hat mean(g hat)) inverse
 * A group goes on to every `rows`-th row and adds up dy hat and dy of its columns: partial sums of dscale and dbias, which the
 * second kernel folds in the order of the groups.
 * Options: those of elements.cl and team.cl (C == 1); X; HELD: accesses of each item; SCALED: there is a scale; SUMS: dscale or
 * dbias is wanted. */
LOADER(load_x, X)
STORER(store_x, X)

#ifdef HELD
LANES_FOLDER(PLUS)
typedef FAC_CAT(T, 4) four;
TEAM_FOLDER(fold, four, PLUS)
typedef struct { long x, dy, scale, dx, to, units, size, rows, epsilon; } numbers;
LOADER(load_t, COMPUTED)
STORER(store_t, COMPUTED)
enum { SAMPLES = 8 };

TEAM_KERNEL norm_grad(const numbers s, global const MEMORY(X) *x, global const MEMORY(X) *dy, global const MEMORY(X) *scale,
                      global MEMORY(X) *dx, global T *to) {
    local four tree[TREE_SIZE];
    const pos size = (pos)s.size, samples = min(size, (pos)SAMPLES), group = (pos)get_group_id(0);
    const T n = (T)s.size;
    TV dscale[HELD], dbias[HELD], factor[HELD];
    x += s.x, dy += s.dy, dx += s.dx;
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const pos i = (MY_PART + k * G) * V;
        dscale[k] = dbias[k] = (TV)(T)0;
#ifdef SCALED
        factor[k] = i < size ? load_x(scale + s.scale + i, size - i, 0) : (TV)(T)0;
#else
        factor[k] = (TV)(T)1;
#endif
    }
    for (pos row = group; row < (pos)s.units; row += (pos)s.rows) {
        const pos at = row * size;
        TV e[HELD], d[HELD], sum = (TV)(T)0, squares = (TV)(T)0, gsum = (TV)(T)0, along = (TV)(T)0;
        T around = 0;
#pragma unroll
        for (int k = 0; k < HELD; k++) {
            const pos i = (MY_PART + k * G) * V;
            e[k] = i < size ? load_x(x + at + i, size - i, 0) : (TV)(T)0;
            d[k] = i < size ? load_x(dy + at + i, size - i, 0) : (TV)(T)0;
        }
        for (pos i = 0; i < samples; i++) around += LOAD(X, x, at + i);
        around /= (T)samples;
#pragma unroll
        for (int k = 0; k < HELD; k++) {
            const pos left = size - (MY_PART + k * G) * V;
            const TV g = d[k] * factor[k];
            e[k] = left > 0 ? e[k] - around : (TV)(T)0;
            sum += e[k], squares += e[k] * e[k], gsum += g, along += g * e[k];
        }
        const four all = fold(tree, (four)(FOLD_LANES(PLUS, sum), FOLD_LANES(PLUS, squares), FOLD_LANES(PLUS, gsum),
                                           FOLD_LANES(PLUS, along))) / n;
        const T moved = all.x, spread = all.y - moved * moved, mean_g = all.z;
        const T inverse = (T)1 / sqrt((spread > 0 || spread != spread ? spread : 0) + REAL(s.epsilon));
        const T mean_ge = (all.w - moved * mean_g) * inverse * inverse;
#pragma unroll
        for (int k = 0; k < HELD; k++) {
            const pos i = (MY_PART + k * G) * V;
            const TV c = e[k] - moved;
            if (i < size) store_x(dx + at + i, size - i, (d[k] * factor[k] - mean_g - c * mean_ge) * inverse);
            dscale[k] += d[k] * c * inverse, dbias[k] += d[k];
        }
    }
#ifdef SUMS
    to += s.to + group * 2 * size;
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const pos i = (MY_PART + k * G) * V;
        if (i < size) store_t(to + i, size - i, dscale[k]), store_t(to + size + i, size - i, dbias[k]);
    }
#endif
}

#else

FOLDER(fold, PLUS)

/* y[i] = sum over groups of from[group][which][i]: C columns side by side, G items for each. */
typedef struct { long from, y, units, size, rows, which; } numbers;
TEAM_KERNEL gather(const numbers s, global const T *from, global MEMORY(X) *y) {
    TREE_OF_TEAM
    LINE_OF_TEAM(get_group_id(0))
    T sum = 0;
    from += s.from + s.which * s.size + unit;
    for (pos r = MY_PART; r < (pos)s.rows; r += G) sum += from[r * 2 * (pos)s.size];
    const T all = fold(tree, sum);
    if (live && MY_PART == 0) STORE(X, y, s.y + unit, all);
}
#endif
