/* Solver "affine": one factor and one summand a channel and a clip, as a batch norm and its
 * activation before a convolution:
 *   y[n,c,h,w] = clip(x[n,c,h,w] s[c] + t[c], lo, hi)      s, t f32[C,1,1] known before the run
 * on blocked images, a vector being one pixel of a block of channels, so that s and t are
 * registers, where the chains of elementwise.c copy them out for every block.  f32, one rounding of
 * the product and the sum.  Bound by memory. */
#include <limits.h>
#include <math.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/conv/conv_common.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_internal.h"
#include "op_list.h"

enum { MOST_LANES = 16 };

typedef struct plan {
    const fac_cpu *cpu;
    fac_layout x, y;
    int input, factor, summand; /* which inputs */
    float lo, hi;
    int64_t channels, blocks, height, width, images, bands;
} plan;

/* Which input of the body v is; -1. */
static int input_of(const fac_graph *body, const fac_value *v) {
    for (size_t i = 0; i < body->ninputs; i++)
        if (body->inputs[i] == v) return (int)i;
    return -1;
}

/* The other input of node n, of which one is `from`; -1 when it is something else. */
static int other_input(const fac_graph *body, const fac_node *n, const fac_value *from) {
    if (!n || n->nin != 2 || n->nout != 1 || (n->in[0] == from) == (n->in[1] == from)) return -1;
    return input_of(body, n->in[n->in[0] == from]);
}

static bool by_channel(const fac_operand *o, const fac_dims *y) {
    const fac_dims *d = &o->type.dims;
    const int axis = d->n - 3;
    return o->type.dtype == FAC_F32 && o->time != FAC_RUN && (d->n == 3 || d->n == 4) &&
           d->d[axis] == y->d[1] && fac_dims_count(d) == y->d[1];
}

/* All but the layouts. */
static bool settle(plan *q, const fac_problem *p) {
    const fac_graph *body = p->node->body[0];
    const fac_dims *d = &p->out[0].type.dims;
    if (!body || p->nin != 3 || p->nout != 1 || d->n != 4 || fac_dims_count(d) <= 0) return false;
    if (p->out[0].type.dtype != FAC_F32) return false;
    const fac_node *mul = body->first;
    const fac_node *add = mul ? mul->next : NULL;
    const fac_node *act = add ? add->next : NULL;
    if (!add || !FAC_IS(mul, mul) || !FAC_IS(add, add) || (act && act->next)) return false;
    q->input = -1;
    for (int i = 0; i < 2; i++) {
        const int k = input_of(body, mul->in[i]);
        if (k >= 0 && fac_dims_equal(&p->in[k].type.dims, d)) q->input = k;
    }
    if (q->input < 0 || p->in[q->input].type.dtype != FAC_F32) return false;
    q->factor = other_input(body, mul, body->inputs[q->input]);
    q->summand = other_input(body, add, mul->out[0]);
    if (q->factor < 0 || q->summand < 0 || q->summand == q->input || q->factor == q->summand)
        return false;
    if (!by_channel(&p->in[q->factor], d) || !by_channel(&p->in[q->summand], d)) return false;
    q->lo = -INFINITY;
    q->hi = INFINITY;
    if (act && (act->in[0] != add->out[0] || !fac_cpu_is_clip(act, &q->lo, &q->hi))) return false;
    if (body->outputs[0].value != (act ? act : add)->out[0]) return false;
    const int lanes = q->cpu->simd->lanes, threads = q->cpu->pool.threads;
    q->images = d->d[0];
    q->channels = d->d[1];
    q->height = d->d[2];
    q->width = d->d[3];
    q->blocks = (q->channels + lanes - 1) / lanes;
    q->bands = q->height < 28 ? 1 : 2 * threads;
    return q->images * q->blocks <= INT_MAX / q->bands;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    if (!settle(&q, p) || p->in[q.input].layout.block != q.cpu->simd->lanes) return false;
    fac_want_blocked(q.cpu, &p->in[q.input], 0);
    fac_want_blocked_out(q.cpu, &p->out[0]);
    o->packed[q.factor] = o->packed[q.summand] = fac_bias_bytes(q.channels, q.cpu->simd->lanes);
    const double bytes = 8.0 * (double)(q.images * q.channels) * (double)(q.height * q.width);
    o->seconds = fac_cpu_seconds(q.cpu, 0, 1, bytes);
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->x = p->in[q->input].layout;
    q->y = p->out[0].layout;
    *out = q;
    return FAC_OK;
}
static uint64_t pack_key(const void *plan_, int input) {
    (void)input;
    return (uint64_t)((const plan *)plan_)->cpu->simd->lanes;
}
static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    (void)d, (void)input, (void)err;
    fac_pack_bias(fac_span_packed(from), p->channels, p->cpu->simd->lanes, fac_span_packed(to));
    return FAC_OK;
}

typedef struct job {
    const plan *p;
    const float *x, *s, *t;
    float *y;
} job;

/* [image][band][block] */
static void item(void *arg, int i, int thread) {
    static const float zeros[MOST_LANES];
    const job *j = arg;
    const plan *p = j->p;
    const int64_t block = i % p->blocks, band = i / p->blocks % p->bands,
                  image = i / p->blocks / p->bands;
    const int64_t lanes = p->cpu->simd->lanes, first = p->height * band / p->bands,
                  last = p->height * (band + 1) / p->bands;
    const bool dense = p->x.stride[2] == p->width * lanes &&
                       p->y.stride[2] == p->width * lanes; /* rows lie side by side */
    (void)thread;
    p->cpu->simd->lane->linear(&(fac_lane_rows){
        .x = j->x + image * p->x.stride[0] + block * p->x.stride[1] + first * p->x.stride[2],
        .x_row = p->x.stride[2],
        .y = j->y + image * p->y.stride[0] + block * p->y.stride[1] + first * p->y.stride[2],
        .y_row = p->y.stride[2],
        .rows = dense ? 1 : last - first,
        .pixels = dense ? (last - first) * p->width : p->width,
        .mean = zeros,
        .factor = j->s + block * lanes,
        .shift = j->t + block * lanes,
        .lo = p->lo,
        .hi = p->hi });
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { p, fac_span_floats(in[p->input], &p->x), fac_span_packed(in[p->factor]),
              fac_span_packed(in[p->summand]), fac_span_floats(out[0], &p->y) };
    (void)d, (void)work, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->images * p->bands * p->blocks), item, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_affine = { .name = "affine",
                                    .op = &fac_op_fused,
                                    .rank = 710,
                                    .offer = offer,
                                    .make = make,
                                    .done = fac_solver_done,
                                    .pack_key = pack_key,
                                    .pack = pack,
                                    .run = run };
