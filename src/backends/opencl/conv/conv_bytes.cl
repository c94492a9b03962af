/* Convolutions and products of bytes with sums in 32 bits, which wrap; a matrix is an image of one
 * row.
 *   weights   bytes -> words of four channels, [group][tap][word][channel], and their sums,
 *             [group][tap][channel]
 *   pixels    bytes -> words of four channels, [image, row, column][group][word], and sums
 *   sums      an item has EACH output channels of PIXELS places
 *   alone     an item has one output and reads bytes where they lie: for groups of few channels
 * Words hold signed bytes: u8 has 128 taken away, and its zero point as well, so that
 *   sum (x - x_zero) (w - w_zero) = sum x w - x_zero sum w - w_zero sum x + C x_zero w_zero.
 * Options: those of elements.cl; X, W, Y the types in memory; EACH, PIXELS; BYTES: y is bytes,
 * sat(rne(f32(sum) x_scale w_scale / y_scale) + y_zero).  FAC_DOT: see product/dot.cl. */
#define WORD 4
#define SHIFT_i8 0
#define SHIFT_u8 128
#define SHIFT(tag) FAC_CAT(SHIFT_, tag)
#define LEAST_i8 -128
#define LEAST_u8 0
#define LEAST(tag) FAC_CAT(LEAST_, tag)
#ifndef FAC_DOT
static inline uint fac_dot_signed(uint a, uint b, uint c) {
    const char4 x = as_char4(a), y = as_char4(b);
    return c + (uint)(x.s0 * y.s0 + x.s1 * y.s1 + x.s2 * y.s2 + x.s3 * y.s3);
}
#endif
typedef struct {
    long x, w, b, x_zero, w_zero;
#ifdef BYTES
    long x_scale, w_scale, y_scale, y_zero;
#endif
    long w_words, w_sums, x_words, x_sums, y;
    long units, images, groups, C, K, H, W, P, Q, R, S, stride_h, stride_w, dilation_h, dilation_w,
         pad_h, pad_w, words, wide, x_image, x_group, x_channel, x_row, x_column, y_image, y_group,
         y_channel, y_row, y_column, w_group, w_k, w_c, w_r, w_s, biases, has_x_zero, w_zeros,
         w_scales;
} numbers;
#ifdef BYTES
#define SCALES global const float *x_scale, global const float *w_scale, \
    global const float *y_scale, global const MEMORY(Y) *y_zero,
#else
#define SCALES
#endif
#define OPERANDS const numbers s, global const MEMORY(X) *x, global const MEMORY(W) *w, \
    global const int *b, global const MEMORY(X) *x_zero, global const MEMORY(W) *w_zero, SCALES \
    global uint *w_words, global int *w_sums, global uint *x_words, global int *x_sums, \
    global MEMORY(Y) *y

/* Four of n signed bytes from `from` on, 0 after the end; they are added to `sum`. */
#define FOUR(name, tag) \
    static inline uint name(global const MEMORY(tag) *from, long step, pos n, int *sum) { \
        uint word = 0; \
        for (int c = 0; c < WORD && c < n; c++) { \
            const int v = (int)from[c * step] - SHIFT(tag); \
            word |= (uint)(v & 255) << 8 * c; \
            *sum += v; \
        } \
        return word; \
    }
FOUR(four_pixels, X)
FOUR(four_weights, W)

kernel void weights(OPERANDS) {
    const pos unit = (pos)get_global_id(0), wide = (pos)s.wide, taps = (pos)(s.R * s.S);
    if (unit >= (pos)s.units) return;
    const pos k = unit % wide, tap = unit / wide % taps, group = unit / wide / taps;
    global const MEMORY(W) *from =
        w + s.w + group * s.w_group + k * s.w_k + tap / (pos)s.S * s.w_r + tap % (pos)s.S * s.w_s;
    global uint *to = w_words + s.w_words + (group * taps + tap) * (pos)s.words * wide + k;
    int sum = 0;
    for (pos i = 0; i < (pos)s.words; i++)
        to[i * wide] = k < (pos)s.K
                           ? four_weights(from + i * WORD * s.w_c, s.w_c, (pos)s.C - i * WORD, &sum)
                           : 0;
    w_sums[s.w_sums + unit] = sum;
}

