/* Running sums and products along lines, and the first k of a line in order.  A group of G items does a line; all operands lie
 * contiguous as [outer, size, inner].  Options: those of elements.cl, V == 1; X; G. */
#ifdef SCAN
#define MEET(a, b) ((a) OPERATOR (b))
typedef struct { long x, y, units, size, inner; } numbers;

/* y_i = x_0 .. x_i (EXCLUSIVE: .. x_(i - 1)), from the end when REVERSED.  Each item folds a stretch, learns what comes before
 * it, and goes over it again. */
kernel void scan(const numbers s, global const MEMORY(X) *x, global MEMORY(X) *y) {
    const pos line = (pos)get_group_id(0), size = (pos)s.size, inner = (pos)s.inner, item = (pos)get_local_id(0);
    const long from = (long)line / inner * size * inner + line % inner;
    const pos each = (size + G - 1) / G, first = min(item * each, size), last = min(first + each, size);
    local T before[G];
    T total = START;
#ifdef REVERSED
#define PLACE(i) ((long)(size - 1 - (i)) * inner)
#else
#define PLACE(i) ((long)(i) * inner)
#endif
    for (pos i = first; i < last; i++) total = MEET(total, LOAD(X, x, s.x + from + PLACE(i)));
    before[item] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    total = START;
    for (pos k = 0; k < item; k++) total = MEET(total, before[k]);
    for (pos i = first; i < last; i++) {
        const T e = LOAD(X, x, s.x + from + PLACE(i)), next = MEET(total, e);
#ifdef EXCLUSIVE
        STORE(X, y, s.y + from + PLACE(i), total);
#else
        STORE(X, y, s.y + from + PLACE(i), next);
#endif
        total = next;
    }
}
#endif

#ifdef TOP
#ifdef SMALLEST
#define ABOVE(a, b) (((b) > (a)) || ((b) != (b) && (a) == (a)))
#else
#define ABOVE(a, b) (((a) > (b)) || ((a) != (a) && (b) == (b)))
#endif
/* Is a, at i, before b, at k?  Of equals the first. */
static inline bool before(T a, pos i, T b, pos k) { return ABOVE(a, b) || (!ABOVE(b, a) && i < k); }

typedef struct { long x, y, index, units, size, inner, k, has; } numbers;

/* The next one in order is the first of all that come behind the one found last; so k passes over the line. */
kernel void top(const numbers s, global const MEMORY(X) *x, global MEMORY(X) *y, global long *index) {
    const pos line = (pos)get_group_id(0), size = (pos)s.size, inner = (pos)s.inner, item = (pos)get_local_id(0);
    const long from = (long)line / inner * size * inner + line % inner, to = (long)line / inner * s.k * inner + line % inner;
    local T values[G];
    local pos places[G];
    T last = 0;
    pos last_at = -1;
    for (pos n = 0; n < (pos)s.k; n++) {
        T best = 0;
        pos at = -1;
        for (pos i = item; i < size; i += G) {
            const T e = LOAD(X, x, s.x + from + (long)i * inner);
            if ((n == 0 || before(last, last_at, e, i)) && (at < 0 || before(e, i, best, at))) best = e, at = i;
        }
        values[item] = best;
        places[item] = at;
        for (int m = G / 2; m > 0; m /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (item < m && places[item + m] >= 0 &&
                (places[item] < 0 || before(values[item + m], places[item + m], values[item], places[item]))) {
                values[item] = values[item + m];
                places[item] = places[item + m];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        last = values[0], last_at = places[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item == 0 && s.has & 1) STORE(X, y, s.y + to + (long)n * inner, last);
        if (item == 0 && s.has & 2) index[s.index + to + (long)n * inner] = last_at;
    }
}
#endif
