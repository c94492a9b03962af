/* Whose fault it was.  Commands fail after they were submitted, and the driver says so at the next wait, not whose it was: so the
 * events of the newest commands are kept with the names of their steps until a wait is good. */
#include "backends/opencl/opencl.h"
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

/* The oldest command that ended with an error. */
static const fac_cl_pending *culprit(fac_opencl *o, cl_int *code) {
    for (size_t i = oldest(o); i < o->submitted; i++) {
        const fac_cl_pending *p = &o->pending[i % FAC_CL_PENDING];
        cl_int status = CL_COMPLETE;
        if (!p->event || o->cl.GetEventInfo(p->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL)) continue;
        if (status >= 0) continue;
        *code = status;
        return p;
    }
    return NULL;
}

fac_status fac_cl_blame(fac_opencl *o, cl_int code, const char *what, fac_error *err) {
    pthread_mutex_lock(&o->launch);
    const fac_cl_pending *p = culprit(o, &code);
    const char *step = p ? p->step : NULL;
    fac_status status = fac_cl_raise_in(o, code, step, step ? "running its kernels" : what, err);
    clear(o, o->submitted);
    pthread_mutex_unlock(&o->launch);
    return status;
}
