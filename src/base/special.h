/* Special functions that math.h has not, or not for threads: lgamma sets a global there. */
#ifndef FACULA_BASE_SPECIAL_H
#define FACULA_BASE_SPECIAL_H
#include <math.h>

/* ln |gamma(x)| by the C library, without its global. */
double fac_lgamma_f64(double x);
static inline float fac_lgamma_f32(float x) { return (float)fac_lgamma_f64((double)x); }

/* The slope of it: recurrence up to 10, then the asymptotic series; below 0 by reflection. */
double fac_digamma_f64(double x);
static inline float fac_digamma_f32(float x) { return (float)fac_digamma_f64((double)x); }

/* The inverse of erf: a start by two polynomials (M. Giles, "Approximating the erfinv function",
 * GPU Computing Gems, 2011), then two steps of Halley's method. */
double fac_erfinv_f64(double x);
static inline float fac_erfinv_f32(float x) { return (float)fac_erfinv_f64((double)x); }
#endif
