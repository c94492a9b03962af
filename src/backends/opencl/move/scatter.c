/* Solver "scatter": scatter_elements, scatter_nd and gather_grad, on contiguous operands.
 *
 * Updates that meet are linked into chains first (scatter.cl), so they are applied in their
 * order without atomics. */
#include <string.h>
#include "graph/attr.h"
#include "backends/opencl/device/calls.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/gpu/speed.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/optional.h"
#include "cl_index.h"
#include "cl_scatter.h"
#include "op_list.h"
#include "ops/lines.h"

enum { GROUP = 64, EACH = 8 };
/* Of so few slices the updates of each are found by a look at all keys (SCAN). */
enum { FEW_SLICES = 4 };

typedef struct scatter {
    int x, indices, updates;      /* inputs; x -1: zeros */
    bool elements;                /* one index an element */
    int64_t count, line, step;    /* updates; how many can meet, how far apart they lie */
    int64_t outer, slices, inner; /* y[outer, slices, inner] */
    int64_t depth, size[FAC_DIMS], by[FAC_DIMS];
    int dims;
    int64_t searched; /* size of the dim that single indices count */
} scatter;

static int64_t product(const fac_dims *d, int from, int to) {
    int64_t n = 1;
    for (int k = from; k < to; k++) n *= d->d[k];
    return n;
}

static void scatter_of(const fac_problem *p, scatter *s) {
    const fac_dims *y = &p->out[0].type.dims, *i = &p->in[1].type.dims;
    const fac_layout plain = fac_layout_plain(y);
    int64_t given = 0;
    *s = (scatter){ .x = 0,
                    .indices = 1,
                    .updates = 2,
                    .outer = 1,
                    .slices = 1,
                    .inner = 1,
                    .step = 1,
                    .dims = 1 };
    fac_attr_get_int(p->node, "axis", &given);
    s->count = fac_dims_count(i);
    if (FAC_IS(p->node, scatter_nd)) {
        s->depth = i->d[i->n - 1];
        s->count = product(i, 0, i->n - 1);
        s->slices = product(y, 0, (int)s->depth);
        s->inner = product(y, (int)s->depth, y->n);
        s->dims = s->depth ? (int)s->depth : 1;
        for (int k = 0; k < s->depth; k++) s->size[k] = y->d[k];
        s->line = s->count;
    } else if (FAC_IS(p->node, scatter_elements)) {
        const int axis = fac_axis(given, y->n);
        const fac_lines l = fac_lines_of(i, axis);
        s->elements = true;
        s->line = l.size;
        s->step = l.inner;
        s->slices = fac_dims_count(y);
        s->depth = axis;
        s->searched = y->d[axis];
        s->dims = y->n;
        for (int k = 0; k < y->n; k++) {
            s->size[k] = i->d[k];
            s->by[k] = plain.stride[k];
        }
    } else {
        const fac_lines l = fac_lines_of(y, fac_axis(given, y->n));
        s->x = -1;
        s->outer = l.outer;
        s->slices = l.size;
        s->inner = l.inner;
        s->line = s->count;
        s->depth = 1;
        s->size[0] = l.size;
    }
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    scatter s;
    if (!FAC_IS(p->node, scatter_nd) && !FAC_IS(p->node, scatter_elements) &&
        !FAC_IS(p->node, gather_grad))
        return false;
    if (!*fac_cl_in_memory(p->out[0].type.dtype)) return false; /* texts, small types */
    if (!fac_cl_settle_plain(o, p)) return false;
    scatter_of(p, &s);
    offer->work = 2 * (size_t)s.count * sizeof(int64_t);
    offer->seconds = fac_cl_price(o, p, 4) +
                     (double)s.count * (double)s.line * fac_gpu_speed_of(&o->limits)->scattered;
    return true;
}

