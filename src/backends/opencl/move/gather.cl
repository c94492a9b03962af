/* Elements picked by numbers that are data; all operands contiguous.  After index.cl.  Options:
 * those of elements.cl, V == 1; M, a type as large as an element; I: tag of the numbers; R. */
typedef struct {
    long x, indices, y, told, step_name, count, a, b, c, d, size[R], step[R];
} numbers;

/* y[outer, picks, inner] = x[outer, index, inner]: a = size of the dim, b = picks, c = inner. */
kernel void gather(const numbers s, global const M *x, global const MEMORY(I) * indices,
                   global M *y, global long *told) {
    if ((pos)get_global_id(0) >= (pos)s.count) return;
    const pos e = (pos)get_global_id(0), inner = (pos)s.c, rest = e / inner, pick = rest % (pos)s.b,
              o = rest / (pos)s.b;
    const long given = (long)indices[s.indices + pick], i = given < 0 ? given + s.a : given;
    y[s.y + e] = outside(i, given, s.a, told + s.told, s.step_name)
                     ? (M)0
                     : x[s.x + (o * s.a + i) * inner + e % inner];
}

/* y[.., i, ..] = x[.., index[.., i, ..], ..] along dim a, which has b elements in x; sizes are
 * those of y, steps those of x. */
kernel void gather_elements(const numbers s, global const M *x, global const MEMORY(I) * indices,
                            global M *y, global long *told) {
    if ((pos)get_global_id(0) >= (pos)s.count) return;
    const pos e = (pos)get_global_id(0);
    const long given = (long)indices[s.indices + e], i = given < 0 ? given + s.b : given;
    long from = 0;
    pos rest = e;
    for (int k = R - 1; k >= 0; k--) {
        const pos c = rest % (pos)s.size[k];
        rest /= (pos)s.size[k];
        from += (k == (int)s.a ? i : (long)c) * s.step[k];
    }
    y[s.y + e] = outside(i, given, s.b, told + s.told, s.step_name) ? (M)0 : x[s.x + from];
}

/* y[place, rest] = x[batch of place, places.., rest]: R numbers a place, sizes and steps (in x) of
 * the dims that they count; a = elements of the rest, b = places of a batch, c = elements of x in a
 * batch. */
kernel void gather_nd(const numbers s, global const M *x, global const MEMORY(I) * indices,
                      global M *y, global long *told) {
    if ((pos)get_global_id(0) >= (pos)s.count) return;
    const pos e = (pos)get_global_id(0), place = e / (pos)s.a;
    long from = place / (pos)s.b * s.c + e % (pos)s.a;
    bool nowhere = false;
    for (int k = 0; k < s.d; k++) {
        const long given = (long)indices[s.indices + (long)place * s.d + k],
                   i = given < 0 ? given + s.size[k] : given;
        nowhere |= outside(i, given, s.size[k], told + s.told, s.step_name);
        from += i * s.step[k];
    }
    y[s.y + e] = nowhere ? (M)0 : x[s.x + from];
}
