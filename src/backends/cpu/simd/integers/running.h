/* Running sums of one type: a template.  NAME is the function, T the elements, SUM what they are
 * added up in; WIDE: how many lines side by side are done already. */
static void NAME(const fac_running *t) {
    const int64_t step = t->reverse ? -t->slice : t->slice;
    const int64_t first = t->reverse ? (t->size - 1) * t->slice : 0;
    if (t->n == 1) {
        const T *x = (const T *)t->x + first;
        T *y = (T *)t->y + first;
        SUM sum = 0;
        if (t->exclusive)
            for (int64_t k = 0; k < t->size; k++, x += step, y += step) {
                *y = (T)sum;
                sum += (SUM)*x;
            }
        else
            for (int64_t k = 0; k < t->size; k++, x += step, y += step) {
                sum += (SUM)*x;
                *y = (T)sum;
            }
        return;
    }
    for (int64_t at = WIDE(t, first, step); at < t->n; at += COLUMNS) {
        const int64_t m = t->n - at < COLUMNS ? t->n - at : COLUMNS;
        const T *restrict x = (const T *)t->x + first + at;
        T *restrict y = (T *)t->y + first + at;
        SUM sum[COLUMNS] = { 0 };
        for (int64_t k = 0; k < t->size; k++, x += step, y += step)
            if (t->exclusive)
                for (int64_t j = 0; j < m; j++) {
                    y[j] = (T)sum[j];
                    sum[j] += (SUM)x[j];
                }
            else
                for (int64_t j = 0; j < m; j++) {
                    sum[j] += (SUM)x[j];
                    y[j] = (T)sum[j];
                }
    }
}
#undef NAME
#undef T
#undef SUM
#undef WIDE
