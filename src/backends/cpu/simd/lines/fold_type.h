/* The folds of one element type.  Parameters: T, and the names WIDEN, ROW, COLUMNS. */

INLINE double FAC_JOIN(ROW, any)(int fold, double start, const T *x, int64_t n) {
    dvec a = all_f64(fac_fold_start(fold)), b = a, c = a, d = a;
    const int64_t part =
        n / (4 * VD) * VD; /* four chains hide the latency of an addition; each has its part of */
    int64_t i = 0;         /* the row, since memory gives four streams faster than one */
    for (; i < part; i += VD) {
        a = fold_vector(fold, a, WIDEN(x + i));
        b = fold_vector(fold, b, WIDEN(x + part + i));
        c = fold_vector(fold, c, WIDEN(x + 2 * part + i));
        d = fold_vector(fold, d, WIDEN(x + 3 * part + i));
    }
    for (i = 4 * part; i + VD <= n; i += VD) a = fold_vector(fold, a, WIDEN(x + i));
    a = fold_vector(fold, fold_vector(fold, a, b), fold_vector(fold, c, d));
    for (int k = 0; k < VD; k++) start = fold_number(fold, start, a[k]);
    for (; i < n; i++) start = fold_number(fold, start, (double)x[i]);
    return start;
}

static double ROW(int fold, double start, const void *x, int64_t n) {
    switch (fold) {
    case FAC_FOLD_SUM:
        return FAC_JOIN(ROW, any)(FAC_FOLD_SUM, start, x, n);
    case FAC_FOLD_PROD:
        return FAC_JOIN(ROW, any)(FAC_FOLD_PROD, start, x, n);
    case FAC_FOLD_MAX:
        return FAC_JOIN(ROW, any)(FAC_FOLD_MAX, start, x, n);
    default:
        return FAC_JOIN(ROW, any)(FAC_FOLD_MIN, start, x, n);
    }
}

INLINE void FAC_JOIN(COLUMNS, any)(int fold, double *acc, const T *x, int64_t rows, int64_t stride,
                                   int64_t columns) {
    int64_t j = 0;
    if (columns <= 16 * VD) { /* few columns: the accumulators stay in registers */
        for (; j + 2 * VD <= columns; j += 2 * VD) {
            dvec a = widen_f64(acc + j), b = widen_f64(acc + j + VD),
                 c = all_f64(fac_fold_start(fold)), d = c;
            int64_t r = 0;
            for (; r + 2 <= rows; r += 2) {
                const T *p = x + r * stride + j;
                a = fold_vector(fold, a, WIDEN(p));
                b = fold_vector(fold, b, WIDEN(p + VD));
                c = fold_vector(fold, c, WIDEN(p + stride));
                d = fold_vector(fold, d, WIDEN(p + stride + VD));
            }
            if (r < rows) {
                a = fold_vector(fold, a, WIDEN(x + r * stride + j));
                b = fold_vector(fold, b, WIDEN(x + r * stride + j + VD));
            }
            store_f64(acc + j, fold_vector(fold, a, c));
            store_f64(acc + j + VD, fold_vector(fold, b, d));
        }
        for (; j < columns; j++)
            for (int64_t r = 0; r < rows; r++)
                acc[j] = fold_number(fold, acc[j], (double)x[r * stride + j]);
        return;
    }
    int64_t whole = columns / VD * VD, r = 0;
    for (; r < rows; r++, x += stride) { /* many: they stay in L1, and four rows pass at a time */
        if (r + 4 <= rows) {
            for (j = 0; j < whole; j += VD) {
                if (j % (2 * VD) == 0 &&
                    r + FOLD_AHEAD + 4 <= rows) /* the hardware follows too late */
                    for (int k = 0; k < 4; k++)
                        __builtin_prefetch(x + (FOLD_AHEAD + k) * stride + j, 0, 2);
                dvec a = fold_vector(fold, widen_f64(acc + j), WIDEN(x + j));
                a = fold_vector(fold, a, WIDEN(x + stride + j));
                a = fold_vector(fold, a, WIDEN(x + 2 * stride + j));
                store_f64(acc + j, fold_vector(fold, a, WIDEN(x + 3 * stride + j)));
            }
            for (; j < columns; j++)
                for (int k = 0; k < 4; k++)
                    acc[j] = fold_number(fold, acc[j], (double)x[k * stride + j]);
            r += 3;
            x += 3 * stride;
        } else {
            for (j = 0; j < whole; j += VD)
                store_f64(acc + j, fold_vector(fold, widen_f64(acc + j), WIDEN(x + j)));
            for (; j < columns; j++) acc[j] = fold_number(fold, acc[j], (double)x[j]);
        }
    }
}

static void COLUMNS(int fold, double *acc, const void *x, int64_t rows, int64_t stride,
                    int64_t columns) {
    switch (fold) {
    case FAC_FOLD_SUM:
        FAC_JOIN(COLUMNS, any)(FAC_FOLD_SUM, acc, x, rows, stride, columns);
        break;
    case FAC_FOLD_PROD:
        FAC_JOIN(COLUMNS, any)(FAC_FOLD_PROD, acc, x, rows, stride, columns);
        break;
    case FAC_FOLD_MAX:
        FAC_JOIN(COLUMNS, any)(FAC_FOLD_MAX, acc, x, rows, stride, columns);
        break;
    default:
        FAC_JOIN(COLUMNS, any)(FAC_FOLD_MIN, acc, x, rows, stride, columns);
    }
}
#undef T
#undef WIDEN
#undef ROW
#undef COLUMNS
