/* Rows written into a cache, cache B,G,T,D, rows B,G,Q,D:
 *   keep   y is the cache
 *   rows   then its rows, unless one of them would stand outside, which is told (index.cl)
 * Options: those of elements.cl; M: unsigned, as wide as an element; I: the type of at. */
typedef struct { long cache, rows, at, y, told, step, count, groups, T_, Q, D; } numbers;
#define OPERANDS const numbers s, global const M *cache, global const M *row, \
    global const MEMORY(I) *at, global M *y, global long *told

kernel void keep(OPERANDS) {
    const pos e = (pos)get_global_id(0);
    if (e >= (pos)s.count) return;
    y[s.y + e] = cache[s.cache + e];
}

kernel void rows(OPERANDS) {
    const pos e = (pos)get_global_id(0), line = (pos)(s.Q * s.D);
    if (e >= (pos)s.count) return;
    const pos head = e / line;
    const long first = (long)at[s.at + head / (pos)s.groups];
    if (outside(first, first, s.T_ - s.Q + 1, told + s.told, s.step)) return;
    y[s.y + (head * s.T_ + first) * s.D + e % line] = row[s.rows + e];
}
