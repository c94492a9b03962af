/* Solver "pad": a constant around (or, where a padding is negative, less of) a tensor.  The output
 * is filled, then the part of x that is left is copied into it.  Exact, any element type of whole
 * bytes; the other modes are those of the solver pad_repeat. */
#include "graph/attr.h"
#include "backends/draft.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "backends/problem.h"
#include "cpu_solvers.h"
#include "op_list.h"

typedef struct plan {
    const fac_problem *problem;
    size_t size;
    bool empty;
    fac_copy fill, copy;
} plan;

static bool known(const fac_problem *p, int i) {
    return p->nin > i && p->in[i].type.dtype != FAC_NONE;
}

/* The part of x that is kept: dims, where it begins in x and in y. */
static bool middle(const fac_problem *p, fac_dims *d, int64_t *from, int64_t *to) {
    const fac_dims *x = &p->in[0].type.dims, *y = &p->out[0].type.dims;
    int64_t before[FAC_DIMS];
    if (!fac_known_pads(p, 1, 3, before)) return false;
    *d = *x;
    for (int k = 0; k < x->n; k++) {
        from[k] = before[k] < 0 ? -before[k] : 0;
        to[k] = before[k] > 0 ? before[k] : 0;
        const int64_t left = x->d[k] - from[k], room = y->d[k] - to[k];
        d->d[k] = left < room ? left : room;
        if (d->d[k] < 0) d->d[k] = 0;
    }
    return true;
}

/* A part may begin inside a block only of a plain layout. */
static bool parts(const fac_problem *p, fac_dims *d, fac_layout *from, fac_layout *to) {
    int64_t a[FAC_DIMS], b[FAC_DIMS];
    return middle(p, d, a, b) && fac_copy_part(&p->in[0].layout, d, a, from) &&
           fac_copy_part(&p->out[0].layout, d, b, to) && fac_copy_fits(from, to);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    fac_dims dims;
    fac_layout from, to;
    const char *mode = fac_attr_choice(p->node, "mode");
    if (!mode || strcmp(mode, "constant") || fac_copy_size(p->in[0].type.dtype) == 0 ||
        p->node->body[0])
        return false;
    if (!fac_layout_is_plain(&p->out[0].layout, &p->out[0].type.dims)) return false;
    if (!parts(p, &dims, &from, &to)) {
        p->in[0].layout = fac_layout_plain(&p->in[0].type.dims);
        if (!parts(p, &dims, &from, &to)) return false;
    }
    o->seconds = fac_cpu_speeds.step +
                 3 * (double)fac_type_bytes(&p->out[0].type) / fac_cpu_of(d)->bandwidth;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    plan *r = fac_solver_plan(p, sizeof *r, err);
    fac_dims dims;
    fac_layout from, to, value = { 0 };
    if (!r) return FAC_E_NOMEM;
    *r = (plan){ .problem = p, .size = fac_copy_size(p->in[0].type.dtype) };
    if (known(p, 2))
        value.offset = p->in[2].layout.offset; /* strides of 0: the one element everywhere */
    fac_copy_plan(&r->fill, &p->out[0].type.dims, &value, &p->out[0].layout, r->size);
    if (parts(p, &dims, &from, &to)) fac_copy_plan(&r->copy, &dims, &from, &to, r->size);
    *out = r;
    return FAC_OK;
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)work, (void)err;
    const plan *r = arg;
    const fac_cpu *cpu = fac_cpu_of(d);
    static const uint64_t zero = 0;
    fac_copy_run(&r->fill, cpu, known(r->problem, 2) ? fac_span_bytes(in[2]) : (const char *)&zero,
                 fac_span_bytes(out[0]));
    fac_copy_run(&r->copy, cpu, fac_span_bytes(in[0]), fac_span_bytes(out[0]));
    return FAC_OK;
}

const fac_solver fac_cpu_pad = { .name = "pad",
                                 .op = &fac_op_pad,
                                 .rank = 940,
                                 .offer = offer,
                                 .make = make,
                                 .done = fac_solver_done,
                                 .run = run };
