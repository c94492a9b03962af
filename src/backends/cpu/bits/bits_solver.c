/* conv2d_basis/bits, conv2d_codes/bits: convolutions of few bits by counting (bits.h), with floats
 * in blocks of a vector of channels, and codes plain.
 *
 * Planes of weights are packed once; bases, factors and biases are read in each run. */
#include "backends/problem.h"
#include "backends/draft.h"
#include "backends/cpu/bits/bits.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/cpu.h"
#include "cpu_solvers.h"
#include "op_list.h"
#include "ops/basis.h"
#include "ops/conv_basis.h"

typedef struct plan {
    fac_bit_conv p;
    int64_t bytes; /* of an output channel's bits as they come */
    fac_layout x, y, z;
    bool floats; /* y is asked for */
} plan;

/* What is y of either op. */
static const fac_operand *floats_of(const fac_problem *p) {
    return FAC_IS(p->node, conv2d_codes) ? &p->out[1] : &p->out[0];
}

/* Of an operand that is there. */
#define STRIDES(of)                                                                                \
    {                                                                                              \
        (of)->layout.stride[0], (of)->layout.stride[1], (of)->layout.stride[2],                    \
            (of)->layout.stride[3]                                                                 \
    }

/* A basis that never changes: its planes may share tables, and sums of them are whole numbers. */
static void find_sets(const fac_problem *p, fac_bit_conv *c) {
    float u[FAC_BIT_PLANES];
    const fac_value *basis = p->node->in[FAC_CB_X_BASIS];
    c->sets = c->planes;
    c->times[0] = 1;
    if (c->planes == 1 || c->planes > FAC_BIT_PLANES) return;
    if (basis->leaf != FAC_CONST || !basis->tensor) return;
    if (fac_tensor_read(basis->tensor, u, (size_t)c->planes * sizeof *u, NULL)) return;
    if (fac_basis_multiples(u, c->planes, c->times, &c->unit)) c->sets = 1;
}

static bool settle(fac_device *d, const fac_problem *p, plan *q) {
    const fac_cpu *c = fac_cpu_of(d);
    const fac_conv_basis_attrs *a = p->node->attrs;
    const fac_operand *x = &p->in[0], *y = floats_of(p);
    fac_conv_geom g;
    if (!fac_conv_basis_geometry(p->node, &g)) return false;
    if (g.N * g.C * g.K * g.P * g.Q * g.H * g.W * g.R * g.S == 0) return false;
    const int64_t C = g.C / g.groups, K = g.K / g.groups;
    if (g.groups > 1 && (C % c->simd->lanes || K % c->simd->lanes)) return false;
    q->p = (fac_bit_conv){ .images = g.N,
                           .groups = g.groups,
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
                           .sign = !fac_has_in(p, FAC_CB_X_BASIS),
                           .relu = a->relu,
                           .planes = 1,
                           .y_planes = 1,
                           .of_weights = (int)p->in[FAC_CB_W_BASIS].type.dims.d[0],
                           .y_relu = a->y_relu,
                           .q_relu = a->q_relu,
                           .coded = x->type.dtype == FAC_U32,
                           .codes = FAC_IS(p->node, conv2d_codes),
                           .tables = q->p.tables,
                           .x = STRIDES(x),
                           .y = STRIDES(y) };
    if (fac_has_in(p, FAC_CB_X_BASIS)) q->p.planes = (int)p->in[FAC_CB_X_BASIS].type.dims.d[0];
    if (fac_has_in(p, FAC_CB_Y_BASIS)) q->p.y_planes = (int)p->in[FAC_CB_Y_BASIS].type.dims.d[0];
    find_sets(p, &q->p);
    if (fac_has_in(p, FAC_CB_Z)) {
        const fac_operand *z = &p->in[FAC_CB_Z];
        q->p.z.image = z->layout.stride[0];
        q->p.z.block = z->layout.stride[1];
        q->p.z.row = z->layout.stride[2];
        q->p.z.column = z->layout.stride[3];
        q->z = z->layout;
    }
    q->bytes = p->in[FAC_CB_BITS].type.dims.d[2];
    q->x = x->layout;
    q->y = y->layout;
    q->floats = y->type.dtype != FAC_NONE;
    return fac_bit_settle(c, &q->p);
}

