/* Solver "pool": max and average pooling of two and three dims, with indices, and their gradients;
 * any type and layout.
 *
 * The gradient of a maximum is found in two launches: where the maximum of each window is, then for
 * each element of x the sum over the windows that it is the maximum of: no two work items add to
 * one place, so the result is the same every time. */
#include <math.h>
#include <string.h>
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/device/calls.h"
#include "base/optional.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_pool.h"
#include "op_list.h"
#include "ops/families.h"
#include "ops/order.h"
#include "ops/pool_grad.h"

enum { GROUP = 64 };

#define PLACES " -DPOOL -DINDEX -DINDEX_ONLY"
#define POSITIVE " -DPOSITIVE"

typedef struct pooling {
    fac_pool_geom g;
    bool grad, average, positive, last,
        index; /* positive: relu is before it, what is at or below 0 does not count */
    const fac_operand *in, *out; /* what has x's shape and y's shape: x and y, dx and dy */
    int64_t in_count, out_count;
} pooling;

static void find_operands(const fac_problem *p, pooling *s) {
    s->in = s->grad ? &p->out[0] : &p->in[0];
    s->out = s->grad ? &p->in[1] : &p->out[0];
}

static bool pooling_of(const fac_problem *p, pooling *s) {
    *s = (pooling){ .average = fac_op_averages(p->node->op),
                    .positive = p->node->op == &fac_op_max_pool2d_relu_grad };
    if (fac_pool_grad_geometry(p->node, &s->g))
        s->grad = true;
    else if (!fac_pool_geometry(p->node, &s->g))
        return false;
    find_operands(p, s);
    s->index = !s->grad && p->nout > 1 && p->out[1].type.dtype != FAC_NONE;
    s->last = fac_cl_channels_last(s->in) &&
              (s->out->type.dtype == FAC_NONE || fac_cl_channels_last(s->out));
    s->in_count = fac_dims_count(&s->in->type.dims);
    s->out_count = s->g.N * s->g.C;
    for (int k = 0; k < 3; k++) s->out_count *= s->g.window[k].out;
    return true;
}

/* Numbers of 32 bits do for the places of maxima inside a plane of that many elements. */
static size_t place_bytes(const pooling *s) { return s->in_count >= INT32_MAX / 2 ? 8 : 4; }

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    pooling s;
    if (!pooling_of(p, &s) || s.g.rank < 2 || !fac_cl_settle(o, p)) return false;
    if (s.grad) { /* dx as dy, and as x where it is read */
        fac_cl_lay_alike(&p->in[1], &p->out[0]);
        const bool reads_x = !s.average && p->in[0].type.dtype != FAC_NONE;
        if (reads_x && fac_cl_channels_last(&p->in[0]) != fac_cl_channels_last(&p->out[0])) {
            p->in[0].layout = fac_layout_plain(&p->in[0].type.dims);
            fac_cl_lay_alike(&p->out[0], &p->in[0]);
        }
    } else if (p->nout < 2 || p->out[1].type.dtype == FAC_NONE)
        fac_cl_lay_alike(&p->in[0], &p->out[0]);
    if (s.index) p->out[1].layout = fac_layout_plain(&p->out[1].type.dims);
    pooling_of(p, &s);
    offer->work = s.grad && !s.average ? (size_t)s.out_count * place_bytes(&s) : 0;
    offer->seconds = fac_cl_price(o, p, offer->work ? 2 : 1);
    *FAC_DRAFT(offer, pooling) = s;
    return true;
}

/* ---- numbers ---- */

static void add_tensor(fac_cl_call *c, const pooling *s, const fac_operand *x, bool out) {
    const int rank = x->type.dims.n;
    fac_cl_call_number(c, s->g.N);
    fac_cl_call_number(c, s->g.C);
    for (int k = 0; k < 3; k++) fac_cl_call_number(c, out ? s->g.window[k].out : s->g.window[k].in);
    fac_cl_call_number(c, x->layout.stride[0]);
    fac_cl_call_number(c, x->layout.stride[1]);
    for (int k = 0; k < 3; k++)
        fac_cl_call_number(c, k < 5 - rank ? 0 : x->layout.stride[rank - 3 + k]);
}

