/* Along each line:  y_i = exp(x_i - max x) / sum exp(x_j - max x), or its logarithm.
 * Options: those of elements.cl and team.cl; X, Y; LOGARITHM; KEEP: y can hold exp(x_i - max x) in between without loss. */
typedef struct { long x, y, units, size, step, out, columns, kept[KEPT], from[KEPT], to[KEPT], reduced[REDUCED],
                 by[REDUCED]; } numbers;

LOADER(load_x, X)
LOADER(load_y, Y)
STORER_APART(store_y, Y)
FOLDER(fold_top, HIGHER)
FOLDER(fold_sum, PLUS)

#if defined(UNIT) && !defined(COLUMNS)
enum { WIDE_STEP = V };
#define LEFT(i) (size - (i))
#else
enum { WIDE_STEP = 1 };
#define LEFT(i) left
#endif
#ifdef COLUMNS
#define APART side
#else
#define APART apart
#endif

kernel void softmax(const numbers s, global const MEMORY(X) *x, global MEMORY(Y) *y) {
    TREE_OF_TEAM
    LINE_OF_TEAM(get_group_id(0))
    const pos size = live ? (pos)s.size : 0, step = (pos)s.step, apart = (pos)s.out, side = (pos)s.to[KEPT - 1], first =
            MY_PART * WIDE_STEP;
#ifdef COLUMNS
    const pos tiles = ((pos)s.columns + V - 1) / V, column = unit % tiles * V, left = (pos)s.columns - column, line =
            unit / tiles;
    x += s.x + place(s.kept, s.from, KEPT - 1, line) + column;
    y += s.y + place(s.kept, s.to, KEPT - 1, line) + column * side;
#else
    const pos left = 1;
    x += s.x + place(s.kept, s.from, KEPT, unit);
    y += s.y + place(s.kept, s.to, KEPT, unit);
#endif
    const T least = -INFINITY;
    TV top = (TV)least, sum = (TV)(T)0;
    for (pos i = first; i < size; i += G * WIDE_STEP) {
        const TV e = load_x(x + i * step, LEFT(i), least);
        top = HIGHER(e, top);
    }
    const TV most = (TV)fold_top(tree, top);
    for (pos i = first; i < size; i += G * WIDE_STEP) {
        const TV e = exp(load_x(x + i * step, LEFT(i), least) - most);
        sum += e;
#if defined(KEEP) && !defined(LOGARITHM)
        store_y(y + i * apart, APART, LEFT(i), e);
#endif
    }
    const TV all = (TV)fold_sum(tree, sum);
#ifdef LOGARITHM
    const TV under = log(all);
    for (pos i = first; i < size; i += G * WIDE_STEP)
        store_y(y + i * apart, APART, LEFT(i), load_x(x + i * step, LEFT(i), least) - most - under);
#elif defined(KEEP)
    const TV factor = (TV)(T)1 / all;
    for (pos i = first; i < size; i += G * WIDE_STEP) {
        lanes e;
        if (APART == 1) e.v = load_y(y + i * apart, LEFT(i), 0);
        else for (pos l = 0; l < V; l++) e.lane[l] = l < LEFT(i) ? LOAD(Y, y, i * apart + l * APART) : 0;
        store_y(y + i * apart, APART, LEFT(i), e.v * factor);
    }
#else
    for (pos i = first; i < size; i += G * WIDE_STEP)
        store_y(y + i * apart, APART, LEFT(i), exp(load_x(x + i * step, LEFT(i), least) - most) / all);
#endif
}
