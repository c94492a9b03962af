/* The end of nv_bits_product.cl: sums of bits become results, in the lane that has them.
 *
 *   d = 2 (bits set in both) - (bits set in the pixel's window), of planes m and j; of SIGNS twice
 *       that, less the sum of the weights that lie inside of the image
 *   y = sum over m of w_basis[m] sum over j of x_basis[j] d, scale, b; and what codes do with it
 *
 * A lane has columns 2 t, 2 t + 1 of each block of 8, rows g and g + 8 of each 16. */
#define PIXEL_BLOCKS (MS / PLANES)
#define CHANNEL_BLOCKS (NS / OF_WEIGHTS)
#define TOGETHER (CHANNEL_BLOCKS < 4 ? CHANNEL_BLOCKS : 4) /* blocks of a word, or of half of one */
#define SPOTS (2 * PIXEL_BLOCKS)

typedef struct {
#ifdef CODES
    float threshold[16];
    ulong codes; /* four bits each, by level */
#else
    int none;
#endif
} levels_of;
#if defined CODES && !defined Y_SIGNS
INLINE void set_all(local levels_of *to, global const float *v) {
    levels l;
    ulong codes = 0;
    set_levels(&l, v, Y_PLANES);
    for (int k = 0; k < 1 << Y_PLANES; k++) {
        codes |= (ulong)l.code[k] << 4 * k;
        to->threshold[k] = l.threshold[k];
    }
    to->codes = codes;
}
#define SET_LEVELS(to) set_all(to, y_basis + s.y_basis)
#else
#define SET_LEVELS(to)
#endif
/* Of one plane: all bits where the code of the lower level is 1. */
#if Y_PLANES == 1 && !defined Y_SIGNS
#define FLIPPED (0u - ((uint)levels->codes & 1))
#else
#define FLIPPED 0u
#endif

/* Where a lane's pixel of a block lies. */
typedef struct {
    int pixel, set[PLANES]; /* bits that are set in its window */
#if defined Y || defined Z || !defined CODES
    long at; /* of channel 0 of y */
#endif
#ifdef SIGNS
    int kind; /* which taps lie inside */
#endif
} spot;

/* Taps of an axis that lie inside of n, as a number. */
INLINE int inside_of(int first, int taps, int dilation, int n) {
    const int from = first < 0 ? (-first + dilation - 1) / dilation : 0;
    const int to = first < n ? min(taps, (n - first + dilation - 1) / dilation) : 0;
    return from < to ? from * (taps + 1) + to : 0;
}

INLINE void look(spot *at, const numbers *s, local const int *counts, int tile, int row) {
    const int block = row / ROWS_M;
    const int pixel = tile * PIXELS + block / PLANES * ROWS_M + row % ROWS_M;
    at->pixel = pixel;
    UNROLL
    for (int j = 0; j < PLANES; j++) {
        at->set[j] = 0;
        UNROLL
        for (int k = 0; k < PARTS; k++) at->set[j] += counts[(row + j * ROWS_M) * PARTS + k];
    }
#if defined Y || defined Z || !defined CODES
    const int plane = (int)(s->P * s->Q);
    at->at = (long)(pixel / plane) * (s->K * s->groups) * plane + pixel % plane;
#endif
#ifdef SIGNS
    const int Q = (int)s->Q, P = (int)s->P, S = (int)s->S, R = (int)s->R;
    const int q = pixel % Q, p = pixel / Q % P;
    const int down = inside_of(p * (int)s->stride_h - (int)s->pad_h, R, (int)s->dilation_h,
                               (int)s->H);
    const int across = inside_of(q * (int)s->stride_w - (int)s->pad_w, S, (int)s->dilation_w,
                                 (int)s->W);
    at->kind = down && across ? down * ((S + 1) * (S + 1)) + across : 0;
#endif
}