static void add_numbers(fac_cl_call *c, const pooling *s, fac_dtype t, const fac_operand *in,
                        const fac_operand *out, int64_t units) {
    fac_cl_call_number(c, units);
    if (s->average)
        fac_cl_call_number(c, 0);
    else if (fac_dtype_get(t)->kind == 'f')
        fac_cl_call_real(c, -INFINITY, t);
    else
        fac_cl_call_number(c, fac_int_lowest(t));
    fac_cl_call_number(c, s->g.count_include_pad);
    fac_cl_call_number(c, s->g.column_major);
    add_tensor(c, s, in, false);
    add_tensor(c, s, out, true);
    for (int k = 0; k < 3; k++) {
        const fac_window *w = &s->g.window[k];
        const int64_t numbers[] = { w->kernel, w->stride, w->dilation, w->pad, w->pad_end };
        for (int i = 0; i < 5; i++) fac_cl_call_number(c, numbers[i]);
    }
}

static int64_t units_of(const pooling *s, bool out, int width) {
    const int64_t side = s->last ? s->g.C
                         : out   ? s->g.window[2].out
                                 : s->g.window[2].in,
                  all = out ? s->out_count : s->in_count;
    return side ? all / side * ((side + width - 1) / width) : 0;
}

static fac_status new_call(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, const pooling *s,
                           const char *name, int width, const char *more, fac_cl_call **out,
                           fac_error *err) {
    const fac_dtype t = s->in->type.dtype;
    fac_text options = { 0 };
    fac_text_print(&options, "-DV=%d -DT=%s -DX=%s -DY=%s -DPLACE=%s%s%s%s", width,
                   fac_cl_computing(t), fac_cl_tag(t), fac_cl_tag(t),
                   s->index || place_bytes(s) == 8 ? "long" : "int",
                   fac_text_if(s->average, " -DAVERAGE"), fac_text_if(s->last, " -DLAST"), more);
    fac_cl_option_wide(p, &options);
    fac_status status = fac_cl_call_new(o, plan, fac_kernel_pool, &options, name, out, err);
    fac_text_free(&options);
    return status;
}

static fac_status add_forward(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                              const pooling *s, fac_error *err) {
    const fac_dtype t = p->in[0].type.dtype;
    const int64_t side = s->last ? s->g.C : s->g.window[2].out;
    int width = side < 8 ? 4 : fac_cl_width(o, t);
    if (s->index || side < 4) width = 1;
    fac_cl_call *c = NULL;
    FAC_TRY(
        new_call(o, p, plan, s, "pool", width, s->index ? " -DPOOL -DINDEX" : " -DPOOL", &c, err));
    fac_cl_call_in(c, p, 0);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_out(c, p, s->index ? 1 : 0);
    add_numbers(c, s, t, &p->in[0], &p->out[0], units_of(s, true, width));
    fac_cl_call_items(c, (size_t)units_of(s, true, width), GROUP);
    return FAC_OK;
}

static fac_status add_backward(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                               const pooling *s, fac_error *err) {
    const fac_dtype t = p->out[0].type.dtype;
    fac_cl_call *c = NULL;
    if (!s->average && s->out_count) {
        FAC_TRY(
            new_call(o, p, plan, s, "pool", 1, s->positive ? POSITIVE PLACES : PLACES, &c, err));
        fac_cl_call_in(c, p, 0);
        fac_cl_call_out(c, p, 0);
        fac_cl_call_work(c, 0, place_bytes(s));
        add_numbers(c, s, t, &p->in[0], &p->in[1], units_of(s, true, 1));
        fac_cl_call_items(c, (size_t)units_of(s, true, 1), GROUP);
    }
    FAC_TRY(new_call(o, p, plan, s, "spread", 1, " -DSPREAD", &c, err));
    fac_cl_call_in(c, p, 1);
    fac_cl_call_out(c, p, 0);
    if (s->average)
        fac_cl_call_in(c, p, 1);
    else
        fac_cl_call_work(c, 0, place_bytes(s));
    add_numbers(c, s, t, &p->out[0], &p->in[1], units_of(s, false, 1));
    fac_cl_call_items(c, (size_t)units_of(s, false, 1), GROUP);
    return FAC_OK;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    pooling s = *(const pooling *)p->draft;
    find_operands(p, &s);
    if (!s.in_count && s.grad) return FAC_OK;
    if (!s.out_count && !s.grad) return FAC_OK;
    return s.grad ? add_backward(o, p, plan, &s, err) : add_forward(o, p, plan, &s, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 2, add, out, err);
}

const fac_solver fac_cl_pool = { .name = "pool",
                                 .rank = 180,
                                 .offer = offer,
                                 .make = make,
                                 .done = fac_cl_plan_done,
                                 .run = fac_cl_plan_run };
