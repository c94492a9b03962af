/* The place of the largest (or, SMALLEST, the smallest) element of each line, NaN before all, of
 * equals the first or the LAST: as a number, or (HOT) as a one among zeros.  Options: those of
 * elements.cl and team.cl, V == 1; X, Y. */
typedef struct {
    long x, y, units, size, step, out, columns, kept[KEPT], from[KEPT], to[KEPT], reduced[REDUCED],
        by[REDUCED];
} numbers;

#ifdef SMALLEST
#define ABOVE(a, b) (((a) < (b)) || ((a) != (a) && (b) == (b)))
#else
#define ABOVE(a, b) (((a) > (b)) || ((a) != (a) && (b) == (b)))
#endif
#ifdef LAST
#define FIRST_OF(i, k) ((i) > (k))
#else
#define FIRST_OF(i, k) ((i) < (k))
#endif

/* Is a, at i, to be taken rather than b, at k?  A place below zero is none. */
static inline bool better(T a, pos i, T b, pos k) {
    return i >= 0 && (k < 0 || ABOVE(a, b) || (!ABOVE(b, a) && FIRST_OF(i, k)));
}

kernel void arg(const numbers s, global const MEMORY(X) * x, global MEMORY(Y) * y) {
    LINE_OF_TEAM(get_group_id(0))
    const pos size = live ? (pos)s.size : 0, step = (pos)s.step;
    pos at = -1;
    T best = 0;
    x += s.x + place(s.kept, s.from, KEPT, unit);
    y += s.y + place(s.kept, s.to, KEPT, unit);
    for (pos i = MY_PART; i < size; i += G) {
        const T e = LOAD(X, x, i * step);
        if (better(e, i, best, at)) {
            best = e;
            at = i;
        }
    }
#if G > 1
    local T values[TREE_SIZE];
    local pos places[TREE_SIZE];
    values[TREE(MY_PART)] = best;
    places[TREE(MY_PART)] = at;
    for (int n = G / 2; n > 0; n /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (MY_PART < n && better(values[TREE(MY_PART + n)], places[TREE(MY_PART + n)],
                                  values[TREE(MY_PART)], places[TREE(MY_PART)])) {
            values[TREE(MY_PART)] = values[TREE(MY_PART + n)];
            places[TREE(MY_PART)] = places[TREE(MY_PART + n)];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    at = places[TREE(0)];
#endif
#ifdef HOT
    for (pos i = MY_PART; i < size; i += G) STORE(Y, y, i * (pos)s.out, (T)(i == at));
#else
    if (live && MY_PART == 0) y[0] = at;
#endif
}
