/* The reference driver as a solver: takes every problem, in any layout.  Operands that do not lie
 * contiguous are gathered into scratch first, results scattered afterwards. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "backends/layout_copy.h"
#include "backends/speed.h"
#include "ref/ref.h"

enum { FEW = 24 };

static size_t round_up(size_t n) { return (n + 63) & ~(size_t)63; }

static bool lies_plain(const fac_operand *o) {
    return fac_layout_is_plain(&o->layout, &o->type.dims);
}

static void hosts_of(const fac_problem *p, fac_host *in, fac_host *out) {
    for (int i = 0; i < p->nin; i++) in[i] = (fac_host){ p->in[i].type, NULL, p->in[i].known };
    for (int k = 0; k < p->nout; k++) out[k] = (fac_host){ p->out[k].type, NULL, NULL };
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    (void)d;
    if (!fac_ref_able(p->node)) return false;
    fac_host few[2 * FEW], *h = few;
    size_t n = (size_t)p->nin + (size_t)p->nout, bytes = 0;
    if (n > 2 * FEW && !(h = fac_alloc(n, sizeof *h))) return false;
    hosts_of(p, h, h + p->nin);
    bytes = fac_ref_scratch(p->node, h, h + p->nin);
    if (h != few) fac_release(h);
    if (bytes == SIZE_MAX) return false;
    double elements = 0;
    for (int i = 0; i < p->nin; i++) {
        elements += (double)fac_dims_count(&p->in[i].type.dims);
        if (!lies_plain(&p->in[i])) bytes += round_up(fac_type_bytes(&p->in[i].type));
    }
    for (int k = 0; k < p->nout; k++) {
        elements += (double)fac_dims_count(&p->out[k].type.dims);
        if (!lies_plain(&p->out[k])) bytes += round_up(fac_type_bytes(&p->out[k].type));
    }
    fac_cost cost = { 0 };
    if (p->node->op->cost && p->node->graph) p->node->op->cost(p->node, &cost);
    const fac_last_speed *s = &fac_last_speeds;
    *o = (fac_offer){
        .seconds = s->ref_element * elements + s->ref_mac * cost.macs + s->ref_step,
        .work = round_up(bytes) + 64,
    };
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **plan, fac_error *err) {
    (void)d;
    (void)err;
    *plan = (void *)(uintptr_t)p;
    return FAC_OK;
}

static fac_status run(const void *plan, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)d;
    const fac_problem *p = plan;
    fac_host few[2 * FEW], *h = few;
    size_t n = (size_t)p->nin + (size_t)p->nout;
    if (n > 2 * FEW && !(h = fac_alloc(n, sizeof *h)))
        return fac_raise_memory(err, "%zu operands", n);
    char *scratch = (char *)work.memory + work.at;
    hosts_of(p, h, h + p->nin);
    for (int i = 0; i < p->nin; i++) {
        if (!in[i].memory) continue;
        const fac_operand *o = &p->in[i];
        char *from = (char *)in[i].memory + in[i].at;
        if (lies_plain(o)) {
            h[i].data =
                from + (size_t)o->layout.offset * (size_t)fac_dtype_get(o->type.dtype)->block_bytes;
            continue;
        }
        fac_layout plain = fac_layout_plain(&o->type.dims);
        fac_copy_layout(&o->type, from, &o->layout, scratch, &plain);
        h[i].data = scratch;
        scratch += round_up(fac_type_bytes(&o->type));
    }
    for (int k = 0; k < p->nout; k++) {
        if (!out[k].memory) continue;
        const fac_operand *o = &p->out[k];
        if (lies_plain(o)) {
            h[p->nin + k].data =
                (char *)out[k].memory + out[k].at +
                (size_t)o->layout.offset * (size_t)fac_dtype_get(o->type.dtype)->block_bytes;
        } else {
            h[p->nin + k].data = scratch;
            scratch += round_up(fac_type_bytes(&o->type));
        }
    }
    fac_status status = fac_ref_node(p->node, h, h + p->nin, scratch, err);
    for (int k = 0; k < p->nout && !status; k++) {
        const fac_operand *o = &p->out[k];
        if (!out[k].memory || lies_plain(o)) continue;
        fac_layout plain = fac_layout_plain(&o->type.dims);
        fac_copy_layout(&o->type, h[p->nin + k].data, &plain, (char *)out[k].memory + out[k].at,
                        &o->layout);
    }
    if (h != few) fac_release(h);
    return status;
}

const fac_solver fac_solver_ref = { .name = "ref", .offer = offer, .make = make, .run = run };
