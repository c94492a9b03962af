/* An elementwise op from one expression of x (y, z) and of its attributes P(0), P(1)...
 *
 * T is the element type of the loop; literals are written (T)0.5; functions come from the capital
 * vocabulary, which _Generic resolves here and the kernel prelude resolves in OpenCL.  The
 * outermost macro takes the text with #, so nothing in it has been expanded.  A flag result is 0 or
 * 1 as T.
 *
 *   MAP1 MAP2           floats only; MAP1_P1, MAP1_P2: with one or two attributes
 *   MAP1_NUM ...        and integers: i64 and u64 loops
 *   MAP2_WRAP ...       and integers, when signed and unsigned differ in nothing: one loop of u64,
 *       which may wrap
 *   MAP1_INT ...        integers (and bool) only
 *
 * A loop may write over one of its inputs (out == in[k] exactly); anything else of them overlapping
 * is not allowed.  The pragmas say so: without them an in-place call would fail the compiler's
 * overlap check and run one element at a time. Loops vectorise with gcc -O3 -fno-math-errno
 * -fno-trapping-math, except over what the math library computes. */
#ifndef FACULA_OPS_MAP_H
#define FACULA_OPS_MAP_H
#include "base/mathf.h"
#include "base/special.h"
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/known.h"

/* ---- the vocabulary ---- */

#define EXP(x) _Generic((x), float : fac_expf, double : exp)(x)
#define EXPM1(x) _Generic((x), float : fac_expm1f, double : expm1)(x)
#define LOG(x) _Generic((x), float : fac_logf, double : log)(x)
#define LOG1P(x) _Generic((x), float : fac_log1pf, double : log1p)(x)
#define LOG2(x) _Generic((x), float : log2f, double : log2)(x)
#define LOG10(x) _Generic((x), float : log10f, double : log10)(x)
#define EXP2(x) _Generic((x), float : exp2f, double : exp2)(x)
#define ERFC(x) _Generic((x), float : erfcf, double : erfc)(x)
#define ERFINV(x) _Generic((x), float : fac_erfinv_f32, double : fac_erfinv_f64)(x)
#define LGAMMA(x) _Generic((x), float : fac_lgamma_f32, double : fac_lgamma_f64)(x)
#define DIGAMMA(x) _Generic((x), float : fac_digamma_f32, double : fac_digamma_f64)(x)
#define TRUNC(x) _Generic((x), float : truncf, double : trunc)(x)
#define ATAN2(y, x) _Generic((y), float : atan2f, double : atan2)(y, x)
#define HYPOT(x, y) _Generic((x), float : hypotf, double : hypot)(x, y)
#define COPYSIGN(x, y) _Generic((x), float : copysignf, double : copysign)(x, y)
#define SIGNBIT(x) (COPYSIGN((T)1, x) < (T)0)
#define TANH(x) _Generic((x), float : fac_tanhf, double : tanh)(x)
#define ERF(x) _Generic((x), float : fac_erff, double : erf)(x)
#define SIGMOID(x) _Generic((x), float : fac_sigmoidf, double : fac_sigmoid_f64)(x)
#define GELU(x) _Generic((x), float : fac_geluf, double : fac_gelu_f64)(x)
#define GELU_SLOPE(x) _Generic((x), float : fac_gelu_slopef, double : fac_gelu_slope_f64)(x)
#define SQRT(x) _Generic((x), float : sqrtf, double : sqrt)(x)
#define FLOOR(x) _Generic((x), float : floorf, double : floor)(x)
#define CEIL(x) _Generic((x), float : ceilf, double : ceil)(x)
#define ROUND(x)                                                                                   \
    _Generic((x), float                                                                            \
             : rintf, double                                                                       \
             : rint)(x) /* half to even: nobody changes the rounding mode */
#define SIN(x) _Generic((x), float : sinf, double : sin)(x)
#define COS(x) _Generic((x), float : cosf, double : cos)(x)
#define TAN(x) _Generic((x), float : tanf, double : tan)(x)
#define ASIN(x) _Generic((x), float : asinf, double : asin)(x)
#define ACOS(x) _Generic((x), float : acosf, double : acos)(x)
#define ATAN(x) _Generic((x), float : atanf, double : atan)(x)
#define SINH(x) _Generic((x), float : sinhf, double : sinh)(x)
#define COSH(x) _Generic((x), float : coshf, double : cosh)(x)
#define ASINH(x) _Generic((x), float : asinhf, double : asinh)(x)
#define ACOSH(x) _Generic((x), float : acoshf, double : acosh)(x)
#define ATANH(x) _Generic((x), float : atanhf, double : atanh)(x)
#define FMOD(x, y)                                                                                 \
    _Generic((x), float : fmodf, double : fmod, int64_t : fac_rem_i64, uint64_t : fac_mod_u64)(x, y)
