/* Attributes an asynchronous error to the step that caused it.  A command fails after it was
 * submitted, and the driver reports the error at the next wait without naming the command.  So the
 * steps of the newest commands are remembered until a wait succeeds, with an event for every 64th
 * command.  An event for each command would make launches a third more expensive (NVIDIA), one for
 * every 16th 2 to 4 percent.  A profiled program waits after each step and needs no events. */
#include <stdio.h>
#include "backends/opencl/device/opencl.h"
#include "base/error.h"

void fac_cl_pending_add(fac_opencl *o, cl_event event) {
    fac_cl_pending *p = &o->pending[o->submitted++ % FAC_CL_PENDING];
    if (p->event) o->cl.ReleaseEvent(p->event);
    *p = (fac_cl_pending){ o->step, event };
}

static size_t oldest(const fac_opencl *o) {
    const size_t kept = o->submitted < FAC_CL_PENDING ? 0 : o->submitted - FAC_CL_PENDING;
    return kept > o->waited ? kept : o->waited;
}

static void clear(fac_opencl *o, size_t mark) {
    for (size_t i = oldest(o); i < mark; i++) {
        fac_cl_pending *p = &o->pending[i % FAC_CL_PENDING];
        if (p->event) o->cl.ReleaseEvent(p->event);
        *p = (fac_cl_pending){ 0 };
    }
    if (mark > o->waited) o->waited = mark;
}

size_t fac_cl_pending_mark(fac_opencl *o) {
    pthread_mutex_lock(&o->launch);
    const size_t mark = o->submitted;
    pthread_mutex_unlock(&o->launch);
    return mark;
}

void fac_cl_pending_clear(fac_opencl *o, size_t mark) {
    pthread_mutex_lock(&o->launch);
    clear(o, mark);
    pthread_mutex_unlock(&o->launch);
}

/* After a wait that failed: CL_COMPLETE, or why not; a broken context may not even say. */
static cl_int outcome(const fac_opencl *o, cl_event event) {
    cl_int status = CL_COMPLETE;
    cl_int code =
        o->cl.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return code ? code : status;
}

/* The commands after the last event that is complete, up to the first one that is not; an error
 * that it has replaces *code. */
static void suspects(const fac_opencl *o, size_t *first, size_t *last, cl_int *code) {
    *first = oldest(o);
    *last = o->submitted;
    for (size_t i = *first; i < o->submitted; i++) {
        const fac_cl_pending *p = &o->pending[i % FAC_CL_PENDING];
        const cl_int status = p->event ? outcome(o, p->event) : CL_COMPLETE;
        if (p->event && status == CL_COMPLETE) *first = i + 1;
        if (status == CL_COMPLETE) continue;
        *last = i + 1;
        if (status < 0) *code = status;
        return;
    }
}

/* "conv1.conv2d", or "one of the steps from A to B"; nothing when no step was under way. */
static bool describe(const fac_opencl *o, size_t first, size_t last, char *to, size_t size) {
    const char *from = NULL, *until = NULL;
    for (size_t i = first; i < last; i++) {
        const char *step = o->pending[i % FAC_CL_PENDING].step;
        if (step && !from) from = step;
        if (step) until = step;
    }
    if (!from) return false;
    if (from == until)
        snprintf(to, size, "%s", from);
    else
        snprintf(to, size, "one of the steps from %s to %s", from, until);
    return true;
}

fac_status fac_cl_blame(fac_opencl *o, cl_int code, const char *what, fac_error *err) {
    char steps[320];
    size_t first, last;
    pthread_mutex_lock(&o->launch);
    suspects(o, &first, &last, &code);
    const bool known = describe(o, first, last, steps, sizeof steps);
    fac_status status = known ? fac_cl_raise_in(o, code, steps, "running its kernels", err)
                              : fac_cl_raise_in(o, code, NULL, what, err);
    clear(o, o->submitted);
    pthread_mutex_unlock(&o->launch);
    return status;
}
