/* Along each line:  dx_i = y_i (dy_i - sum dy_j y_j), or of log_softmax  dx_i = dy_i - exp(y_i) sum
 * dy_j,  all three lying alike. Options: those of elements.cl and team.cl; X; LOGARITHM; HELD: a
 * line is HELD accesses of each item at most, and stays in registers. */
typedef struct {
    long y, dy, dx, units, size, step, out, columns, kept[KEPT], from[KEPT], to[KEPT],
        reduced[REDUCED], by[REDUCED];
} numbers;

LOADER(load_x, X)
STORER(store_x, X)
FOLDER(fold, PLUS)

#ifdef COLUMNS
#define LEFT(i) left
#define AT(p, i) load_x((p) + (i)*step, LEFT(i), 0)
#else
#define LEFT(i) (size - (i))
#define AT(p, i) (step == 1 ? load_x((p) + (i), LEFT(i), 0) : (TV)LOAD(X, p, (i)*step))
#endif

#ifdef LOGARITHM
#define TERM(y, dy) (dy)
#define RESULT(y, dy) ((dy)-exp(y) * all)
#else
#define TERM(y, dy) ((y) * (dy))
#define RESULT(y, dy) ((y) * ((dy)-all))
#endif

TEAM_KERNEL softmax_grad(const numbers s, global const MEMORY(X) * y, global const MEMORY(X) * dy,
                         global MEMORY(X) * dx) {
    TREE_OF_TEAM
    LINE_OF_TEAM(get_group_id(0))
    const pos size = live ? (pos)s.size : 0, step = (pos)s.step, first = MY_PART * WIDE_STEP;
#ifdef COLUMNS
    const pos tiles = ((pos)s.columns + V - 1) / V, column = unit % tiles * V,
              left = (pos)s.columns - column;
    const pos from = place(s.kept, s.from, KEPT - 1, unit / tiles) + column;
#else
    const pos from = place(s.kept, s.from, KEPT, unit);
#endif
    y += s.y + from;
    dy += s.dy + from;
    dx += s.dx + from;
    TV sum = (TV)(T)0;
#ifdef HELD
    TV a[HELD], b[HELD];
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const pos i = first + k * G * WIDE_STEP;
        a[k] = i < size ? AT(y, i) : (TV)(T)0;
        b[k] = i < size ? AT(dy, i) : (TV)(T)0;
    }
#pragma unroll
    for (int k = 0; k < HELD; k++) sum += TERM(a[k], b[k]);
    const TV all = (TV)fold(tree, sum);
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const pos i = first + k * G * WIDE_STEP;
        if (i < size) store_x(dx + i * step, LEFT(i), RESULT(a[k], b[k]));
    }
#else
    for (pos i = first; i < size; i += G * WIDE_STEP) sum += TERM(AT(y, i), AT(dy, i));
    const TV all = (TV)fold(tree, sum);
    for (pos i = first; i < size; i += G * WIDE_STEP)
        store_x(dx + i * step, LEFT(i), RESULT(AT(y, i), AT(dy, i)));
#endif
}
