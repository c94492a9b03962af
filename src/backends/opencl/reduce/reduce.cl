/* y[kept] = OP over the reduced dims of x[kept, reduced].  KEPT and REDUCED dims, the last of
 * REDUCED is the inner one; with COLUMNS the last of KEPT has neighbours in x, and C V of its
 * elements are a group's.  A line may be cut into parts, whose results, `apart` from one another,
 * are folded by another launch.
 * Options: those of elements.cl and team.cl; X, Y; OP; SUMS (partial sums of BLOCK terms are added
 * up: the error grows with the square root of the number of blocks); MEAN; SQUARES; KEPT, REDUCED;
 * UNIT: neighbours of a line are neighbours in memory; WHOLE: lines are in one part, and all items
 * of a team on the same row: to find this out takes divisions, which cost as much as a short line;
 * AHEAD: how many vectors an item asks for before it folds the first (a loop whose every turn may
 * be the last waits for each). */
typedef struct {
    long x, y, units, parts, across, start, count, outer, inner, step, columns, apart;
    long kept[KEPT], from[KEPT], to[KEPT], reduced[REDUCED], by[REDUCED];
} numbers;

LOADER(load_x, X)
FOLDER(fold, OP)
enum { BLOCK = 64 };

#ifdef MEAN
static inline T finish(T x, long count) { return count ? x / (T)count : MEAN; }
#else
#define finish(x, count) (x)
#endif

#ifdef COLUMNS
#define ELEMENT(i) load_x(row + (i)*step, left, 0)
#elif defined(UNIT)
#define ELEMENT(i) load_x(row + (i), end - (i), REAL(s.start))
#else
#define ELEMENT(i) LOAD(X, row, (i)*step)
#endif
#ifdef SQUARES
#define TERM(e) ((e) * (e))
#else
#define TERM(e) (e)
#endif

kernel void reduce(const numbers s, global const MEMORY(X) * x, global MEMORY(Y) * y) {
    TREE_OF_TEAM
    /* the line and the part of it that this item works on */
#ifdef WHOLE
    const pos part = 0;
    LINE_OF_TEAM(get_group_id(0))
#else
    const pos parts = (pos)s.parts, part = (pos)get_group_id(0) % parts;
    LINE_OF_TEAM(get_group_id(0) / parts)
#endif
#ifdef COLUMNS
    const pos tiles = ((pos)s.columns + V - 1) / V, column = unit % tiles * V,
              left = (pos)s.columns - column;
    const pos line = unit / tiles;
    const pos from = place(s.kept, s.from, KEPT - 1, line) + column,
              to = place(s.kept, s.to, KEPT - 1, line) + column * (pos)s.to[KEPT - 1];
#else
    const pos from = place(s.kept, s.from, KEPT, unit), to = place(s.kept, s.to, KEPT, unit);
#endif
    /* rows of the reduced part, and elements of each */
    pos first = 0, last = (pos)s.outer, begin = 0, end = (pos)s.inner;
#ifdef WHOLE
    const pos across = G, down = 1;
#else
    part_of(parts, part, &first, &last, &begin, &end);
    /* the items of a line: `across` of them along each row, the others on further rows */
    const pos across = (pos)s.across, down = G / across;
#endif
    const pos stride = across * WIDE_STEP, step = (pos)s.step;
    TV total = (TV)REAL(s.start);
    x += s.x + from;
    if (live)
        for (pos o = first + MY_PART / across; o < last; o += down) {
            global const MEMORY(X) *row = x + place(s.reduced, s.by, REDUCED - 1, o);
            pos i = begin + MY_PART % across * WIDE_STEP;
            while (i < end) {
                TV sum = (TV)REAL(s.start);
                const pos stop = i + min((end - i + stride - 1) / stride, (pos)BLOCK) * stride;
#if AHEAD > 1
                for (; i + (AHEAD - 1) * stride < stop; i += AHEAD * stride) {
                    TV e[AHEAD];
#pragma unroll
                    for (int k = 0; k < AHEAD; k++) e[k] = ELEMENT(i + k * stride);
#pragma unroll
                    for (int k = 0; k < AHEAD; k++) sum = OP(sum, TERM(e[k]));
                }
                if (i + 2 * stride < stop) { /* what is left is on its way together, too */
                    TV e[AHEAD];
#pragma unroll
                    for (int k = 0; k < AHEAD; k++)
                        e[k] = ELEMENT(i + k * stride < stop ? i + k * stride : i);
#pragma unroll
                    for (int k = 0; k < AHEAD; k++)
                        sum = OP(sum, i + k * stride < stop ? TERM(e[k]) : (TV)REAL(s.start));
                    i = stop;
                }
#endif
#pragma unroll 4
                for (; i < stop; i += stride) {
                    const TV e = ELEMENT(i);
                    sum = OP(sum, TERM(e));
                }
                total = OP(total, sum);
            }
        }
#ifdef COLUMNS
    lanes r = { .v = fold(tree, total) };
    if (live && MY_PART == 0)
        for (pos l = 0; l < V && l < left; l++)
            STORE(Y, y, s.y + to + l * (pos)s.to[KEPT - 1] + part * s.apart,
                  finish(r.lane[l], s.count));
#else
    const T r = fold(tree, total);
    if (live && MY_PART == 0) STORE(Y, y, s.y + to + part * s.apart, finish(r, s.count));
#endif
}
