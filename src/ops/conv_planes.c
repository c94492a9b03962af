/* The one loop nest after convolution, its two gradients and the transposed convolution: see
 * fac_conv_planes of conv.h. */
#include "ops/conv.h"

/* One row of y's plane: tap s of the kernel row meets x[q stride] and y[q] for q < n. */
typedef struct row {
    const double *x, *y;
    double *to_x, *to_y;
    int64_t n, stride;
} row;

static double add_row(fac_conv_part part, const row *r, double w) {
    double sum = 0;
    if (part == FAC_CONV_Y && r->stride == 1)
        for (int64_t q = 0; q < r->n; q++) r->to_y[q] += w * r->x[q];
    else if (part == FAC_CONV_Y)
        for (int64_t q = 0; q < r->n; q++) r->to_y[q] += w * r->x[q * r->stride];
    else if (part == FAC_CONV_X)
        for (int64_t q = 0; q < r->n; q++) r->to_x[q * r->stride] += w * r->y[q];
    else
        for (int64_t q = 0; q < r->n; q++) sum += r->x[q * r->stride] * r->y[q];
    return sum;
}

void fac_conv_planes(const fac_conv_geom *g, fac_conv_part part, const double *x, const double *w,
                     const double *y, double *to) {
    const fac_window d = fac_conv_window(g, 0), h = fac_conv_window(g, 1),
                     v = fac_conv_window(g, 2);
    for (int64_t t = 0; t < g->T; t++)
        for (int64_t r = 0; r < g->R; r++)
            for (int64_t s = 0; s < g->S; s++) {
                const int64_t tap = (t * g->R + r) * g->S + s;
                const double f = part == FAC_CONV_W ? 0 : w[tap];
                double sum = 0;
                int64_t o0, o1, p0, p1, q0, q1;
                fac_window_inside(&d, t, &o0, &o1);
                fac_window_inside(&h, r, &p0, &p1);
                fac_window_inside(&v, s, &q0, &q1);
                for (int64_t o = o0; o < o1 && q0 < q1; o++)
                    for (int64_t p = p0; p < p1; p++) {
                        const int64_t z = o * d.stride + t * d.dilation - d.pad,
                                      i = p * h.stride + r * h.dilation - h.pad;
                        const int64_t in =
                            (z * g->H + i) * g->W + q0 * v.stride + s * v.dilation - v.pad;
                        const int64_t out = (o * g->P + p) * g->Q + q0;
                        const row line = { part == FAC_CONV_X ? NULL : x + in,
                                           part == FAC_CONV_Y ? NULL : y + out,
                                           part == FAC_CONV_X ? to + in : NULL,
                                           part == FAC_CONV_Y ? to + out : NULL,
                                           q1 - q0,
                                           v.stride };
                        sum += add_row(part, &line, f);
                    }
                if (part == FAC_CONV_W) to[tap] += sum;
            }
}
