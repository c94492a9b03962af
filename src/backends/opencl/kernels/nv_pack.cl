/* Weights as tiles for wgmma: see nvidia/conv.h, part conv_pack.c.  A group of items makes 16 rows of a tile, and others.
 *
 *   MEM, LOAD(p, i)     elements of the weights as floats
 *   ROWS, TERMS         of a tile
 *   HALF                elements of tiles have 16 bits: PUT16(p, i, x) writes them
 *   PARTS               2: high and low parts
 *   LARGER              by this the weights are: FAC_NV_CUT or 1
 *   ORDER               0: terms in order, 1: by fours, 2: by eights
 *   FEW                 terms are [tap][4 channels]
 *   POINTS              groups are points x groups of F(4 x 4, 3 x 3): U = G w G' (winograd.cl) */
typedef struct {
    long from, to;                      /* elements of the weights, of tiles */
    long group, row, channel;           /* steps of the weights */
    int rows, channels, groups, row_tiles, k_tiles, taps;
    int window[3], number[3], first[3], each[3];        /* the weights' own taps; those of this phase, by dim */
    int within, turned;                 /* groups of the weights; POINTS: taps count from the last */
} packing;

#ifdef HALF
#define TILE ushort
#define CHUNK 8
#else
#define TILE float
#define CHUNK 4
#endif

/* Which of its k-tile's channels stands at position p: what the lanes of a warp hold of the other operand (nv_common.cl). */
static int channel_at(int p) {
#if ORDER == 0
    return p;
#elif ORDER == 2
    return (p & ~31) + 8 * (p >> 1 & 3) + 4 * (p >> 4 & 1) + 2 * (p >> 3 & 1) + (p & 1);
#elif defined(HALF)
    return (p & ~15) + 4 * (p >> 1 & 3) + 2 * (p >> 3 & 1) + (p & 1);
#else
    return (p & ~15) + 4 * (p & 3) + 2 * (p >> 3 & 1) + (p >> 2 & 1);
#endif
}

/* Which of its tile's rows stands at position r. */
static int row_at(int r) {
    return (r & ~15) + 4 * (r >> 1 & 3) + 2 * (r >> 3 & 1) + (r & 1);
}

static float to_tf32(float x) { return as_float((as_uint(x) + 0x1000u) & 0xffffe000u); }

/* Where a tap of this phase lies among the weights' own. */
static int tap_at(const packing *s, int tap) {
    const int n2 = max(s->number[2], 1), n1 = max(s->number[1], 1), c = tap % n2, b = tap / n2 % n1, a = tap / n2 / n1;
    return ((s->first[0] + s->each[0] * a) * s->window[1] + s->first[1] + s->each[1] * b) * s->window[2] + s->first[2] +
        s->each[2] * c;
}

#ifdef POINTS
constant float to_points[6][3] = { { 1, 0, 0 },
    { -2 / 3.f, -0.47140452079103168f, -1 / 3.f }, { -2 / 3.f, 0.47140452079103168f, -1 / 3.f },
    { 1 / 6.f, 0.23570226039551584f, 1 / 3.f }, { 1 / 6.f, -0.23570226039551584f, 1 / 3.f }, { 0, 0, 1 } };

static float weight_at(const packing *s, global const MEM *from, int group, int row, int channel) {
    const int point = group / s->within, i = point / 6, j = point % 6;
    const long at = s->from + group % s->within * s->group + row * s->row + channel * s->channel;
    float sum = 0;
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            const int tap = 3 * a + b;
            sum += to_points[i][a] * to_points[j][b] * LOAD(from, at + (s->turned ? 8 - tap : tap));
        }
    return sum;
}
#endif

kernel void pack(const packing s, global const MEM *restrict from, global TILE *restrict to) {
    const int all = s.groups * s.row_tiles * s.k_tiles * (ROWS / 16);
    for (int unit = get_group_id(0); unit < all; unit += get_num_groups(0)) {
        const int tile = unit / (ROWS / 16), from_row = unit % (ROWS / 16) * 16;
        const int k = tile % s.k_tiles, t = tile / s.k_tiles, group = t / s.row_tiles, first = t % s.row_tiles * ROWS;
#ifndef FEW
        const int tap = s.taps ? k % s.taps : 0, block = (s.taps ? k / s.taps : 0) * TERMS, at = tap_at(&s, tap);
#endif
        global TILE *y = to + s.to + (long)tile * (PARTS * ROWS * TERMS);
        for (int e = get_local_id(0); e < 16 * TERMS; e += get_local_size(0)) {
            const int r = from_row + e / TERMS, p = e % TERMS, row = first + row_at(r);
#ifdef FEW
            const int term = k * TERMS + channel_at(p), tap = term / 4, channel = term % 4, at = tap_at(&s, tap);
#else
            const int channel = block + channel_at(p);
#endif
            float x = 0;
            if (row < s.rows && channel < s.channels && tap < s.taps) {
#ifdef POINTS
                x = weight_at(&s, from, group, row, channel);
#else
                x = LOAD(from, s.from + group * s.group + row * s.row + channel * s.channel + at);
#endif
            }
            /* rows of 128 bytes: chunk ^ (row & 7); of 64: chunk ^ (row / 2 & 3) */
            const int turn = TERMS == 8 * CHUNK ? r & 7 : r >> 1 & 3;
            const int place = r * TERMS + ((p / CHUNK ^ turn) * CHUNK) + p % CHUNK;
#ifdef HALF
            PUT16(y, place, x);
#else
            const float high = to_tf32(LARGER * x);
            y[place] = high;
            if (PARTS == 2) y[ROWS * TERMS + place] = to_tf32(LARGER * x - high);
#endif
        }
    }
}