/* What the results of a channel have in common. */
typedef struct {
#ifdef LIMITS
    int invert, limit[1 << Y_PLANES];
#else
    float factor[OF_WEIGHTS];
    float scale, b;
#endif
} channel_of;

/* Of two channels side by side, which PAIRS reads at once; those after the last one do not
 * matter. */
#ifdef PAIRS
#define READ_PAIR(type, to_0, to_1, from)                                                          \
    do {                                                                                           \
        const type##2 pair = *(global const type##2 *)((from) + min(c, K - 2));                    \
        to_0 = pair.x;                                                                             \
        to_1 = pair.y;                                                                             \
    } while (0)
#else
#define READ_PAIR(type, to_0, to_1, from)                                                          \
    do {                                                                                           \
        to_0 = (from)[min(c, K - 1)];                                                              \
        to_1 = (from)[min(c + 1, K - 1)];                                                          \
    } while (0)
#endif
INLINE void look_up(channel_of *of, const numbers *s, int group, int c, ENDS) {
    const int K = (int)s->K, all = K * (int)s->groups, before = group * K;
#ifdef LIMITS
    READ_PAIR(int, of[0].invert, of[1].invert, limits + s->limits + before);
    UNROLL
    for (int k = 1; k < 1 << Y_PLANES; k++)
        READ_PAIR(int, of[0].limit[k], of[1].limit[k], limits + s->limits + (k * all + before));
#else
    UNROLL
    for (int m = 0; m < OF_WEIGHTS; m++)
        READ_PAIR(float, of[0].factor[m], of[1].factor[m],
                  w_basis + s->w_basis + (m * all + before));
#ifdef HAS_SCALE
    READ_PAIR(float, of[0].scale, of[1].scale, scale + s->scale + before);
#endif
#ifdef HAS_B
    READ_PAIR(float, of[0].b, of[1].b, b + s->b + before);
#endif
#endif
}

/* Bits of a word's channels that are there, beginning with `first` of K. */
INLINE uint valid_of(int first, int K) {
    const int left = K - first;
    if (left >= 32) return ~0u;
    return left > 0 ? (1u << left) - 1u : 0u;
}

