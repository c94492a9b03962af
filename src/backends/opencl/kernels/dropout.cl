/* y = x / (1 - ratio) where the counter's noise keeps it, else 0: number i of a stream is word i % 2 of Philox block i / 2 (see
 * src/base/rng.c), bit for bit that of the host.  A number of 53 bits is at least `ratio` when it is at least `least`.
 * Options: those of elements.cl; X; I: tag of the counter; MASK: the second output. */
typedef struct { long x, y, mask, counter, count, least, stream, factor; } numbers;

/* Numbers 2 i and 2 i + 1. */
static inline ulong2 bits_of(ulong key, ulong stream, ulong i) {
    uint4 c = (uint4)((uint)i, (uint)(i >> 32), (uint)stream, (uint)(stream >> 32));
    uint2 k = (uint2)((uint)key, (uint)(key >> 32));
    for (int r = 0; r < 10; r++, k += (uint2)(0x9e3779b9u, 0xbb67ae85u)) {
        const uint p = mul_hi(0xd2511f53u, c.x), q = mul_hi(0xcd9e8d57u, c.z);
        c = (uint4)(q ^ c.y ^ k.x, 0xcd9e8d57u * c.z, p ^ c.w ^ k.y, 0xd2511f53u * c.x);
    }
    return (ulong2)((ulong)c.y << 32 | c.x, (ulong)c.w << 32 | c.z);
}

LOADER(load_x, X)
STORER(store_y, X)

kernel void dropout(const numbers s, global const MEMORY(X) *x, global MEMORY(X) *y, global uchar *mask,
                    global const MEMORY(I) *counter) {
    const long e = (long)get_global_id(0) * V;
    if (e >= s.count) return;
    lanes r = { .v = load_x(x + s.x + e, V, 0) };
    bool keep[V];
    for (int l = 0; l < V; l++) keep[l] = true;
#ifdef TRAINING
    for (int l = 0; l < V; l += 2) {
        const ulong2 bits = bits_of((ulong)counter[s.counter], (ulong)s.stream, (ulong)(e + l) / 2) >> 11;
#if V > 1
        keep[l] = bits.x >= (ulong)s.least, keep[l + 1] = bits.y >= (ulong)s.least;
#else
        keep[l] = (e % 2 ? bits.y : bits.x) >= (ulong)s.least;
#endif
    }
#endif
    for (int l = 0; l < V; l++) r.lane[l] = keep[l] ? r.lane[l] / REAL(s.factor) : 0;
    store_y(y + s.y + e, V, r.v);
#ifdef MASK
    for (int l = 0; l < V; l++) mask[s.mask + e + l] = keep[l];
#endif
}
