/* The layouts of blocks (ggml's block_q4_0 and its like).  d and m are f16, little-endian; the low
 * nibbles of 16 bytes are the first half of a block of 32, the high ones the second.
 *
 *   q4_0   d q[16]          d (n - 8)            q5_0   d h q[16]     d (n - 16), bit 4 from h
 *   q4_1   d m q[16]        d n + m              q5_1   d m h q[16]   d n + m
 *   q8_0   d i8[32]         d q                  iq4_nl d q[16]       d T[n]
 *
 * Those of 256 have scales of 16 or 32 elements, themselves in a few bits: see each. */
#include "tensor/blocks.h"
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "tensor/half.h"

static float half(const uint8_t *p) { return fac_f16_to_f32((uint16_t)(p[0] | p[1] << 8)); }

static uint32_t word(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* What a nibble stands for in iq4_nl and iq4_xs. */
static const int8_t table[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113 };

/* Nibble i of a block of 32. */
static int nibble(const uint8_t *q, int i) { return i < 16 ? q[i] & 15 : q[i - 16] >> 4; }

static void q4_0(const uint8_t *b, float *x) {
    const float d = half(b);
    for (int i = 0; i < 32; i++) x[i] = d * (float)(nibble(b + 2, i) - 8);
}

static void q4_1(const uint8_t *b, float *x) {
    const float d = half(b), m = half(b + 2);
    for (int i = 0; i < 32; i++) x[i] = d * (float)nibble(b + 4, i) + m;
}

static int five(const uint8_t *q, uint32_t h, int i) {
    return nibble(q, i) | (int)(h >> i & 1) << 4;
}

static void q5_0(const uint8_t *b, float *x) {
    const float d = half(b);
    const uint32_t h = word(b + 2);
    for (int i = 0; i < 32; i++) x[i] = d * (float)(five(b + 6, h, i) - 16);
}

static void q5_1(const uint8_t *b, float *x) {
    const float d = half(b), m = half(b + 2);
    const uint32_t h = word(b + 4);
    for (int i = 0; i < 32; i++) x[i] = d * (float)five(b + 8, h, i) + m;
}

static void q8_0(const uint8_t *b, float *x) {
    const float d = half(b);
    for (int i = 0; i < 32; i++) x[i] = d * (float)(int8_t)b[2 + i];
}

static void iq4_nl(const uint8_t *b, float *x) {
    const float d = half(b);
    for (int i = 0; i < 32; i++) x[i] = d * (float)table[nibble(b + 2, i)];
}

/* Scales and minima of 16 elements, 4 bits each; two bits an element. */
static void q2_k(const uint8_t *b, float *x) {
    const uint8_t *s = b, *q = b + 16;
    const float d = half(b + 80), least = half(b + 82);
    for (int i = 0; i < 256; i++) {
        const int bits = q[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3;
        const int c = s[i / 16];
        x[i] = d * (float)(c & 15) * (float)bits - least * (float)(c >> 4);
    }
}

/* Two bits and a third that takes 4 away where it is 0; scales of 6 bits, less 32. */
static void q3_k(const uint8_t *b, float *x) {
    const uint8_t *h = b, *q = b + 32, *s = b + 96;
    const float d = half(b + 108);
    for (int i = 0; i < 256; i++) {
        const int n = i / 128, t = i % 128 / 32, l = i % 32, k = i / 16;
        const int low = k < 8 ? s[k] & 15 : s[k - 8] >> 4;
        const int scale = (low | (s[8 + k % 4] >> (2 * (k / 4)) & 3) << 4) - 32;
        const int bits = q[32 * n + l] >> (2 * t) & 3;
        x[i] = d * (float)scale * (float)(bits - (h[l] >> (4 * n + t) & 1 ? 0 : 4));
    }
}

/* Scale and minimum j of q4_k and q5_k, 6 bits each in 12 bytes. */
static void six(const uint8_t *s, int j, int *scale, int *least) {
    if (j < 4) {
        *scale = s[j] & 63;
        *least = s[j + 4] & 63;
        return;
    }
    *scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
    *least = s[j + 4] >> 4 | (s[j] >> 6) << 4;
}

static void q45_k(const uint8_t *b, float *x, const uint8_t *h, const uint8_t *q) {
    const float d = half(b), m = half(b + 2);
    for (int j = 0; j < 8; j++) {
        int scale, least;
        six(b + 4, j, &scale, &least);
        const float step = d * (float)scale, from = m * (float)least;
        for (int l = 0; l < 32; l++) {
            const int byte = q[32 * (j / 2) + l];
            const int low = j & 1 ? byte >> 4 : byte & 15;
            const int n = low | (h ? (h[l] >> j & 1) << 4 : 0);
            x[32 * j + l] = step * (float)n - from;
        }
    }
}

static void q4_k(const uint8_t *b, float *x) { q45_k(b, x, NULL, b + 16); }
static void q5_k(const uint8_t *b, float *x) { q45_k(b, x, b + 16, b + 48); }

/* Six bits, less 32; a scale of i8 for 16 elements. */
static void q6_k(const uint8_t *b, float *x) {
    const uint8_t *l = b, *h = b + 128, *s = b + 192;
    const float d = half(b + 208);
    for (int i = 0; i < 256; i++) {
        const int n = i / 128, t = i % 128 / 32, c = i % 32;
        const int byte = l[64 * n + c + 32 * (t & 1)];
        const int low = t >= 2 ? byte >> 4 : byte & 15;
        const int bits = low | (h[32 * n + c] >> (2 * t) & 3) << 4;
        x[i] = d * (float)(int8_t)s[i / 16] * (float)(bits - 32);
    }
}

static void iq4_xs(const uint8_t *b, float *x) {
    const float d = half(b);
    const int high = b[2] | b[3] << 8;
    for (int k = 0; k < 8; k++) {
        const int low = b[4 + k / 2] >> (4 * (k % 2)) & 15;
        const float step = d * (float)((low | (high >> (2 * k) & 3) << 4) - 32);
        for (int i = 0; i < 32; i++) x[32 * k + i] = step * (float)table[nibble(b + 8 + 16 * k, i)];
    }
}

/* ---- rounding ---- */

static void put_half(uint8_t *to, float x) {
    const uint16_t h = fac_f32_to_f16(x);
    to[0] = (uint8_t)h;
    to[1] = (uint8_t)(h >> 8);
}

static float inverse(float d) { return d != 0 ? 1 / d : 0; }

/* What is not finite has no place among the steps: it becomes the step of zero. */
static int whole(float x) { return x > -1e6f && x < 1e6f ? (int)x : 0; }
static int up_to(int x, int most) {
    if (x > most) return most;
    return x < 0 ? 0 : x;
}

/* The element of the largest magnitude, with its sign. */
static float extreme(const float *x) {
    float most = 0, is = 0;
    for (int i = 0; i < 32; i++) {
        if (!(fabsf(x[i]) > most)) continue;
        most = fabsf(x[i]);
        is = x[i];
    }
    return is;
}

static void span(const float *x, float *least, float *most) {
    *least = x[0];
    *most = x[0];
    for (int i = 1; i < 32; i++) {
        if (x[i] < *least) *least = x[i];
        if (x[i] > *most) *most = x[i];
    }
}

static void to_q8_0(const float *x, uint8_t *b) {
    const float d = fabsf(extreme(x)) / 127, by = inverse(d);
    put_half(b, d);
    for (int i = 0; i < 32; i++) b[2 + i] = (uint8_t)(int8_t)whole(roundf(x[i] * by));
}

/* Steps of x[i] in nibbles, and the fifth bits. */
static uint32_t put_steps(const float *x, float by, float shift, float half_step, int most,
                          uint8_t *q) {
    uint32_t high = 0;
    memset(q, 0, 16);
    for (int i = 0; i < 32; i++) {
        const int n = up_to(whole((x[i] - shift) * by + half_step), most);
        q[i % 16] |= (uint8_t)((n & 15) << (i < 16 ? 0 : 4));
        high |= (uint32_t)(n >> 4) << i;
    }
    return high;
}

static void put_word(uint8_t *to, uint32_t w) {
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(w >> (8 * i));
}

static void to_q4_0(const float *x, uint8_t *b) {
    const float d = extreme(x) / -8;
    put_half(b, d);
    put_steps(x, inverse(d), 0, 8.5f, 15, b + 2);
}

static void to_q5_0(const float *x, uint8_t *b) {
    const float d = extreme(x) / -16;
    put_half(b, d);
    put_word(b + 2, put_steps(x, inverse(d), 0, 16.5f, 31, b + 6));
}

static void to_q4_1(const float *x, uint8_t *b) {
    float least, most;
    span(x, &least, &most);
    const float d = (most - least) / 15;
    put_half(b, d);
    put_half(b + 2, least);
    put_steps(x, inverse(d), least, 0.5f, 15, b + 4);
}

static void to_q5_1(const float *x, uint8_t *b) {
    float least, most;
    span(x, &least, &most);
    const float d = (most - least) / 31;
    put_half(b, d);
    put_half(b + 2, least);
    put_word(b + 4, put_steps(x, inverse(d), least, 0.5f, 31, b + 8));
}

/* ---- by type ---- */

typedef void decoder(const uint8_t *block, float *x);
typedef void encoder(const float *x, uint8_t *block);
static const struct {
    decoder *decode;
    encoder *encode;
} kinds[FAC_DTYPES] = {
    [FAC_Q4_0] = { q4_0, to_q4_0 }, [FAC_Q4_1] = { q4_1, to_q4_1 }, [FAC_Q5_0] = { q5_0, to_q5_0 },
    [FAC_Q5_1] = { q5_1, to_q5_1 }, [FAC_Q8_0] = { q8_0, to_q8_0 }, [FAC_IQ4_NL] = { iq4_nl, NULL },
    [FAC_Q2_K] = { q2_k, NULL },    [FAC_Q3_K] = { q3_k, NULL },    [FAC_Q4_K] = { q4_k, NULL },
    [FAC_Q5_K] = { q5_k, NULL },    [FAC_Q6_K] = { q6_k, NULL },    [FAC_IQ4_XS] = { iq4_xs, NULL },
};

bool fac_blocks_encodes(fac_dtype type) {
    return (unsigned)type < FAC_DTYPES && kinds[type].encode;
}

void fac_blocks_decode(fac_dtype type, const void *from, float *to, size_t n) {
    const fac_dtype_info *t = fac_dtype_get(type);
    const uint8_t *b = from;
    for (size_t i = 0; i < n; i += (size_t)t->block_elements, b += t->block_bytes)
        kinds[type].decode(b, to + i);
}

void fac_blocks_encode(fac_dtype type, const float *from, void *to, size_t n) {
    const fac_dtype_info *t = fac_dtype_get(type);
    uint8_t *b = to;
    for (size_t i = 0; i < n; i += (size_t)t->block_elements, b += t->block_bytes)
        kinds[type].encode(from + i, b);
}
