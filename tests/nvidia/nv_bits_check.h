/* Convolutions of few bits for the tests of NVIDIA's matrix units: random problems of whole
 * numbers, whose results are the very same in any order. */
#ifndef NV_BITS_CHECK_H
#define NV_BITS_CHECK_H
#include "nv_check.h"
#include "backends/opencl/nvidia/bits/bits.h"
#include "ops/code_limits.h"

enum { TEXT = 700 };

/* ---- random problems ---- */

static const char *const bases[] = { "-",         "f32{1}",     "f32{2}",       "f32{1, 2}",
                                     "f32{3, 1}", "f32{3, -1}", "f32{1, 2, 4}", "f32{8, 1, 4, 2}" };
static const int planes_of[] = { 1, 1, 1, 2, 2, 2, 3, 4 };
enum { BASES = sizeof bases / sizeof *bases };

typedef struct shape {
    int groups, C, K, R, S, N, H, W, stride[2], dilation[2], pad[2], M, x, y;
    bool codes, coded, limits, z, b, scale;
} shape;

static inline shape random_shape(bool codes) {
    shape s = { .groups = number(0, 4) ? 1 : 2, .codes = codes, .coded = number(0, 2) };
    const bool whole = s.groups > 1;
    s.C = (int)(number(0, 2) ? number(1, 100) : 64 * number(1, 5));
    s.K = (int)(number(0, 3) ? number(1, 150) : 64 * number(1, 3));
    if (whole) {
        s.C = 32 * (int)number(1, 3);
        s.K = 32 * (int)number(1, 3);
    }
    s.R = (int)number(1, 3);
    s.S = (int)(number(0, 4) ? number(1, 3) : 5);
    s.N = (int)number(1, 3);
    for (int d = 0; d < 2; d++) {
        s.stride[d] = (int)number(1, 2);
        s.dilation[d] = (int)number(1, 2);
        s.pad[d] = (int)number(0, 3);
    }
    s.H = (s.R - 1) * s.dilation[0] + (int)number(1, 9);
    s.W = (s.S - 1) * s.dilation[1] + (int)number(1, 12);
    s.M = (int)number(1, 4);
    s.x = (int)number(0, BASES - 1);
    s.y = (int)number(0, BASES - 1);
    s.b = number(0, 1);
    s.scale = number(0, 1);
    s.limits = codes && s.x != 5 && number(0, 1);
    if (s.limits) s.M = 1;
    s.z = codes && !s.limits && number(0, 1);
    return s;
}

static inline void write_shape(const shape *s, char *to) {
    const int all = s->groups * s->K, wide = s->groups * s->C;
    const int P = (s->H + 2 * s->pad[0] - (s->R - 1) * s->dilation[0] - 1) / s->stride[0] + 1;
    const int Q = (s->W + 2 * s->pad[1] - (s->S - 1) * s->dilation[1] - 1) / s->stride[1] + 1;
    int at = 0;
#define PUT(...) at += snprintf(to + at, (size_t)(TEXT - at), __VA_ARGS__)
    PUT("conv2d_%s(", s->codes ? "codes" : "basis");
    if (s->coded)
        PUT("u32[%d,%d,%d,%d,%d]", planes_of[s->x], s->N, s->H, s->W, (wide + 31) / 32);
    else
        PUT("f32[%d,%d,%d,%d]", s->N, wide, s->H, s->W);
    PUT(", u8[%d,%d,%d], ", s->M, all, (s->C * s->R * s->S + 7) / 8);
    if (s->b)
        PUT("f32[%d]", all);
    else
        PUT("-");
    PUT(", %s, f32[%d,%d], ", bases[s->x], s->M, all);
    if (s->scale)
        PUT("f32[%d]", all);
    else
        PUT("-");
    if (s->z) PUT(", f32[%d,%d,%d,%d]", s->N, all, P, Q);
    if (s->codes && !s->z) PUT(", -");
    if (s->codes) PUT(", %s", bases[s->y]);
    if (s->limits) PUT(", i32[%d,%d]", 1 << planes_of[s->y], all);
    PUT(") stride=%d,%d dilation=%d,%d pad=%d,%d,%d,%d groups=%d dims=%d,%d,%d,%d", s->stride[0],
        s->stride[1], s->dilation[0], s->dilation[1], s->pad[0], s->pad[1], s->pad[0], s->pad[1],
        s->groups, all, s->C, s->R, s->S);
    if (!s->coded && number(0, 1)) PUT(" relu");
    if (s->codes && number(0, 1)) PUT(" y_relu");
    if (s->codes && number(0, 1)) PUT(" q_relu");
#undef PUT
}

