/* Weights as tiles for wgmma: see nvidia/conv/conv.h, part conv_pack.c.  A group of items makes a
 * unit: 16 rows, or some times that, of one block of channels, with all taps.  The weights of a
 * unit are runs of neighbours in memory, of one filter forward, of one channel of y for gradients;
 * they are brought to local memory as they lie, and leave it as chunks of 16 bytes.
 *
 *   MEM, LOAD(p, i)     elements of the weights as floats; LOAD4(p): four neighbours, which come in
 *                       one access
 *   HALF                elements of tiles have 16 bits: BITS(x) makes them
 *   PARTS               2: high and low parts
 *   STAGE               floats of local memory
 *   SOURCES             many weights at once: PARAMETERS are as many buffers x0, x1, ..., PICK(k)
 *                       makes x the one of number k */
#ifdef HALF
#define TILE ushort
#define CHUNK 8
typedef ushort8 chunk;
#else
#define TILE float
#define CHUNK 4
typedef float4 chunk;
#endif

/* One phase of one set of weights: fac_nv_pack of nvidia/unit/pack.h. */
typedef struct {
    long to, group;    /* elements of tiles; of the weights from group to group */
    int source, first; /* of many: which weights, and the units before */
    int line, window,
        flipped; /* of the weights: a filter, taps of one channel; rows are their channels */
    int rows, channels, row_tiles, k_tiles, taps;
    int tile_rows, term_bits, order, few;
    float larger; /* by this the weights are: FAC_NV_CUT, FAC_NV_LOST; 0: as they are */
    int staged, blocks, slabs, row_bits; /* units: of a row of tiles, of a tile; rows of one */
    int runs, run, multiplier, shift;    /* of a unit; the last two divide by a quarter of run */
    int number[3], first_tap[3], each[3],
        size[2]; /* taps of this phase among the weights' own, by dim */
    int within;  /* F(4 x 4, 3 x 3), U = G w G' (winograd.cl): groups of the weights; 0: as they are
                  */
    int spare;
} packing;

enum { PAD = 4, TAPS = 64, POINTS = 36, AT_ONCE = 5 };

/* Which of its k-tile's channels stands at position p: what the lanes of a warp hold of the other
 * operand (nv_common.cl). */
static int channel_at(int order, int p) {
    if (order == 0) return p;
    if (order == 2)
        return (p & ~31) + 8 * (p >> 1 & 3) + 4 * (p >> 4 & 1) + 2 * (p >> 3 & 1) + (p & 1);
#ifdef HALF
    return (p & ~15) + 4 * (p >> 1 & 3) + 2 * (p >> 3 & 1) + (p & 1);
#else
    return (p & ~15) + 4 * (p & 3) + 2 * (p >> 3 & 1) + (p >> 2 & 1);
#endif
}

/* Which of its tile's rows stands at position r, and where row q stands. */
static int row_at(int r) { return (r & ~15) + 4 * (r >> 1 & 3) + 2 * (r >> 3 & 1) + (r & 1); }
static int place_of(int q) { return (q & ~15) + 8 * (q >> 1 & 1) + 2 * (q >> 2 & 3) + (q & 1); }

static float to_tf32(float x) { return as_float((as_uint(x) + 0x1000u) & 0xffffe000u); }

/* Where a tap of this phase lies among the weights' own. */
static int tap_at(const packing *s, int tap) {
    const int n2 = max(s->number[2], 1), n1 = max(s->number[1], 1), c = tap % n2, b = tap / n2 % n1,
              a = tap / n2 / n1;
    return ((s->first_tap[0] + s->each[0] * a) * s->size[0] + s->first_tap[1] + s->each[1] * b) *
               s->size[1] +
           s->first_tap[2] + s->each[2] * c;
}

/* One chunk of row r of a tile.  Rows of 128 bytes: chunk ^ (row & 7); of 64: chunk ^ (row / 2 &
 * 3). */
static void put(global TILE *y, const packing *s, int r, int place, const float *x) {
    const int turn = 1 << s->term_bits == 8 * CHUNK ? r & 7 : r >> 1 & 3;
    y += (r << s->term_bits) + (place ^ turn) * CHUNK;
#ifdef HALF
    *(global chunk *)y = (chunk)(BITS(x[0]), BITS(x[1]), BITS(x[2]), BITS(x[3]), BITS(x[4]),
                                 BITS(x[5]), BITS(x[6]), BITS(x[7]));
#else
    const float a = s->larger * x[0], b = s->larger * x[1], c = s->larger * x[2],
                d = s->larger * x[3];
    const chunk high = s->larger != 0 ? (chunk)(to_tf32(a), to_tf32(b), to_tf32(c), to_tf32(d))
                                      : (chunk)(x[0], x[1], x[2], x[3]);
    *(global chunk *)y = high;
    if (PARTS == 2)
        *(global chunk *)(y + (s->tile_rows << s->term_bits)) =
            (chunk)(to_tf32(a - high.x), to_tf32(b - high.y), to_tf32(c - high.z),
                    to_tf32(d - high.w));
#endif
}