#define MOD(x, y)                                                                                  \
    _Generic((x), float                                                                            \
             : fac_mod_f32, double                                                                 \
             : fac_mod_f64, int64_t                                                                \
             : fac_mod_i64, uint64_t                                                               \
             : fac_mod_u64)(x, y)
#define DIV(x, y)                                                                                  \
    _Generic((x), float                                                                            \
             : fac_div_f32, double                                                                 \
             : fac_div_f64, int64_t                                                                \
             : fac_div_i64, uint64_t                                                               \
             : fac_div_u64)(x, y)
#define POW(x, y)                                                                                  \
    _Generic((x), float : powf, double : pow, int64_t : fac_pow_i64, uint64_t : fac_pow_u64)(x, y)
#define ABS(x)                                                                                     \
    _Generic((x), float : fabsf, double : fabs, int64_t : fac_abs_i64, uint64_t : fac_abs_u64)(x)
#define SHL(x, y) _Generic((x), int64_t : fac_shl_i64, uint64_t : fac_shl_u64)(x, y)
#define SHR(x, y) _Generic((x), int64_t : fac_shr_i64, uint64_t : fac_shr_u64)(x, y)
#define ISNAN(x) ((x) != (x))
#define ISINF(x) (ABS(x) == (T)INFINITY)
#define MAX(x, y)                                                                                  \
    _Generic((x), float                                                                            \
             : fac_max_f32, double                                                                 \
             : fac_max_f64, int64_t                                                                \
             : fac_max_i64, uint64_t                                                               \
             : fac_max_u64)(x, y)
#define MIN(x, y)                                                                                  \
    _Generic((x), float                                                                            \
             : fac_min_f32, double                                                                 \
             : fac_min_f64, int64_t                                                                \
             : fac_min_i64, uint64_t                                                               \
             : fac_min_u64)(x, y)
#define P(k) p##k

/* Elementary functions of mathf.h in f64. */
FAC_MATHF double fac_sigmoid_f64(double x) { return 1 / (1 + exp(-x)); }
FAC_MATHF double fac_gelu_f64(double x) { return 0.5 * x * (1 + erf(x * 0.70710678118654752440)); }
FAC_MATHF double fac_gelu_slope_f64(double x) {
    return 0.5 * (1 + erf(x * 0.70710678118654752440)) +
           x * exp(-0.5 * x * x) * 0.39894228040143267794;
}
/* A NaN in either wins.  Nested selections vectorise, || does not. */
FAC_MATHF float fac_max_f32(float x, float y) {
    const float larger = x > y ? x : y;
    return x == x ? larger : x;
}
FAC_MATHF float fac_min_f32(float x, float y) {
    const float smaller = x < y ? x : y;
    return x == x ? smaller : x;
}
FAC_MATHF double fac_max_f64(double x, double y) {
    const double larger = x > y ? x : y;
    return x == x ? larger : x;
}
FAC_MATHF double fac_min_f64(double x, double y) {
    const double smaller = x < y ? x : y;
    return x == x ? smaller : x;
}
FAC_MATHF int64_t fac_max_i64(int64_t x, int64_t y) { return x > y ? x : y; }
FAC_MATHF int64_t fac_min_i64(int64_t x, int64_t y) { return x < y ? x : y; }
FAC_MATHF uint64_t fac_max_u64(uint64_t x, uint64_t y) { return x > y ? x : y; }
FAC_MATHF uint64_t fac_min_u64(uint64_t x, uint64_t y) { return x < y ? x : y; }
/* Integers: truncating division, x / 0 = 0, and what does not fit wraps. */
FAC_MATHF float fac_div_f32(float x, float y) { return x / y; }
FAC_MATHF double fac_div_f64(double x, double y) { return x / y; }
FAC_MATHF uint64_t fac_div_u64(uint64_t x, uint64_t y) { return y ? x / y : 0; }
FAC_MATHF int64_t fac_div_i64(int64_t x, int64_t y) {
    if (y == -1) return (int64_t)(0 - (uint64_t)x);
    return y ? x / y : 0;
}
/* Remainders: mod has the sign of the divisor (Python), rem that of the dividend (C fmod); x mod 0
 * = 0. */
