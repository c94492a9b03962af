/* depthwise/relay, pool/relay and mean/relay: legs whose items make four channels of a pixel
 * (nv_relay_depthwise.cl, nv_relay_pool.cl).  The mean of whole planes is a pool with one
 * window. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/opencl/nvidia/relay/relay.h"
#include "backends/gpu/nvidia/speed.h"
#include "opencl_solvers.h"
#include "op_list.h"
#include "ops/families.h"
#include "ops/pool.h"
#include "ops/reduce.h"
#include "tensor/tensor_internal.h"

enum { VERSION = 1, DEPTHWISE_TAPS = 25, POOL_TAPS = 1024 };

/* What an image op is: windows over x[N, C, ...], what happens at the end, elements between
 * channels of the result. */
typedef struct quads {
    int64_t N, C;
    fac_window h, w;
    fac_cl_tail tail;
    int64_t apart;
    bool average;
    double scale; /* 0: by the taps that are inside */
} quads;

static bool fits(const quads *q) {
    const fac_window *const w[] = { &q->h, &q->w };
    if (q->N * q->C * q->h.out * q->w.out < 1 || q->h.in * q->w.in < 1) return false;
    for (int k = 0; k < 2; k++)
        if (w[k]->stride > 64 || w[k]->dilation > 64 || w[k]->pad > 1024 || w[k]->kernel > 1024)
            return false;
    return (double)q->N * (double)q->C * (double)(q->h.in + q->h.out) *
               (double)(q->w.in + q->w.out) <
           INT_MAX;
}

/* A bias, and at most one operand more, which is an image. */
static bool few_extras(const fac_cl_tail *t) {
    if (t->extras > t->biased + 1) return false;
    for (int i = 0; i < t->extras; i++)
        if (!t->along[i] || !fac_cl_quad_type(t->dtype[i])) return false;
    return fac_cl_quad_type(t->result);
}

static bool read_depthwise(const fac_opencl *o, fac_problem *p, quads *q) {
    fac_conv_geom g;
    memset(q, 0, sizeof *q);
    if (p->node->op != &fac_op_conv2d || !fac_conv_geometry(p->node, &g)) return false;
    if (g.groups < 2 || g.groups != g.C || g.K != g.C || g.C % 4 || g.R * g.S > DEPTHWISE_TAPS)
        return false;
    if (p->in[1].type.dtype != p->in[0].type.dtype || !fac_cl_quad_type(p->in[0].type.dtype))
        return false;
    *q = (quads){ .N = g.N, .C = g.C, .h = fac_conv_window(&g, 1), .w = fac_conv_window(&g, 2) };
    fac_cl_quad_lay(&p->in[0]);
    fac_cl_quad_lay(&p->out[0]);
    fac_operand *w = &p->in[1];
    if (w->layout.offset % 8 || !fac_layout_is_plain(&w->layout, &w->type.dims))
        w->layout = fac_layout_plain(&w->type.dims);
    return fits(q) && fac_cl_tail_read(o, p, 2, &q->tail) && few_extras(&q->tail);
}

/* Does the last window end after the padding? */
static bool is_over(const fac_window *w) {
    return (w->out - 1) * w->stride - w->pad + (w->kernel - 1) * w->dilation >= w->in + w->pad_end;
}

/* Every window divides by the same number, or by how many taps are inside. */
static bool scale_of(const fac_pool_geom *g, quads *q) {
    if (!g->count_include_pad || !(q->h.pad || q->h.pad_end || q->w.pad || q->w.pad_end))
        return true;
    q->scale = 1 / (double)(q->h.kernel * q->w.kernel);
    return !is_over(&q->h) && !is_over(&q->w);
}

