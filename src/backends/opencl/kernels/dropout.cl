/* y = x / (1 - ratio) where the counter's noise keeps it, else 0: number i of a stream is word i % 2 of Philox block i / 2 (see
 * src/base/rng.c), bit for bit that of the host.  Its upper 53 bits are at least `ratio` when all 64 are more than
 * `below`.
 * Options: those of elements.cl; X; I: tag of the counter; MASK: the second output; AHEAD: accesses of an item. */
typedef struct { long x, y, mask, counter, count, below, stream, factor; } numbers;

/* Numbers 2 i and 2 i + 1.  Both halves of a product come from one instruction. */
static inline ulong2 bits_of(ulong key, ulong stream, ulong i) {
    uint a = (uint)i, b = (uint)(i >> 32), c = (uint)stream, d = (uint)(stream >> 32), k = (uint)key, l = (uint)(key >> 32);
#pragma unroll
    for (int r = 0; r < 10; r++, k += 0x9e3779b9u, l += 0xbb67ae85u) {
        const ulong p = (ulong)0xd2511f53u * a, q = (ulong)0xcd9e8d57u * c;
        a = (uint)(q >> 32) ^ b ^ k, b = (uint)q, c = (uint)(p >> 32) ^ d ^ l, d = (uint)p;
    }
    return (ulong2)((ulong)b << 32 | a, (ulong)d << 32 | c);
}

LOADER(load_x, X)
STORER(store_y, X)

/* V elements from number e on, and which of them are kept. */
static inline TV kept(const numbers s, TV v, ulong key, long e, bool *keep) {
    lanes r = { .v = v };
#ifdef NOISE
    const ulong below = (ulong)s.below;
#pragma unroll
    for (int l = 0; l < V; l += 2) {
        const ulong2 bits = bits_of(key, (ulong)s.stream, (ulong)(e + l) / 2);
#if V > 1
        keep[l] = bits.x > below, keep[l + 1] = bits.y > below;
#else
        keep[l] = (e % 2 ? bits.y : bits.x) > below;
#endif
    }
#pragma unroll
    for (int l = 0; l < V; l++) r.lane[l] = keep[l] ? r.lane[l] * REAL(s.factor) : 0;
#else
    for (int l = 0; l < V; l++) keep[l] = true;
#endif
    return r.v;
}

kernel void dropout(const numbers s, global const MEMORY(X) *x, global MEMORY(X) *y, global uchar *mask,
                    global const MEMORY(I) *counter) {
    const long side = (long)get_local_size(0) * V, first = (long)get_group_id(0) * side * AHEAD + (long)get_local_id(0) * V;
    TV v[AHEAD];
    bool keep[AHEAD][V];
#pragma unroll
    for (int k = 0; k < AHEAD; k++) v[k] = load_x(x + s.x + min(first + k * side, (long)s.count - V), V, 0);
#ifdef NOISE
    const ulong key = (ulong)counter[s.counter];
#else
    const ulong key = 0;
#endif
#pragma unroll
    for (int k = 0; k < AHEAD; k++) v[k] = kept(s, v[k], key, first + k * side, keep[k]);
#pragma unroll
    for (int k = 0; k < AHEAD; k++) {
        const long e = first + k * side;
        if (e >= s.count) return;
        store_y(y + s.y + e, V, v[k]);
#ifdef MASK
        for (int l = 0; l < V; l++) mask[s.mask + e + l] = keep[k][l];
#endif
    }
}
