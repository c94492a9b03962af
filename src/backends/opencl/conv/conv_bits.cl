/* Convolutions of few bits by counting them; the formulas are those of backends/cpu/bits/bits.h.
 *   weights   planes of bits as pack_basis has them -> words of 32 channels: [plane][k][r, s][word]
 *   pixels    numbers -> planes of words: [plane][image, row, column][group][word]
 *   count     an item has EACH output channels of a group for one pixel
 * Everything is plain.  Options: those of elements.cl; PLANES of x, of weights OF_WEIGHTS; SIGNS:
 * x is +-1; RELU; EACH. */
#define WORD 32
typedef struct {
    long x, bits, b, x_basis, w_basis, scale, w_words, x_words, y;
    long units, images, C, K, groups, H, W, P, Q, R, S, stride_h, stride_w, dilation_h, dilation_w,
         pad_h, pad_w, words, bytes, has_b, has_scale;
} numbers;
#define OPERANDS const numbers s, global const float *x, global const uchar *bits, \
    global const float *b, global const float *x_basis, global const float *w_basis, \
    global const float *scale, global uint *w_words, global uint *x_words, global float *y

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

/* Levels in rising order, the code of each, and the thresholds between them. */
#define LEVELS (1 << PLANES)
typedef struct { float threshold[LEVELS]; uint code[LEVELS]; } levels;

static levels levels_of(global const float *v) {
    levels l;
    float level[LEVELS];
    for (uint e = 0; e < LEVELS; e++) {
        float sum = 0;
        for (int j = 0; j < PLANES; j++) if (e >> j & 1) sum += v[j];
        int k = (int)e;
        for (; k > 0 && level[k - 1] > sum; k--) {
            level[k] = level[k - 1];
            l.code[k] = l.code[k - 1];
        }
        level[k] = sum;
        l.code[k] = e;
    }
    for (int k = 0; k + 1 < LEVELS; k++) l.threshold[k] = (level[k] + level[k + 1]) * 0.5f;
    return l;
}

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
    const levels l = levels_of(x_basis + s.x_basis);
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
        for (int k = 0; k + 1 < LEVELS; k++) at += v > l.threshold[k];
        for (int j = 0; j < PLANES; j++) sum[j] |= (l.code[at] >> j & 1) << c;
#endif
    }
    const pos to = ((image * plane + pixel) * (pos)s.groups + group) * words + word;
    for (int j = 0; j < PLANES; j++)
        x_words[s.x_words + j * all * (pos)s.groups * words + to] = sum[j];
}

kernel void count(OPERANDS) {
    const pos unit = (pos)get_global_id(0), words = (pos)s.words, taps = (pos)(s.R * s.S),
        K = (pos)s.K;
    if (unit >= (pos)s.units) return;
    const pos q = unit % (pos)s.Q, p = unit / (pos)s.Q % (pos)s.P, rest = unit / (pos)(s.Q * s.P);
    const pos parts = (K + EACH - 1) / EACH, part = rest % parts,
        group = rest / parts % (pos)s.groups;
    const pos image = rest / parts / (pos)s.groups, outputs = K * (pos)s.groups,
        first = part * EACH;
    const pos pixel = (pos)s.groups * words, all = (pos)(s.images * s.H * s.W) * pixel;
    int sum[OF_WEIGHTS][EACH][PLANES];
    for (int m = 0; m < OF_WEIGHTS; m++)
        for (int k = 0; k < EACH; k++)
            for (int j = 0; j < PLANES; j++) sum[m][k][j] = 0;
    for (pos r = 0; r < (pos)s.R; r++)
        for (pos t = 0; t < (pos)s.S; t++) {
            const pos row = p * (pos)s.stride_h + r * (pos)s.dilation_h - (pos)s.pad_h;
            const pos column = q * (pos)s.stride_w + t * (pos)s.dilation_w - (pos)s.pad_w;
            if (row < 0 || row >= (pos)s.H || column < 0 || column >= (pos)s.W) continue;
            global const uint *from =
                x_words + s.x_words + ((image * (pos)s.H + row) * (pos)s.W + column) * pixel
                                      + group * words;
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
                        const uint w = w_words[s.w_words + tap * words + c];
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
    for (int k = 0; k < EACH && first + k < K; k++) {
        const pos channel = group * K + first + k;
        float total = 0;
        for (int m = 0; m < OF_WEIGHTS; m++) {
            float part_of = 0;
#ifdef SIGNS
            part_of = (float)sum[m][k][0];
#else
            for (int j = 0; j < PLANES; j++)
                part_of += x_basis[s.x_basis + j] * (float)sum[m][k][j];
#endif
            total += w_basis[s.w_basis + m * outputs + channel] * part_of;
        }
        if (s.has_scale) total *= scale[s.scale + channel];
        if (s.has_b) total += b[s.b + channel];
        y[s.y + ((image * outputs + channel) * (pos)s.P + p) * (pos)s.Q + q] = total;
    }
}
