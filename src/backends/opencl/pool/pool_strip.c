/* pool/strip: pools of plain images on devices whose items have vectors of their own, strip by
 * strip. */
#include <string.h>
#include "backends/opencl/elementwise/elementwise.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "ops/families.h"
#include "ops/pool.h"
#include "cl_pool_strip.h"

enum {
    LINE = 2048,
    TAPS = 64,
    STRIPS = 4,
    ITEMS = 16
}; /* STRIPS, ITEMS: of a unit, where it has few planes or many */

typedef struct pooling {
    fac_pool_geom g;
    bool average;
    int width;           /* neighbours at once */
    int64_t strip, each; /* rows of an item, and planes */
} pooling;

static bool read_problem(const fac_opencl *o, fac_problem *p, pooling *s) {
    *s = (pooling){ .average = fac_op_averages(p->node->op) };
    if (!fac_pool_geometry(p->node, &s->g) || s->g.rank != 2 || !fac_cl_settle(o, p)) return false;
    const fac_window *h = &s->g.window[1], *w = &s->g.window[2];
    const fac_dtype t = p->in[0].type.dtype;
    const bool indices = p->nout > 1 && p->out[1].type.dtype != FAC_NONE;
    /* rows of f16 begin where PoCL's loads of vectors of them do not */
    if (o->limits.gpu || indices || (t != FAC_F32 && t != FAC_BF16) || h->kernel * w->kernel > TAPS)
        return false;
    if (w->in < 4 || w->stride > 8 || w->dilation > 8 || h->dilation > 8 || w->pad > 64)
        return false;
    /* after the last output's window lie vectors that were begun */
    if (w->in + w->out * w->stride + 8 * w->kernel + 128 > LINE || s->g.N * s->g.C * h->out == 0 ||
        w->out < 1)
        return false;
    if (p->in[0].layout.stride[3] != 1) p->in[0].layout = fac_layout_plain(&p->in[0].type.dims);
    if (p->out[0].layout.stride[3] != 1) p->out[0].layout = fac_layout_plain(&p->out[0].type.dims);
    const int most = fac_cl_width(o, FAC_F32);
    for (s->width = most; s->width > w->in; s->width /= 2) continue;
    const int64_t planes = s->g.N * s->g.C,
                  want = (STRIPS * (int64_t)o->limits.units + planes - 1) / planes;
    s->strip = (h->out + want - 1) / want;
    s->each = planes / (ITEMS * (int64_t)o->limits.units);
    if (s->each < 1) s->each = 1;
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    pooling s;
    if (!read_problem(o, p, &s)) return false;
    offer->seconds = 0.5 * fac_cl_price(o, p, 1); /* of what single windows cost */
    *FAC_DRAFT(offer, pooling) = s;
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const fac_operand *x = &p->in[0], *y = &p->out[0];
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    const pooling s = *(const pooling *)p->draft;
    const fac_window *h = &s.g.window[1], *w = &s.g.window[2];
    fac_text_print(&options, "-DT=float -DV=%d -DHALF=%d -DX=%s -DY=%s -DLINE=%d%s", s.width,
                   s.width / 2, fac_cl_tag(x->type.dtype), fac_cl_tag(y->type.dtype), LINE,
                   s.average ? " -DAVERAGE" : "");
    fac_text_print(&options,
                   " -DKR=%d -DKS=%d -DSR=%d -DSS=%d -DDR=%d -DDS=%d -DPAD_R=%d -DPAD_S=%d",
                   (int)h->kernel, (int)w->kernel, (int)h->stride, (int)w->stride, (int)h->dilation,
                   (int)w->dilation, (int)h->pad, (int)w->pad);
    fac_cl_option_wide(p, &options);
    fac_status status =
        fac_cl_call_new(o, plan, fac_kernel_pool_strip, &options, "pool_strip", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, 0);
    fac_cl_call_out(c, p, 0);
    const int64_t *from = x->layout.stride, *to = y->layout.stride;
    const int64_t numbers[] = { s.g.C,
                                h->in,
                                w->in,
                                h->out,
                                w->out,
                                from[0],
                                from[1],
                                from[2],
                                to[0],
                                to[1],
                                to[2],
                                s.strip,
                                s.g.count_include_pad,
                                h->pad_end,
                                w->pad_end,
                                s.g.N * s.g.C,
                                s.each };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
    c->range = (fac_cl_range){ 2,
                               { (size_t)((h->out + s.strip - 1) / s.strip),
                                 (size_t)((s.g.N * s.g.C + s.each - 1) / s.each) },
                               { 1, 1 } };
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_pool_strip = { .name = "pool/strip",
                                       .rank = 170,
                                       .offer = offer,
                                       .make = make,
                                       .done = fac_cl_plan_done,
                                       .run = fac_cl_plan_run };
