/* Average pooling as a convolution: see pool.h. */
#include "ops/define.h"
#include "ops/pool.h"
#include "tensor/tensor_internal.h"

/* 1 / so many for each place of the result, as a constant O,P,Q. */
static fac_value *divisors(const fac_node *n, const fac_pool_geom *g) {
    const int64_t d = g->window[0].out, h = g->window[1].out, w = g->window[2].out;
    fac_tensor *t = NULL, *own = NULL;
    fac_error err = { 0 };
    fac_status status = fac_tensor_new(NULL, FAC_F64, fac_shape(d, h, w), &t, &err);
    double *to = status ? NULL : fac_tensor_memory(t);
    for (int64_t o = 0; to && o < d; o++)
        for (int64_t p = 0; p < h; p++)
            for (int64_t q = 0; q < w; q++)
                *to++ = fac_pool_divisor(g, 0, o) * fac_pool_divisor(g, 1, p) *
                        fac_pool_divisor(g, 2, q);
    if (!status) status = fac_tensor_convert(t, n->in[0]->type.dtype, &own, &err);
    fac_value *v =
        status ? fac_fail_graph(n->graph, status, "%s", err.text) : fac_const(n->graph, own);
    fac_tensor_free(t);
    fac_tensor_free(own);
    return v;
}

/* Padding at the end that makes as many windows as the pool has. */
static int64_t end_of(const fac_window *w) {
    const int64_t all = (w->out - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
    return all > w->in + w->pad ? all - w->in - w->pad : 0;
}

void fac_avg_pool_define(const fac_node *n, fac_value *out[]) {
    fac_pool_geom g;
    const fac_dims y = n->out[0]->type.dims;
    if (!fac_pool_geometry(n, &g) || fac_dims_count(&y) <= 0) return;
    const fac_window *w = g.window;
    const fac_conv3d_opts o = { .stride = { w[0].stride, w[1].stride, w[2].stride },
                                .dilation = { w[0].dilation, w[1].dilation, w[2].dilation },
                                .pad = { w[0].pad, w[1].pad, w[2].pad, end_of(&w[0]), end_of(&w[1]),
                                         end_of(&w[2]) } };
    fac_value *x = fac_reshape(n->in[0], fac_shape(g.N * g.C, 1, w[0].in, w[1].in, w[2].in));
    fac_value *ones =
        fac_expand(fac_number_as(x, 1), fac_shape(1, 1, w[0].kernel, w[1].kernel, w[2].kernel));
    out[0] = fac_reshape(fac_div(fac_conv3d(x, ones, NULL, &o), divisors(n, &g)), y);
}
