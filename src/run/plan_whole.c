/* From a graph and one set of inputs to a plan that can run, and its end: the planner's part, and
 * what runs make of it. */
#include "base/error.h"
#include "backends/device.h"
#include "run/flow.h"
#include "run/run.h"

fac_status fac_plan_new(const fac_graph *original, const bool *steers, fac_tensor *const in[],
                        fac_device *device, const fac_program_opts *o, bool dry, fac_plan **out,
                        fac_error *err) {
    fac_plan *p;
    FAC_TRY(fac_plan_begin(original, steers, in, device, o, dry, &p, err));
    fac_status status = fac_cut_new(p->graph, original, device, o, &p->cut, err);
    if (!status && !p->cut) status = fac_plan_finish(p, original, o, err);
    if (status)
        fac_plan_free(p);
    else
        *out = p;
    return status;
}

void fac_plan_free(fac_plan *p) {
    if (!p) return;
    if (p->device->backend->step)
        fac_device_sync(p->device, NULL); /* what is submitted names the steps of this plan */
    for (fac_frame *f = p->frames, *next; f; f = next) {
        next = f->next;
        fac_frame_free(p, f);
    }
    fac_prepared_put(p, p->prepared);
    fac_cut_free(p->cut);
    fac_plan_drop(p);
}
