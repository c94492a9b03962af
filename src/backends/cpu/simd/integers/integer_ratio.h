/* Quotients and remainders of one type: a template.  NAME ends the names, T is the type, REAL a
 * float with so many bits that a quotient below a whole number is not rounded up to it; S: is it
 * signed?  What is divided by 0 is 0, what is divided by -1 wraps.  MOD has the sign of the
 * divisor, REM that of the dividend. */
#define TAME(y) ((y) == 0 || (S && (y) == (T)-1) ? (T)1 : (y))
#define RATIO(x, y) ((int32_t)((REAL)(x) / (REAL)TAME(y)))
#define REST(x, y) ((int32_t)(x)-RATIO(x, y) * (int32_t)TAME(y))

#define WRAPPED(x, y) (S && (y) == (T)-1 ? (T)(0u - (x)) : (T)RATIO(x, y))
MAP(JOIN(div, NAME), T, 2, y == 0 ? (T)0 : WRAPPED(x, y))
MAP(JOIN(rem, NAME), T, 2, (T)REST(x, y))
MAP(JOIN(mod, NAME), T, 2,
    (T)(REST(x, y) + (REST(x, y) != 0 && (REST(x, y) ^ (int32_t)y) < 0 ? (int32_t)y : 0)))
#undef TAME
#undef RATIO
#undef REST
#undef WRAPPED
#undef NAME
#undef T
#undef REAL
#undef S