INLINE void finish(const numbers *s, SUMS, local const int *counts, local uint *room,
                   local const levels_of *levels, int tile, int column, int item,
                   global const uchar *w, ENDS, RESULTS) {
    const int t = item & 3, K = (int)s->K, all = (int)(s->K * s->groups);
    const int first_row = ROW_OF(item), group = column / (int)s->group_tiles;
    const int first =
        column % (int)s->group_tiles * CHANNELS + COLUMN_OF(item) / OF_WEIGHTS; /* channel */
    spot at[SPOTS];
    UNROLL
    for (int i = 0; i < SPOTS; i++)
        look(&at[i], s, counts, tile, first_row + i / 2 * (PLANES * ROWS_M) + i % 2 * 8);
#ifdef SIGNS
    global const int *inside = (global const int *)(w + s->w + s->inside);
#endif
#if defined CODES && !defined LIMITS && !defined Y_SIGNS
    float threshold[(1 << Y_PLANES) - 1];
    UNROLL
    for (int k = 0; k + 1 < 1 << Y_PLANES; k++) threshold[k] = levels->threshold[k];
#endif
#ifndef LIMITS
    float u[PLANES];
    UNROLL
    for (int j = 0; j < PLANES; j++)
#ifdef SIGNS
        u[j] = 1;
#else
        u[j] = x_basis[s->x_basis + j];
#endif
#endif
    UNROLL
    for (int c0 = 0; c0 < CHANNEL_BLOCKS; c0 += TOGETHER) {
#ifdef CODES
        uint bits[SPOTS][Y_PLANES];
        UNROLL
        for (int i = 0; i < SPOTS; i++) UNROLL
        for (int j = 0; j < Y_PLANES; j++) bits[i][j] = 0;
#endif
        channel_of pair[2];
        UNROLL
        for (int k = 0; k < 2 * TOGETHER; k++) {
            const int block = c0 + k / 2, e = k % 2, c = first + 8 * block + 2 * t + e;
            const channel_of *of = &pair[e];
            if (e == 0) look_up(pair, s, group, c, ENDS_GIVEN);
#if defined SIGNS || defined Y || defined Z || !defined CODES
            const int channel = group * K + min(c, K - 1);
#endif
            UNROLL
            for (int i = 0; i < SPOTS; i++) {
                int d[OF_WEIGHTS][PLANES];
                UNROLL
                for (int m = 0; m < OF_WEIGHTS; m++) UNROLL
                for (int j = 0; j < PLANES; j++) {
                    d[m][j] = 2 * sum[i / 2 * PLANES + j][block * OF_WEIGHTS + m][2 * (i % 2) + e] -
                              at[i].set[j];
#ifdef SIGNS
                    d[m][j] = 2 * d[m][j] - inside[(at[i].kind * OF_WEIGHTS + m) * all + channel];
#endif
                }
                int level = 0;
#ifdef LIMITS
                const int times[] = TIMES;
                int whole = 0;
                UNROLL
                for (int j = 0; j < PLANES; j++) whole += times[j] * d[0][j];
                UNROLL
                for (int n = 1; n < 1 << Y_PLANES; n++)
                    level += (whole ^ of->invert) >= of->limit[n];
#else
                float v = 0;
                UNROLL
                for (int m = 0; m < OF_WEIGHTS; m++) {
                    float part = 0;
                    UNROLL
                    for (int j = 0; j < PLANES; j++) part += u[j] * (float)d[m][j];
                    v += of->factor[m] * part;
                }
#ifdef HAS_SCALE
                v *= of->scale;
#endif
#ifdef HAS_B
                v += of->b;
#endif
#if defined Y || defined Z || !defined CODES
                const bool there = c < K && at[i].pixel < (int)s->pixels;
                const long place = at[i].at + (long)channel * (s->P * s->Q);
#endif
#ifdef Z
                if (there) v += z[s->z + place];
#endif
#ifdef Y_RELU
                if (v < 0) v = 0;
#endif
#if defined Y || !defined CODES
                if (there) y[s->y + place] = v;
#endif
#ifdef CODES
#ifdef Q_RELU
                if (v < 0) v = 0;
#endif
#ifdef Y_SIGNS
                level = !(v < 0);
#else
                UNROLL
                for (int n = 0; n + 1 < 1 << Y_PLANES; n++) level += v > threshold[n];
#endif
#endif
#endif
#ifdef CODES
#if Y_PLANES == 1
                const uint code = (uint)level; /* inverted later */
#elif Y_PLANES < 4
                const uint code = (uint)levels->codes >> 4 * level;
#else
                const uint code = (uint)(levels->codes >> 4 * level);
#endif
                UNROLL
                for (int j = 0; j < Y_PLANES; j++)
                    bits[i][j] |= (code >> j & 1) << (8 * (block - c0) + e);
#endif
            }
        }
#ifdef CODES
        const int words = (all + 31) / 32, from = group * K + first + 8 * c0; /* channel */
        UNROLL
        for (int i = 0; i < SPOTS; i++) UNROLL
        for (int j = 0; j < Y_PLANES; j++) {
            const uint valid = valid_of(first + 8 * c0, K);
            const uint word = (quad_or(bits[i][j] << 2 * t, room) ^ FLIPPED) & valid;
            const bool there = first + 8 * c0 < (K + 31) / 32 * 32;
            if (t != (i & 3) || !there || at[i].pixel >= (int)s->pixels) continue;
            global uint *to = q + s->q + ((long)j * s->pixels + at[i].pixel) * words + from / 32;
            if (TOGETHER == 4)
                *to = word;
            else
                ((global ushort *)to)[from / 16 % 2] = (ushort)word;
        }
#endif
    }
}
