/* Solver "gather": gather, gather_elements, gather_nd on contiguous operands.  Rows of weights in
 * blocks are picked as bytes. */
#include <string.h>
#include "graph/attr.h"
#include "backends/opencl/move/copy.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_gather.h"
#include "cl_index.h"
#include "op_list.h"
#include "ops/lines.h"

enum { GROUP = 128 };

static bool in_blocks(const fac_problem *p) {
    return fac_dtype_get(p->in[0].type.dtype)->kind == 'q';
}

static bool settle_blocks(const fac_opencl *o, fac_problem *p) {
    for (int i = 0; i < 3; i++) {
        fac_operand *x = i < 2 ? &p->in[i] : &p->out[0];
        x->layout = fac_layout_plain(&x->type.dims);
    }
    return !p->node->body[0] && fac_cl_has(o, p->in[1].type.dtype);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (!FAC_IS(p->node, gather) && !FAC_IS(p->node, gather_elements) &&
        !FAC_IS(p->node, gather_nd))
        return false;
    if (!(in_blocks(p) ? settle_blocks(o, p) : fac_cl_settle_plain(o, p))) return false;
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}

static int64_t product(const fac_dims *d, int from, int to) {
    int64_t n = 1;
    for (int k = from; k < to; k++) n *= d->d[k];
    return n;
}

/* What the kernel of this op calls a, b, c, d, and its sizes and steps. */
typedef struct shape {
    int64_t number[4], size[FAC_DIMS], step[FAC_DIMS];
    int dims;
} shape;

static void shape_of(const fac_problem *p, shape *s) {
    const fac_dims *x = &p->in[0].type.dims, *i = &p->in[1].type.dims;
    const fac_layout plain = fac_layout_plain(x);
    int64_t given = 0;
    *s = (shape){ .dims = 1 };
    fac_attr_get_int(p->node, "axis", &given);
    if (FAC_IS(p->node, gather_nd)) {
        fac_attr_get_int(p->node, "batch_dims", &given);
        const int batch = (int)given, depth = (int)i->d[i->n - 1];
        const int64_t numbers[] = { product(x, batch + depth, x->n), product(i, batch, i->n - 1),
                                    product(x, batch, x->n), depth };
        memcpy(s->number, numbers, sizeof numbers);
        s->dims = depth ? depth : 1;
        for (int k = 0; k < depth; k++) {
            s->size[k] = x->d[batch + k];
            s->step[k] = plain.stride[batch + k];
        }
        return;
    }
    const int axis = fac_axis(given, x->n);
    if (FAC_IS(p->node, gather)) {
        const fac_lines l = fac_lines_of(x, axis);
        const int64_t numbers[] = { l.size, fac_dims_count(i), l.inner, 0 };
        memcpy(s->number, numbers, sizeof numbers);
    } else {
        s->number[0] = axis;
        s->number[1] = x->d[axis];
        s->dims = x->n;
        for (int k = 0; k < x->n; k++) {
            s->size[k] = i->d[k];
            s->step[k] = plain.stride[k];
        }
    }
}

static int64_t bytes_at(const fac_operand *x, int64_t elements) {
    const fac_dtype_info *t = fac_dtype_get(x->type.dtype);
    return elements / t->block_elements * (int64_t)t->block_bytes;
}

/* Bytes that are picked as one: an element; of rows of embeddings on a GPU, and of blocks, up to 16
 * bytes of neighbours. */
static int64_t together(const fac_opencl *o, const fac_problem *p, int64_t row) {
    enum { ACCESS = 16 };
    const int64_t from = bytes_at(&p->in[0], p->in[0].layout.offset),
                  to = bytes_at(&p->out[0], p->out[0].layout.offset);
    int64_t n = in_blocks(p) ? 1 : (int64_t)fac_dtype_get(p->in[0].type.dtype)->block_bytes;
    while (FAC_IS(p->node, gather) && (o->limits.gpu || in_blocks(p)) && n * 2 <= ACCESS &&
           row % (n * 2) == 0 && from % (n * 2) == 0 && to % (n * 2) == 0)
        n *= 2;
    return n;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    shape s;
    if (!fac_dims_count(&p->out[0].type.dims)) return FAC_OK;
    shape_of(p, &s);
    const int64_t row = bytes_at(&p->in[0], s.number[2]), unit = together(o, p, row),
                  count = (int64_t)fac_type_bytes(&p->out[0].type) / unit;
    if (FAC_IS(p->node, gather)) s.number[2] = row / unit;
    fac_text_print(&options, "-DV=1 -DT=float -DM=%s -DI=%s -DR=%d", fac_cl_bits((size_t)unit),
                   fac_cl_tag(p->in[1].type.dtype), s.dims);
    fac_cl_option_wide(p, &options);
    fac_text source = { 0 };
    fac_text_add(&source, fac_kernel_index);
    fac_text_add(&source, fac_kernel_gather);
    options.failed |= source.failed;
    fac_status status = fac_cl_call_new(o, plan, source.s, &options, p->node->op->name, &c, err);
    fac_text_free(&source);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, 1);
    fac_cl_call_out(c, p, 0);
    for (int k = 0; k < 3; k += 2) {
        const fac_operand *x = k ? &p->out[0] : &p->in[0];
        c->buffer[k].size = (size_t)unit;
        c->buffer[k].offset = bytes_at(x, x->layout.offset) / unit;
    }
    fac_cl_call_complaint(c);
    fac_cl_call_number(c, count);
    for (int k = 0; k < 4; k++) fac_cl_call_number(c, s.number[k]);
    for (int k = 0; k < s.dims; k++) fac_cl_call_number(c, s.size[k]);
    for (int k = 0; k < s.dims; k++) fac_cl_call_number(c, s.step[k]);
    fac_cl_call_items(c, (size_t)count, GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_gather = { .name = "gather",
                                   .rank = 130,
                                   .offer = offer,
                                   .make = make,
                                   .done = fac_cl_plan_done,
                                   .run = fac_cl_plan_run };
