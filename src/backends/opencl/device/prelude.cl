/* In front of every kernel: the vocabulary of elementwise expressions (src/ops/map.h) in OpenCL C,
 * element types in memory, and conversions that wrap and round as src/tensor/convert.c does.
 * FAC_FP64 is defined where the device has doubles. */
#ifdef FAC_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define FAC_CAT_(a, b) a##b
#define FAC_CAT(a, b) FAC_CAT_(a, b)

/* T is the type that the expression at hand is computed in: float, double, long or ulong.  FORM:
 * rough where the result has 16 bits, else exact. */
#define EXP(x) exp(x)
#define EXPM1(x) expm1(x)
#define LOG(x) log(x)
#define LOG1P(x) log1p(x)
#define LOG2(x) log2(x)
#define LOG10(x) log10(x)
#define EXP2(x) exp2(x)
#define ERFC(x) erfc(x)
#define ERFINV(x) FAC_CAT(fac_erfinv_, T)(x)
#define LGAMMA(x) lgamma(x)
#define DIGAMMA(x) FAC_CAT(fac_digamma_, T)(x)
#define TRUNC(x) trunc(x)
#define ATAN2(y, x) atan2(y, x)
#define HYPOT(x, y) hypot(x, y)
#define COPYSIGN(x, y) copysign(x, y)
#define SIGNBIT(x) (copysign((T)1, x) < (T)0)
#define TANH(x) tanh(x)
#define ERF(x) erf(x)
#define SIGMOID(x) ((T)1 / ((T)1 + exp(-(x))))
#define GELU(x) FAC_CAT(fac_gelu_, FORM)(x)
#define GELU_SLOPE(x) FAC_CAT(fac_gelu_slope_, FORM)(x)
#define fac_gelu_exact(x) ((T)0.5 * (x) * ((T)1 + erf((x) * (T)0.70710678118654752440)))
#define fac_gelu_slope_exact(x) ((T)0.5 * ((T)1 + erf((x) * (T)0.70710678118654752440)) + \
    (x) * exp((T)-0.5 * (x) * (x)) * (T)0.39894228040143267794)
#define SQRT(x) sqrt(x)
#define FLOOR(x) floor(x)
#define CEIL(x) ceil(x)
#define ROUND(x) rint(x)
#define SIN(x) sin(x)
#define COS(x) cos(x)
#define TAN(x) tan(x)
#define ASIN(x) asin(x)
#define ACOS(x) acos(x)
#define ATAN(x) atan(x)
#define SINH(x) sinh(x)
#define COSH(x) cosh(x)
#define ASINH(x) asinh(x)
#define ACOSH(x) acosh(x)
#define ATANH(x) atanh(x)
#define FMOD(x, y) FAC_CAT(fac_rem_, T)(x, y)
#define MOD(x, y) FAC_CAT(fac_mod_, T)(x, y)
#define DIV(x, y) FAC_CAT(fac_div_, T)(x, y)
#define POW(x, y) FAC_CAT(fac_pow_, T)(x, y)
#define ABS(x) FAC_CAT(fac_abs_, T)(x)
#define SHL(x, y) FAC_CAT(fac_shl_, T)(x, y)
#define SHR(x, y) FAC_CAT(fac_shr_, T)(x, y)
#define MAX(x, y) FAC_CAT(fac_max_, T)(x, y)
#define MIN(x, y) FAC_CAT(fac_min_, T)(x, y)
#define ISNAN(x) ((x) != (x))
#define ISINF(x) (ABS(x) == (T)INFINITY)
#define P(k) p##k

/* A NaN in either wins; mod has the sign of the divisor, rem that of the dividend. */
#define FAC_REAL(T) \
    static inline T fac_max_##T(T x, T y) { return x > y || x != x ? x : y; } \
    static inline T fac_min_##T(T x, T y) { return x < y || x != x ? x : y; } \
    static inline T fac_div_##T(T x, T y) { return x / y; } \
    static inline T fac_rem_##T(T x, T y) { return fmod(x, y); } \
    static inline T fac_mod_##T(T x, T y) { \
        T r = fmod(x, y); \
        if (r == 0) return copysign(r, y); \
        return (r < 0) != (y < 0) ? r + y : r; \
    } \
    static inline T fac_pow_##T(T x, T y) { return pow(x, y); } \
    static inline T fac_abs_##T(T x) { return fabs(x); }
FAC_REAL(float)
#ifdef FAC_FP64
FAC_REAL(double)
#endif

