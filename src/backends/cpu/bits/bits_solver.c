/* conv2d_basis/bits: convolutions of few bits by counting (bits.h),
    with channels in blocks of a vector.
 *
 * Planes of weights are packed once; bases, factors and biases are read in each run. */
#include "backends/cpu/bits/bits.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/conv_basis.h"

typedef struct plan {
    fac_bit_conv p;
    int64_t      bytes;             /* of an output channel's bits as they come */
    fac_layout   x, y;
} plan;

static bool geometry(const fac_problem *p, fac_conv_geom *g) {
    const fac_conv_basis_attrs *a = p->node->attrs;
    return fac_conv_geometry_of(2, &a->conv, &p->in[0].type.dims, &a->dims, g);
}

static bool settle(fac_device *d, const fac_problem *p, plan *q) {
    const fac_cpu *c = fac_cpu_of(d);
    const fac_conv_basis_attrs *a = p->node->attrs;
    const fac_layout *x = &p->in[0].layout, *y = &p->out[0].layout;
    fac_conv_geom g;
    if (!geometry(p, &g) || g.N * g.C * g.K * g.P * g.Q * g.H * g.W * g.R * g.S == 0) return false;
    const int64_t C = g.C / g.groups, K = g.K / g.groups;
    if (g.groups > 1 && (C % c->simd->lanes || K % c->simd->lanes)) return false;
    const bool sign = p->in[FAC_CB_X_BASIS].type.dtype == FAC_NONE;
    const fac_dims *w = &p->in[FAC_CB_W_BASIS].type.dims;
    q->p = (fac_bit_conv){ .images = g.N, .groups = g.groups, .C = C, .K = K, .H = g.H, .W = g.W,
        .P = g.P, .Q = g.Q, .R = g.R, .S = g.S, .stride = { g.stride[1], g.stride[2] },
        .dilation = { g.dilation[1], g.dilation[2] }, .pad = { g.pad[1], g.pad[2] }, .sign = sign,
        .relu = a->relu, .planes = 1, .of_weights = (int)w->d[0],
        .x = { x->stride[0], x->stride[1], x->stride[2], x->stride[3] },
        .y = { y->stride[0], y->stride[1], y->stride[2], y->stride[3] } };
    if (!sign) q->p.planes = (int)p->in[FAC_CB_X_BASIS].type.dims.d[0];
    q->bytes = p->in[FAC_CB_BITS].type.dims.d[2];
    q->x = *x;
    q->y = *y;
    return fac_bit_settle(c, &q->p);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *c = fac_cpu_of(d);
    plan q;
    if (p->node->body[0] || p->in[0].type.dtype != FAC_F32) return false;
    if (p->in[FAC_CB_BITS].time == FAC_RUN) return false;
    fac_want_blocked(c, &p->in[0], 0);
    fac_want_blocked_out(c, &p->out[0]);
    for (int k = 1; k < p->nin; k++)
        if (p->in[k].type.dtype != FAC_NONE)
            p->in[k].layout = fac_layout_plain(&p->in[k].type.dims);
    if (!settle(d, p, &q)) return false;
    o->packed[FAC_CB_BITS] = fac_bit_packed(&q.p);
    o->work = fac_bit_work(&q.p);
    o->seconds = fac_bit_seconds(&q.p);
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_alloc(1, sizeof *q);
    if (!q) return fac_raise(err, FAC_E_NOMEM, "conv2d_basis: no memory for a plan");
    if (!settle(d, p, q)) {
        fac_release(q);
        return fac_raise(err, FAC_E_INTERNAL, "conv2d_basis: another problem than was offered for");
    }
    *out = q;
    return FAC_OK;
}
static void done(fac_device *d, void *plan_) {
    (void)d;
    fac_release(plan_);
}

static uint64_t pack_key(const void *plan_, int input) {
    return fac_bit_kind(&((const plan *)plan_)->p) ^ (uint64_t)input;
}

static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *q = plan_;
    (void)d;
    (void)input;
    (void)err;
    fac_bit_pack_weights(&q->p, (const uint8_t *)from.memory + from.at, q->bytes,
                         (char *)to.memory + to.at);
    return FAC_OK;
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work,
                      fac_error *err) {
    const plan *q = plan_;
    const fac_bit_data data = { .x = fac_span_floats(in[0], &q->x), .y = fac_span_floats(out[0],
                                                                                         &q->y),
        .packed = fac_span_packed(in[FAC_CB_BITS]), .b = fac_span_packed(in[FAC_CB_B]),
        .x_basis = fac_span_packed(in[FAC_CB_X_BASIS]), .w_basis =
            fac_span_packed(in[FAC_CB_W_BASIS]),
        .scale = fac_span_packed(in[FAC_CB_SCALE]), .work = fac_span_packed(work) };
    (void)d;
    (void)err;
    fac_bit_run(&q->p, &data);
    return FAC_OK;
}

const fac_solver fac_cpu_conv_bits = {
    "conv2d_basis/bits", &fac_op_conv2d_basis, offer, make, done, pack_key, pack, run };
