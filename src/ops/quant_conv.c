/* What conv_integer and qlinear_conv share. */
#include "base/error.h"
#include "base/memory.h"
#include "ops/conv.h"
#include "ops/quant.h"

bool fac_quant_conv_infer(fac_node *n, fac_dtype y) {
    static const char *const names[] = { "height", "width" };
    const fac_conv2d_opts *o = n->attrs;
    const fac_type *x = &n->in[FAC_QCONV_X]->type, *w = &n->in[FAC_QCONV_W]->type;
    const fac_value *b = n->in[FAC_QCONV_B];
    if (!fac_quant_bytes(n, FAC_QCONV_X, "x") || !fac_quant_bytes(n, FAC_QCONV_W, "w"))
        return false;
    if (b && b->type.dtype != FAC_I32) return fac_fail(n, FAC_E_DTYPE, "b must be i32");
    if (x->dims.n != 4 || w->dims.n != 4)
        return fac_fail(n, FAC_E_SHAPE, "x and w must have 4 dims");
    const int64_t C = x->dims.d[1], K = w->dims.d[0], c = w->dims.d[1];
    if (C >= 0 && c >= 0 && (c > C || c * o->groups != C))
        return fac_fail(n, FAC_E_SHAPE,
                        "w has %lld input channels in each of %lld groups, x has "
                        "%lld channels",
                        (long long)c, (long long)o->groups, (long long)C);
    if (K >= 0 && K % o->groups)
        return fac_fail(n, FAC_E_SHAPE, "%lld output channels do not divide into %lld groups",
                        (long long)K, (long long)o->groups);
    if (!fac_conv_bias(n, K)) return false;
    fac_type to = { y, { 4, { x->dims.d[0], K } } };
    for (int k = 0; k < 2; k++) {
        fac_window v = { x->dims.d[2 + k],
                         w->dims.d[2 + k],
                         o->stride[k],
                         o->dilation[k],
                         o->pad[k],
                         o->pad[2 + k],
                         0 };
        if (!fac_window_infer(n, names[k], &v, (fac_auto_pad)o->auto_pad, false)) return false;
        to.dims.d[2 + k] = v.out;
    }
    n->out[0]->type = to;
    return true;
}

/* Less its zero point: one, or one for each of `n` equal parts. */
static void less_zero(const fac_array *from, const fac_array *zero, int64_t parts, int64_t each,
                      double *to) {
    const int64_t zeros = zero->i ? fac_dims_count(&zero->type.dims) : 0;
    for (int64_t p = 0; p < parts; p++) {
        const int64_t at = zeros > 1 ? p : 0;
        const double z = zeros ? (double)zero->i[at] : 0;
        for (int64_t k = 0; k < each; k++) to[p * each + k] = (double)from->i[p * each + k] - z;
    }
}

static void sums(const fac_ref *r, const fac_conv_geom *g, const double *x, const double *w,
                 double *y) {
    const fac_array *b = &r->in[FAC_QCONV_B];
    const int64_t plane = g->H * g->W, taps = g->R * g->S, image = g->P * g->Q;
    const int64_t c = g->C / g->groups, each = g->K / g->groups;
    for (int64_t n = 0; n < g->N; n++)
        for (int64_t k = 0; k < g->K; k++) {
            double *to = y + (n * g->K + k) * image;
            for (int64_t i = 0; i < image; i++) to[i] = b->i ? (double)b->i[k] : 0;
            for (int64_t i = 0; i < c; i++)
                fac_conv_planes(g, FAC_CONV_Y, x + (n * g->C + k / each * c + i) * plane,
                                w + (k * c + i) * taps, NULL, to);
        }
}

fac_status fac_quant_conv_sums(const fac_ref *r, int x_zero, int w_zero, double *y,
                               fac_error *err) {
    const fac_array *x = &r->in[FAC_QCONV_X], *w = &r->in[FAC_QCONV_W];
    fac_conv_geom g;
    if (!fac_conv_geometry_of(2, r->attrs, &x->type.dims, &w->type.dims, &g)) return FAC_E_INTERNAL;
    const int64_t nx = fac_dims_count(&x->type.dims), nw = fac_dims_count(&w->type.dims);
    double *fx = fac_alloc((size_t)(nx + nw) + 1, sizeof *fx);
    if (!fx) return fac_raise_memory(err, "a convolution of integers");
    less_zero(x, &r->in[x_zero], 1, nx, fx);
    if (g.K) less_zero(w, &r->in[w_zero], g.K, nw / g.K, fx + nx);
    sums(r, &g, fx, fx + nx, y);
    fac_release(fx);
    return FAC_OK;
}