/* ---- whole numbers, codes, limits ---- */

static inline void fill_codes(uint32_t *x, const fac_dims *d, int channels) {
    const int64_t n = fac_dims_count(d), words = d->d[4];
    for (int64_t i = 0; i < n; i++) {
        const int left = channels - 32 * (int)(i % words);
        x[i] = (uint32_t)fac_random_bits(seed, stream, (uint64_t)i);
        if (left < 32) x[i] &= (UINT32_C(1) << left) - 1;
    }
}

static inline const float *floats(const fac_host *in, int port, int nin) {
    return port < nin ? in[port].data : NULL;
}

/* See code_limits: the least sum whose result lies above a threshold, after the sums that fall with
 * results were inverted. */
static inline void fill_limits(const fac_node *n, const fac_host *in, int32_t *to) {
    const fac_conv_basis_attrs *a = n->attrs;
    const float *u = floats(in, FAC_CB_X_BASIS, n->nin), *v = in[FAC_CB_W_BASIS].data;
    const float *scale = floats(in, FAC_CB_SCALE, n->nin), *b = floats(in, FAC_CB_B, n->nin);
    const float *t = floats(in, FAC_CB_Y_BASIS, n->nin);
    const int K = (int)a->dims.d[0], terms = (int)(a->dims.d[1] * a->dims.d[2] * a->dims.d[3]);
    const int planes = u ? (int)in[FAC_CB_X_BASIS].type.dims.d[0] : 1, reach = 15 * terms;
    double basis_of[FAC_BASIS_BITS];
    fac_basis basis = { .levels = 2 };
    float least = u ? u[0] : 1;
    for (int j = 1; j < planes; j++) least = fminf(least, u[j]);
    if (t) {
        const int bits = (int)in[FAC_CB_Y_BASIS].type.dims.d[0];
        for (int j = 0; j < bits; j++) basis_of[j] = t[j];
        fac_basis_of(basis_of, 1, bits, true, true, &basis);
    }
    for (int k = 0; k < K; k++) {
        const float f = v[k] * least * (scale ? scale[k] : 1);
        to[k] = f < 0 ? -1 : 0;
        for (int l = 0; l + 1 < basis.levels; l++) {
            int d = -reach - 1;
            for (; d <= reach; d++) {
                float y = (float)(d ^ to[k]) * f + (b ? b[k] : 0);
                if ((a->y_relu || a->q_relu) && y < 0) y = 0;
                if (t ? y > (float)basis.threshold[l] : !(y < 0)) break;
            }
            to[(l + 1) * K + k] = d > reach ? INT32_MAX : d;
        }
    }
}

static inline void make_whole(const fac_node *n, const fac_host *in) {
    const fac_conv_basis_attrs *a = n->attrs;
    for (int i = 0; i < n->nin; i++) {
        if (!in[i].data) continue;
        const int64_t count = fac_dims_count(&in[i].type.dims);
        const fac_value *v = n->in[i];
        float *x = in[i].data;
        stream++;
        if (in[i].type.dtype == FAC_U32)
            fill_codes(in[i].data, &in[i].type.dims, (int)(a->dims.d[1] * a->conv.groups));
        if (v->leaf == FAC_CONST && v->tensor)
            OK(fac_tensor_read(v->tensor, x, (size_t)count * sizeof *x, &err));
        else if (in[i].type.dtype == FAC_F32)
            for (int64_t k = 0; k < count; k++)
                x[k] = (float)(fac_random_bits(seed, stream, (uint64_t)k) % 11) - 4;
        if (in[i].type.dtype == FAC_I32) fill_limits(n, in, in[i].data);
    }
}
#endif
