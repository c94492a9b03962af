/* Loops of one width, where signed and unsigned differ in nothing: a template.  NAME ends the
 * names, T is the unsigned type; it is widened to unsigned int, for two u16 would become an int
 * that overflows. */
MAP(JOIN(add, NAME), T, 2, (T)(1u * x + y))
MAP(JOIN(sub, NAME), T, 2, (T)(1u * x - y))
MAP(JOIN(mul, NAME), T, 2, (T)(1u * x * y))
MAP(JOIN(neg, NAME), T, 1, (T)(0u - x))
MAP(JOIN(and, NAME), T, 2, x &y)
MAP(JOIN(or, NAME), T, 2, x | y)
MAP(JOIN(xor, NAME), T, 2, x ^ y)
MAP(JOIN(not, NAME), T, 1, (T)~x)
MAP(JOIN(equal, NAME), uint8_t, 2, x == y)

static void JOIN(where, NAME)(size_t n, const void *const *in, const double *p, void *out) {
    const uint8_t *flags = in[0];
    const T *xs = in[1], *ys = in[2];
    T *to = out;
    (void)p;
    IN_PLACE for (size_t i = 0; i < n; i++) {
        const T x = xs[i], y = ys[i];
        to[i] = flags[i] ? x : y;
    }
}
#undef NAME
#undef T
