/* Number i of a stream is word i % 2 of Philox block i / 2, as src/base/rng.c says: an item makes
 * one block. Options: I, tag of the counter. */
typedef struct {
    long counter, y, count, stream;
} numbers;

kernel void random_bits(const numbers s, global const MEMORY(I) * counter, global ulong *y) {
    const ulong block = get_global_id(0), key = (ulong)(long)counter[s.counter];
    const long at = (long)block * 2;
    uint a = (uint)block, b = (uint)(block >> 32), c = (uint)s.stream,
         d = (uint)((ulong)s.stream >> 32);
    uint k = (uint)key, l = (uint)(key >> 32);
    if (at >= s.count) return;
    for (int r = 0; r < 10; r++, k += 0x9e3779b9u, l += 0xbb67ae85u) {
        const ulong p = (ulong)a * 0xd2511f53u, q = (ulong)c * 0xcd9e8d57u;
        a = (uint)(q >> 32) ^ b ^ k;
        c = (uint)(p >> 32) ^ d ^ l;
        b = (uint)q;
        d = (uint)p;
    }
    y += s.y + at;
    y[0] = (ulong)b << 32 | a;
    if (at + 1 < s.count) y[1] = (ulong)d << 32 | c;
}