kernel void pixels(OPERANDS) {
    const pos unit = (pos)get_global_id(0), groups = (pos)s.groups, W_ = (pos)s.W, H = (pos)s.H;
    if (unit >= (pos)s.units) return;
    const pos group = unit % groups, place = unit / groups;
    global const MEMORY(X) *from = x + s.x + place / (H * W_) * s.x_image + group * s.x_group +
                                   place / W_ % H * s.x_row + place % W_ * s.x_column;
    global uint *to = x_words + s.x_words + unit * (pos)s.words;
    int sum = 0;
    for (pos i = 0; i < (pos)s.words; i++)
        to[i] = four_pixels(from + i * WORD * s.x_channel, s.x_channel, (pos)s.C - i * WORD, &sum);
    x_sums[s.x_sums + unit] = sum;
}

/* Number `k` of n, where one stands for all. */
#define OF_MANY(n, k) ((n) > 1 ? (k) : 0)

#ifdef BYTES
/* Divided as IEEE 754 says, which not every compiler does by itself. */
static inline float quotient(float a, float b) {
#ifdef FAC_FP64
    return (float)((double)a / (double)b);
#else
    const float q = a / b;
    return fma(fma(-q, b, a), 1 / b, q);
#endif
}
#define W_SCALE(channel) w_scale[s.w_scale + OF_MANY(s.w_scales, channel)]
#define FINISH(sum, channel) \
    finish(sum, quotient(x_scale[s.x_scale] * W_SCALE(channel), y_scale[s.y_scale]), \
           (int)y_zero[s.y_zero])
static inline int finish(uint sum, float factor, int zero) {
    const float least = LEAST(Y) - zero, v = rint((float)(int)sum * factor);
    if (v != v) return 0;
    return (int)clamp(v, least, least + 255) + zero;
}
#else
#define FINISH(sum, channel) ((int)(sum))
#endif
#define X_ZERO ((s.has_x_zero ? (int)x_zero[s.x_zero] : 0) - SHIFT(X))
#define W_ZERO(channel) \
    ((s.w_zeros ? (int)w_zero[s.w_zero + OF_MANY(s.w_zeros, channel)] : 0) - SHIFT(W))
#define BIAS(channel) (s.biases ? (uint)b[s.b + OF_MANY(s.biases, channel)] : 0u)

/* Where place i sees tap r, t among the pixels; -1 outside. */
static inline pos seen(const numbers s, pos i, pos r, pos t) {
    const pos q = i % (pos)s.Q, p = i / (pos)s.Q % (pos)s.P, image = i / (pos)(s.Q * s.P);
    const pos row = p * (pos)s.stride_h + r * (pos)s.dilation_h - (pos)s.pad_h;
    const pos column = q * (pos)s.stride_w + t * (pos)s.dilation_w - (pos)s.pad_w;
    if (row < 0 || row >= (pos)s.H || column < 0 || column >= (pos)s.W) return -1;
    return (image * (pos)s.H + row) * (pos)s.W + column;
}

