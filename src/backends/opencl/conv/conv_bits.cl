/* Convolutions of few bits by counting them; the formulas are those of backends/cpu/bits/bits.h.
 *   weights   planes of bits as pack_basis has them -> words of 32 channels: [plane][k][r, s][word]
 *   pixels    numbers -> planes of words: [plane][image, row, column][group][word]
 *   count     an item has EACH output channels of a group for one pixel
 *   codes     an item has a byte of 8 output channels of one pixel, and quantizes them again
 * Everything is plain.  Options: those of elements.cl; PLANES of x, of weights OF_WEIGHTS; SIGNS:
 * x is +-1; RELU; EACH; X_CODES: x is words as `pixels` makes them.  Of codes: CODES; Y_PLANES,
 * Y_SIGNS: of what it gives; Z is added; Y_RELU, Q_RELU; Y: the numbers are results, too; LIMITS
 * compares sums with whole numbers, see ops/code_limits.c. */
#define WORD 32
#ifdef X_CODES
#define X uint
#else
#define X float
#endif
typedef struct {
    long x, bits, b, x_basis, w_basis, scale;
#ifdef CODES
    long z, y_basis, limits;
#endif
    long w_words, x_words, y;
#ifdef CODES
    long numbers;
#endif
    long units, images, C, K, groups, H, W, P, Q, R, S, stride_h, stride_w, dilation_h, dilation_w,
         pad_h, pad_w, words, bytes, has_b, has_scale;
} numbers;
#ifdef CODES
#define OPERANDS const numbers s, global const X *x, global const uchar *bits, \
    global const float *b, global const float *x_basis, global const float *w_basis, \
    global const float *scale, global const float *z, global const float *y_basis, \
    global const int *limits, global uint *w_words, global uint *x_words, global uchar *y, \
    global float *numbers_of
#else
#define OPERANDS const numbers s, global const X *x, global const uchar *bits, \
    global const float *b, global const float *x_basis, global const float *w_basis, \
    global const float *scale, global uint *w_words, global uint *x_words, global float *y
#endif

kernel void weights(OPERANDS) {
    const pos unit = (pos)get_global_id(0), words = (pos)s.words, taps = (pos)(s.R * s.S),
        C = (pos)s.C;
    if (unit >= (pos)s.units) return;
    /* plane and channel */
    const pos word = unit % words, tap = unit / words % taps, row = unit / words / taps;
    global const uchar *from = bits + s.bits + row * (pos)s.bytes;
    uint sum = 0;
    for (pos c = 0; c < WORD && word * WORD + c < C; c++) {
        const pos k = (word * WORD + c) * taps + tap;
        sum |= (uint)(from[k / 8] >> k % 8 & 1) << c;
    }
    w_words[s.w_words + unit] = sum;
}

#ifndef X_CODES
kernel void pixels(OPERANDS) {
    const pos unit = (pos)get_global_id(0), words = (pos)s.words, plane = (pos)(s.H * s.W),
        C = (pos)s.C;
    const pos all = (pos)s.images * plane;
    if (unit >= (pos)s.units) return;
    const pos pixel = unit % plane, word = unit / plane % words,
        group = unit / plane / words % (pos)s.groups;
    const pos image = unit / plane / words / (pos)s.groups;
    global const float *from =
        x + s.x + ((image * (pos)s.groups + group) * C + word * WORD) * plane + pixel;
    uint sum[PLANES];
    for (int j = 0; j < PLANES; j++) sum[j] = 0;
#ifndef SIGNS
    levels l;
    set_levels(&l, x_basis + s.x_basis, PLANES);
#endif
    for (pos c = 0; c < WORD && word * WORD + c < C; c++) {
        float v = from[c * plane];
#ifdef RELU
        v = fmax(v, 0.0f);
#endif
#ifdef SIGNS
        sum[0] |= (uint)!(v < 0) << c;
#else
        int at = 0;
        for (int k = 0; k + 1 < 1 << PLANES; k++) at += v > l.threshold[k];
        for (int j = 0; j < PLANES; j++) sum[j] |= (l.code[at] >> j & 1) << c;
#endif
    }
    const pos to = ((image * plane + pixel) * (pos)s.groups + group) * words + word;
    for (int j = 0; j < PLANES; j++)
        x_words[s.x_words + j * all * (pos)s.groups * words + to] = sum[j];
}
#endif

