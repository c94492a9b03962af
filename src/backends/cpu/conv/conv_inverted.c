/* fused_conv/inverted, fused_conv/inverted_channels: expansion, depthwise convolution and
 * projection (inverted residuals) on blocked images as one step; conv_inverted_rows.c and
 * conv_inverted_channels.c are the two ways of sharing it out.  f32. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/conv/conv_inverted.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_internal.h"
#include "op_list.h"

enum { WIDEST = 16 }; /* a depthwise kernel, at most */

typedef fac_inverted plan;
typedef fac_inverted_part part;

void fac_inverted_row(const fac_simd *s, int kind, fac_conv_tile t, int64_t width, int n) {
    const int64_t tiles = (width + s->rows - 1) / s->rows, size = width / tiles,
                  larger = width % tiles;
    t.x_next = 0;
    for (int k = 0; k < 2; k++) {
        const int m = (int)(k ? size : size + 1), half = (m + 1) / 2;
        t.tiles = k ? tiles - larger : larger;
        if (!t.tiles) continue;
        t.x1 = t.x0 + half * t.x_pixel;
        t.y1 = t.y0 + half * s->lanes;
        t.r1 = t.r0 ? t.r0 + half * s->lanes : NULL;
        fac_conv_tile_kernel *kernel = s->tile[kind].of[m][n - 1];
        (kernel ? kernel : s->tile[kind].of[m][1])(&t);
        const int64_t done = t.tiles * m;
        t.ahead += t.tiles * ((t.channels + s->lanes - 1) / s->lanes) * t.ahead_lines * 16;
        t.x0 += done * t.x_pixel;
        t.y0 += done * s->lanes;
        if (t.r0) t.r0 += done * s->lanes;
    }
}

int fac_inverted_outputs(const fac_inverted *p, int64_t chunk) {
    const int64_t lanes = p->cpu->simd->lanes, here = p->p.g.K - 2 * chunk * lanes;
    if (here <= lanes) return 1;
    return here <= lanes + lanes / 2 ? 3 : 2;
}

fac_conv_tile fac_inverted_tile(const fac_inverted_job *j, int k, const fac_inverted_part *c,
                                int64_t chunk) {
    const int lanes = j->p->cpu->simd->lanes;
    return (fac_conv_tile){ .x_pixel = lanes,
                            .channels = (int)c->g.C,
                            .R = 1,
                            .S = 1,
                            .y_pixel = lanes,
                            .r_pixel = lanes,
                            .w = fac_conv_chunk(&c->g, lanes, j->w[k], 0, chunk),
                            .bias = j->b[k] ? j->b[k] + chunk * 2 * lanes : NULL,
                            .lo = c->lo,
                            .hi = c->hi };
}

fac_depthwise fac_inverted_depthwise(const fac_inverted_job *j, int64_t block) {
    const fac_inverted_part *d = &j->p->d;
    const fac_conv_geom *g = &d->g;
    const int64_t lanes = j->p->cpu->simd->lanes;
    return (fac_depthwise){ .x_pixel = g->stride[2] * lanes,
                            .x_row = j->p->row,
                            .x_column = lanes,
                            .w = j->w[1] + block * g->R * g->S * lanes,
                            .bias = j->b[1] ? j->b[1] + block * lanes : NULL,
                            .y_pixel = lanes,
                            .width = g->Q,
                            .R = (int)g->R,
                            .S = (int)g->S,
                            .group = 1,
                            .lo = d->lo,
                            .hi = d->hi };
}

static fac_status run(void (*way)(const fac_inverted_job *j), const void *plan_, const fac_span *in,
                      const fac_span *out, fac_span work) {
    const plan *p = plan_;
    const part *parts[] = { &p->e, &p->d, &p->p };
    fac_inverted_job j = { .p = p,
                           .x = fac_span_floats(in[0], &p->x),
                           .y = fac_span_floats(out[0], &p->y),
                           .work = fac_span_packed(work) };
    for (int k = 0; k < 3; k++) {
        j.w[k] = fac_span_packed(in[parts[k]->w]);
        j.b[k] = parts[k]->b < 0 ? NULL : fac_span_packed(in[parts[k]->b]);
    }
    if (p->residual >= 0) j.r = fac_span_floats(in[p->residual], &p->r);
    way(&j);
    return FAC_OK;
}
static fac_status run_rows(const void *plan_, fac_device *d, const fac_span *in,
                           const fac_span *out, fac_span work, fac_error *err) {
    (void)d, (void)err;
    return run(fac_inverted_rows, plan_, in, out, work);
}
static fac_status run_channels(const void *plan_, fac_device *d, const fac_span *in,
                               const fac_span *out, fac_span work, fac_error *err) {
    (void)d, (void)err;
    return run(fac_inverted_channels, plan_, in, out, work);
}