/* Floats in blocks, everything else plain. */
static void want_layouts(const fac_cpu *c, fac_problem *p) {
    for (int k = 1; k < p->nin; k++)
        if (fac_has_in(p, k)) fac_want_plain(&p->in[k]);
    if (p->in[0].type.dtype == FAC_U32)
        fac_want_plain(&p->in[0]);
    else
        fac_want_blocked(c, &p->in[0], 0);
    if (fac_has_in(p, FAC_CB_Z)) fac_want_blocked(c, &p->in[FAC_CB_Z], 0);
    for (int k = 0; k < p->nout; k++) {
        if (p->out[k].type.dtype == FAC_F32)
            fac_want_blocked_out(c, &p->out[k]);
        else if (p->out[k].type.dtype == FAC_U32)
            fac_want_plain(&p->out[k]);
    }
}

static bool offer_of(fac_device *d, fac_problem *p, fac_offer *o, bool tables) {
    const fac_cpu *c = fac_cpu_of(d);
    plan q = { .p.tables = tables };
    if (p->node->body[0] || p->in[FAC_CB_W_BASIS].type.dtype != FAC_F32) return false;
    if (p->in[0].type.dtype != FAC_F32 && p->in[0].type.dtype != FAC_U32) return false;
    if (p->in[FAC_CB_BITS].time == FAC_RUN) return false;
    want_layouts(c, p);
    if (!settle(d, p, &q)) return false;
    o->packed[FAC_CB_BITS] = fac_bit_packed(&q.p);
    o->work = fac_bit_work(&q.p);
    o->seconds = fac_bit_seconds(&q.p, q.floats);
    *FAC_DRAFT(o, plan) = q;
    return true;
}
static bool offer_counts(fac_device *d, fac_problem *p, fac_offer *o) {
    return offer_of(d, p, o, false);
}
static bool offer_tables(fac_device *d, fac_problem *p, fac_offer *o) {
    return offer_of(d, p, o, true);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    return fac_draft_plan(p, sizeof(plan), out, err);
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
                      fac_span work, fac_error *err) {
    const plan *q = plan_;
    const fac_bit_conv *p = &q->p;
    fac_bit_data data = { .packed = fac_span_packed(in[FAC_CB_BITS]),
                          .b = fac_span_packed(in[FAC_CB_B]),
                          .x_basis = fac_span_packed(in[FAC_CB_X_BASIS]),
                          .w_basis = fac_span_packed(in[FAC_CB_W_BASIS]),
                          .scale = fac_span_packed(in[FAC_CB_SCALE]),
                          .work = fac_span_packed(work) };
    (void)d;
    (void)err;
    if (p->coded)
        data.x_codes = (const uint32_t *)(const void *)fac_span_floats(in[0], &q->x);
    else
        data.x = fac_span_floats(in[0], &q->x);
    if (q->floats) data.y = fac_span_floats(out[p->codes], &q->y);
    if (p->codes) {
        data.q = (uint32_t *)(void *)fac_span_packed(out[0]);
        data.y_basis = fac_span_packed(in[FAC_CB_Y_BASIS]);
        if (in[FAC_CB_Z].memory)
            data.z = fac_span_floats(in[FAC_CB_Z], &q->z);
        else if (!data.y && p->sets == 1)
            data.limits = (const int32_t *)fac_span_packed(in[FAC_CB_LIMITS]);
    }
    fac_bit_run(p, &data);
    return FAC_OK;
}

#define SOLVER(of, way)                                                                            \
    .name = #of "/" #way, .op = &fac_op_##of, .make = make, .done = fac_solver_done,               \
    .pack_key = pack_key, .pack = pack, .run = run
const fac_solver fac_cpu_conv_bits = { SOLVER(conv2d_basis, bits), .offer = offer_counts,
                                       .rank = 960 };
const fac_solver fac_cpu_conv_codes = { SOLVER(conv2d_codes, bits), .offer = offer_counts,
                                        .rank = 970 };
const fac_solver fac_cpu_conv_bits_tables = { SOLVER(conv2d_basis, tables), .offer = offer_tables,
                                              .rank = 962 };
const fac_solver fac_cpu_conv_codes_tables = { SOLVER(conv2d_codes, tables), .offer = offer_tables,
                                               .rank = 972 };
