/* See clock.h.
 *
 * Times are there for commands of a queue that was made to keep them, and keeping them makes
 * launches more expensive: so such a queue is made at the first watch, and takes the place of the
 * ordinary one for as long.  The old one is waited for at each change, so the order of all commands
 * stays that of the calls.  While one run is watched no other thread may use the device. */
#include <string.h>
#include "backends/opencl/device/clock.h"
#include "base/error.h"
#include "base/memory.h"

typedef struct noted {
    fac_command command;
    cl_event event;
} noted;

struct fac_cl_watched {
    cl_command_queue ordinary, timed;
    bool on, failed; /* failed: no memory for a note */
    noted *notes;
    size_t n, room;
};

static fac_status prepare(fac_opencl *o, fac_error *err) {
    fac_cl_watched *w = o->watched;
    cl_int code;
    if (!w && !(w = o->watched = fac_alloc(1, sizeof *w)))
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for a clock", o->device.name);
    if (w->timed) return FAC_OK;
    w->timed =
        o->cl.CreateCommandQueue(o->context, o->place.device, CL_QUEUE_PROFILING_ENABLE, &code);
    if (!code) return FAC_OK;
    w->timed = NULL;
    return fac_cl_raise(o, code, "making a queue that keeps times", err);
}

static void forget(fac_opencl *o) {
    fac_cl_watched *w = o->watched;
    for (size_t i = 0; i < w->n; i++) o->cl.ReleaseEvent(w->notes[i].event);
    w->n = 0;
    w->failed = false;
}

static fac_status begin(fac_opencl *o, fac_error *err) {
    FAC_TRY(o->device.backend->sync(&o->device, err));
    FAC_TRY(prepare(o, err));
    pthread_mutex_lock(&o->launch);
    o->watched->ordinary = o->queue;
    o->queue = o->watched->timed;
    o->watched->on = true;
    pthread_mutex_unlock(&o->launch);
    return FAC_OK;
}

/* Seconds of the device's clock. */
static fac_status time_of(fac_opencl *o, cl_event e, cl_profiling_info what, double *out,
                          fac_error *err) {
    cl_ulong ns = 0;
    const cl_int code = o->cl.GetEventProfilingInfo(e, what, sizeof ns, &ns, NULL);
    *out = 1e-9 * (double)ns;
    return code ? fac_cl_raise(o, code, "asking when a kernel ran", err) : FAC_OK;
}

static fac_status tell(fac_opencl *o, fac_command **out, size_t *n, fac_error *err) {
    fac_cl_watched *w = o->watched;
    fac_status status =
        w->failed
            ? fac_raise(err, FAC_E_NOMEM, "%s: no memory for the times of a run", o->device.name)
            : FAC_OK;
    fac_command *all = status ? NULL : fac_alloc(w->n + 1, sizeof *all);
    if (!status && !all)
        status =
            fac_raise(err, FAC_E_NOMEM, "%s: no memory for the times of a run", o->device.name);
    for (size_t i = 0; i < w->n && !status; i++) {
        all[i] = w->notes[i].command;
        status = time_of(o, w->notes[i].event, CL_PROFILING_COMMAND_START, &all[i].start, err);
        if (!status)
            status = time_of(o, w->notes[i].event, CL_PROFILING_COMMAND_END, &all[i].end, err);
    }
    if (status) {
        fac_release(all);
        return status;
    }
    *out = all;
    *n = w->n;
    return FAC_OK;
}

static fac_status end(fac_opencl *o, fac_command **out, size_t *n, fac_error *err) {
    fac_cl_watched *w = o->watched;
    if (!w || !w->on)
        return fac_raise(err, FAC_E_ARGUMENT, "%s: nobody began to watch", o->device.name);
    fac_status status = o->device.backend->sync(&o->device, err);
    pthread_mutex_lock(&o->launch);
    o->queue = w->ordinary;
    w->on = false;
    pthread_mutex_unlock(&o->launch);
    if (!status) status = tell(o, out, n, err);
    forget(o);
    return status;
}

fac_status fac_cl_watch(fac_device *d, fac_command **out, size_t *n, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    return out ? end(o, out, n, err) : begin(o, err);
}

bool fac_cl_watching(const fac_opencl *o) { return o->watched && o->watched->on; }

void fac_cl_watch_add(fac_opencl *o, const char *name, size_t groups, size_t items,
                      cl_event event) {
    fac_cl_watched *w = o->watched;
    if (!fac_cl_watching(o) || !event) return;
    if (w->n == w->room && !fac_reserve(&w->notes, &w->room, 2 * w->n + 64, sizeof *w->notes)) {
        w->failed = true;
        return;
    }
    noted *to = &w->notes[w->n++];
    *to =
        (noted){ .command = { .step = o->step, .groups = groups, .items = items }, .event = event };
    const size_t length = strlen(name), most = sizeof to->command.name - 1;
    memcpy(to->command.name, name, length < most ? length : most);
    o->cl.RetainEvent(event);
}

void fac_cl_watch_end(fac_opencl *o, const char *name, cl_event event) {
    if (!event) return;
    pthread_mutex_lock(&o->launch);
    fac_cl_watch_add(o, name, 0, 0, event);
    pthread_mutex_unlock(&o->launch);
    o->cl.ReleaseEvent(event);
}

void fac_cl_watch_fini(fac_opencl *o) {
    fac_cl_watched *w = o->watched;
    if (!w) return;
    forget(o);
    if (w->timed) o->cl.ReleaseCommandQueue(w->timed);
    fac_release(w->notes);
    fac_release(w);
}
