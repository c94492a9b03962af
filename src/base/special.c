/* See special.h. */
#include "base/special.h"

double fac_lgamma_f64(double x) {
    int sign;
    return lgamma_r(x, &sign);
}

double fac_digamma_f64(double x) {
    static const double pi = 3.14159265358979323846;
    if (x == 0) return copysign(INFINITY, -x);
    if (x < 0) {
        const double part = x - floor(x);
        return part == 0 ? NAN : fac_digamma_f64(1 - x) - pi / tan(pi * part);
    }
    double below = 0;
    for (; x < 10; x++) below += 1 / x;
    const double r = 1 / (x * x);
    const double higher = 1.0 / 252 - r * (1.0 / 240 - r / 132);
    const double series = r * (1.0 / 12 - r * (1.0 / 120 - r * higher));
    return log(x) - 0.5 / x - series - below;
}

/* Giles' polynomials of w = -ln(1 - x^2), the first below 5, the second of sqrt(w). */
static double start(double x) {
    static const double near[] = { 2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                   -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                   -0.00417768164,  0.246640727,    1.50140941 };
    static const double far[] = { -0.000200214257, 0.000100950558, 0.00134934322,
                                  -0.00367342844,  0.00573950773,  -0.0076224613,
                                  0.00943887047,   1.00167406,     2.83297682 };
    const double w = -log((1 - x) * (1 + x));
    const double *c = w < 5 ? near : far;
    const double t = w < 5 ? w - 2.5 : sqrt(w) - 3;
    double p = c[0];
    for (int k = 1; k < 9; k++) p = p * t + c[k];
    return p * x;
}

/* erf(y) - x, without cancellation in the tails. */
static double off_by(double y, double x) {
    if (fabs(x) < 0.5) return erf(y) - x;
    return x > 0 ? (1 - x) - erfc(y) : erfc(-y) - (1 + x);
}

double fac_erfinv_f64(double x) {
    if (!(fabs(x) < 1)) return fabs(x) == 1 ? copysign(INFINITY, x) : NAN;
    double y = start(x);
    for (int k = 0; k < 2; k++) {
        const double u = off_by(y, x) / (1.12837916709551257390 * exp(-y * y));
        y -= u / (1 + y * u);
    }
    return y;
}
