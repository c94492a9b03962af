/* A second queue, for work beside the other work of a run (fac_beside): begun after a marker of
 * the first queue, met by a barrier there that waits for a marker of the second one.  Between
 * kernels of one queue an H200 is idle for 1 to 2 us, and small ones leave most of it unused;
 * markers and barriers cost about as much, so what goes there should be worth some.
 *
 * Other threads may use the device meanwhile; they submit to the first queue. */
#include <pthread.h>
#include "backends/opencl/device/clock.h"
#include "backends/opencl/device/probe.h"
#include "base/error.h"

static uintptr_t self(void) { return (uintptr_t)pthread_self(); }

static bool mine(const fac_opencl *o) { return o->second.thread == self(); }

cl_command_queue fac_cl_queue(const fac_opencl *o) {
    return mine(o) && o->second.on ? o->second.queue : o->queue;
}

static bool able(fac_device *d) {
    fac_opencl *o = fac_opencl_of(d);
    return o->limits.gpu && fac_cl_has_path(o, FAC_CL_MMA);
}

/* What is submitted to `later` from now on comes after all that `earlier` has. */
static fac_status order(fac_opencl *o, cl_command_queue earlier, cl_command_queue later,
                        fac_error *err) {
    cl_event event;
    cl_int code = o->cl.EnqueueMarkerWithWaitList(earlier, 0, NULL, &event);
    if (code) return fac_cl_raise(o, code, "marking a place in a queue", err);
    code = o->cl.Flush(earlier);
    if (!code) code = o->cl.EnqueueBarrierWithWaitList(later, 1, &event, NULL);
    o->cl.ReleaseEvent(event);
    return code ? fac_cl_raise(o, code, "waiting for another queue", err) : FAC_OK;
}

/* The queue is there, and this thread has it: false: it has not, which is no error. */
static fac_status take(fac_opencl *o, bool *taken, fac_error *err) {
    fac_cl_second *s = &o->second;
    uintptr_t none = 0;
    cl_int code = 0;
    *taken = mine(o) ||
             (!fac_cl_watching(o) && atomic_compare_exchange_strong(&s->thread, &none, self()));
    if (!*taken || s->queue) return FAC_OK;
    s->queue = o->cl.CreateCommandQueue(o->context, o->place.device, 0, &code);
    if (!code) return FAC_OK;
    s->queue = NULL;
    s->thread = 0;
    return fac_cl_raise(o, code, "making a second queue", err);
}

static fac_status begin(fac_device *d, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    bool taken;
    FAC_TRY(take(o, &taken, err));
    if (!taken) return FAC_OK;
    FAC_TRY(order(o, o->queue, o->second.queue, err));
    o->second.on = true;
    return FAC_OK;
}

static fac_status end(fac_device *d, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    if (!mine(o) || !o->second.on) return FAC_OK;
    o->second.on = false;
    const cl_int code = o->cl.Flush(o->second.queue);
    return code ? fac_cl_raise(o, code, "handing work to a second queue", err) : FAC_OK;
}

static fac_status meet(fac_device *d, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    if (!mine(o)) return FAC_OK;
    const fac_status status = order(o, o->second.queue, o->queue, err);
    o->second.thread = 0;
    return status;
}

void fac_cl_second_fini(fac_opencl *o) {
    if (!o->second.queue) return;
    o->cl.Finish(o->second.queue);
    o->cl.ReleaseCommandQueue(o->second.queue);
}

const fac_beside fac_cl_beside = { able, begin, end, meet };