static bool read_pool(const fac_opencl *o, fac_problem *p, quads *q) {
    fac_pool_geom g;
    memset(q, 0, sizeof *q);
    if (!fac_pool_geometry(p->node, &g) || g.rank != 2 || g.C % 4 ||
        !fac_cl_quad_type(p->in[0].type.dtype))
        return false;
    if (p->nout > 1 && p->out[1].type.dtype != FAC_NONE) return false;
    *q = (quads){ .N = g.N,
                  .C = g.C,
                  .h = g.window[1],
                  .w = g.window[2],
                  .average = fac_op_averages(p->node->op) };
    if (q->h.kernel * q->w.kernel > POOL_TAPS || (q->average && !scale_of(&g, q))) return false;
    fac_cl_quad_lay(&p->in[0]);
    fac_operand *y = &p->out[0];
    if (!fac_cl_quad_image(y) && fac_layout_is_plain(&y->layout, &y->type.dims))
        q->apart = y->layout.stride[1];
    else
        fac_cl_quad_lay(y);
    return fits(q) && fac_cl_tail_read(o, p, -1, &q->tail) && few_extras(&q->tail);
}

/* The mean of rows and columns, whether they stay as 1 or not. */
static bool read_mean(const fac_opencl *o, fac_problem *p, quads *q) {
    const fac_dims *d = &p->in[0].type.dims;
    fac_operand *y = &p->out[0];
    unsigned mask;
    (void)o;
    memset(q, 0, sizeof *q);
    if (p->node->op != &fac_op_mean || !fac_reduce_axes(p->node, &mask) || d->n != 4 ||
        mask != 12 || d->d[1] % 4)
        return false;
    if (!fac_cl_quad_type(p->in[0].type.dtype) || p->node->body[0] ||
        y->type.dtype != p->in[0].type.dtype)
        return false;
    const fac_window all[] = {
        { .in = d->d[2], .kernel = d->d[2], .stride = 1, .dilation = 1, .out = 1 },
        { .in = d->d[3], .kernel = d->d[3], .stride = 1, .dilation = 1, .out = 1 }
    };
    *q = (quads){ .N = d->d[0], .C = d->d[1], .h = all[0], .w = all[1], .average = true };
    if (q->h.kernel * q->w.kernel > POOL_TAPS) return false;
    fac_cl_quad_lay(&p->in[0]);
    if (y->layout.offset % 8 || !fac_layout_is_plain(&y->layout, &y->type.dims))
        y->layout = fac_layout_plain(&y->type.dims);
    q->tail = (fac_cl_tail){ .from = y->type.dtype, .result = y->type.dtype };
    return fits(q);
}

/* ---- solvers ---- */

typedef bool reader(const fac_opencl *o, fac_problem *p, quads *q);

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    reader *const read = *(reader *const *)p->solver->how;
    fac_opencl *o = fac_opencl_of(d);
    quads q;
    if (!fac_nv_relays(o) || !read(o, p, &q)) return false;
    double bytes = 0;
    for (int i = 0; i < p->nin + p->nout; i++) {
        const fac_type *t = i < p->nin ? &p->in[i].type : &p->out[i - p->nin].type;
        if (t->dtype != FAC_NONE) bytes += (double)fac_type_bytes(t);
    }
    /* taps come from the second cache, or the first; the items of one leg's window wait for one
     * after the other */
    const double items = (double)(q.N * q.h.out * q.w.out * (q.C / 4)),
                 all = 32.0 * FAC_NV_RELAY_WARPS * o->limits.units;
    const double taps = (double)(q.h.kernel * q.w.kernel), turns = items <= all ? 1 : items / all;
    offer->seconds =
        fac_nv_leg_seconds(o, bytes) +
        turns * (taps > 9 ? fac_nv_relay_speeds.tap * taps : fac_nv_relay_speeds.window);
    offer->version = VERSION;
    *FAC_DRAFT(offer, quads) = q;
    return true;
}

static int64_t bytes_of(fac_dtype t) { return fac_dtype_get(t)->block_bytes; }

