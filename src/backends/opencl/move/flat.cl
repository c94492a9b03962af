/* The elements of x in their row-major order, zeros where y has more; the bits of another type of
 * as many, where y is of one: what becomes a bool is 0 or 1.  Options: those of elements.cl; M:
 * unsigned, as wide as an element; BOOL. */
typedef struct { long x, y, count, have; } numbers;

kernel void flat(const numbers s, global const M *x, global M *y) {
    const pos e = (pos)get_global_id(0);
    if (e >= (pos)s.count) return;
    M bits = 0;
    if (e < (pos)s.have) bits = x[s.x + e];
#ifdef BOOL
    y[s.y + e] = bits != 0;
#else
    y[s.y + e] = bits;
#endif
}
