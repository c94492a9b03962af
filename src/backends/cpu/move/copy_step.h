/* A tile of elements of type T, one by one; included once for each size.  Parameters: T, NAME. */
static void NAME(const char *from, int64_t from_p, int64_t from_q, char *to, int64_t to_p,
                 int64_t to_q, int64_t np, int64_t nq) {
    for (int64_t p = 0; p < np; p++, from += from_p, to += to_p) {
        if (to_q == sizeof(T) &&
            from_q == 0) { /* a repeated element: the compiler makes vector stores of it */
            T x = *(const T *)from, *y = (T *)to;
            for (int64_t q = 0; q < nq; q++) y[q] = x;
        } else
            for (int64_t q = 0; q < nq; q++)
                *(T *)(to + q * to_q) = *(const T *)(from + q * from_q);
    }
}
#undef T
#undef NAME
