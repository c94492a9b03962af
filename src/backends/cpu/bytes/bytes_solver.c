/* conv_integer/bytes, qlinear_conv/bytes, matmul_integer/bytes, qlinear_matmul/bytes: products and
 * convolutions of bytes (bytes.h), with channels last.
 *
 * Weights are packed once; scales and zero points are read in each run, so they may be computed. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/byte_ports.h"
#include "backends/cpu/bytes/bytes.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "cpu_solvers.h"
#include "op_list.h"
#include "ops/conv.h"
#include "ops/qlinear_conv_add.h"

enum { FEW_CHANNELS = 4 };

typedef struct plan {
    fac_byte_product p;
    fac_byte_ports at;
    int64_t biases, w_zeros, w_scales;
    fac_layout x, y, z;
} plan;

static bool signed_(const fac_problem *p, int input) { return p->in[input].type.dtype == FAC_I8; }

static void types_of(const fac_problem *p, fac_byte_product *b) {
    const fac_dtype y = p->out[0].type.dtype;
    b->x_signed = signed_(p, 0);
    b->w_signed = signed_(p, 1);
    b->bytes = y != FAC_I32;
    b->y_signed = y == FAC_I8;
}

static bool adds(const fac_problem *p) { return FAC_IS(p->node, qlinear_conv_add); }

static void wish(fac_operand *v) { v->layout = fac_layout_channels_last(&v->type.dims); }

static bool conv_product(const fac_problem *p, fac_byte_product *b) {
    fac_conv_geom g;
    if (!fac_conv_geometry_of(2, p->node->attrs, &p->in[0].type.dims, &p->in[1].type.dims, &g))
        return false;
    const int64_t C = g.C / g.groups, K = g.K / g.groups;
    const fac_layout *x = &p->in[0].layout, *y = &p->out[0].layout;
    if (g.N * g.K * g.P * g.Q * g.C * g.R * g.S == 0) return false;
    *b = (fac_byte_product){ .groups = g.groups,
                             .images = g.N,
                             .C = C,
                             .K = K,
                             .H = g.H,
                             .W = g.W,
                             .P = g.P,
                             .Q = g.Q,
                             .R = g.R,
                             .S = g.S,
                             .stride = { g.stride[1], g.stride[2] },
                             .dilation = { g.dilation[1], g.dilation[2] },
                             .pad = { g.pad[1], g.pad[2] },
                             .depthwise = C == 1 && K == 1 && g.groups > 1 };
    b->x.image = x->stride[0];
    b->x.channel = x->stride[1];
    b->x.row = x->stride[2];
    b->x.column = x->stride[3];
    b->x.group = C * x->stride[1];
    b->y.image = y->stride[0];
    b->y.channel = y->stride[1];
    b->y.row = y->stride[2];
    b->y.column = y->stride[3];
    b->y.group = K * y->stride[1];
    b->w.s = 1;
    b->w.r = g.S;
    b->w.c = g.R * g.S;
    b->w.k = C * g.R * g.S;
    b->w.group = K * b->w.k;
    if (adds(p)) {
        const int64_t *z = p->in[FAC_QSUM_Z].layout.stride;
        b->sums_up = true;
        b->z_first = ((const fac_qlinear_conv_add_attrs *)p->node->attrs)->z_first;
        b->z.image = z[0];
        b->z.group = K * z[1];
        b->z.row = z[2];
        b->z.column = z[3];
    }
    types_of(p, b);
    return true;
}

/* Matrices: a row is a pixel, a batch of b has a group each. */
static bool matmul_product(const fac_problem *p, fac_byte_product *b) {
    const fac_dims *x = &p->in[0].type.dims, *w = &p->in[1].type.dims;
    if (x->n < 2 || w->n < 2 || fac_dims_count(x) <= 0 || fac_dims_count(w) <= 0) return false;
    const int64_t K = x->d[x->n - 1], N = w->d[w->n - 1], M = x->d[x->n - 2];
    const int64_t batch = fac_dims_count(w) / (K * N), all = fac_dims_count(x) / (M * K);
    if (batch > 1 && (batch != all || x->n != w->n)) return false;
    for (int k = 0; batch > 1 && k < w->n - 2; k++)
        if (x->d[k] != w->d[k]) return false;
    const int64_t rows = batch > 1 ? M : M * all;
    *b = (fac_byte_product){ .groups = batch,
                             .images = 1,
                             .C = K,
                             .K = N,
                             .H = 1,
                             .W = rows,
                             .P = 1,
                             .Q = rows,
                             .R = 1,
                             .S = 1,
                             .stride = { 1, 1 },
                             .dilation = { 1, 1 } };
    b->x.group = rows * K;
    b->x.channel = 1;
    b->x.row = rows * K;
    b->x.column = K;
    b->x.image = batch * rows * K;
    b->y.group = rows * N;
    b->y.channel = 1;
    b->y.row = rows * N;
    b->y.column = N;
    b->y.image = batch * rows * N;
    b->w.k = 1;
    b->w.c = N;
    b->w.group = K * N;
    types_of(p, b);
    return true;
}

static bool is_conv(const fac_problem *p) { return p->node->op->attrs_size != 0; }

