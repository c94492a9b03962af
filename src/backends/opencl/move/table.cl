/* y[to] = x[from], where the place in x is the sum of one number for each coordinate of y;
 * LONG_MIN: not in x.  The numbers of all coordinates, one after another, are the table.
 *
 * moved: what is not in x is `fill`, element 0 of another buffer, or zero.  DIAGONAL: also all
 * below (1) or above (-1) diagonal k of the last two dims.  gathered: the other way round, a sum:
 * each coordinate of y has a list of places in x. Options: M, a type as large as an element; R,
 * dims; WIDE; FILL; DIAGONAL. */
#ifdef M
typedef struct {
    long x, y, table, fill, units, runs, run, k, size[R], to[R], first[R];
} numbers;

kernel void moved(const numbers s, global const M *x, global M *y, global const long *table,
                  global const M *fill) {
    if ((pos)get_global_id(0) >= (pos)s.units) return;
    const pos unit = (pos)get_global_id(0), first = unit % (pos)s.runs * (pos)s.run,
              left = (pos)s.size[R - 1] - first;
    const pos n = left < (pos)s.run ? left : (pos)s.run, step = (pos)s.to[R - 1];
    pos rest = unit / (pos)s.runs, to = first * step, row = 0;
    long from = s.x;
    bool inside = true;
    for (int k = R - 2; k >= 0; k--) {
        const pos c = rest % (pos)s.size[k];
        const long at = table[s.table + s.first[k] + c];
        rest /= (pos)s.size[k];
        if (k == R - 2) row = c;
        inside &= at != LONG_MIN;
        from += at;
        to += c * (pos)s.to[k];
    }
#ifdef FILL
    const M outside = fill[s.fill];
#else
    const M outside = 0;
#endif
    y += s.y + to;
    for (pos i = 0; i < n; i++) {
        const long at = table[s.table + s.first[R - 1] + first + i];
        bool here = inside && at != LONG_MIN;
#ifdef DIAGONAL
        here &= DIAGONAL * ((long)(first + i) - row - s.k) >= 0;
#endif
        y[i * step] = here ? x[from + at] : outside;
    }
}
#endif

#ifdef SUMS
typedef struct {
    long x, y, table, count, size[R], to[R], lists[R], starts[R];
} numbers;

/* Dim k: numbers starts[k].. of the table tell where the list of each coordinate begins, counted
 * from lists[k]. */
kernel void gathered(const numbers s, global const MEMORY(X) * x, global MEMORY(X) * y,
                     global const long *table) {
    if ((pos)get_global_id(0) >= (pos)s.count) return;
    pos rest = (pos)get_global_id(0), to = 0, begin[R], n[R], all = 1;
    table += s.table;
    for (int k = R - 1; k >= 0; k--) {
        const pos c = rest % (pos)s.size[k];
        rest /= (pos)s.size[k];
        to += c * (pos)s.to[k];
        begin[k] = (pos)table[s.starts[k] + c];
        n[k] = (pos)table[s.starts[k] + c + 1] - begin[k];
        all *= n[k];
    }
    T sum = 0;
    for (pos e = 0; e < all; e++) {
        pos i = e;
        long from = s.x;
        for (int k = R - 1; k >= 0; k--) {
            from += table[s.lists[k] + begin[k] + i % n[k]];
            i /= n[k];
        }
        sum += LOAD(X, x, from);
    }
    STORE(X, y, s.y + to, sum);
}
#endif
