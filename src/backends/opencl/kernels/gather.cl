/* Elements picked by numbers that are data; all operands contiguous.  A number below zero counts from the end; one outside of
 * its dim picks zero.  Options: those of elements.cl, V == 1; M, a type as large as an element; I: tag of the numbers; R. */
typedef struct { long x, indices, y, count, a, b, c, d, size[R], step[R]; } numbers;

/* y[outer, picks, inner] = x[outer, index, inner]: a = size of the dim, b = picks, c = inner. */
kernel void gather(const numbers s, global const M *x, global const MEMORY(I) *indices, global M *y) {
    if ((pos)get_global_id(0) >= (pos)s.count) return;
    const pos e = (pos)get_global_id(0), inner = (pos)s.c, rest = e / inner, pick = rest % (pos)s.b, o = rest / (pos)s.b;
    long i = (long)indices[s.indices + pick];
    i += i < 0 ? s.a : 0;
    y[s.y + e] = i >= 0 && i < s.a ? x[s.x + (o * s.a + i) * inner + e % inner] : (M)0;
}

/* y[.., i, ..] = x[.., index[.., i, ..], ..] along dim a, which has b elements in x; sizes are those of y, steps those of x. */
kernel void gather_elements(const numbers s, global const M *x, global const MEMORY(I) *indices, global M *y) {
    if ((pos)get_global_id(0) >= (pos)s.count) return;
    const pos e = (pos)get_global_id(0);
    long i = (long)indices[s.indices + e], from = 0;
    pos rest = e;
    i += i < 0 ? s.b : 0;
    for (int k = R - 1; k >= 0; k--) {
        const pos c = rest % (pos)s.size[k];
        rest /= (pos)s.size[k];
        from += (k == (int)s.a ? i : (long)c) * s.step[k];
    }
    y[s.y + e] = i >= 0 && i < s.b ? x[s.x + from] : (M)0;
}

/* y[place, rest] = x[batch of place, places.., rest]: R numbers a place, sizes and steps (in x) of the dims that they count; a =
 * elements of the rest, b = places of a batch, c = elements of x in a batch. */
kernel void gather_nd(const numbers s, global const M *x, global const MEMORY(I) *indices, global M *y) {
    if ((pos)get_global_id(0) >= (pos)s.count) return;
    const pos e = (pos)get_global_id(0), place = e / (pos)s.a;
    long from = place / (pos)s.b * s.c + e % (pos)s.a;
    bool inside = true;
    for (int k = 0; k < s.d; k++) {
        long i = (long)indices[s.indices + (long)place * s.d + k];
        i += i < 0 ? s.size[k] : 0;
        inside &= i >= 0 && i < s.size[k];
        from += i * s.step[k];
    }
    y[s.y + e] = inside ? x[s.x + from] : (M)0;
}