/* Sums over the window of one pixel: sum[m][k][j] of plane m of weights, output channel first + k
 * of the group and plane j of pixels. */
static void gather(const numbers s, global const uint *words_of, global const uint *w_words,
                   const pos image, const pos group, const pos first, const pos p, const pos q,
                   int sum[OF_WEIGHTS][EACH][PLANES]) {
    const pos words = (pos)s.words, taps = (pos)(s.R * s.S), K = (pos)s.K;
    const pos outputs = K * (pos)s.groups, pixel = (pos)s.groups * words,
        all = (pos)(s.images * s.H * s.W) * pixel;
    for (int m = 0; m < OF_WEIGHTS; m++)
        for (int k = 0; k < EACH; k++)
            for (int j = 0; j < PLANES; j++) sum[m][k][j] = 0;
    for (pos r = 0; r < (pos)s.R; r++)
        for (pos t = 0; t < (pos)s.S; t++) {
            const pos row = p * (pos)s.stride_h + r * (pos)s.dilation_h - (pos)s.pad_h;
            const pos column = q * (pos)s.stride_w + t * (pos)s.dilation_w - (pos)s.pad_w;
            if (row < 0 || row >= (pos)s.H || column < 0 || column >= (pos)s.W) continue;
            global const uint *from =
                words_of + ((image * (pos)s.H + row) * (pos)s.W + column) * pixel + group * words;
            for (pos c = 0; c < words; c++) {
                uint v[PLANES];
                int bits_of[PLANES];
                for (int j = 0; j < PLANES; j++) {
                    v[j] = from[j * all + c];
                    bits_of[j] = popcount(v[j]);
                }
                for (int m = 0; m < OF_WEIGHTS; m++)
                    for (int k = 0; k < EACH; k++) {
                        const pos channel = group * K + min(first + k, K - 1);
                        const pos tap = (m * outputs + channel) * taps + r * (pos)s.S + t;
                        const uint w = w_words[tap * words + c];
#ifdef SIGNS
                        /* of valid channels, less the sum of their weights */
                        const int here = (int)min((pos)s.C - c * WORD, (pos)WORD);
                        const int product = 2 * (int)popcount(w & v[0]) - bits_of[0];
                        sum[m][k][0] += 2 * product - (2 * (int)popcount(w) - here);
#else
                        for (int j = 0; j < PLANES; j++)
                            sum[m][k][j] += 2 * (int)popcount(w & v[j]) - bits_of[j];
#endif
                    }
            }
        }
}

/* What sums of output channel `channel` of all are as a number. */
#define FINISH(sum, k, channel) \
    finish(s, sum, k, channel, b + s.b, x_basis + s.x_basis, w_basis + s.w_basis, scale + s.scale)
static float finish(const numbers s, int sum[OF_WEIGHTS][EACH][PLANES], const int k,
                    const pos channel, global const float *b, global const float *x_basis,
                    global const float *w_basis, global const float *scale) {
    float total = 0;
    for (int m = 0; m < OF_WEIGHTS; m++) {
        float part_of = 0;
#ifdef SIGNS
        part_of = (float)sum[m][k][0];
#else
        for (int j = 0; j < PLANES; j++) part_of += x_basis[j] * (float)sum[m][k][j];
#endif
        total += w_basis[m * (pos)(s.K * s.groups) + channel] * part_of;
    }
    if (s.has_scale) total *= scale[channel];
    if (s.has_b) total += b[channel];
    return total;
}

