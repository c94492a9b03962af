/* Along each line:  y_i = exp(x_i - max x) / sum exp(x_j - max x), or its logarithm.
 * Options: those of elements.cl and team.cl; X, Y; LOGARITHM; KEEP: y can hold exp(x_i - max x) in
 * between without loss; HELD: a line is HELD accesses of each item at most, and stays in registers;
 * ONLINE: a line is read twice, the sum follows the largest element so far; ROUGH: y is of 16
 * bits. */
typedef struct {
    long x, y, units, size, step, out, columns, kept[KEPT], from[KEPT], to[KEPT], reduced[REDUCED],
        by[REDUCED];
} numbers;

LOADER(load_x, X)
LOADER(load_y, Y)
STORER_APART(store_y, Y)
FOLDER(fold_top, HIGHER)
FOLDER(fold_sum, PLUS)

#if defined(UNIT) && !defined(COLUMNS)
#define LEFT(i) (size - (i))
#else
#define LEFT(i) left
#endif
#ifdef COLUMNS
#define APART side
#else
#define APART apart
#endif

/* e to the power of x, and of x - top.  Where results keep 8 or 11 bits, the device's own power of
 * two does; what top log2 e is rounded by is the same factor in all terms of a sum, so that only
 * logarithms would see it. */
#ifdef ROUGH
#define LOG2_E (T)1.44269504088896340736f
static inline TV power_of_2(TV x) {
    lanes r = { .v = x };
#pragma unroll
    for (int l = 0; l < V; l++) r.lane[l] = fac_exp2_rough(r.lane[l]);
    return r.v;
}
#define POWER(x) power_of_2((x)*LOG2_E)
#else
#define POWER(x) exp(x)
#endif
#if defined(ROUGH) && !defined(LOGARITHM)
#define POWER_OVER(x, top) power_of_2(fma(x, (TV)LOG2_E, (top) * -LOG2_E))
#else
#define POWER_OVER(x, top) POWER((x) - (top))
#endif

TEAM_KERNEL softmax(const numbers s, global const MEMORY(X) * x, global MEMORY(Y) * y) {
    TREE_OF_TEAM
    LINE_OF_TEAM(get_group_id(0))
    pos size = (pos)s.size;
    const pos step = (pos)s.step, apart = (pos)s.out, side = (pos)s.to[KEPT - 1],
              first = MY_PART * WIDE_STEP;
    x += s.x;
    y += s.y;
#ifdef COLUMNS
    const pos tiles = ((pos)s.columns + V - 1) / V, column = unit % tiles * V,
              left = (pos)s.columns - column, line = unit / tiles;
    global const MEMORY(X) *from = x + place(s.kept, s.from, KEPT - 1, line) + column;
    global MEMORY(Y) *to = y + place(s.kept, s.to, KEPT - 1, line) + column * side;
#else
    const pos left = 1;
    global const MEMORY(X) *from = x + place(s.kept, s.from, KEPT, unit);
    global MEMORY(Y) *to = y + place(s.kept, s.to, KEPT, unit);
#endif
    const T least = -INFINITY;
#ifdef HELD
    CAME(X) came[HELD];
    TV e[HELD], top = (TV)least, sum = (TV)(T)0;
    /* where an item has nothing, the last that there is once more: a branch would wait for what is
     * in it */
#pragma unroll
    for (int k = 0; k < HELD; k++)
        came[k] = COME(X, from, min(first + k * (G * WIDE_STEP), size - WIDE_STEP) * step);
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        e[k] = IN_LINE(first + k * G * WIDE_STEP) ? SEEN(X, came[k]) : (TV)least;
        top = HIGHER(e[k], top);
    }
    const TV most = (TV)fold_top(tree, top);
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const TV power = POWER_OVER(e[k], most);
        if (IN_LINE(first + k * G * WIDE_STEP)) sum += power;
#ifndef LOGARITHM
        e[k] = power;
#endif
    }
    const TV all = (TV)fold_sum(tree, sum);
#ifdef LOGARITHM
#define RESULT(x) ((x)-most - under)
    const TV under = log(all);
#else
#define RESULT(x) ((x)*factor)
    const TV factor = (TV)(T)1 / all;
#endif
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const pos i = first + k * G * WIDE_STEP;
        if (live && IN_LINE(i)) store_y(to + i * apart, APART, LEFT(i), RESULT(e[k]));
    }
#elif defined(ONLINE)
    if (!live) size = 0;
    TV top = (TV)(T)-FLT_MAX, sum = (TV)(T)0;
    enum { STEP = G * WIDE_STEP, BESIDE = 4 };
    pos i = first;
    for (; i + (BESIDE - 1) * STEP < size; i += BESIDE * STEP) {
        TV e[BESIDE], higher = top;
        for (int k = 0; k < BESIDE; k++)
            e[k] = load_x(from + (i + k * STEP) * step, LEFT(i + k * STEP), least);
        for (int k = 0; k < BESIDE; k++) higher = HIGHER(e[k], higher);
        sum *= exp(top - higher);
        for (int k = 0; k < BESIDE; k++) sum += exp(e[k] - higher);
        top = higher;
    }
    for (; i < size; i += STEP) {
        const TV e = load_x(from + i * step, LEFT(i), least), higher = HIGHER(e, top);
        sum = sum * exp(top - higher) + exp(e - higher);
        top = higher;
    }
    const TV most = (TV)fold_top(tree, top), all = (TV)fold_sum(tree, sum * POWER(top - most));
#ifdef LOGARITHM
#define RESULT(x) ((x)-most - under)
    const TV under = log(all);
#else
#define RESULT(x) (POWER_OVER(x, most) * factor)
    const TV factor = (TV)(T)1 / all;
#endif
#pragma unroll 4
    for (i = first; i < size; i += STEP)
        store_y(to + i * apart, APART, LEFT(i), RESULT(load_x(from + i * step, LEFT(i), least)));
#else
    if (!live) size = 0;
    TV top = (TV)least, sum = (TV)(T)0;
    for (pos i = first; i < size; i += G * WIDE_STEP) {
        const TV e = load_x(from + i * step, LEFT(i), least);
        top = HIGHER(e, top);
    }
    const TV most = (TV)fold_top(tree, top);
    for (pos i = first; i < size; i += G * WIDE_STEP) {
        const TV e = exp(load_x(from + i * step, LEFT(i), least) - most);
        sum += e;
#if defined(KEEP) && !defined(LOGARITHM)
        store_y(to + i * apart, APART, LEFT(i), e);
#endif
    }
    const TV all = (TV)fold_sum(tree, sum);
#ifdef LOGARITHM
    const TV under = log(all);
    for (pos i = first; i < size; i += G * WIDE_STEP)
        store_y(to + i * apart, APART, LEFT(i),
                load_x(from + i * step, LEFT(i), least) - most - under);
#elif defined(KEEP)
    const TV factor = (TV)(T)1 / all;
    for (pos i = first; i < size; i += G * WIDE_STEP) {
        lanes e;
        if (APART == 1)
            e.v = load_y(to + i * apart, LEFT(i), 0);
        else
            for (pos l = 0; l < V; l++)
                e.lane[l] = l < LEFT(i) ? LOAD(Y, to, i * apart + l * APART) : 0;
        store_y(to + i * apart, APART, LEFT(i), e.v * factor);
    }
#else
    for (pos i = first; i < size; i += G * WIDE_STEP)
        store_y(to + i * apart, APART, LEFT(i),
                exp(load_x(from + i * step, LEFT(i), least) - most) / all);
#endif
#endif
}