constant float to_points[6][3] = { { 1, 0, 0 },
                                   { -2 / 3.f, -0.47140452079103168f, -1 / 3.f },
                                   { -2 / 3.f, 0.47140452079103168f, -1 / 3.f },
                                   { 1 / 6.f, 0.23570226039551584f, 1 / 3.f },
                                   { 1 / 6.f, -0.23570226039551584f, 1 / 3.f },
                                   { 0, 0, 1 } };

static float point_of(local const float *w, int point, int flipped) {
    const int i = point / 6, j = point % 6;
    float sum = 0;
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            sum += to_points[i][a] * to_points[j][b] * w[flipped ? 8 - 3 * a - b : 3 * a + b];
    return sum;
}

/* The weights of a unit as they lie, from x on, to local memory: `there` runs of `long_as`
 * elements; what a unit has beyond them is zero.  All that an item brings is on its way before the
 * first comes; where there is nothing, something comes and is zero. */
static void bring(const packing *s, global const MEM *x, int there, int long_as,
                  local float *stage) {
    const int items = get_local_size(0), length = s->run, fours = length / 4, all = s->runs * fours;
    const bool whole =
        !((size_t)x &
          (4 * sizeof(MEM) - 1)); /* all runs begin at a multiple of four elements from here */
    for (int e = get_local_id(0); e < all; e += AT_ONCE * items) {
        float4 v[AT_ONCE];
        int at[AT_ONCE], to[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const int n = e + k * items, run = mul_hi((uint)n, (uint)s->multiplier) >> s->shift,
                      i = 4 * (n - run * fours);
            const bool inside = run < there && i < long_as;
            at[k] = inside ? run * s->line + i : 0;
            to[k] = run * (length + PAD) + i;
            to[k] = inside ? to[k] : ~to[k];
        }
        if (whole)
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) v[k] = LOAD4(x + at[k]);
        else
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
                v[k] = (float4)(LOAD(x + at[k], 0), LOAD(x + at[k], 1), LOAD(x + at[k], 2),
                                LOAD(x + at[k], 3));
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (e + k * items < all)
                *(local float4 *)(stage + max(to[k], ~to[k])) = to[k] < 0 ? (float4)0 : v[k];
    }
}

/* A unit whose weights fit the stage.  An item makes the same chunk of the same rows, tap after
 * tap; a group has a power of two of items. */
static void by_stage(const packing *s, global const MEM *x, global TILE *y, int row, int from_row,
                     int block, local float *stage, local int *place) {
    const int id = get_local_id(0), flipped = s->flipped, within = s->within;
    const int first = block << s->term_bits, rows = min(1 << s->row_bits, s->rows - row),
              channels = min(1 << s->term_bits, s->channels - first);
    /* a unit may lie after the last row: then what lies before is brought and becomes zero */
    const int from_here = max(min(row, s->rows - (flipped ? 4 : 1)), 0);
    /* weights are lines of windows: a line is a row, or flipped a channel */
    const int line = flipped ? first : from_here,
              window = flipped ? from_here : first;
    const int lines = flipped ? channels : rows,
              windows = flipped ? rows : channels;
    x += (long)line * s->line + window * s->window;
    for (int tap = id; tap < s->taps && !within; tap += (int)get_local_size(0))
        place[tap] = tap_at(s, tap);
    bring(s, x, lines, windows * s->window, stage);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int row_step = flipped ? s->window : s->run + PAD,
              channel_step = flipped ? s->run + PAD : s->window;
    const int chunk_bits = s->term_bits - (CHUNK == 8 ? 3 : 2), slab = 1 << s->row_bits;
    const int side = (int)get_local_size(0) >> chunk_bits,
              together = max(side >> s->row_bits, 1); /* rows, taps at once */
    const int c = id & ((1 << chunk_bits) - 1), mine = id >> chunk_bits,
              taps = within ? POINTS : s->taps;
    const long tile = (long)(PARTS * s->tile_rows) << s->term_bits,
               apart = within ? (long)within * s->row_tiles * s->k_tiles * tile : tile;
    y += (long)block * (within ? 1 : s->taps) * tile;
    /* Runs begin at multiples of four words, so items that all began with their first number would
     * meet in a quarter of the banks: of four neighbouring rows, or chunks where rows are
     * neighbours in memory, each begins with another number. */
    const int neighbour = flipped ? c >> 1 : mine;
    const int begins = CHUNK == 4 && !within ? neighbour & 3 : 0;
    const bool odd = begins & 1, far = begins & 2;
    int at[CHUNK];
#pragma unroll
    for (int k = 0; k < CHUNK; k++)
        at[k] = channel_at(s->order, c * CHUNK + (k + begins) % CHUNK) * channel_step;
    for (int q = mine & (slab - 1); q < slab; q += side) {
        local const float *from = stage + q * row_step;
        const int r = from_row + place_of(q);
        for (int tap = mine >> s->row_bits; tap < taps; tap += together) {
            local const float *w = from + (within ? 0 : place[tap]);
            float v[CHUNK];
            if (within)
                for (int k = 0; k < CHUNK; k++) v[k] = point_of(w + at[k], tap, flipped);
            else
                for (int k = 0; k < CHUNK; k++) v[k] = w[at[k]];
#if CHUNK == 4
            float4 x = (float4)(v[0], v[1], v[2], v[3]);
            x = odd ? x.wxyz : x;
            x = far ? x.zwxy : x;
            v[0] = x.x;
            v[1] = x.y;
            v[2] = x.z;
            v[3] = x.w;
#endif
            put(y + tap * apart, s, r, c, v);
        }
    }
}

