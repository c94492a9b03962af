/* The product itself: see nv_bits.cl. */
#define UNITS (ROW / 4 / G)  /* copies of a row */
#define DOWN (ITEMS / UNITS) /* rows between two that an item copies */
#define PASSES (BM / DOWN)
#define A_BYTES (BM * ROW)
#define B_BYTES (BN * ROW)
#define ROOM (A_BYTES + B_BYTES)
#define OUTSIDE (-32768) /* of any image */
#define WORDS_OF(s) ((int)((s)->words * (s)->groups)) /* a pixel */

/* A row's first tap: its word, and its place in the image. */
typedef struct {
    int at, y, x;
} sight;
INLINE sight sight_of(const numbers *s, int tile, int row) {
    const int block = row / ROWS_M;
    const int pixel = tile * PIXELS + block / PLANES * ROWS_M + row % ROWS_M;
    const int Q = (int)s->Q, P = (int)s->P, W = (int)s->W, H = (int)s->H;
    if (pixel >= (int)s->pixels) return (sight){ 0, OUTSIDE, 0 };
    const int q = pixel % Q, p = pixel / Q % P, image = pixel / Q / P;
    const int y = p * (int)s->stride_h - (int)s->pad_h, x = q * (int)s->stride_w - (int)s->pad_w;
    const int at = ((block % PLANES * (int)s->images + image) * H + y) * W + x;
    return (sight){ at * WORDS_OF(s), y, x };
}

/* The words of an item in the k-tile that is copied next. */
typedef struct {
    int tap, word;
} next_words;

INLINE void copy_pixels(PLACE to, const numbers *s, const next_words *k, const sight *v,
                        global const uint *x) {
    const int S = (int)s->S, r = k->tap / S;
    const int far = r * (int)s->dilation_h, across = (k->tap - r * S) * (int)s->dilation_w;
    const int down = k->tap < (int)s->taps ? far : OUTSIDE;
    const int at = (far * (int)s->W + across) * WORDS_OF(s) + k->word;
    UNROLL
    for (int i = 0; i < PASSES; i++) {
        const bool there =
            (uint)(v[i].y + down) < (uint)s->H && (uint)(v[i].x + across) < (uint)s->W;
        copy_words(to + i * (DOWN * ROW), x + (there ? v[i].at + at : 0), there);
    }
}
INLINE void move_on(const numbers *s, next_words *k) {
    k->word += ROW / 4;
    while (k->word >= (int)s->words) {
        k->word -= (int)s->words;
        k->tap++;
    }
}
INLINE void copy_weights(PLACE to, global const uchar *from, int item) {
    UNROLL
    for (int i = 0; i < B_BYTES; i += ITEMS * 16)
        if (B_BYTES % (ITEMS * 16) == 0 || i + item * 16 < B_BYTES)
            COPY_16(to + i + item * 16, from + i + item * 16);
}

/* Bits of a row, or of a part of it where there are more items than rows. */
#define EACH ((BM * PARTS + ITEMS - 1) / ITEMS) /* of an item */
INLINE void count_rows(int *count, PLACE at, int item) {
    UNROLL
    for (int i = 0; i < EACH; i++) {
        const int row = item / PARTS + i * ITEMS, first = item % PARTS * (ROW / 16 / PARTS);
        if (row >= BM) continue;
        UNROLL
        for (int c = first; c < first + ROW / 16 / PARTS; c++) {
            uint v[4];
            READ_4(v, at + row * ROW + ((c ^ TURN(row)) << 4));
            count[i] += (int)(popcount(v[0]) + popcount(v[1]) + popcount(v[2]) + popcount(v[3]));
        }
    }
}

kernel GROUP(ITEMS) void product(OPERANDS) {
    local uchar tiles[STAGES * ROOM] __attribute__((aligned(1024)));
    local int counts[BM * PARTS];
    local uint room[ITEMS];
    local levels_of levels;
    const int item = (int)get_local_id(0), unit = (int)get_group_id(0), n = (int)s.k_tiles;
    const int columns = (int)(s.group_tiles * s.groups), column = unit % columns,
              tile = unit / columns;
    sight v[PASSES];
    UNROLL
    for (int i = 0; i < PASSES; i++) v[i] = sight_of(&s, tile, item / UNITS + i * DOWN);
    const int row = item / UNITS, first = item % UNITS * G; /* word of a row */
    const int to = row * ROW + (((first >> 2) ^ TURN(row)) << 4) + (first & 3) * 4;
    next_words k = { first / (int)s.words, first % (int)s.words };
    global const uint *from = X_WORDS + column / (int)s.group_tiles * (int)s.words;
    global const uchar *weights = w + s.w + (size_t)column * (size_t)n * B_BYTES;
    const PLACE at = PLACE_OF(tiles);
    SUMS;
    UNROLL
    for (int m = 0; m < MS; m++) UNROLL
    for (int q = 0; q < NS; q++) UNROLL
    for (int e = 0; e < 4; e++) sum[m][q][e] = 0;
    int count[EACH];
    UNROLL
    for (int i = 0; i < EACH; i++) count[i] = 0;
    if (item == 0) SET_LEVELS(&levels);
#define FETCH(stage)                                                                               \
    do {                                                                                           \
        copy_pixels(at + (stage)*ROOM + to, &s, &k, v, from);                                    \
        copy_weights(at + (stage)*ROOM + A_BYTES, weights, item);                                \
        move_on(&s, &k);                                                                           \
        weights += B_BYTES;                                                                        \
    } while (0)
    for (int i = 0; i < AHEAD; i++) {
        if (i < n) FETCH(i);
        COPIES_END();
    }
    int stage = 0, next = AHEAD;
    for (int i = 0; i < n; i++) {
        COPIES_WAIT();
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i + AHEAD < n) FETCH(next);
        COPIES_END();
        multiply(sum, at + stage * ROOM, at + stage * ROOM + A_BYTES, item);
        count_rows(count, at + stage * ROOM, item);
        MULTIPLIED(sum);
        if (++stage == STAGES) stage = 0;
        if (++next == STAGES) next = 0;
    }
    ALL_MULTIPLIED(sum);
    UNROLL
    for (int i = 0; i < EACH; i++)
        if (item / PARTS + i * ITEMS < BM) counts[item + i * ITEMS] = count[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    finish(&s, sum, counts, room, &levels, tile, column, item, w, ENDS_GIVEN, RESULTS_GIVEN);
}
