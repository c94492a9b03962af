/* Bases of levels, as src/ops/basis.h has them: planes of bits from numbers (pack), numbers from
 * planes (unpack), and one step towards the basis that fits some numbers best (cells, then fit).
 * All in double, so that numbers that no code tells apart keep the ridge of 1e-4 that they are held
 * by.
 * Options: those of elements.cl and team.cl (T double, C 1); X; BITS; POSITIVE: digits are 0 and 1;
 * SINGLE: sums are rounded to f32, as kernels for f32 make them; PACK, UNPACK, CELLS or FIT. */
enum { LEVELS = 1 << BITS };

#ifdef SINGLE
#define ROUNDED(x) (T)(float)(x)
#else
#define ROUNDED(x) (x)
#endif

static inline T digit(uint code, int j) {
#ifdef POSITIVE
    return code >> j & 1 ? 1 : 0;
#else
    return code >> j & 1 ? 1 : -1;
#endif
}

/* Levels of one channel in rising order: the code of each, and the thresholds between them. */
static inline void levels_of(global const MEMORY(X) *basis, long at, long stride, uint *code,
                             T *threshold) {
    T level[LEVELS];
    for (uint e = 0; e < LEVELS; e++) {
        T sum = 0;
        for (int j = 0; j < BITS; j++)
            sum = ROUNDED(sum + digit(e, j) * LOAD(X, basis, at + j * stride));
        int k = (int)e;
        for (; k > 0 && level[k - 1] > sum; k--) {
            level[k] = level[k - 1];
            code[k] = code[k - 1];
        }
        level[k] = sum;
        code[k] = e;
    }
    for (int i = 0; i + 1 < LEVELS; i++)
        threshold[i] = ROUNDED(ROUNDED(level[i] + level[i + 1]) * 0.5);
}

static inline int find(const T *threshold, T x) {
    int k = 0;
    for (int i = 0; i + 1 < LEVELS; i++) k += x > threshold[i];
    return k;
}

#ifdef PACK
typedef struct { long x, basis, y, channels, each, bytes; } numbers;

/* An item has a byte of each plane. */
kernel void pack(const numbers s, global const MEMORY(X) *x, global const MEMORY(X) *basis,
                 global uchar *y) {
    const long i = get_global_id(0);
    if (i >= s.channels * s.bytes) return;
    const long c = i / s.bytes, first = i % s.bytes * 8, last = min(first + 8, s.each);
    uint code[LEVELS];
    T threshold[LEVELS];
    uchar plane[BITS];
    levels_of(basis, s.basis + c, s.channels, code, threshold);
    for (int j = 0; j < BITS; j++) plane[j] = 0;
    for (long k = first; k < last; k++) {
        const uint e = code[find(threshold, LOAD(X, x, s.x + c * s.each + k))];
        for (int j = 0; j < BITS; j++) plane[j] |= (uchar)((e >> j & 1) << (k - first));
    }
    for (int j = 0; j < BITS; j++) y[s.y + j * s.channels * s.bytes + i] = plane[j];
}
#endif

#ifdef UNPACK
typedef struct { long bits, basis, y, channels, each, bytes; } numbers;

kernel void unpack(const numbers s, global const uchar *bits, global const MEMORY(X) *basis,
                   global MEMORY(X) *y) {
    const long i = get_global_id(0);
    if (i >= s.channels * s.each) return;
    const long c = i / s.each, k = i % s.each;
    T sum = 0;
    for (int j = 0; j < BITS; j++) {
        const T v = LOAD(X, basis, s.basis + j * s.channels + c);
        const uchar byte = bits[s.bits + (j * s.channels + c) * s.bytes + k / 8];
        sum = ROUNDED(sum + (byte >> k % 8 & 1 ? v : -v));
    }
    STORE(X, y, s.y + i, sum);
}
#endif

#ifdef CELLS
typedef struct { long x, basis, to, channels, outer, inner, parts; } numbers;
FOLDER(fold, PLUS)