#ifdef X_CODES
#define X_WORDS (x + s.x)
#else
#define X_WORDS (x_words + s.x_words)
#endif

#ifndef CODES
kernel void count(OPERANDS) {
    const pos unit = (pos)get_global_id(0), K = (pos)s.K;
    if (unit >= (pos)s.units) return;
    const pos q = unit % (pos)s.Q, p = unit / (pos)s.Q % (pos)s.P, rest = unit / (pos)(s.Q * s.P);
    const pos parts = (K + EACH - 1) / EACH, group = rest / parts % (pos)s.groups;
    const pos image = rest / parts / (pos)s.groups, outputs = K * (pos)s.groups,
        first = rest % parts * EACH;
    int sum[OF_WEIGHTS][EACH][PLANES];
    gather(s, X_WORDS, w_words + s.w_words, image, group, first, p, q, sum);
    for (int k = 0; k < EACH && first + k < K; k++) {
        const pos channel = group * K + first + k;
        y[s.y + ((image * outputs + channel) * (pos)s.P + p) * (pos)s.Q + q] =
            FINISH(sum, k, channel);
    }
}
#else
#define BYTES 4 /* of a word */
#ifdef __ENDIAN_LITTLE__
#define BYTE_AT(i) (i)
#else
#define BYTE_AT(i) ((i) ^ (BYTES - 1))
#endif
/* Each part of EACH channels of a byte lies in one group. */
kernel void codes(OPERANDS) {
    const pos unit = (pos)get_global_id(0), K = (pos)s.K, outputs = K * (pos)s.groups;
    if (unit >= (pos)s.units) return;
    const pos wide = (outputs + WORD - 1) / WORD * BYTES, byte = unit % wide, place = unit / wide;
    const pos q = place % (pos)s.Q, p = place / (pos)s.Q % (pos)s.P,
        image = place / (pos)(s.Q * s.P);
    const pos begin = byte * 8, end = min(outputs, begin + 8);
    uint found[Y_PLANES];
    for (int j = 0; j < Y_PLANES; j++) found[j] = 0;
#ifndef Y_SIGNS
    levels l;
    set_levels(&l, y_basis + s.y_basis, Y_PLANES);
#endif
    for (pos first = begin; first < end; first += EACH) {
        int sum[OF_WEIGHTS][EACH][PLANES];
        gather(s, X_WORDS, w_words + s.w_words, image, first / K, first % K, p, q, sum);
        for (int k = 0; k < EACH && first + k < end; k++) {
            const pos channel = first + k;
            int at = 0;
#ifdef LIMITS
            global const int *limit = limits + s.limits + channel;
            const int d = sum[0][k][0] ^ limit[0];
            for (int t = 1; t < 1 << Y_PLANES; t++) at += d >= limit[t * outputs];
#else
            const pos to = ((image * outputs + channel) * (pos)s.P + p) * (pos)s.Q + q;
            float v = FINISH(sum, k, channel);
#ifdef Z
            v += z[s.z + to];
#endif
#ifdef Y_RELU
            if (v < 0) v = 0;
#endif
#ifdef Y
            numbers_of[s.numbers + to] = v;
#endif
#ifdef Q_RELU
            if (v < 0) v = 0;
#endif
#ifdef Y_SIGNS
            at = !(v < 0);
#else
            for (int t = 0; t + 1 < 1 << Y_PLANES; t++) at += v > l.threshold[t];
#endif
#endif
#ifdef Y_SIGNS
            found[0] |= (uint)at << (channel - begin);
#else
            for (int j = 0; j < Y_PLANES; j++)
                found[j] |= (l.code[at] >> j & 1) << (channel - begin);
#endif
        }
    }
    const pos all = (pos)(s.images * s.P * s.Q) * wide;
    for (int j = 0; j < Y_PLANES; j++) y[s.y * BYTES + j * all + BYTE_AT(unit)] = (uchar)found[j];
}
#endif
