/* pool/quads: pools of images with channels last and their gradients, four channels an item; bodies
 * after them.  The result of a pool may be plain: the last image of a network is read as a row by
 * a linear layer, and need not be transposed for that. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "backends/opencl/product/gemm.h"
#include "backends/opencl/device/probe.h"
#include "backends/opencl/pool/quads.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "op_list.h"
#include "ops/families.h"
#include "ops/pool_grad.h"
#include "cl_pool_quads.h"
#include "cl_pool_quads_grad.h"

enum { SMALL = 9, TAPS = 64 };

typedef struct pooling {
    fac_pool_geom g;
    bool grad, average,
        positive; /* positive: relu is before it, what is at or below 0 does not count */
    fac_cl_tail tail;
    fac_cl_tiling q;
    int64_t apart; /* elements between channels of a plain result; 0: side by side */
} pooling;

static bool read_problem(const fac_opencl *o, fac_problem *p, pooling *s) {
    *s = (pooling){ .average = fac_op_averages(p->node->op) };
    s->positive = p->node->op == &fac_op_max_pool2d_relu_grad;
    if (fac_pool_grad_geometry(p->node, &s->g))
        s->grad = true;
    else if (!fac_pool_geometry(p->node, &s->g))
        return false;
    const fac_pool_geom *g = &s->g;
    const fac_window *h = &g->window[1], *w = &g->window[2];
    const fac_dtype t = (s->grad ? &p->out[0] : &p->in[0])->type.dtype;
    const bool reads_x = s->grad && !s->average;
    if (g->rank != 2 || g->C % 4 || !fac_cl_quad_type(t) || h->kernel * w->kernel > TAPS)
        return false;
    if (p->nout > 1 && p->out[1].type.dtype != FAC_NONE) return false;
    if (g->N * g->C * h->in * w->in == 0 || h->out * w->out == 0 ||
        (reads_x && p->in[0].type.dtype != t))
        return false;
    if ((double)g->N * (double)g->C * (double)(h->in + h->out) * (double)(w->in + w->out) > INT_MAX)
        return false;
    for (int k = 1; k < 3; k++)
        if (g->window[k].stride > 8 || g->window[k].dilation > 8 || g->window[k].pad > 64)
            return false;
    fac_operand *from = &p->in[s->grad ? 1 : 0];
    if (reads_x) fac_cl_quad_lay(&p->in[0]);
    fac_cl_quad_lay(from);
    if (!s->grad && !fac_cl_quad_image(&p->out[0]) &&
        fac_layout_is_plain(&p->out[0].layout, &p->out[0].type.dims))
        s->apart = p->out[0].layout.stride[1];
    else
        fac_cl_quad_lay(&p->out[0]);
    if (s->grad ? p->node->body[0] != NULL || from->type.dtype != t
                : !fac_cl_tail_read(o, p, -1, &s->tail))
        return false;
    s->tail.from = t;
    s->tail.result = p->out[0].type.dtype;
    s->q = (fac_cl_tiling){ .h = *h, .w = *w, .grad_x = s->grad, .N = g->N, .C = g->C };
    s->q.favourite = !s->grad && (h->kernel > h->stride || w->kernel > w->stride)
                         ? 5
                         : 2; /* windows that overlap */
    return fac_cl_tiling_cut(o, p->variant, &s->q);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    pooling s;
    if (!o->limits.gpu || !read_problem(o, p, &s)) return false;
    offer->variants = FAC_CL_QUAD_VARIANTS;
    offer->version = 1;
    *FAC_DRAFT(offer, pooling) = s;
    offer->seconds = fac_cl_streaming(o, p, 1);
    /* each element in a line of memory of its own, of which caches join some */
    if (s.apart)
        offer->seconds +=
            7 * (double)fac_type_bytes(&p->out[0].type) / fac_gpu_bandwidth(&o->limits);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    pooling s = *(const pooling *)p->draft;
    const bool largest = s.grad && !s.average;
    const fac_operand *in = &p->in[s.grad ? 1 : 0];
    fac_text text = { 0 };
    fac_cl_call *c = NULL;
    s.q.ptx = s.q.h.kernel * s.q.w.kernel <= SMALL &&
              fac_cl_has_path(o, FAC_CL_MMA); /* which is inline PTX */
    fac_cl_tiling_text(&s.q, in->type.dtype, p->out[0].type.dtype, &text);
    if (s.average) fac_text_add(&text, "#define AVERAGE\n");
    if (s.apart) fac_text_add(&text, "#define APART\n");
    if (s.positive) fac_text_add(&text, "#define POSITIVE\n");
    text.failed |= !fac_cl_tail_text(&s.tail, o->limits.fp64, &text);
    fac_text_add(&text, largest ? fac_kernel_pool_quads_grad : fac_kernel_pool_quads);
    fac_status status = fac_cl_call_text(o, plan, &text, "-cl-single-precision-constant",
                                         largest ? "pool_grad" : "pool", &c, err);
    fac_text_free(&text);
    FAC_TRY(status);
    if (largest) fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, s.grad ? 1 : 0);
    fac_cl_call_out(c, p, 0);
    fac_cl_tail_buffers(&s.tail, p, c);
    fac_cl_tiling_numbers(&s.q, in, &p->out[0], c);
    const int64_t *step = p->in[0].layout.stride;
    const int64_t means[] = { s.g.count_include_pad, s.q.h.pad_end, s.q.w.pad_end, s.apart };
    const int64_t seen[] = { step[0], step[2], step[3] };
    for (int i = 0; i < 3 && largest; i++) fac_cl_call_number(c, seen[i]);
    for (int i = 0; i < 4 && !largest; i++) fac_cl_call_number(c, means[i]);
    fac_cl_tail_numbers(&s.tail, c);
    fac_cl_tiling_range(&s.q, c);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_pool_quads = { .name = "pool/quads",
                                       .rank = 160,
                                       .offer = offer,
                                       .make = make,
                                       .done = fac_cl_plan_done,
                                       .run = fac_cl_plan_run };