/* ---- offer and make ---- */

static int input_of(const fac_graph *body, const fac_value *v) {
    for (int i = 0; v && i < fac_graph_inputs(body); i++)
        if (fac_graph_input(body, i) == v) return i;
    return -1;
}

/* Takes a convolution of `now` and a clip after it, if they are there. */
static bool take(const fac_graph *body, const fac_node **n, const fac_value **now, part *to) {
    const fac_node *c = *n;
    if (!c || !FAC_IS(c, conv2d) || c->in[0] != *now || c->body[0] || !fac_conv_geometry(c, &to->g))
        return false;
    to->w = input_of(body, c->in[1]);
    to->b = c->nin > 2 ? input_of(body, c->in[2]) : -1;
    if (to->w < 0 || to->w >= FAC_OFFER_PACKED || to->b >= FAC_OFFER_PACKED) return false;
    if (c->nin > 2 && c->in[2] && to->b < 0) return false;
    *n = c->next;
    *now = c->out[0];
    to->lo = -INFINITY;
    to->hi = INFINITY;
    if (*n && (*n)->nin > 0 && (*n)->in[0] == *now && fac_cpu_is_clip(*n, &to->lo, &to->hi)) {
        *now = (*n)->out[0];
        *n = (*n)->next;
    }
    return true;
}

static bool is_first(const fac_conv_geom *g) {
    return g->C <= FAC_FEW_PLANES && g->groups == 1 && g->C < g->K;
}

static bool is_pointwise(const fac_conv_geom *g) {
    for (int k = 1; k < 3; k++)
        if (g->kernel[k] != 1 || g->stride[k] != 1 || g->in[k] != g->out[k]) return false;
    return g->groups == 1;
}

/* The body as three convolutions; false when it is something else. */
static bool read_body(const fac_problem *p, plan *q) {
    const fac_graph *body = p->node->body[0];
    const fac_node *n = body->first;
    const fac_value *now = fac_graph_input(body, 0);
    if (!take(body, &n, &now, &q->e) || !take(body, &n, &now, &q->d) ||
        !take(body, &n, &now, &q->p))
        return false;
    q->residual = -1;
    if (n && FAC_IS(n, add) && q->p.lo == -INFINITY && q->p.hi == INFINITY) {
        const fac_value *other = fac_other_input(n, now);
        if ((q->residual = input_of(body, other)) < 0 ||
            !fac_dims_equal(&other->type.dims, &now->type.dims))
            return false;
        now = n->out[0];
        n = n->next;
        if (n && n->nin > 0 && n->in[0] == now && fac_cpu_is_clip(n, &q->p.lo, &q->p.hi)) {
            now = n->out[0];
            n = n->next;
        }
    }
    if (n || fac_graph_output(body, 0) != now) return false;
    const fac_conv_geom *g = &q->d.g;
    const bool depthwise =
        g->groups == g->C && g->K == g->C && g->dilation[1] == 1 && g->dilation[2] == 1;
    q->planar = is_first(&q->e.g) && q->residual != 0; /* x has one layout */
    if (q->e.g.rank != 2 || !depthwise || g->R > WIDEST || g->S > WIDEST) return false;
    return (q->planar || is_pointwise(&q->e.g)) && is_pointwise(&q->p.g);
}

/* The three solvers' estimates added up, but for what lies between them, which is not moved.
 *   rows      the rows that bands have in common are computed twice, and short rows cost a little
 *             more; where all stays in the second cache of the only thread there is nothing to gain
 *   channels  the largest share counts; parts of y are written, read and added; planes of e may not
 *             fit the second cache
 * and threads for which there is no part are idle. */
