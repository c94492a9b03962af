/* The loops from and to one element type, for convert.c: a template.  NAME is the type's, T how it
 * is stored, AS_FLOAT(x), AS_DOUBLE(x) and AS_INT(x) its value, OF_FLOAT(x), OF_DOUBLE(x) and
 * OF_INT(x) the other way. */
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define LOOP(SUFFIX, TO, FROM, VALUE)                                                              \
    static void PASTE(NAME, SUFFIX)(void *to, const void *from, size_t n) {                        \
        TO *restrict y = to;                                                                       \
        const FROM *restrict x = from;                                                             \
        for (size_t i = 0; i < n; i++) y[i] = VALUE(x[i]);                                         \
    }

LOOP(_to_f32, float, T, AS_FLOAT)
LOOP(_to_f64, double, T, AS_DOUBLE)
LOOP(_to_i64, int64_t, T, AS_INT)
LOOP(_from_f32, T, float, OF_FLOAT)
LOOP(_from_f64, T, double, OF_DOUBLE)
LOOP(_from_i64, T, int64_t, OF_INT)

#undef LOOP
#undef PASTE
#undef PASTE_
#undef NAME
#undef T
#undef AS_FLOAT
#undef AS_DOUBLE
#undef AS_INT
#undef OF_FLOAT
#undef OF_DOUBLE
#undef OF_INT
