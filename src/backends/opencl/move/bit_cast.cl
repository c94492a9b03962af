/* The same bits as another type of as many; what becomes a bool is 0 or 1.  Options: those of
 * elements.cl; M: unsigned, as wide as an element; BOOL. */
typedef struct { long x, y, count; } numbers;

kernel void cast_bits(const numbers s, global const M *x, global M *y) {
    const pos e = (pos)get_global_id(0);
    if (e >= (pos)s.count) return;
    const M bits = x[s.x + e];
#ifdef BOOL
    y[s.y + e] = bits != 0;
#else
    y[s.y + e] = bits;
#endif
}
