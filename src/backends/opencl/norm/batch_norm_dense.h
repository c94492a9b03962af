/* What kernels of batch norms share whose images lie with channels last, one pixel after the
 * other, and whose operands by channel are of the type computed in. */
#ifndef FACULA_OPENCL_BATCH_NORM_DENSE_H
#define FACULA_OPENCL_BATCH_NORM_DENSE_H
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/reduce/fold.h"
#include "backends/opencl/product/gemm.h"
#include "backends/gpu/speed.h"

/* An image: channels, pixels of all images, neighbours in an access, accesses of a pixel. */
typedef struct fac_cl_dense {
    int64_t channels, pixels;
    int near;
    int64_t across;
} fac_cl_dense;

static inline bool fac_cl_is_dense(const fac_operand *v) {
    const fac_dims *d = &v->type.dims;
    const fac_layout want = d->n > 2 ? fac_layout_channels_last(d) : fac_layout_plain(d);
    for (int k = 0; k < d->n; k++)
        if (d->d[k] > 1 && v->layout.stride[k] != want.stride[k]) return false;
    return !v->layout.block && !v->layout.halo;
}

/* Asks for such layouts; false: other types, nothing to do, or no GPU. */
static inline bool fac_cl_dense_of(const fac_opencl *o, fac_problem *p, fac_cl_dense *to) {
    enum { MOST_NEAR = 8 };
    const fac_dims *d = &p->in[0].type.dims;
    const fac_dtype computing = fac_cl_folding(p->in[0].type.dtype);
    if (!o->limits.gpu || fac_dims_count(d) <= 0) return false;
    for (int i = 0; i < p->nin + p->nout; i++) {
        fac_operand *v = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        if (v->type.dtype == FAC_NONE) continue;
        if (!fac_cl_has(o, v->type.dtype)) return false;
        const fac_dims *own = &v->type.dims;
        if (own->n == d->n) { /* an image, or its mask */
            if (!fac_cl_is_dense(v))
                v->layout = own->n > 2 ? fac_layout_channels_last(own) : fac_layout_plain(own);
        } else {
            if (v->type.dtype != computing) return false;
            if (!fac_layout_is_plain(&v->layout, &v->type.dims) || v->layout.halo ||
                v->layout.offset % MOST_NEAR)
                v->layout = fac_layout_plain(&v->type.dims);
        }
    }
    to->channels = d->d[1];
    to->pixels = fac_dims_count(d) / d->d[1];
    to->near = fac_cl_near_all(o, p);
    if (to->channels % to->near) to->near = 1;
    to->across = to->channels / to->near;
    return true;
}

/* Types and vectors; p has been settled. */
static inline void fac_cl_dense_options(const fac_problem *p, const fac_cl_dense *s, fac_text *to) {
    const fac_dtype t = p->in[0].type.dtype;
    fac_text_print(to, "-DT=%s -DX=%s -DCOMPUTED=%s -DV=%d%s", fac_cl_computing(t), fac_cl_tag(t),
                   fac_cl_tag(fac_cl_folding(t)), s->near, s->near > 1 ? " -DALIGNED" : "");
    fac_cl_option_wide(p, to);
}

/* Each operand once. */
static inline double fac_cl_dense_seconds(const fac_opencl *o, const fac_problem *p, int launches) {
    double bytes = 0;
    for (int i = 0; i < p->nin + p->nout; i++) {
        const fac_type *t = i < p->nin ? &p->in[i].type : &p->out[i - p->nin].type;
        if (t->dtype != FAC_NONE) bytes += (double)fac_type_bytes(t);
    }
    return fac_gpu_costs.call * launches + bytes / fac_gpu_bandwidth(&o->limits);
}
#endif
