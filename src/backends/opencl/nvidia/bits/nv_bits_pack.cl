/* Weights as tiles of nv_bits.cl, once:
 *   tiles    planes of bits as pack_basis has them -> words of 32 channels, as a k-tile of a tile
 *            of columns lies in local memory: [group, tile][k-tile][column][word]
 *   inside   of pixels of +-1: [taps that lie inside][plane][channel] the sum of their weights
 */
typedef struct {
    long bits, to;
    long units, bytes, K, groups, C, taps, R, S, words, k_tiles, group_tiles, inside;
} packing;
#define PACKING const packing s, global const uchar *bits, global uint *to
#define WORD_BITS 32

/* Where a word of a tile lies: its k-tile's first one is `tile`. */
static size_t place_of(size_t tile, int column, int word) {
    return (tile * BN + column) * (ROW / 4) + ((word >> 2) ^ TURN(column)) * 4 + (word & 3);
}

kernel void tiles(PACKING) {
    const size_t unit = get_global_id(0);
    if (unit >= (size_t)s.units) return;
    const int word = (int)(unit % (ROW / 4)), n = (int)(unit / (ROW / 4) % BN);
    const size_t tile = unit / (ROW / 4 * BN), column = tile / (size_t)s.k_tiles;
    const int flat = (int)(tile % (size_t)s.k_tiles) * (ROW / 4) + word;
    const int tap = flat / (int)s.words, taps = (int)s.taps;
    const int group = (int)(column / (size_t)s.group_tiles);
    const int block = n / 8, channel = (int)(column % (size_t)s.group_tiles) * CHANNELS +
                                       block / OF_WEIGHTS * 8 + n % 8;
    uint sum = 0;
    if (tap < taps && channel < (int)s.K) {
        const size_t row =
            (size_t)(block % OF_WEIGHTS) * (size_t)(s.K * s.groups) + group * (int)s.K + channel;
        global const uchar *from = bits + s.bits + row * (size_t)s.bytes;
        const int first = flat % (int)s.words * WORD_BITS;
        for (int c = 0; c < WORD_BITS && first + c < (int)s.C; c++) {
            const int k = (first + c) * taps + tap;
            sum |= (uint)(from[k / 8] >> k % 8 & 1) << c;
        }
    }
    to[s.to + place_of(tile, n, word)] = sum;
}

kernel void inside(PACKING) {
    const size_t unit = get_global_id(0);
    if (unit >= (size_t)s.units) return;
    const int all = (int)(s.K * s.groups), R = (int)s.R, S = (int)s.S, words = (int)s.words;
    const int of = (int)(unit % all), m = (int)(unit / all % OF_WEIGHTS);
    const int kind = (int)(unit / all / OF_WEIGHTS), down = kind / ((S + 1) * (S + 1)),
              across = kind % ((S + 1) * (S + 1));
    const int channel = of % (int)s.K, in = channel % CHANNELS;
    const int n = (in / 8 * OF_WEIGHTS + m) * 8 + in % 8;
    const size_t column = (size_t)(of / (int)s.K) * (size_t)s.group_tiles + channel / CHANNELS;
    int sum = 0;
    for (int r = down / (R + 1); r < down % (R + 1); r++)
        for (int t = across / (S + 1); t < across % (S + 1); t++) {
            for (int c = 0; c < words; c++) {
                const int flat = (r * S + t) * words + c;
                const size_t tile = column * (size_t)s.k_tiles + flat / (ROW / 4);
                sum += 2 * (int)popcount(to[s.to + place_of(tile, n, flat % (ROW / 4))]);
            }
            sum -= (int)s.C;
        }
    to[s.to + s.inside / 4 + unit] = (uint)sum;
}