static const char *meeting(const fac_problem *p) {
    const char *how = fac_attr_choice(p->node, "reduction");
    if (FAC_IS(p->node, gather_grad) || !strcmp(how, "add")) return "ADD";
    return !strcmp(how, "mul")   ? "MUL"
           : !strcmp(how, "max") ? "MAXIMUM"
           : !strcmp(how, "min") ? "MINIMUM"
                                 : "NONE";
}

static fac_status new_call(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, const scatter *s,
                           const char *name, fac_cl_call **out, fac_error *err) {
    const fac_dtype t = p->out[0].type.dtype;
    fac_text options = { 0 };
    fac_text_print(&options, "-DV=1 -DT=%s -DX=%s -DI=%s -D%s -DR=%d -DEACH=%d%s%s",
                   fac_cl_computing(t), fac_cl_tag(t), fac_cl_tag(p->in[s->indices].type.dtype),
                   meeting(p), s->dims, EACH, fac_text_if(s->x < 0, " -DZEROS"),
                   fac_text_if(!s->elements && s->slices <= FEW_SLICES, " -DSCAN"));
    fac_text source = { 0 };
    fac_text_add(&source, fac_kernel_index);
    fac_text_add(&source, fac_kernel_scatter);
    options.failed |= source.failed;
    fac_status status = fac_cl_call_new(o, plan, source.s, &options, name, out, err);
    fac_text_free(&source);
    fac_text_free(&options);
    return status;
}

static void add_numbers(fac_cl_call *c, const scatter *s, int64_t count) {
    if (c->step < 0) fac_cl_call_number(c, 0);
    const int64_t numbers[] = {
        count, s->line, s->step, s->depth, s->inner, s->outer, s->elements ? s->searched : s->slices
    };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
    for (int k = 0; k < s->dims; k++) fac_cl_call_number(c, s->size[k]);
    for (int k = 0; k < s->dims; k++) fac_cl_call_number(c, s->by[k]);
    fac_cl_call_items(c, (size_t)count, GROUP);
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const int64_t all = fac_dims_count(&p->out[0].type.dims);
    scatter s;
    fac_cl_call *c = NULL;
    scatter_of(p, &s);
    if (!all) return FAC_OK;
    FAC_TRY(new_call(o, p, plan, &s, "start", &c, err));
    if (s.x < 0)
        fac_cl_call_out(c, p, 0);
    else
        fac_cl_call_in(c, p, s.x);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_out(c, p, 0);
    add_numbers(c, &s, all);
    fac_cl_call_items(c, (size_t)((all + GROUP * EACH - 1) / (GROUP * EACH) * GROUP), GROUP);
    if (!s.count || !s.inner || !s.outer) return FAC_OK;
    FAC_TRY(new_call(o, p, plan, &s, s.elements ? "keys_elements" : "keys_nd", &c, err));
    fac_cl_call_in(c, p, s.indices);
    fac_cl_call_work(c, 0, sizeof(int64_t));
    fac_cl_call_complaint(c);
    add_numbers(c, &s, s.count);
    FAC_TRY(new_call(o, p, plan, &s, "links", &c, err));
    fac_cl_call_work(c, 0, sizeof(int64_t));
    fac_cl_call_work(c, (size_t)s.count * sizeof(int64_t), sizeof(int64_t));
    fac_cl_call_work(c, 0, sizeof(int64_t));
    add_numbers(c, &s, s.count);
    FAC_TRY(new_call(o, p, plan, &s, "chains", &c, err));
    fac_cl_call_in(c, p, s.updates);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_work(c, 0, sizeof(int64_t));
    s.line = s.count; /* keys of single elements are places in all of y */
    s.elements = false;
    add_numbers(c, &s, s.count * s.outer * s.inner);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 4, add, out, err);
}

const fac_solver fac_cl_scatter = { .name = "scatter",
                                    .rank = 120,
                                    .offer = offer,
                                    .make = make,
                                    .done = fac_cl_plan_done,
                                    .run = fac_cl_plan_run };
