/* Axes: sensible ticks and their labels. */
#ifndef FACULA_VIEW_AXIS_H
#define FACULA_VIEW_AXIS_H
#include "facula/view.h"

enum { FAC_TICKS = 24, FAC_NUMBER_TEXT = 40 };
typedef struct fac_chart_axis {
    double lo, hi;
    fac_scale scale;
    double step; /* between ticks; 0: they are logarithmic */
    int n;
    double tick[FAC_TICKS];
} fac_chart_axis;

/* About `want` ticks for lo..hi; grow: the axis ends at ticks, else exactly at lo and hi. */
fac_chart_axis fac_axis_fit(double lo, double hi, fac_scale scale, int want, bool grow);
double fac_axis_place(const fac_chart_axis *a, double x); /* 0..1; outside: the nearer end */
const char *fac_axis_label(const fac_chart_axis *a, double x, char to[FAC_NUMBER_TEXT]);
/* x with so many decimals, whatever the locale; |x| below 1e12 */
const char *fac_fixed(double x, int decimals, char to[FAC_NUMBER_TEXT]);
#endif