static bool settle(fac_device *d, const fac_problem *p, const fac_byte_ports *at, plan *q) {
    const bool conv = is_conv(p);
    if (!(conv ? conv_product : matmul_product)(p, &q->p)) return false;
    const int64_t outputs = conv ? q->p.groups * q->p.K : q->p.K;
    if (!fac_byte_numbers_fit(p, at, outputs) || !fac_byte_settle(fac_cpu_of(d), &q->p))
        return false;
    q->at = *at;
    q->biases = fac_byte_count(p, at->b);
    q->w_zeros = fac_byte_count(p, at->w_zero);
    q->w_scales = fac_byte_count(p, at->w_scale);
    q->x = p->in[0].layout;
    q->y = p->out[0].layout;
    if (adds(p)) q->z = p->in[FAC_QSUM_Z].layout;
    if (adds(p) && q->p.depthwise) return false;
    return true;
}

/* Images of few channels, as they are loaded, are read as they are. */
static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { 0 };
    if (p->node->body[0]) return false;
    if (is_conv(p)) {
        const bool few = p->in[0].type.dims.d[1] <= FEW_CHANNELS && !p->in[0].layout.block;
        if (!few) wish(&p->in[0]);
        wish(&p->out[0]);
    } else {
        p->in[0].layout = fac_layout_plain(&p->in[0].type.dims);
        p->out[0].layout = fac_layout_plain(&p->out[0].type.dims);
    }
    for (int k = 1; k < p->nin; k++)
        if (p->in[k].type.dtype != FAC_NONE)
            p->in[k].layout = fac_layout_plain(&p->in[k].type.dims);
    if (adds(p)) wish(&p->in[FAC_QSUM_Z]);
    if (!settle(d, p, fac_byte_ports_of(p->node), &q)) return false;
    o->packed[1] = fac_byte_packed(&q.p);
    o->work = fac_byte_work(&q.p);
    o->seconds = fac_byte_seconds(&q.p);
    if (p->in[1].time == FAC_RUN) o->seconds += (double)o->packed[1] / fac_cpu_speeds.byte_pack;
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    return fac_draft_plan(p, sizeof(plan), out, err);
}
static uint64_t pack_key(const void *plan_, int input) {
    const plan *q = plan_;
    const fac_byte_product *p = &q->p;
    const uint64_t kind = (uint64_t)p->kernels->lanes | (uint64_t)p->depthwise << 8 |
                          (uint64_t)(p->w.k == 1) << 9 | (uint64_t)input << 10 |
                          (uint64_t)p->by_rows << 12;
    const uint64_t quads = p->kernels->chunk ? (uint64_t)p->quads << 40 : 0; /* their order */
    return kind | (uint64_t)p->groups << 16 | quads;
}

static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    (void)d, (void)input, (void)err;
    fac_byte_pack(&((const plan *)plan_)->p, fac_span_bytes(from), fac_span_bytes(to));
    return FAC_OK;
}

static const void *at(const fac_span *in, int port) {
    return port >= 0 && in[port].memory ? fac_span_bytes(in[port]) : NULL;
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *q = plan_;
    const fac_byte_ports *a = &q->at;
    const size_t size = q->p.bytes ? 1 : 4;
    const char *z = q->p.sums_up ? (char *)fac_span_bytes(in[FAC_QSUM_Z]) + q->z.offset : NULL;
    const fac_byte_data data = { .x = fac_span_bytes(in[0]) + q->x.offset,
                                 .packed = fac_span_bytes(in[1]),
                                 .y = fac_span_bytes(out[0]) + (size_t)q->y.offset * size,
                                 .work = fac_span_bytes(work),
                                 .x_zero = at(in, a->x_zero),
                                 .w_zero = at(in, a->w_zero),
                                 .y_zero = at(in, a->y_zero),
                                 .bias = at(in, a->b),
                                 .x_scale = at(in, a->x_scale),
                                 .w_scale = at(in, a->w_scale),
                                 .y_scale = at(in, a->y_scale),
                                 .z = z,
                                 .z_zero = z ? at(in, FAC_QSUM_Z_ZERO) : NULL,
                                 .sum_zero = z ? at(in, FAC_QSUM_Y_ZERO) : NULL,
                                 .z_scale = z ? at(in, FAC_QSUM_Z_SCALE) : NULL,
                                 .sum_scale = z ? at(in, FAC_QSUM_Y_SCALE) : NULL,
                                 .biases = q->biases,
                                 .w_zeros = q->w_zeros,
                                 .w_scales = q->w_scales };
    (void)d, (void)err;
    fac_byte_run(&q->p, &data);
    return FAC_OK;
}

#define SOLVER(of)                                                                                 \
    .name = #of "/bytes", .op = &fac_op_##of, .offer = offer, .make = make,                        \
    .done = fac_solver_done, .pack_key = pack_key, .pack = pack, .run = run
const fac_solver fac_cpu_conv_integer = { SOLVER(conv_integer), .rank = 990 };
const fac_solver fac_cpu_qlinear_conv = { SOLVER(qlinear_conv), .rank = 1000 };
const fac_solver fac_cpu_qlinear_conv_add = { SOLVER(qlinear_conv_add), .rank = 1005 };
const fac_solver fac_cpu_matmul_integer = { SOLVER(matmul_integer), .rank = 1010 };
const fac_solver fac_cpu_qlinear_matmul = { SOLVER(qlinear_matmul), .rank = 1020 };
