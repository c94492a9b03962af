/* Pairs of elements of heads rotated by the angles of their positions; what is no part of a pair
 * stays.  An item does one pair, or one element that stays.
 * Options: those of elements.cl; X: of x and y; C: of cos and sin; I: of positions, where there are
 * some; APART: how far the two of a pair stand apart, 0: half a rotated width; STEP from pair to
 * pair. */
typedef struct {
    long x, cos, sin, at, y, told, step, count, heads, rows, size, pairs, table;
    long from[3], to[3]; /* steps of batch, head, row */
} numbers;

kernel void rotary(const numbers s, global const MEMORY(X) *x, global const MEMORY(C) *c,
                   global const MEMORY(C) *sine, global const MEMORY(I) *at,
                   global MEMORY(X) *y, global long *told) {
    const pos e = (pos)get_global_id(0), each = (pos)(s.size - s.pairs);
    if (e >= (pos)s.count) return;
    const pos k = e % each, unit = e / each, head = unit % (pos)s.heads, line = unit / (pos)s.heads;
    const pos batch = line / (pos)s.rows, row = line % (pos)s.rows;
    global const MEMORY(X) *from = x + s.x + batch * s.from[0] + head * s.from[1] + row * s.from[2];
    global MEMORY(X) *to = y + s.y + batch * s.to[0] + head * s.to[1] + row * s.to[2];
    if (k >= (pos)s.pairs) {
        STORE(X, to, k + (pos)s.pairs, LOAD(X, from, k + (pos)s.pairs));
        return;
    }
#ifdef POSITIONS
    const long given = (long)at[s.at + line], place = given < 0 ? given + s.table : given;
    if (outside(place, given, s.table, told + s.told, s.step)) return;
#else
    const long place = line;
#endif
    const pos first = k * STEP, second = first + (APART ? APART : (pos)s.pairs);
    const T a = LOAD(X, from, first), b = LOAD(X, from, second);
    const long angle = place * s.pairs + k;
    const T by = LOAD(C, c, s.cos + angle), up = LOAD(C, sine, s.sin + angle);
    STORE(X, to, first, a * by - b * up);
    STORE(X, to, second, b * by + a * up);
}