/* Of part `part` of a channel: how many numbers each level has, and their sums,
 * to[channel][part][2 LEVELS]. */
kernel void cells(const numbers s, global const MEMORY(X) *x, global const MEMORY(X) *basis,
                  global T *to) {
    TREE_OF_TEAM
    const long c = get_group_id(0) / s.parts, part = get_group_id(0) % s.parts;
    const long all = s.outer * s.inner;
    const long first = all * part / s.parts, last = all * (part + 1) / s.parts;
    uint code[LEVELS];
    T threshold[LEVELS], count[LEVELS], sum[LEVELS];
    levels_of(basis, s.basis + c, s.channels, code, threshold);
    for (int k = 0; k < LEVELS; k++) count[k] = sum[k] = 0;
    for (long e = first + MY_PART; e < last; e += G) {
        const long at_x = (e / s.inner * s.channels + c) * s.inner + e % s.inner;
        const T v = LOAD(X, x, s.x + at_x);
        const int at = find(threshold, v);
        for (int k = 0; k < LEVELS; k++) {
            count[k] += k == at ? 1 : 0;
            sum[k] += k == at ? v : 0;
        }
    }
    global T *mine = to + s.to + get_group_id(0) * 2 * LEVELS;
    for (int k = 0; k < LEVELS; k++) {
        const T n = fold(tree, count[k]), v = fold(tree, sum[k]);
        if (MY_PART == 0) {
            mine[k] = n;
            mine[LEVELS + k] = v;
        }
    }
}
#endif

#ifdef FIT
typedef struct { long basis, from, y, channels, parts; } numbers;

/* a x = b by Cholesky's factors, in their places. */
static inline void solve(T *a, T *b) {
    for (int i = 0; i < BITS; i++)
        for (int j = 0; j <= i; j++) {
            T s = a[i * BITS + j];
            for (int k = 0; k < j; k++) s -= a[i * BITS + k] * a[j * BITS + k];
            a[i * BITS + j] = i == j ? sqrt(s) : s / a[j * BITS + j];
        }
    for (int i = 0; i < BITS; i++) {
        for (int k = 0; k < i; k++) b[i] -= a[i * BITS + k] * b[k];
        b[i] /= a[i * BITS + i];
    }
    for (int i = BITS - 1; i >= 0; i--) {
        for (int k = i + 1; k < BITS; k++) b[i] -= a[k * BITS + i] * b[k];
        b[i] /= a[i * BITS + i];
    }
}

/* An item has a channel. */
kernel void fit(const numbers s, global const MEMORY(X) *basis, global const T *from,
                global MEMORY(X) *y) {
    const long c = get_global_id(0);
    const T ridge = 1e-4;
    uint code[LEVELS];
    T threshold[LEVELS], a[BITS * BITS], b[BITS];
    if (c >= s.channels) return;
    levels_of(basis, s.basis + c, s.channels, code, threshold);
    for (int i = 0; i < BITS; i++) {
        b[i] = ridge * LOAD(X, basis, s.basis + i * s.channels + c);
        for (int j = 0; j < BITS; j++) a[i * BITS + j] = i == j ? ridge : 0;
    }
    for (int k = 0; k < LEVELS; k++) {
        T count = 0, sum = 0;
        for (long part = 0; part < s.parts; part++) {
            global const T *of = from + s.from + (c * s.parts + part) * 2 * LEVELS;
            count += of[k];
            sum += of[LEVELS + k];
        }
        for (int i = 0; i < BITS; i++) {
            b[i] += digit(code[k], i) * sum;
            for (int j = 0; j < BITS; j++)
                a[i * BITS + j] += digit(code[k], i) * digit(code[k], j) * count;
        }
    }
    solve(a, b);
    for (int i = 0; i < BITS; i++) STORE(X, y, s.y + i * s.channels + c, b[i]);
}
#endif
