/* The place of each element in a list of keys: of equal ones the first, n where it is no key.  NaN
 * is equal to NaN.  Options: those of elements.cl; X: the type of elements and keys. */
typedef struct { long x, keys, y, count, n; } numbers;

kernel void find(const numbers s, global const MEMORY(X) *x, global const MEMORY(X) *keys,
                 global long *y) {
    const pos e = (pos)get_global_id(0), n = (pos)s.n;
    if (e >= (pos)s.count) return;
    const T v = LOAD(X, x, s.x + e);
    pos k = 0;
    for (; k < n; k++) {
        const T key = LOAD(X, keys, s.keys + k);
        if (key == v || (key != key && v != v)) break;
    }
    y[s.y + e] = k;
}
