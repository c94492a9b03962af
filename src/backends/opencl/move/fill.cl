/* Contents that follow from shapes and a few numbers.  Options: those of elements.cl, V == 1; Y. */
#ifdef RANGE
typedef struct {
    long y, count, start, delta;
} numbers;
/* start + k delta; integers wrap */
kernel void range(const numbers s, global MEMORY(Y) * y) {
    const long k = get_global_id(0);
    if (k < s.count) STORE(Y, y, s.y + k, REAL(s.start) + (T)k * REAL(s.delta));
}
#endif

#ifdef EYE
typedef struct {
    long y, count, columns, k;
} numbers;
kernel void eye(const numbers s, global MEMORY(Y) * y) {
    const long e = get_global_id(0);
    if (e < s.count) STORE(Y, y, s.y + e, (T)(e % s.columns - e / s.columns == s.k));
}
#endif

#ifdef LISTED
typedef struct {
    long y, count, list[LISTED];
} numbers;
kernel void listed(const numbers s, global MEMORY(Y) * y) {
    const long e = get_global_id(0);
    if (e < s.count) STORE(Y, y, s.y + e, (T)s.list[e]);
}
#endif

#ifdef HOT
typedef struct {
    long x, values, y, count, depth, inner;
} numbers;
/* y[outer, k, inner] = values[x[outer, inner] == k]; below zero counts from
 * the end.  WHOLE: cuts a float to an integer */
kernel void one_hot(const numbers s, global const MEMORY(X) * x, global const MEMORY(Y) * values,
                    global MEMORY(Y) * y) {
    const long e = get_global_id(0);
    if (e >= s.count) return;
    const long i = e % s.inner, k = e / s.inner % s.depth, o = e / s.inner / s.depth;
    const NUMBER at = WHOLE(LOAD_NUMBER(x, s.x + o * s.inner + i));
    y[s.y + e] = values[s.values + ((at < 0 ? at + (NUMBER)s.depth : at) == (NUMBER)k)];
}
#endif
