/* Cross entropy of lines of scores x and their labels, and its gradient; formulas:
 * ops/class_loss.h.
 * Options: those of elements.cl and team.cl, UNIT; X; L: of labels; HELD: a line is HELD accesses
 * of each item at most, and stays in registers; EACH: losses are the result, line by line.
 *   LINES    of each line its loss, whether it counts and whether its label's score is the first
 *            best one, to parts; SETTLES: the last group does what follows, too
 *   SETTLE   what the lines gave, added up in a fixed order; MEAN; Y: of loss and count; OUTPUTS:
 *            of 1 loss, 2 count, 4 hits
 *   GRAD     the gradient by x; COUNT: dy is divided by count */
LOADER(load_x, X)
STORER(store_x, X)
FOLDER(fold_top, HIGHER)
FOLDER(fold_sum, PLUS)
#define LEFT(i) (size - (i))

#if defined(SETTLE) || defined(SETTLES)
typedef struct {
    long parts, loss, count, hits, lines;
} totals;

/* All items of a group: sums of the three numbers of each line, of at most BLOCK terms and of such
 * sums. */
__attribute__((always_inline)) static inline void settle(totals s, global const T *parts,
                                                         global MEMORY(Y) * loss,
                                                         global MEMORY(Y) * count,
                                                         global float *hits, local T *tree) {
    enum { BLOCK = 64 };
    const int id = get_local_id(0), items = get_local_size(0);
    const pos lines = (pos)s.lines;
    T total[3] = { 0, 0, 0 };
    for (pos i = id; i < lines;) {
        T sum[3] = { 0, 0, 0 };
        for (int n = 0; n < BLOCK && i < lines; n++, i += items)
            for (int k = 0; k < 3; k++) sum[k] += parts[s.parts + k * lines + i];
        for (int k = 0; k < 3; k++) total[k] += sum[k];
    }
    for (int k = 0; k < 3; k++) tree[k * items + id] = total[k];
    for (int n = items / 2; n > 0; n /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < n)
            for (int k = 0; k < 3; k++) tree[k * items + id] += tree[k * items + id + n];
    }
    if (id) return;
#ifdef MEAN
    if (OUTPUTS & 1) STORE(Y, loss, s.loss, tree[0] / tree[items]);
#else
    if (OUTPUTS & 1) STORE(Y, loss, s.loss, tree[0]);
#endif
    if (OUTPUTS & 2) STORE(Y, count, s.count, tree[items]);
    if (OUTPUTS & 4) hits[s.hits] = (float)tree[2 * items];
}
#endif

#if defined(LINES) || defined(GRAD)
/* Which class it is; not one of all when there is none. */
static inline pos class_of(long label, pos size) {
    label = label < 0 ? label + size : label;
    return label >= 0 && label < size ? (pos)label : -1;
}
#endif

#ifdef LINES
typedef struct {
    long x, labels, parts, loss, count, hits;
#ifdef SETTLES
    long done;
#endif
    long units, size, ignored, smoothing;
} numbers;

/* How many of V elements, the first of which is number i, are a better place than number `right`,
 * which holds x. */
static inline T better(TV v, pos i, T x, pos right) {
    lanes e = { .v = v };
    T n = 0;
#pragma unroll
    for (int l = 0; l < V; l++) {
        const T a = e.lane[l];
        const bool above = a > x || (a != a && x == x), below = x > a || (x != x && a == a);
        n += above || (!below && i + l < right) ? 1 : 0;
    }
    return n;
}

/* The three sums of an access; IN_LINE elements all. */
#define TAKE(e, i)                                                                                 \
    do {                                                                                           \
        const TV over = (e) - (TV)most;                                                            \
        lanes mine = { .v = over };                                                                \
        sum += exp(over);                                                                          \
        beaten += better(e, i, score, right);                                                      \
        _Pragma("unroll") for (int l = 0; l < V; l++) spread += l < LEFT(i) ? mine.lane[l] : 0;    \
    } while (0)

TEAM_KERNEL losses(const numbers s, global const MEMORY(X) * x, global const MEMORY(L) * labels,
                   global T *parts, global MEMORY(Y) * loss, global MEMORY(Y) * count,
                   global float *hits
#ifdef SETTLES
                   ,
                   global uint *done
#endif
) {
    TREE_OF_TEAM
    LINE_OF_TEAM(get_group_id(0))
    const pos size = (pos)s.size, first = MY_PART * WIDE_STEP;
    const long label = (long)labels[s.labels + unit];
    const pos right = class_of(label, size);
    const T least = -INFINITY;
    x += s.x + unit * size;
    const T score = right < 0 ? 0 : LOAD(X, x, right);
    TV sum = (TV)(T)0, top = (TV)least;
    T beaten = 0, spread = 0;
#ifdef HELD
    CAME(X) came[HELD];
    TV e[HELD];
    /* where an item has nothing, the last that there is once more: a branch would wait for what is
     * in it */
#pragma unroll
    for (int k = 0; k < HELD; k++)
        came[k] = COME(X, x, min(first + k * (G * WIDE_STEP), size - WIDE_STEP));
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        e[k] = IN_LINE(first + k * G * WIDE_STEP) ? SEEN(X, came[k]) : (TV)least;
        top = HIGHER(e[k], top);
    }
    const T most = fold_top(tree, top);
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const pos i = first + k * G * WIDE_STEP;
        if (IN_LINE(i)) TAKE(e[k], i);
    }
