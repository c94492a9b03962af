/* Products of rows of x with weights in blocks, in f32: y[m][n] = sum over k of x[m][k] w[n][k]
 * (+ b[n]).
 *
 * LANES items share a row of w: each takes every LANES-th unit of eight numbers, two fours that lie
 * `apart` in x, and meets TM rows of x with them.  Weights are read once for TM rows, neighbours
 * together.  Options: those of elements.cl; TYPE_*, BYTES of a block, UNITS in one; LANES, ROWS of
 * w in a group, TM. */
typedef struct { long x, w, b, y, M, N, K, biased; } numbers;

#define HALF(p) vload_half(0, (global const half *)(p))
#define FOUR(p) convert_float4(vload4(0, p))
#define LOW(p) convert_float4(vload4(0, p) & (uchar4)(15))
#define HIGH(p) convert_float4(vload4(0, p) >> (uchar4)(4))

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
    const uchar8 low = vload8(0, w + 64 * n + 32 * (t & 1) + c);
    const uchar8 high = vload8(0, w + 128 + 32 * n + c);
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

kernel void rows(const numbers s, global const float *x, global const uchar *w,
                 global const float *b, global float *y) {
    const int item = (int)get_local_id(0), lane = item % LANES;
    const long n = (long)get_group_id(0) * ROWS + item / LANES;
    const long first = (long)get_group_id(1) * TM;
    const long blocks = s.K / (8 * UNITS);
    float sum[TM];
    for (int m = 0; m < TM; m++) sum[m] = 0;
    if (n < s.N) {
        global const uchar *row = w + s.w + n * blocks * BYTES;
        for (long i = lane; i < blocks * UNITS; i += LANES) {
            const long block = i / UNITS;
            const unit v = unit_of(row + block * BYTES, (int)(i % UNITS));
            for (int m = 0; m < TM; m++) {
                const long at = min(first + m, s.M - 1) * s.K + block * (8 * UNITS) + v.at;
                global const float *of = x + s.x + at;
                sum[m] += dot(v.a, vload4(0, of)) + dot(v.b, vload4(0, of + v.apart));
            }
        }
    }
#if LANES > 1
    local float part[ROWS * LANES];
    for (int m = 0; m < TM; m++) {
        part[item] = sum[m];
        for (int step = LANES / 2; step; step /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane < step) part[item] += part[item + step];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        sum[m] = part[item];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif
    if (lane || n >= s.N) return;
    for (int m = 0; m < TM; m++) {
        if (first + m >= s.M) continue;
        if (s.biased) sum[m] += b[s.b + n];
        y[s.y + (first + m) * s.N + n] = sum[m];
    }
}
