/* What weights in blocks of few bits stand for.  Option: TYPE_*.  Four bytes come as few accesses
 * as the size of a block allows. */
#define HALF(p) vload_half(0, (global const half *)(p))
#if BYTES % 4 == 0
#define WORD(p) as_uchar4(*(global const uint *)(p))
#else
#define SHORTS(p) ((global const ushort *)(p))
#define WORD(p) as_uchar4((ushort2)(SHORTS(p)[0], SHORTS(p)[1]))
#endif
#define FOUR(p) convert_float4(as_char4(WORD(p)))
#define LOW(p) convert_float4(WORD(p) & (uchar4)(15))
#define HIGH(p) convert_float4(WORD(p) >> (uchar4)(4))

/* Numbers at .. at + 3 and at + apart .. of the block. */
typedef struct { float4 a, b; int at, apart; } unit;

unit unit_of(global const uchar *w, const int u) {
    unit v;
#if defined(TYPE_Q8_0)
    const float d = HALF(w);
    global const char *q = (global const char *)w + 2 + 8 * u;
    v.a = d * FOUR(q);
    v.b = d * FOUR(q + 4);
    v.at = 8 * u;
    v.apart = 4;
#elif defined(TYPE_Q4_0)
    const float d = HALF(w);
    v.a = d * (LOW(w + 2 + 4 * u) - 8.0f);
    v.b = d * (HIGH(w + 2 + 4 * u) - 8.0f);
    v.at = 4 * u;
    v.apart = 16;
#elif defined(TYPE_Q4_1)
    const float d = HALF(w), m = HALF(w + 2);
    v.a = d * LOW(w + 4 + 4 * u) + m;
    v.b = d * HIGH(w + 4 + 4 * u) + m;
    v.at = 4 * u;
    v.apart = 16;
#elif defined(TYPE_Q4_K)
    const int pair = u / 8, j = 2 * pair; /* 64 numbers: parts j and j + 1, eight units */
    global const uchar *s = w + 4;
    const float d = HALF(w), least = HALF(w + 2);
    float scale[2], below[2];
    for (int k = 0; k < 2; k++) {
        const int i = j + k;
        scale[k] = d * (float)(i < 4 ? s[i] & 63 : (s[i + 4] & 15) | (s[i - 4] >> 6) << 4);
        below[k] = least * (float)(i < 4 ? s[i + 4] & 63 : (s[i + 4] >> 4) | (s[i] >> 6) << 4);
    }
    global const uchar *q = w + 16 + 32 * pair + 4 * (u % 8);
    v.a = scale[0] * LOW(q) - below[0];
    v.b = scale[1] * HIGH(q) - below[1];
    v.at = 64 * pair + 4 * (u % 8);
    v.apart = 32;
#elif defined(TYPE_Q6_K)
    const int n = u / 16, t = u % 16 / 4, c = u % 4 * 8; /* from 128 n + 32 t + c on */
    global const uchar *below = w + 64 * n + 32 * (t & 1) + c, *above = w + 128 + 32 * n + c;
    const uchar8 low = (uchar8)(WORD(below), WORD(below + 4));
    const uchar8 high = (uchar8)(WORD(above), WORD(above + 4));
    const uchar8 four = t < 2 ? low & (uchar8)(15) : low >> (uchar8)(4);
    const uchar8 two = (high >> (uchar8)((uchar)(2 * t))) & (uchar8)(3);
    const float d = HALF(w + 208) * (float)as_char(w[192 + u / 2]);
    const float8 all = d * (convert_float8(four | two << (uchar8)(4)) - 32.0f);
    v.a = all.lo;
    v.b = all.hi;
    v.at = 8 * u;
    v.apart = 4;
#endif
    return v;
}
