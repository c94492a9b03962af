/* y = x / (1 - ratio) where the counter's noise keeps it, else 0: number i of a stream is word i % 2 of Philox block i / 2 (see
 * src/base/rng.c), bit for bit that of the host.  A number of 53 bits is at least `ratio` when it is at least `least`.
 * Options: those of elements.cl, V == 1; X; I: tag of the counter; MASK: the second output. */
typedef struct { long x, y, mask, counter, count, least, stream, factor; } numbers;

static inline ulong bits_of(ulong key, ulong stream, ulong i) {
    uint4 c = (uint4)((uint)(i / 2), (uint)(i / 2 >> 32), (uint)stream, (uint)(stream >> 32));
    uint2 k = (uint2)((uint)key, (uint)(key >> 32));
    for (int r = 0; r < 10; r++, k += (uint2)(0x9e3779b9u, 0xbb67ae85u)) {
        const uint p = mul_hi(0xd2511f53u, c.x), q = mul_hi(0xcd9e8d57u, c.z);
        c = (uint4)(q ^ c.y ^ k.x, 0xcd9e8d57u * c.z, p ^ c.w ^ k.y, 0xd2511f53u * c.x);
    }
    return i % 2 ? (ulong)c.w << 32 | c.z : (ulong)c.y << 32 | c.x;
}

kernel void dropout(const numbers s, global const MEMORY(X) *x, global MEMORY(X) *y, global uchar *mask,
                    global const MEMORY(I) *counter) {
    const long e = get_global_id(0);
    if (e >= s.count) return;
#ifdef TRAINING
    const bool keep = bits_of((ulong)counter[s.counter], (ulong)s.stream, (ulong)e) >> 11 >= (ulong)s.least;
#else
    const bool keep = true;
#endif
    STORE(X, y, s.y + e, keep ? LOAD(X, x, s.x + e) / REAL(s.factor) : 0);
#ifdef MASK
    mask[s.mask + e] = keep;
#endif
}