kernel void sums(OPERANDS) {
    const pos unit = (pos)get_global_id(0), K = (pos)s.K, wide = (pos)s.wide, parts = wide / EACH,
              words = (pos)s.words, taps = (pos)(s.R * s.S), places = (pos)(s.images * s.P * s.Q);
    if (unit >= (pos)s.units) return;
    const pos k0 = unit % parts * EACH, group = unit / parts % (pos)s.groups,
              first = unit / parts / (pos)s.groups * PIXELS;
    const int zero = X_ZERO;
    uint sum[PIXELS][EACH];
    int w_zeros[EACH];
    for (int k = 0; k < EACH; k++) {
        const pos channel = group * K + min(k0 + k, K - 1);
        w_zeros[k] = W_ZERO(channel);
        for (int j = 0; j < PIXELS; j++) sum[j][k] = BIAS(channel);
    }
    for (pos tap = 0; tap < taps; tap++) {
        pos at[PIXELS];
        for (int j = 0; j < PIXELS; j++) {
            const pos pixel =
                first + j < places ? seen(s, first + j, tap / (pos)s.S, tap % (pos)s.S) : -1;
            at[j] = pixel < 0 ? -1 : pixel * (pos)s.groups + group;
        }
        global const uint *row = w_words + s.w_words + (group * taps + tap) * words * wide + k0;
        for (pos i = 0; i < words; i++) {
            uint v[EACH];
            for (int k = 0; k < EACH; k++) v[k] = row[i * wide + k];
            for (int j = 0; j < PIXELS; j++) {
                const uint word = at[j] < 0 ? 0 : x_words[s.x_words + at[j] * words + i];
                for (int k = 0; k < EACH; k++) sum[j][k] = fac_dot_signed(word, v[k], sum[j][k]);
            }
        }
        for (int j = 0; j < PIXELS; j++) {
            if (at[j] < 0) continue;
            const int of_x = x_sums[s.x_sums + at[j]];
            for (int k = 0; k < EACH; k++) {
                const int of_w = w_sums[s.w_sums + (group * taps + tap) * wide + k0 + k];
                const int both = (int)s.C * zero * w_zeros[k];
                sum[j][k] += (uint)(both - zero * of_w - w_zeros[k] * of_x);
            }
        }
    }
    for (int j = 0; j < PIXELS && first + j < places; j++) {
        const pos i = first + j, q = i % (pos)s.Q, p = i / (pos)s.Q % (pos)s.P;
        global MEMORY(Y) *to = y + s.y + i / (pos)(s.Q * s.P) * s.y_image + group * s.y_group +
                               p * s.y_row + q * s.y_column;
        for (int k = 0; k < EACH && k0 + k < K; k++)
            to[(k0 + k) * s.y_channel] = (MEMORY(Y))FINISH(sum[j][k], group * K + k0 + k);
    }
}

kernel void alone(OPERANDS) {
    const pos unit = (pos)get_global_id(0), K = (pos)s.K, channels = K * (pos)s.groups;
    if (unit >= (pos)s.units) return;
    const pos channel = unit % channels, group = channel / K, k = channel % K, i = unit / channels;
    const pos q = i % (pos)s.Q, p = i / (pos)s.Q % (pos)s.P, image = i / (pos)(s.Q * s.P);
    const int zero = X_ZERO + SHIFT(X), of_w = W_ZERO(channel) + SHIFT(W);
    uint sum = BIAS(channel);
    for (pos r = 0; r < (pos)s.R; r++)
        for (pos t = 0; t < (pos)s.S; t++) {
            const pos row = p * (pos)s.stride_h + r * (pos)s.dilation_h - (pos)s.pad_h;
            const pos column = q * (pos)s.stride_w + t * (pos)s.dilation_w - (pos)s.pad_w;
            if (row < 0 || row >= (pos)s.H || column < 0 || column >= (pos)s.W) continue;
            global const MEMORY(X) *from = x + s.x + image * s.x_image + group * s.x_group +
                                           row * s.x_row + column * s.x_column;
            global const MEMORY(W) *weight =
                w + s.w + group * s.w_group + k * s.w_k + r * s.w_r + t * s.w_s;
            for (pos c = 0; c < (pos)s.C; c++)
                sum += (uint)(((int)from[c * s.x_channel] - zero) *
                              ((int)weight[c * s.w_c] - of_w));
        }
    global MEMORY(Y) *to = y + s.y + image * s.y_image + group * s.y_group + k * s.y_channel;
    to[p * s.y_row + q * s.y_column] = (MEMORY(Y))FINISH(sum, channel);
}