/* As in src/base/special.c.  STEPS of Halley's method: none are needed in float. */
constant float fac_erfinv_near[] = { 2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                                     -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                                     -0.00417768164f,  0.246640727f,    1.50140941f };
constant float fac_erfinv_far[] = { -0.000200214257f, 0.000100950558f, 0.00134934322f,
                                    -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                                    0.00943887047f,   1.00167406f,     2.83297682f };
#define FAC_SPECIAL(T, STEPS)                                                                      \
    static inline T fac_erfinv_##T(T x) {                                                          \
        if (!(fabs(x) < (T)1)) return fabs(x) == (T)1 ? copysign((T)INFINITY, x) : (T)NAN;         \
        const T w = -log(((T)1 - x) * ((T)1 + x));                                                 \
        const bool near = w < (T)5;                                                                \
        const T t = near ? w - (T)2.5 : sqrt(w) - (T)3;                                            \
        T y = near ? fac_erfinv_near[0] : fac_erfinv_far[0];                                       \
        for (int k = 1; k < 9; k++) y = y * t + (near ? fac_erfinv_near[k] : fac_erfinv_far[k]);   \
        y *= x;                                                                                    \
        for (int k = 0; k < STEPS; k++) {                                                          \
            const T off = fabs(x) < (T)0.5 ? erf(y) - x                                            \
                          : x > 0          ? ((T)1 - x) - erfc(y)                                  \
                                           : erfc(-y) - ((T)1 + x);                                \
            const T u = off / ((T)1.12837916709551257390 * exp(-y * y));                           \
            y -= u / ((T)1 + y * u);                                                               \
        }                                                                                          \
        return y;                                                                                  \
    }                                                                                              \
    static inline T fac_digamma_##T(T x) {                                                         \
        T mirrored = 0;                                                                            \
        if (x == 0) return copysign((T)INFINITY, -x);                                              \
        if (x < 0) {                                                                               \
            const T part = x - floor(x);                                                           \
            if (part == 0) return (T)NAN;                                                          \
            mirrored = (T)3.14159265358979323846 / tan((T)3.14159265358979323846 * part);          \
            x = (T)1 - x;                                                                          \
        }                                                                                          \
        for (; x < (T)10; x += (T)1) mirrored += (T)1 / x;                                         \
        const T r = (T)1 / (x * x);                                                                \
        const T series =                                                                           \
            r * ((T)1 / (T)12 -                                                                    \
                 r * ((T)1 / (T)120 - r * ((T)1 / (T)252 - r * ((T)1 / (T)240 - r / (T)132))));    \
        return log(x) - (T)0.5 / x - series - mirrored;                                            \
    }
FAC_SPECIAL(float, 0)
#ifdef FAC_FP64
FAC_SPECIAL(double, 2)
#endif

