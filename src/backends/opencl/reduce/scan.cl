/* Running sums and products along lines, and the first k of a line in order.  A group of G items
 * does a line; all operands lie contiguous as [outer, size, inner].  Options: those of elements.cl,
 * V == 1; X; G; RUN. */
#ifdef SCAN
#define MEET(a, b) ((a)OPERATOR(b))
typedef struct {
    long x, y, units, size, inner;
} numbers;

/* y_i = x_0 .. x_i (EXCLUSIVE: .. x_(i - 1)), from the end when REVERSED. */
#ifdef REVERSED
#define PLACE(i) ((long)(size - 1 - (i)) * inner)
#else
#define PLACE(i) ((long)(i)*inner)
#endif
#ifdef EXCLUSIVE
#define RESULT(before, after) (before)
#else
#define RESULT(before, after) (after)
#endif

#ifdef RUN
/* Tiles of the line come through local memory, neighbours to neighbouring items; each item folds
 * RUN of them, learns what comes before, and goes over them again. */
kernel void scan(const numbers s, global const MEMORY(X) * x, global MEMORY(X) * y) {
    const pos line = (pos)get_group_id(0), size = (pos)s.size, inner = (pos)s.inner,
              item = (pos)get_local_id(0);
    const long from = (long)line / inner * size * inner + line % inner;
    local T tile[G][RUN + 1], sums[G];
    local T *mine = tile[item];
    T carry = START;
    for (pos at = 0; at < size; at += G * RUN) {
#pragma unroll
        for (int k = 0; k < RUN; k++) {
            const pos e = k * G + item;
            tile[e / RUN][e % RUN] = at + e < size ? LOAD(X, x, s.x + from + PLACE(at + e)) : START;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        T total = START;
        for (int k = 0; k < RUN; k++) total = MEET(total, mine[k]);
        sums[item] = total;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < G; k++) {
            if (k == item) total = carry;
            carry = MEET(carry, sums[k]);
        }
        for (int k = 0; k < RUN; k++) {
            const T next = MEET(total, mine[k]);
            mine[k] = RESULT(total, next);
            total = next;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int k = 0; k < RUN; k++) {
            const pos e = k * G + item;
            if (at + e < size) STORE(X, y, s.y + from + PLACE(at + e), tile[e / RUN][e % RUN]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#else
/* Each item folds a stretch, learns what comes before it, and goes over it again. */
kernel void scan(const numbers s, global const MEMORY(X) * x, global MEMORY(X) * y) {
    const pos line = (pos)get_group_id(0), size = (pos)s.size, inner = (pos)s.inner,
              item = (pos)get_local_id(0);
    const long from = (long)line / inner * size * inner + line % inner;
    const pos each = (size + G - 1) / G, first = min(item * each, size),
              last = min(first + each, size);
    local T before[G];
    T total = START;
    for (pos i = first; i < last; i++) total = MEET(total, LOAD(X, x, s.x + from + PLACE(i)));
    before[item] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    total = START;
    for (pos k = 0; k < item; k++) total = MEET(total, before[k]);
    for (pos i = first; i < last; i++) {
        const T e = LOAD(X, x, s.x + from + PLACE(i)), next = MEET(total, e);
        STORE(X, y, s.y + from + PLACE(i), RESULT(total, next));
        total = next;
    }
}
#endif
#endif

#ifdef TOP
#ifdef SMALLEST
#define ABOVE(a, b) (((b) > (a)) || ((b) != (b) && (a) == (a)))
#else
#define ABOVE(a, b) (((a) > (b)) || ((a) != (a) && (b) == (b)))
#endif
/* Is a, at i, before b, at k?  Of equals the first. */
static inline bool before(T a, pos i, T b, pos k) { return ABOVE(a, b) || (!ABOVE(b, a) && i < k); }

typedef struct {
    long x, y, index, units, size, inner, k, has;
} numbers;

/* The next one in order is the first of all that come after the one found last; so k passes over
 * the line. */
kernel void top(const numbers s, global const MEMORY(X) * x, global MEMORY(X) * y,
                global long *index) {
    const pos line = (pos)get_group_id(0), size = (pos)s.size, inner = (pos)s.inner,
              item = (pos)get_local_id(0);
    const long from = (long)line / inner * size * inner + line % inner,
               to = (long)line / inner * s.k * inner + line % inner;
    local T values[G];
    local pos places[G];
    T last = 0;
    pos last_at = -1;
    for (pos n = 0; n < (pos)s.k; n++) {
        T best = 0;
        pos at = -1;
        for (pos i = item; i < size; i += G) {
            const T e = LOAD(X, x, s.x + from + (long)i * inner);
            if ((n == 0 || before(last, last_at, e, i)) && (at < 0 || before(e, i, best, at))) {
                best = e;
                at = i;
            }
        }
        values[item] = best;
        places[item] = at;
        for (int m = G / 2; m > 0; m /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (item < m && places[item + m] >= 0 &&
                (places[item] < 0 ||
                 before(values[item + m], places[item + m], values[item], places[item]))) {
                values[item] = values[item + m];
                places[item] = places[item + m];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        last = values[0];
        last_at = places[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item == 0 && s.has & 1) STORE(X, y, s.y + to + (long)n * inner, last);
        if (item == 0 && s.has & 2) index[s.index + to + (long)n * inner] = last_at;
    }
}
#endif