#else
    for (pos i = first; i < size; i += G * WIDE_STEP) {
        const TV e = load_x(x + i, LEFT(i), least);
        top = HIGHER(e, top);
    }
    const T most = fold_top(tree, top);
    for (pos i = first; i < size; i += G * WIDE_STEP) {
        const TV e = load_x(x + i, LEFT(i), least);
        TAKE(e, i);
    }
#endif
    const T under = log(fold_sum(tree, sum)), smoothing = REAL(s.smoothing);
    lanes own = { .v = (TV)(T)0 };
    own.lane[0] = beaten;
    beaten = fold_sum(tree, own.v);
    own.lane[0] = spread;
    spread = fold_sum(tree, own.v);
    const bool counts = label != s.ignored, hit = label >= 0 && right >= 0 && beaten == 0;
    T lost = right < 0 ? 0 : under - (score - most);
    if (smoothing != 0) lost = (1 - smoothing) * lost + smoothing * (under - spread / size);
    if (!counts) lost = 0;
    if (live && MY_PART == 0) {
        parts[s.parts + unit] = lost;
        parts[s.parts + s.units + unit] = counts ? 1 : 0;
        parts[s.parts + 2 * s.units + unit] = hit ? 1 : 0;
#ifdef EACH
        STORE(Y, loss, s.loss + unit, lost);
#endif
    }
#ifdef SETTLES
    local T sums[3 * C * G];
    local uint before;
    if (!is_last(done + s.done, get_num_groups(0), &before)) return;
    settle((totals){ s.parts, s.loss, s.count, s.hits, s.units }, parts, loss, count, hits, sums);
#endif
}
#elif defined(SETTLE)
kernel void totals_of(const totals s, global const T *parts, global MEMORY(Y) * loss,
                      global MEMORY(Y) * count, global float *hits) {
    local T sums[3 * SETTLE];
    settle(s, parts, loss, count, hits, sums);
}
#else
typedef struct {
    long x, labels, dy, count, dx, units, size, ignored, smoothing, each;
} numbers;

/* dx = p up - hot [i is the label] - rest */
static inline TV result(TV power, pos i, T up, pos right, T hot, T rest) {
    lanes r = { .v = power * (TV)up - (TV)rest };
#pragma unroll
    for (int l = 0; l < V; l++) r.lane[l] -= i + l == right ? hot : 0;
    return r.v;
}

TEAM_KERNEL cross_entropy_grad(const numbers s, global const MEMORY(X) * x,
                               global const MEMORY(L) * labels, global const MEMORY(X) * dy,
                               global const MEMORY(X) * count, global MEMORY(X) * dx) {
    TREE_OF_TEAM
    LINE_OF_TEAM(get_group_id(0))
    const pos size = (pos)s.size, first = MY_PART * WIDE_STEP;
    const long label = (long)labels[s.labels + unit];
    const pos right = class_of(label, size);
    const T least = -INFINITY, smoothing = REAL(s.smoothing);
    T weight = LOAD(X, dy, s.dy + unit * s.each);
#ifdef COUNT
    weight /= LOAD(X, count, s.count);
#endif
    if (label == s.ignored) weight = 0;
    x += s.x + unit * size;
    dx += s.dx + unit * size;
    TV sum = (TV)(T)0, top = (TV)least;
#ifdef HELD
    CAME(X) came[HELD];
    TV e[HELD];
    /* where an item has nothing, the last that there is once more: a branch would wait for what is
     * in it */
#pragma unroll
    for (int k = 0; k < HELD; k++)
        came[k] = COME(X, x, min(first + k * (G * WIDE_STEP), size - WIDE_STEP));
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        e[k] = IN_LINE(first + k * G * WIDE_STEP) ? SEEN(X, came[k]) : (TV)least;
        top = HIGHER(e[k], top);
    }
    const TV most = (TV)fold_top(tree, top);
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        e[k] = exp(e[k] - most);
        if (IN_LINE(first + k * G * WIDE_STEP)) sum += e[k];
    }
#else
    for (pos i = first; i < size; i += G * WIDE_STEP) {
        const TV e = load_x(x + i, LEFT(i), least);
        top = HIGHER(e, top);
    }
    const TV most = (TV)fold_top(tree, top);
    for (pos i = first; i < size; i += G * WIDE_STEP)
        sum += exp(load_x(x + i, LEFT(i), least) - most);
#endif
    const T hot = weight * (1 - smoothing), rest = weight * smoothing / size;
    const T up = ((right < 0 ? 0 : hot) + weight * smoothing) / fold_sum(tree, sum);
#ifdef HELD
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const pos i = first + k * G * WIDE_STEP;
        if (live && IN_LINE(i)) store_x(dx + i, LEFT(i), result(e[k], i, up, right, hot, rest));
    }
#else
    if (!live) return;
    for (pos i = first; i < size; i += G * WIDE_STEP) {
        const TV power = exp(load_x(x + i, LEFT(i), least) - most);
        store_x(dx + i, LEFT(i), result(power, i, up, right, hot, rest));
    }
#endif
}
#endif
