/* New contents of parameters that no step could write over them: copied there when the run is over.
 * All updates are one parallel assignment: what lies in the frame goes straight to its parameter;
 * what lies in a parameter itself (p <- q) is set aside first. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "backends/transfer.h"
#include "run/loan.h"
#include "backends/layout_copy.h"
#include "run/run.h"
#include "plan/plan.h"

static fac_status no_memory(const fac_value *p, fac_error *err) {
    return fac_raise(err, FAC_E_NOMEM, "no memory to update %s", p->name);
}

/* ---- a device whose memory the host sees ---- */

static fac_status update_here(const fac_plan *plan, const fac_frame *f, fac_error *err) {
    const fac_graph *g = plan->graph;
    const fac_backend *b = plan->device->backend;
    void **to = fac_alloc(2 * g->nparams + 1, sizeof *to), **aside = to ? to + g->nparams : NULL;
    fac_status status = to ? FAC_OK : fac_raise_memory(err, "%zu updates", g->nparams);
    for (size_t i = 0; i < g->nparams && !status; i++) {
        const fac_slot *slot = &plan->updates[i];
        const fac_type *type = &g->params[i]->type;
        if (slot->root < 0) continue;
        status = fac_tensor_begin_write(g->params[i]->tensor, &to[i], err);
        if (status || plan->roots[slot->root].kind == FAC_ROOT_ARENA) continue;
        aside[i] = fac_alloc(fac_type_bytes(type), 1);
        status = aside[i] ? fac_fetch(plan->device, type, f->roots[slot->root], &slot->layout,
                                      aside[i], err)
                          : no_memory(g->params[i], err);
    }
    for (size_t i = 0; to && i < g->nparams; i++) {
        const fac_slot *slot = &plan->updates[i];
        const fac_type *type = &g->params[i]->type;
        if (!status && slot->root >= 0) {
            fac_layout plain = fac_layout_plain(&type->dims), own = { 0 };
            memcpy(own.stride, fac_tensor_strides(g->params[i]->tensor), sizeof own.stride);
            const fac_span from = f->roots[slot->root];
            fac_copy_layout(
                type, aside[i] ? aside[i] : (char *)b->host(plan->device, from.memory) + from.at,
                aside[i] ? &plain : &slot->layout, to[i], &own);
        }
        fac_release(aside[i]);
    }
    fac_release(to);
    return status;
}

/* ---- a device out of sight: what is new lies plain, and moves on the device ---- */

static fac_status update_away(const fac_plan *plan, const fac_frame *f, fac_error *err) {
    const fac_graph *g = plan->graph;
    fac_device *d = plan->device;
    void **aside = fac_alloc(g->nparams + 1, sizeof *aside);
    fac_status status = aside ? FAC_OK : fac_raise_memory(err, "%zu updates", g->nparams);
    for (size_t i = 0; i < g->nparams && !status; i++) {
        const fac_slot *slot = &plan->updates[i];
        const size_t bytes = fac_type_bytes(&g->params[i]->type);
        if (slot->root < 0 || !bytes || plan->roots[slot->root].kind == FAC_ROOT_ARENA) continue;
        status = fac_device_hold(d, FAC_HOLD_OPERANDS, bytes, &aside[i], err);
        if (!status)
            status = d->backend->copy(d, fac_span_of(f, slot, &g->params[i]->type),
                                      (fac_span){ aside[i], 0 }, bytes, err);
    }
    for (size_t i = 0; aside && i < g->nparams; i++) {
        const fac_slot *slot = &plan->updates[i];
        const size_t bytes = fac_type_bytes(&g->params[i]->type);
        fac_loan to = { 0 };
        if (!status && slot->root >= 0) {
            status = fac_lend_out(d, g->params[i]->tensor, &to, err);
            const fac_span from =
                aside[i] ? (fac_span){ aside[i], 0 } : fac_span_of(f, slot, &g->params[i]->type);
            if (!status) status = d->backend->copy(d, from, to.span, bytes, err);
            fac_status ended = fac_lend_end(d, &to, !status, err);
            if (!status) status = ended;
        }
        fac_device_drop(d, FAC_HOLD_OPERANDS, aside[i], bytes);
    }
    fac_release(aside);
    return status;
}

fac_status fac_copy_updates(const fac_plan *plan, const fac_frame *f, fac_error *err) {
    return fac_in_sight(plan->device) ? update_here(plan, f, err) : update_away(plan, f, err);
}

/* ---- what steps write over ---- */

/* On a device out of sight nothing changes before the run: see fac_lend_end. */
fac_status fac_begin_updates(const fac_plan *plan, fac_error *err) {
    const fac_graph *g = plan->graph;
    for (size_t i = 0; i < g->nparams && fac_in_sight(plan->device); i++)
        if (plan->written[i]) FAC_TRY(fac_tensor_own(g->params[i]->tensor, err));
    return FAC_OK;
}

void fac_touch_updates(const fac_plan *plan) {
    const fac_graph *g = plan->graph;
    for (size_t i = 0; i < g->nparams && fac_in_sight(plan->device); i++)
        if (plan->written[i]) fac_tensor_touch(g->params[i]->tensor);
}