static double seconds_of(const plan *q, bool channels) {
    const fac_conv_geom *e = &q->e.g, *d = &q->d.g, *p = &q->p.g;
    const fac_cpu *c = q->cpu;
    const double outputs = (double)d->N * (double)(d->P * d->Q),
                 inputs = (double)e->N * (double)(e->P * e->Q);
    const int64_t common = d->R > d->stride[1] ? d->R - d->stride[1] : 0;
    const int64_t chunk = 2 * c->simd->lanes,
                  before = chunk * (fac_chunks(e->K, c->simd->lanes) * (q->parts - 1) / q->parts);
    const double twice = channels ? (double)((e->K - before) * q->parts) / (double)e->K
                                  : 1.05 + (double)((q->parts - 1) * common) / (double)e->P;
    const double e_weights = (double)fac_conv_packed(e, c->simd->lanes),
                 p_weights = (double)fac_conv_packed(p, c->simd->lanes);
    const double expanded = (double)e->K * (inputs + outputs),
                 joined = channels ? (double)(q->parts - 1) * 3 : 0;
    const bool moves = channels ? (size_t)q->plane * 2 * sizeof(float) > c->l2 / 2
                                : c->pool.threads == 1 && 4 * expanded < (double)c->l2;
    const double ends = (double)(e->N * e->C * e->H * e->W) + (double)p->K * outputs * (1 + joined);
    const double bytes = 4 * (e_weights + p_weights + ends + (moves ? 2 * expanded : 0));
    const double waste = fac_cpu_waste(e->N * q->parts, c->pool.threads),
                 shared = waste * (channels ? twice : 1);
    return fac_cpu_seconds(c, 2 * inputs * e_weights * twice * waste, 0.8, bytes) +
           fac_cpu_seconds(c, 2 * outputs * (double)(d->R * d->S * d->K) * shared, 0.5, 0) +
           fac_cpu_seconds(c, 2 * outputs * p_weights * shared, 0.8, 0);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const bool channels = *(const bool *)p->solver->how;
    plan q = { .cpu = fac_cpu_of(d) };
    const int lanes = q.cpu->simd->lanes;
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].type.dtype != FAC_F32 || fac_dims_count(&p->in[i].type.dims) <= 0)
            return false;
    if (fac_dims_count(&p->out[0].type.dims) <= 0 || !read_body(p, &q)) return false;
    if (channels && (q.cpu->pool.threads == 1 || q.planar)) return false;
    if (!(channels ? fac_inverted_channels_plan : fac_inverted_rows_plan)(&q, &o->work))
        return false;
    if (q.e.g.N > INT_MAX / q.parts) return false;
    part *const parts[] = { &q.e, &q.d, &q.p };
    for (int k = 0; k < 3; k++) {
        const fac_conv_geom *g = &parts[k]->g;
        const size_t floats =
            k == 1 ? fac_conv_depthwise_bytes(g, lanes) / sizeof(float) : fac_conv_packed(g, lanes);
        if (!floats || parts[k]->w == 0 || parts[k]->b == 0 || o->packed[parts[k]->w]) return false;
        o->packed[parts[k]->w] = floats * sizeof(float);
        if (parts[k]->b >= 0 && o->packed[parts[k]->b])
            return false; /* one number of an input has one packed form */
        if (parts[k]->b >= 0) o->packed[parts[k]->b] = fac_bias_bytes(g->K, lanes);
    }
    if (q.residual >= 0 && q.residual < FAC_OFFER_PACKED && o->packed[q.residual]) return false;
    if (q.planar)
        fac_want_plain(&p->in[0]);
    else
        fac_want_blocked(q.cpu, &p->in[0], 0);
    fac_want_blocked_out(q.cpu, &p->out[0]);
    if (q.residual >= 0) fac_want_blocked(q.cpu, &p->in[q.residual], 0);
    o->seconds = seconds_of(&q, channels);
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->x = p->in[0].layout;
    q->y = p->out[0].layout;
    if (q->residual >= 0) q->r = p->in[q->residual].layout;
    *out = q;
    return FAC_OK;
}
/* ---- weights ---- */

/* Which convolution input number `input` belongs to; *bias: as its bias. */
static int part_of(const plan *p, int input, bool *bias) {
    const part *parts[] = { &p->e, &p->d, &p->p };
    int k = 0;
    while (k < 2 && parts[k]->w != input && parts[k]->b != input) k++;
    *bias = parts[k]->b == input;
    return k;
}

static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    bool bias;
    const int k = part_of(p, input, &bias);
    return (uint64_t)k | (uint64_t)bias << 2 | (uint64_t)p->planar << 3 |
           (uint64_t)p->cpu->simd->lanes << 8;
}

static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    const part *parts[] = { &p->e, &p->d, &p->p };
    const int lanes = p->cpu->simd->lanes;
    bool bias;
    const int k = part_of(p, input, &bias);
    (void)d, (void)err;
    if (bias)
        fac_pack_bias(fac_span_packed(from), parts[k]->g.K, lanes, fac_span_packed(to));
    else if (k == 1)
        fac_conv_pack_depthwise(&p->d.g, lanes, false, fac_span_packed(from), fac_span_packed(to));
    else
        fac_conv_pack_input(p->cpu, &parts[k]->g, p->planar && !k ? 1 : lanes, false, 1,
                            fac_span_packed(from), fac_span_packed(to));
    return FAC_OK;
}

#define SOLVER(name_, channels, run_)                                                              \
    .name = "fused_conv/" name_, .op = &fac_op_fused_conv, .how = &(const bool){ channels },       \
    .offer = offer, .make = make, .done = fac_solver_done, .pack_key = pack_key, .pack = pack,     \
    .run = run_
const fac_solver fac_cpu_conv_inverted = { SOLVER("inverted", false, run_rows), .rank = 160 };
const fac_solver fac_cpu_conv_inverted_channels = { SOLVER("inverted_channels", true, run_channels),
                                                    .rank = 170 };