/* As fast as the device can; numbers that are not normal may come out as zero. */
#ifdef FAC_NV_BF16
static inline float fac_exp2_rough(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
static inline float fac_recip_rough(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#else
#define fac_exp2_rough(x) native_exp2(x)
#define fac_recip_rough(x) native_recip(x)
#endif

/* The part of a normal distribution below x, and its density beside it.  Above |x| it is the
 * density times a polynomial of 1 / (1 + 0.375 |x|), fitted for |x| < 13.3: relative error at most
 * 3e-5, in both tails. */
static inline float fac_normal_rough(float x, float *density) {
    const float t = fac_recip_rough(1.0f + 0.375f * fabs(x)),
                power = fac_exp2_rough(x * x * -0.72134752044448170368f);
    const float tail =
        power * t *
        (0.14903267f + t * (0.15799878f + t * (0.08272531f + t * (0.20136397f - t * 0.09112941f))));
    *density = power * 0.39894228040143267794f;
    return x > 0 ? 1.0f - tail : tail;
}
static inline float fac_gelu_rough(float x) {
    float density;
    return x * fac_normal_rough(x, &density);
}
static inline float fac_gelu_slope_rough(float x) {
    float density;
    const float below = fac_normal_rough(x, &density);
    return below + x * density;
}

/* Integers: x / 0 = 0, x mod 0 = 0, what does not fit wraps, shifts by the width or more give 0 (or
 * the sign). */
static inline ulong fac_max_ulong(ulong x, ulong y) { return x > y ? x : y; }
static inline ulong fac_min_ulong(ulong x, ulong y) { return x < y ? x : y; }
static inline ulong fac_div_ulong(ulong x, ulong y) { return y ? x / y : 0; }
static inline ulong fac_rem_ulong(ulong x, ulong y) { return y ? x % y : 0; }
static inline ulong fac_mod_ulong(ulong x, ulong y) { return y ? x % y : 0; }
static inline ulong fac_abs_ulong(ulong x) { return x; }
static inline ulong fac_shl_ulong(ulong x, ulong y) { return y < 64 ? x << y : 0; }
static inline ulong fac_shr_ulong(ulong x, ulong y) { return y < 64 ? x >> y : 0; }
static inline ulong fac_pow_ulong(ulong x, ulong y) {
    ulong r = 1;
    for (; y; y >>= 1, x *= x) if (y & 1) r *= x;
    return r;
}
static inline long fac_max_long(long x, long y) { return x > y ? x : y; }
static inline long fac_min_long(long x, long y) { return x < y ? x : y; }
static inline long fac_div_long(long x, long y) {
    if (y == 0) return 0;
    return y == -1 ? (long)(0 - (ulong)x) : x / y;
}
static inline long fac_rem_long(long x, long y) { return y == 0 || y == -1 ? 0 : x % y; }
static inline long fac_mod_long(long x, long y) {
    long r = fac_rem_long(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
static inline long fac_abs_long(long x) { return x < 0 ? (long)(0 - (ulong)x) : x; }
static inline long fac_shl_long(long x, long y) { return (long)fac_shl_ulong((ulong)x, (ulong)y); }
static inline long fac_shr_long(long x, long y) { return x >> ((ulong)y < 64 ? y : 63); }
static inline long fac_pow_long(long x, long y) {
    if (y >= 0) return (long)fac_pow_ulong((ulong)x, (ulong)y);
    if (x == -1) return y & 1 ? -1 : 1;
    return x == 1;
}

/* Towards zero, modulo 2^64; NaN and infinity give 0. */
#define FAC_WRAP(T, U) \
    static inline long fac_wrap_##T(T x) { \
        if (x > (T)-9223372036854775808.0 && x < (T)9223372036854775808.0) return (long)x; \
        if (!isfinite(x)) return 0; \
        T rest = fmod(x, (T)18446744073709551616.0); \
        return (long)(rest < 0 ? 0 - (ulong)-rest : (ulong)rest); \
    }
FAC_WRAP(float, uint)
#ifdef FAC_FP64
FAC_WRAP(double, ulong)
#endif

/* ---- 16 bits in memory ---- */

static inline float fac_from_f16(ushort bits) { return vload_half(0, (const half *)&bits); }
static inline ushort fac_bits_f16(float v) {
    ushort bits;
    vstore_half_rte(v, 0, (half *)&bits);
    return bits;
}
static inline float fac_round_f16(float v) { return fac_from_f16(fac_bits_f16(v)); }
static inline float fac_load_f16(global const ushort *x, ulong i) {
    return vload_half(i, (global const half *)x);
}
static inline void fac_store_f16(global ushort *x, ulong i, float v) {
    vstore_half_rte(v, i, (global half *)x);
}
static inline float fac_from_bf16(ushort bits) { return as_float((uint)bits << 16); }
#ifdef FAC_NV_BF16                              /* NVIDIA has an instruction */
static inline ushort fac_bits_bf16(float v) {  /* of two: of one it is as slow as a sine */
    uint bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(0.0f), "f"(v));
    return (ushort)bits;
}
static inline float fac_round_bf16(float v) {
    uint bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(v), "f"(0.0f));
    return as_float(bits);
}
#else
static inline ushort fac_bits_bf16(float v) {
    uint u = as_uint(v);
    return v != v ? (ushort)(u >> 16 | 64) : (ushort)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static inline float fac_round_bf16(float v) { return fac_from_bf16(fac_bits_bf16(v)); }
#endif
/* Of what was rounded before. */
static inline ushort fac_top_bf16(float v) { return (ushort)(as_uint(v) >> 16); }
static inline float fac_load_bf16(global const ushort *x, ulong i) { return fac_from_bf16(x[i]); }
static inline void  fac_store_bf16(global ushort *x, ulong i, float v) { x[i] = fac_bits_bf16(v); }

/* Eight elements of 16 bits in four words, the first in the lower half: of a vector of eight
 * compilers make two accesses. */
static inline void fac_split(uint4 words, ushort *x) {
    const uint each[] = { words.x, words.y, words.z, words.w };
    for (int l = 0; l < 4; l++) {
        x[2 * l] = (ushort)each[l];
        x[2 * l + 1] = (ushort)(each[l] >> 16);
    }
}
static inline uint4 fac_join(const ushort *x) {
    uint each[4];
    for (int l = 0; l < 4; l++) each[l] = x[2 * l] | (uint)x[2 * l + 1] << 16;
    return (uint4)(each[0], each[1], each[2], each[3]);
}