/* 16 rows of one k-tile straight from where the weights lie: few channels, or large windows. */
static void by_element(const packing *s, global const MEM *x, global TILE *y, int row, int from_row,
                       int k) {
    const int chunk_bits = s->term_bits - (CHUNK == 8 ? 3 : 2), taps = max(s->taps, 1),
              block = k / taps << s->term_bits;
    const long row_step = s->flipped ? s->window : s->line,
               channel_step = s->flipped ? s->line : s->window;
    for (int e = get_local_id(0); e < 16 << chunk_bits; e += get_local_size(0)) {
        const int c = e & ((1 << chunk_bits) - 1), r = e >> chunk_bits, from = row + row_at(r);
        float v[CHUNK];
#pragma unroll
        for (int j = 0; j < CHUNK; j++) {
            const int p = channel_at(s->order, c * CHUNK + j), term = (k << s->term_bits) + p;
            const int tap = s->few ? term / 4 : k % taps,
                      channel = s->few ? term % 4 : block + p;
            const bool there = from < s->rows && channel < s->channels && tap < s->taps;
            v[j] = there ? LOAD(x, from * row_step + channel * channel_step + tap_at(s, tap)) : 0;
        }
        put(y + k * ((long)(PARTS * s->tile_rows) << s->term_bits), s, from_row + r, c, v);
    }
}

/* x, y: where the weights and this phase's tiles begin. */
static void make_unit(const packing *s, int unit, global const MEM *x, global TILE *y,
                      local float *stage, local int *place) {
    const int block = unit % s->blocks, t = unit / s->blocks, slab = t % s->slabs,
              tile = t / s->slabs;
    const int group = tile / s->row_tiles, from_row = slab << s->row_bits,
              row = tile % s->row_tiles * s->tile_rows + from_row;
    x += group * s->group;
    y += (long)tile * s->k_tiles * ((long)(PARTS * s->tile_rows) << s->term_bits);
    if (s->staged)
        by_stage(s, x, y, row, from_row, block, stage, place);
    else
        by_element(s, x, y, row, from_row, block);
}

#ifdef SOURCES
/* Places of the buffers.  The table holds all phases, and from word `units` on the phase of each
 * unit. */
typedef struct {
    long at[SOURCES], table, to, units;
} places;

kernel void packs(const places p PARAMETERS, global const int *restrict table,
                  global TILE *restrict y) {
    local float stage[STAGE] __attribute__((aligned(16)));
    local int place[TAPS];
    const int unit = get_group_id(0);
    table += p.table;
    const packing s = ((global const packing *)table)[table[p.units + unit]];
    global const MEM *x;
    PICK(s.source)
    make_unit(&s, unit - s.first, x, y + p.to + s.to, stage, place);
}
#else
kernel void pack(const packing s, const long at, global const MEM *restrict x,
                 global TILE *restrict y) {
    local float stage[STAGE] __attribute__((aligned(16)));
    local int place[TAPS];
    make_unit(&s, get_group_id(0), x + at, y + s.to, stage, place);
}
#endif
