/* The phases of a convolution: see conv.h. */
#include "backends/gpu/nvidia/conv/conv.h"
#include "graph/graph_internal.h"
#include "tensor/tensor_internal.h"

/* grad_x: pixel `place + stride o` of dx meets tap k of pixel o + (place + pad - k dilation) /
 * stride of dy, where that is whole: for k = first + each t with each = stride / gcd(stride,
 * dilation). */
static fac_nv_axis axis_of(const fac_nv_conv *c, int d, int place) {
    const fac_conv_geom *g = &c->g;
    if (c->kind == FAC_GPU_FORWARD)
        return (fac_nv_axis){ .in = (int32_t)g->in[d],
                              .out = (int32_t)g->out[d],
                              .origin = (int32_t)-g->pad[d],
                              .stride = (int32_t)g->stride[d],
                              .far = (int32_t)g->dilation[d],
                              .taps = (int32_t)g->kernel[d],
                              .step = 1,
                              .each = 1 };
    const int64_t stride = g->stride[d], from = place + g->pad[d];
    fac_nv_axis a = {
        .in = (int32_t)g->out[d], .stride = 1, .place = place, .step = (int32_t)stride, .each = 1
    };
    a.out = (int32_t)(g->in[d] > place ? (g->in[d] - place + stride - 1) / stride : 0);
    for (int64_t k = 0, last = -1; k < g->kernel[d]; k++) {
        if ((from - k * g->dilation[d]) % stride) continue;
        if (last < 0) {
            a.first = (int32_t)k;
            a.origin = (int32_t)((from - k * g->dilation[d]) / stride);
        } else if (a.taps == 1) {
            a.each = (int32_t)(k - last);
            a.far = (int32_t)(-(k - last) * g->dilation[d] / stride);
        }
        last = k, a.taps++;
    }
    return a;
}

fac_nv_phase fac_nv_phase_of(const fac_nv_conv *c, int phase) {
    fac_nv_phase f = { .pixels = c->g.N, .taps = 1 };
    for (int d = 2; d >= 0; d--) {
        const int each = c->kind == FAC_GPU_GRAD_X ? (int)c->g.stride[d] : 1;
        f.axis[d] = axis_of(c, d, phase % each);
        phase /= each;
        f.pixels *= f.axis[d].out;
        f.taps *= f.axis[d].taps;
    }
    if (c->pooled) f.pixels = 4 * c->g.N * (f.axis[1].out / 2) * (f.axis[2].out / 2);
    return f;
}

fac_nv_ends fac_nv_phase_ends(const fac_nv_conv *c, const fac_nv_phase *f) {
    fac_nv_ends e = c->ends;
    for (int i = 0; i <= c->r.extras; i++) {
        fac_nv_place *p = &e.p[i];
        p->at += (int64_t)p->depth * f->axis[0].place + (int64_t)p->row * f->axis[1].place;
        p->at += (int64_t)p->column * f->axis[2].place;
        p->depth *= f->axis[0].step;
        p->row *= f->axis[1].step;
        p->column *= f->axis[2].step;
    }
    return e;
}

double fac_nv_conv_bytes(const fac_problem *p) {
    double bytes = 0;
    for (int i = 0; i < p->nin + p->nout; i++) {
        const fac_type *t = i < p->nin ? &p->in[i].type : &p->out[i - p->nin].type;
        const bool unread = i < p->nin && (fac_port_flags(p->node, i) & FAC_SHAPE_ONLY);
        if (t->dtype != FAC_NONE && !unread) bytes += (double)fac_type_bytes(t);
    }
    return bytes;
}