FAC_MATHF uint64_t fac_mod_u64(uint64_t x, uint64_t y) { return y ? x % y : 0; }
FAC_MATHF int64_t fac_rem_i64(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }
FAC_MATHF int64_t fac_mod_i64(int64_t x, int64_t y) {
    int64_t r = fac_rem_i64(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
FAC_MATHF double fac_mod_f64(double x, double y) { /* a rest of 0 has the sign of y, too */
    double r = fmod(x, y);
    if (r == 0) return copysign(r, y);
    return (r < 0) != (y < 0) ? r + y : r;
}
FAC_MATHF float fac_mod_f32(float x, float y) {
    float r = fmodf(x, y);
    if (r == 0) return copysignf(r, y);
    return (r < 0) != (y < 0) ? r + y : r;
}
FAC_MATHF int64_t fac_abs_i64(int64_t x) { return x < 0 ? (int64_t)(0 - (uint64_t)x) : x; }
FAC_MATHF uint64_t fac_abs_u64(uint64_t x) { return x; }
/* Shifts by the width or more give 0 (a right shift of a negative number: -1). */
FAC_MATHF uint64_t fac_shl_u64(uint64_t x, uint64_t y) { return y < 64 ? x << y : 0; }
FAC_MATHF uint64_t fac_shr_u64(uint64_t x, uint64_t y) { return y < 64 ? x >> y : 0; }
FAC_MATHF int64_t fac_shl_i64(int64_t x, int64_t y) {
    return (int64_t)fac_shl_u64((uint64_t)x, (uint64_t)y);
}
FAC_MATHF int64_t fac_shr_i64(int64_t x, int64_t y) { return x >> ((uint64_t)y < 64 ? y : 63); }
static inline uint64_t fac_pow_u64(uint64_t x, uint64_t y) {
    uint64_t r = 1;
    for (; y; y >>= 1, x *= x)
        if (y & 1) r *= x;
    return r;
}
/* A negative power of an integer is 1, -1 or a fraction that truncates to 0. */
static inline int64_t fac_pow_i64(int64_t x, int64_t y) {
    if (y >= 0) return (int64_t)fac_pow_u64((uint64_t)x, (uint64_t)y);
    if (x == -1) return y & 1 ? -1 : 1;
    return x == 1 ? 1 : 0;
}

/* ---- the loops ---- */

#if defined(__clang__)
#define MAP_NO_OVERLAP _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* what calls the math library stays scalar */
#elif defined(__GNUC__)
#define MAP_NO_OVERLAP _Pragma("GCC ivdep")
#endif

#define MAP_IN1 const T *xs = in[0];
#define MAP_IN2 MAP_IN1 const T *ys = in[1];
#define MAP_IN3 MAP_IN2 const T *zs = in[2];
#define MAP_AT1 const T x = xs[i];
#define MAP_AT2 MAP_AT1 const T y = ys[i];
#define MAP_AT3 MAP_AT2 const T z = zs[i];
#define MAP_P0 (void)p;
#define MAP_P1 const T p0 = (T)p[0];
#define MAP_P2 MAP_P1 const T p1 = (T)p[1];

#define MAP_LOOP(NAME, TARGET, N, PS, TYPE, ...)                                                   \
    TARGET static void NAME(size_t n, const void *const *in, const double *p, void *out) {         \
        typedef TYPE T;                                                                            \
        MAP_IN##N MAP_P##PS T *to = out;                                                           \
        MAP_NO_OVERLAP                                                                             \
        for (size_t i = 0; i < n; i++) {                                                           \
            MAP_AT##N to[i] = (T)(__VA_ARGS__);                                                    \
        }                                                                                          \
    }

/* One loop for each instruction set; other machines than x86 have what the compiler's options give.
 */
#if defined(__x86_64__) || defined(__i386__)
#define MAP_AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__)
#define MAP_AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#else
#define MAP_AVX512                                                                                 \
    __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,prefer-vector-width=512")))
#endif
#define MAP_LOOPS(NAME, N, PS, TYPE, ...)                                                          \
    MAP_LOOP(NAME, , N, PS, TYPE, __VA_ARGS__)                                                     \
    MAP_LOOP(NAME##_avx2, MAP_AVX2, N, PS, TYPE, __VA_ARGS__)                                      \
    MAP_LOOP(NAME##_avx512, MAP_AVX512, N, PS, TYPE, __VA_ARGS__)
#define MAP_SLOTS(NAME)                                                                            \
    { NAME, NAME##_avx2, NAME##_avx512 }
#else
#define MAP_LOOPS(NAME, N, PS, TYPE, ...) MAP_LOOP(NAME, , N, PS, TYPE, __VA_ARGS__)
#define MAP_SLOTS(NAME)                                                                            \
    { NAME, NAME, NAME }
#endif

#define MAP_FLOATS(N, PS, TEXT, ...)                                                               \
    MAP_LOOPS(f32, N, PS, float, __VA_ARGS__)                                                      \
    MAP_LOOPS(f64, N, PS, double, __VA_ARGS__)                                                     \
    static const fac_map map = { N, TEXT, MAP_SLOTS(f32), MAP_SLOTS(f64), NULL, NULL };
#define MAP_NUMBERS(N, TEXT, ...)                                                                  \
    MAP_LOOPS(f32, N, 0, float, __VA_ARGS__)                                                       \
    MAP_LOOPS(f64, N, 0, double, __VA_ARGS__)                                                      \
    MAP_LOOP(i64, , N, 0, int64_t, __VA_ARGS__)                                                    \
        MAP_LOOP(u64, , N, 0, uint64_t, __VA_ARGS__) static const fac_map map = {                  \
            N, TEXT, MAP_SLOTS(f32), MAP_SLOTS(f64), i64, u64                                      \
        };
#define MAP_WRAPS(N, TEXT, ...)                                                                    \
    MAP_LOOPS(f32, N, 0, float, __VA_ARGS__)                                                       \
    MAP_LOOPS(f64, N, 0, double, __VA_ARGS__)                                                      \
    MAP_LOOP(u64, , N, 0, uint64_t, __VA_ARGS__)                                                   \
    static const fac_map map = { N, TEXT, MAP_SLOTS(f32), MAP_SLOTS(f64), u64, u64 };
#define MAP_INTEGERS(N, TEXT, ...)                                                                 \
    MAP_LOOP(i64, , N, 0, int64_t, __VA_ARGS__)                                                    \
    MAP_LOOP(u64, , N, 0, uint64_t, __VA_ARGS__)                                                   \
    static const fac_map map = { N, TEXT, { NULL }, { NULL }, i64, u64 };

#define MAP1(...) MAP_FLOATS(1, 0, #__VA_ARGS__, __VA_ARGS__)
#define MAP1_P1(...) MAP_FLOATS(1, 1, #__VA_ARGS__, __VA_ARGS__)
#define MAP1_P2(...) MAP_FLOATS(1, 2, #__VA_ARGS__, __VA_ARGS__)
#define MAP2(...) MAP_FLOATS(2, 0, #__VA_ARGS__, __VA_ARGS__)
#define MAP1_NUM(...) MAP_NUMBERS(1, #__VA_ARGS__, __VA_ARGS__)
#define MAP2_NUM(...) MAP_NUMBERS(2, #__VA_ARGS__, __VA_ARGS__)
#define MAP3_NUM(...) MAP_NUMBERS(3, #__VA_ARGS__, __VA_ARGS__)
#define MAP1_WRAP(...) MAP_WRAPS(1, #__VA_ARGS__, __VA_ARGS__)
#define MAP2_WRAP(...) MAP_WRAPS(2, #__VA_ARGS__, __VA_ARGS__)
#define MAP1_INT(...) MAP_INTEGERS(1, #__VA_ARGS__, __VA_ARGS__)
#define MAP2_INT(...) MAP_INTEGERS(2, #__VA_ARGS__, __VA_ARGS__)

/* ---- the descriptor: the fields that all elementwise ops have ---- */

#define MAP_OP(NAME, DOC, IN, INFER)                                                               \
    .name = NAME, .doc = DOC, .in = IN, .out = fac_ports_y, .infer = INFER, .map = &map,           \
    .cost = fac_cost_map, .onnx = onnx, .cases = cases
#define MAP1_OP(NAME, DOC) MAP_OP(NAME, DOC, fac_ports_x, fac_infer_same), .is = FAC_OP_INPLACE

/* One operation an element of the result. */
void fac_cost_map(const fac_node *n, fac_cost *cost);

/* For load(): op applied to the inputs in turn, ((a op b) op c) op d, as ONNX's variadic Sum, Min
 * and Max mean it. */
fac_value *fac_map_chain(const fac_onnx_node *n, fac_value *const in[],
                         fac_value *(*op)(fac_value *, fac_value *));
#endif
