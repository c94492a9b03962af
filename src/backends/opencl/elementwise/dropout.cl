/* y = x / (1 - ratio) where the counter's noise keeps it, else 0: number i of a stream is word i %
 * 2 of Philox block i / 2 (see src/base/rng.c), bit for bit that of the host.  Its upper 53 bits
 * are at least `ratio` when all 64 are more than `below`.
 * Options: those of elements.cl; X; I: tag of the counter; MASK: the second output; AHEAD: accesses
 * of an item; UPPER: the lower half of `below` is all ones, so that the upper halves decide. */
typedef struct {
    long x, y, mask, counter, count, below, stream, factor;
} numbers;

LOADER(load_x, X)
STORER(store_y, X)

#ifdef NOISE
/* Both halves of a product from one instruction: compilers would make two. */
#ifdef FAC_NV_BF16
static inline ulong product(uint a, uint b) {
    ulong p;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(p) : "r"(a), "r"(b));
    return p;
}
#else
#define product(a, b) ((ulong)(a) * (b))
#endif
#define ROUND(a, b, c, d)                                                                          \
    {                                                                                              \
        const ulong p = product(a, 0xd2511f53u), q = product(c, 0xcd9e8d57u);                      \
        a = (uint)(q >> 32) ^ b ^ k; \
        b = (uint)q; \
        c = (uint)(p >> 32) ^ d ^ l; \
        d = (uint)p; \
    }

#ifdef UPPER
#define KEEPS(lower, upper) ((upper) > (uint)(below >> 32))
#else
#define KEEPS(lower, upper) (((ulong)(upper) << 32 | (lower)) > below)
#endif

/* The counter of an element's block. */
#ifdef WIDE
#define LOWER_OF(e) (uint)((e) >> 1)
#define UPPER_OF(e) (uint)((e) >> 33)
#else
#define LOWER_OF(e) ((uint)(e) / 2)
#define UPPER_OF(e) 0
#endif

/* Which of the elements first + n side + l are kept. */
#if V > 1
enum {
    BLOCKS = V / 2
}; /* of an access; all go through a round together, so that its keys are made once */
static inline void draw(const numbers s, ulong key, pos first, pos side, bool keep[AHEAD][V]) {
    const ulong stream = (ulong)s.stream, below = (ulong)s.below;
    uint a[AHEAD][BLOCKS], b[AHEAD][BLOCKS], c[AHEAD][BLOCKS], d[AHEAD][BLOCKS],
        k = (uint)key, l = (uint)(key >> 32);
#pragma unroll
    for (int n = 0; n < AHEAD; n++)
#pragma unroll
        for (int m = 0; m < BLOCKS; m++) {
            const pos e = first + n * side + 2 * m;
            a[n][m] = LOWER_OF(e);
            b[n][m] = UPPER_OF(e);
            c[n][m] = (uint)stream;
            d[n][m] = (uint)(stream >> 32);
        }
#pragma unroll
    for (int r = 0; r < 10; r++, k += 0x9e3779b9u, l += 0xbb67ae85u)
#pragma unroll
        for (int n = 0; n < AHEAD; n++)
#pragma unroll
            for (int m = 0; m < BLOCKS; m++) ROUND(a[n][m], b[n][m], c[n][m], d[n][m])
#pragma unroll
    for (int n = 0; n < AHEAD; n++)
#pragma unroll
        for (int m = 0; m < BLOCKS; m++) {
            keep[n][2 * m] = KEEPS(a[n][m], b[n][m]);
            keep[n][2 * m + 1] = KEEPS(c[n][m], d[n][m]);
        }
}
#else
static inline void draw(const numbers s, ulong key, pos first, pos side, bool keep[AHEAD][V]) {
    const ulong stream = (ulong)s.stream, below = (ulong)s.below;
#pragma unroll
    for (int n = 0; n < AHEAD; n++) {
        const pos e = first + n * side;
        uint a = LOWER_OF(e), b = UPPER_OF(e), c = (uint)stream, d = (uint)(stream >> 32),
             k = (uint)key, l = (uint)(key >> 32);
#pragma unroll
        for (int r = 0; r < 10; r++, k += 0x9e3779b9u, l += 0xbb67ae85u) ROUND(a, b, c, d)
        keep[n][0] = e % 2 ? KEEPS(c, d) : KEEPS(a, b);
    }
}
#endif
#endif

#ifdef MASK
/* V bytes in one access. */
static inline void store_mask(global uchar *to, const bool *keep) {
#if V > 1
    union {
        VECTOR(uchar) v;
        uchar lane[V];
    } r;
    for (int l = 0; l < V; l++) r.lane[l] = keep[l];
    *(global VECTOR(uchar) *)to = r.v;
#else
    to[0] = keep[0];
#endif
}
#endif

kernel void dropout(const numbers s, global const MEMORY(X) * x, global MEMORY(X) * y,
                    global uchar *mask, global const MEMORY(I) * counter) {
    const pos side = (pos)get_local_size(0) * V,
              first = (pos)get_group_id(0) * side * AHEAD + (pos)get_local_id(0) * V;
    const pos count = (pos)s.count;
    TV v[AHEAD];
    bool keep[AHEAD][V];
    x += s.x;
    y += s.y;
    mask += s.mask;
#pragma unroll
    for (int n = 0; n < AHEAD; n++) v[n] = load_x(x + min(first + n * side, count - V), V, 0);
#ifdef NOISE
    draw(s, (ulong)counter[s.counter], first, side, keep);
#else
    for (int n = 0; n < AHEAD; n++)
        for (int l = 0; l < V; l++) keep[n][l] = true;
#endif
#pragma unroll
    for (int n = 0; n < AHEAD; n++) {
        const pos e = first + n * side;
        lanes r = { .v = v[n] };
        if (e >= count) return;
#ifdef NOISE
#pragma unroll
        for (int l = 0; l < V; l++) r.lane[l] = keep[n][l] ? r.lane[l] * REAL(s.factor) : 0;
#endif
        store_y(y + e, V, r.v);
#ifdef MASK
        store_mask(mask + e, keep[n]);
#endif
    }
}