static void write_extras(const fac_problem *p, const fac_cl_tail *t, fac_nv_leg_plan *to) {
    to->operand[FAC_NV_BIAS] = to->operand[FAC_NV_ADD] = -1;
    to->code.bias = to->code.add = FAC_F32;
    for (int i = 0; i < t->extras; i++) {
        const int which = t->biased && i == 0 ? FAC_NV_BIAS : FAC_NV_ADD;
        to->operand[which] = t->input[i];
        to->leg.at[which] = p->in[t->input[i]].layout.offset * bytes_of(t->dtype[i]);
        if (which == FAC_NV_BIAS)
            to->code.bias = t->dtype[i];
        else
            to->code.add = t->dtype[i];
        for (int k = 0; k < 3 && which == FAC_NV_ADD; k++)
            to->leg.add_step[k] = (int32_t)t->step[i][k];
    }
}

static void write_leg(const fac_problem *p, const quads *q, bool depthwise, fac_nv_leg_plan *to) {
    const fac_layout *x = &p->in[0].layout, *y = &p->out[0].layout;
    fac_nv_leg *l = &to->leg;
    to->code.kind = depthwise ? FAC_NV_LEG_DEPTHWISE : FAC_NV_LEG_POOL;
    if (depthwise) {
        to->code.r = (int)q->h.kernel;
        to->code.s = (int)q->w.kernel;
    }
    to->code.average = q->average;
    to->code.x = p->in[0].type.dtype;
    to->code.result = p->out[0].type.dtype;
    to->finish.biased = q->tail.biased;
    to->finish.body = q->tail.body;
    to->finish.rounded = q->tail.from == FAC_F32 ? FAC_NONE : q->tail.from;
    to->operand[FAC_NV_X] = 0;
    to->operand[FAC_NV_W] = depthwise ? 1 : -1;
    to->operand[FAC_NV_Y] = p->nin;
    write_extras(p, &q->tail, to);
    fac_nv_leg_windows(l, &q->h, &q->w);
    l->at[FAC_NV_X] = x->offset * bytes_of(to->code.x);
    l->at[FAC_NV_Y] = y->offset * bytes_of(to->code.result);
    if (depthwise) l->at[FAC_NV_W] = p->in[1].layout.offset * bytes_of(to->code.x);
    l->image = (int32_t)x->stride[0];
    l->step[0] = (int32_t)x->stride[2];
    l->step[1] = (int32_t)x->stride[3];
    l->y_step[0] = (int32_t)y->stride[0];
    if (p->out[0].type.dims.n == 4) {
        l->y_step[1] = (int32_t)y->stride[2];
        l->y_step[2] = (int32_t)y->stride[3];
    }
    l->y_channel = q->apart ? (int32_t)q->apart : 1;
    l->columns = (int32_t)(q->C / 4);
    l->pixels = (int32_t)(q->N * q->h.out * q->w.out);
    l->tiles = l->pixels * l->columns;
    l->early =
        depthwise && p->in[1].time != FAC_RUN && (!q->tail.biased || p->in[2].time != FAC_RUN);
    l->scale = (float)q->scale;
    l->team = 1;
    l->row_tiles = 1;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    reader *const read = *(reader *const *)p->solver->how;
    fac_nv_leg_plan *to = fac_solver_plan(p, sizeof *to, err);
    const quads *q = p->draft;
    (void)d;
    if (!to) return FAC_E_NOMEM;
    write_leg(p, q, read == read_depthwise, to);
    *out = to;
    return FAC_OK;
}

const fac_solver fac_cl_depthwise_relay = { .name = "depthwise/relay",
                                            .rank = 600,
                                            .how = &(reader *const){ read_depthwise },
                                            .offer = offer,
                                            .make = make,
                                            .done = fac_solver_done };
const fac_solver fac_cl_pool_relay = { .name = "pool/relay",
                                       .rank = 610,
                                       .how = &(reader *const){ read_pool },
                                       .offer = offer,
                                       .make = make,
                                       .done = fac_solver_done };
const fac_solver fac_cl_mean_relay = { .name = "mean/relay",
                                       .rank = 620,
                                       .how = &(reader *const){ read_mean },
                                       .offer = offer,
                                       .make = make,
                                       .done = fac_solver_done };
