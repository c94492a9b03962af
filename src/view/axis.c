/* Ticks at 1, 2 and 5 times powers of ten, and the shortest labels that tell them apart. */
#include "view/axis.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double tiny = 1e-9; /* a part of a step: rounding must not lose the tick at the end */

const char *fac_fixed(double x, int decimals, char to[FAC_NUMBER_TEXT]) {
    long long unit = 1;
    for (int k = 0; k < decimals && k < 9; k++) unit *= 10;
    double most = 1e12;
    long long all = llround(fmin(fabs(x), most) * (double)unit);
    const char *sign = x < 0 && all ? "-" : "";
    if (unit == 1)
        snprintf(to, FAC_NUMBER_TEXT, "%s%lld", sign, all);
    else
        snprintf(to, FAC_NUMBER_TEXT, "%s%lld.%0*lld", sign, all / unit,
                 decimals < 9 ? decimals : 9, all % unit);
    return to;
}

/* The least of 1, 2, 5 times a power of ten that is not below x. */
static double nice(double x) {
    double power = pow(10, floor(log10(x)));
    double m = x / power;
    if (m <= 1 + tiny) return power;
    if (m <= 2 + tiny) return 2 * power;
    return power * (m <= 5 + tiny ? 5 : 10);
}

static void linear(fac_chart_axis *a, int want, bool grow) {
    a->step = nice((a->hi - a->lo) / want);
    double first = grow ? floor(a->lo / a->step + tiny) : ceil(a->lo / a->step - tiny);
    double last = grow ? ceil(a->hi / a->step - tiny) : floor(a->hi / a->step + tiny);
    for (double k = first; k <= last && a->n < FAC_TICKS; k++) a->tick[a->n++] = k * a->step;
    if (grow) {
        a->lo = first * a->step;
        a->hi = last * a->step;
    }
}

/* Decades, and 2 and 5 between them where there is room. */
static void logarithmic(fac_chart_axis *a, int want, bool grow) {
    static const double parts[] = { 1, 2, 5 };
    double from = floor(log10(a->lo) + tiny), to = ceil(log10(a->hi) - tiny);
    int every = (int)ceil((to - from) / want),
        dense = 3 * (log10(a->hi) - log10(a->lo)) <= want + 1 ? 3 : 1;
    double lo = a->lo, hi = a->hi;
    if (every < 1) every = 1;
    for (double e = from; e <= to; e += every)
        for (int k = 0; k < dense && a->n < FAC_TICKS; k++) {
            double t = parts[k] * pow(10, e),
                   next = k + 1 < dense ? parts[k + 1] * pow(10, e) : pow(10, e + every);
            if (grow && next <= lo * (1 + tiny))
                continue; /* one tick at or below lo, one at or above hi */
            if (!grow && (t < lo * (1 - tiny) || t > hi * (1 + tiny))) continue;
            if (a->n && grow && a->tick[a->n - 1] >= hi * (1 - tiny)) break;
            a->tick[a->n++] = t;
        }
    if (grow && a->n) {
        a->lo = fmin(lo, a->tick[0]);
        a->hi = fmax(hi, a->tick[a->n - 1]);
    }
}

fac_chart_axis fac_axis_fit(double lo, double hi, fac_scale scale, int want, bool grow) {
    fac_chart_axis a = { .lo = lo, .hi = hi, .scale = scale };
    if (!(isfinite(lo) && isfinite(hi) && lo <= hi)) {
        a.lo = 0;
        a.hi = 1;
    }
    if (scale == FAC_SCALE_LOG && !(a.lo > 0)) a.scale = FAC_SCALE_LINEAR;
    double room = fmax(fabs(a.lo), fabs(a.hi)) * 1e-6;
    if (a.hi - a.lo <= room) { /* one number is a line in the middle */
        double around = a.hi ? fabs(a.hi) / 2 : 0.5;
        a.lo -= around;
        a.hi += around;
    }
    if (a.scale == FAC_SCALE_LOG)
        logarithmic(&a, want, grow);
    else
        linear(&a, want, grow);
    return a;
}

double fac_axis_place(const fac_chart_axis *a, double x) {
    double at = a->scale == FAC_SCALE_LOG ? log(fmax(x, a->lo) / a->lo) / log(a->hi / a->lo)
                                          : (x - a->lo) / (a->hi - a->lo);
    return fmin(fmax(at, 0), 1);
}

/* The digits after the point that a multiple of step needs. */
static int decimals_of(double step) {
    return step >= 1 - tiny ? 0 : (int)ceil(-log10(step) - 1e-6);
}

/* Mantissa and exponent: 3e-5, 1.5e-4. */
static const char *scientific(double x, double step, char to[FAC_NUMBER_TEXT]) {
    char mantissa[FAC_NUMBER_TEXT];
    int e = (int)floor(log10(fabs(x)) + tiny);
    double power = pow(10, e);
    int decimals = decimals_of(step / power);
    snprintf(to, FAC_NUMBER_TEXT, "%.20se%d",
             fac_fixed(x / power, decimals < 3 ? decimals : 3, mantissa), e);
    return to;
}

const char *fac_axis_label(const fac_chart_axis *a, double x, char to[FAC_NUMBER_TEXT]) {
    static const struct {
        double unit;
        const char *name;
    } units[] = { { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" } };
    double step = a->step ? a->step : pow(10, floor(log10(fabs(x)) + tiny)),
           largest = fmax(fabs(a->lo), fabs(a->hi));
    if (a->scale == FAC_SCALE_PERCENT) return fac_fixed(100 * x, decimals_of(100 * step), to);
    if (fabs(x) < step * tiny) return fac_fixed(0, 0, to);
    if (step < 1e-4 * (1 - tiny) || largest < 1e-3) return scientific(x, step, to);
    for (int k = 0; k < 3; k++) {
        if ((a->step ? largest : fabs(x)) < 10 * units[k].unit) continue;
        char number[FAC_NUMBER_TEXT];
        snprintf(to, FAC_NUMBER_TEXT, "%.30s%s",
                 fac_fixed(x / units[k].unit, decimals_of(step / units[k].unit), number),
                 units[k].name);
        return to;
    }
    return fac_fixed(x, decimals_of(step), to);
}
