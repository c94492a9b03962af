/* Solver "concat": every input is copied to its part of the output, whatever the layouts.  The
 * result is in channel blocks when most of what comes in is, and every part then begins with a
 * block.  Copies move bits: exact, any element type of whole bytes. */
#include "graph/attr.h"
#include "backends/draft.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "cpu_solvers.h"
#include "op_list.h"

typedef struct plan {
    int n;
    fac_copy copy[];
} plan;

static int axis_of(const fac_problem *p) {
    int64_t axis;
    return fac_attr_get_int(p->node, "axis", &axis) ? fac_axis(axis, p->out[0].type.dims.n) : -1;
}

/* Where each input goes; false when one begins inside a block. */
static bool build(const fac_problem *p, fac_copy *copy) {
    int axis = axis_of(p);
    int64_t start[FAC_DIMS] = { 0 };
    size_t size = fac_copy_size(p->out[0].type.dtype);
    for (int i = 0; i < p->nin; i++) {
        const fac_dims *d = &p->in[i].type.dims;
        fac_layout part;
        if (!fac_copy_part(&p->out[0].layout, d, start, &part) ||
            !fac_copy_fits(&p->in[i].layout, &part))
            return false;
        if (copy) fac_copy_plan(&copy[i], d, &p->in[i].layout, &part, size);
        start[axis] += d->d[axis];
    }
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    fac_operand *y = &p->out[0];
    const fac_operand *blocked = NULL;
    double bytes = 0, in_blocks = 0;
    size_t size = fac_copy_size(y->type.dtype);
    if (size == 0 || p->node->body[0] || axis_of(p) < 0) return false;
    for (int i = 0; i < p->nin; i++) {
        double n = (double)fac_dims_count(&p->in[i].type.dims) * (double)size;
        bytes += n;
        if (p->in[i].layout.block == 0) continue;
        in_blocks += n;
        if (!blocked) blocked = &p->in[i];
    }
    if (blocked && 2 * in_blocks > bytes && fac_layout_is_plain(&y->layout, &y->type.dims)) {
        fac_layout plain = y->layout;
        int halo = y->type.dims.n > 2 ? plain.halo : 0;
        y->layout =
            fac_layout_blocked(&y->type.dims, blocked->layout.axis, blocked->layout.block, halo);
        if (!build(p, NULL)) y->layout = plain;
    }
    if (!build(p, NULL)) return false;
    o->seconds = fac_cpu_speeds.step * p->nin + 2 * bytes / fac_cpu_of(d)->bandwidth;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    plan *r = fac_solver_plan(p, sizeof *r + (size_t)p->nin * sizeof *r->copy, err);
    if (!r) return FAC_E_NOMEM;
    r->n = p->nin;
    build(p, r->copy);
    *out = r;
    return FAC_OK;
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)work, (void)err;
    const plan *r = arg;
    const fac_cpu *cpu = fac_cpu_of(d);
    for (int i = 0; i < r->n; i++)
        fac_copy_run(&r->copy[i], cpu, fac_span_bytes(in[i]), fac_span_bytes(out[0]));
    return FAC_OK;
}

const fac_solver fac_cpu_concat = { .name = "concat",
                                    .op = &fac_op_concat,
                                    .rank = 870,
                                    .offer = offer,
                                    .make = make,
                                    .done = fac_solver_done,
                                    .run = run };
