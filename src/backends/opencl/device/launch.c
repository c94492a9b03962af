/* Making kernels, setting their arguments and enqueueing them: see launch.h.
 *
 * In a chain of kernels most arguments stay as they are: the values between steps lie in one
 * buffer, the numbers follow from the plan.  Comparing them is cheaper than telling the driver. */
#include <string.h>
#include "backends/opencl/device/clock.h"
#include "backends/opencl/device/launch.h"
#include "backends/opencl/device/probe.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

enum { EVENT_EVERY = 64 };

/* An argument as the driver has it. */
typedef struct given {
    fac_cl_arg_kind kind;
    bool set;
    size_t bytes, room;
    cl_mem memory;
    void *value; /* room bytes of it, after the arguments */
} given;

typedef struct fac_cl_setting {
    cl_kernel kernel; /* NULL until the program is built */
    size_t released;  /* segments that were gone when the buffers were set */
    int n;
    given *args; /* with the values after them, in one piece: few lines to read at each launch */
} setting;

fac_status fac_cl_kernel_new(fac_opencl *o, const char *source, const char *options,
                             const char *name, fac_cl_kernel *out, fac_error *err) {
    fac_cl_kernel k = { .name = name, .setting = fac_alloc(1, sizeof(setting)) };
    fac_text all = { 0 };
    fac_text_print(&all, "%s%s", options, fac_cl_has_path(o, FAC_CL_MMA) ? " -DFAC_NV_BF16" : "");
    fac_status status =
        k.setting && !all.failed
            ? fac_cl_build_get(o, source, all.s, &k.build, err)
            : fac_raise(err, FAC_E_NOMEM, "%s: no memory for a kernel", o->device.name);
    fac_text_free(&all);
    *out = k;
    if (status) fac_cl_kernel_free(o, out);
    return status;
}

void fac_cl_kernel_free(fac_opencl *o, fac_cl_kernel *k) {
    setting *s = k->setting;
    if (s) {
        if (s->kernel) o->cl.ReleaseKernel(s->kernel);
        fac_release(s->args);
        fac_release(s);
    }
    fac_cl_build_put(o, k->build);
    memset(k, 0, sizeof *k);
}

/* ---- under o->launch: a kernel keeps its arguments, so setting and enqueueing belong together
 * ---- */

static fac_status ready(fac_opencl *o, const fac_cl_kernel *k, fac_error *err) {
    cl_int code;
    if (k->setting->kernel) return FAC_OK;
    FAC_TRY(fac_cl_build_wait(o, k->build, err));
    cl_kernel made = o->cl.CreateKernel(k->build->program, k->name, &code);
    if (code)
        return fac_raise(err, FAC_E_DEVICE, "%s: kernel %s: %s (%d)", o->device.name, k->name,
                         fac_cl_error_name(code), (int)code);
    k->setting->kernel = made;
    return FAC_OK;
}

static size_t rounded(size_t bytes) { return (bytes + 7) / 8 * 8; }

/* Room to note the arguments, as large as those of the first launch; more of them: all are set
 * again. */
static fac_status room_for(fac_opencl *o, setting *s, int n, const fac_cl_arg *args,
                           fac_error *err) {
    if (n <= s->n) return FAC_OK;
    size_t bytes = (size_t)n * sizeof *s->args;
    for (int i = 0; i < n; i++) bytes += args[i].kind == FAC_CL_VALUE ? rounded(args[i].bytes) : 0;
    given *all = fac_alloc(1, bytes);
    if (!all)
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %d arguments", o->device.name, n);
    char *value = (char *)(all + n);
    for (int i = 0; i < n; i++)
        if (args[i].kind == FAC_CL_VALUE) {
            all[i].value = value;
            all[i].room = rounded(args[i].bytes);
            value += all[i].room;
        }
    fac_release(s->args);
    s->args = all;
    s->n = n;
    return FAC_OK;
}

/* Notes a value; one that there is no room for is set at each launch. */
static void note(given *g, const fac_cl_arg *a) {
    g->set = a->bytes <= g->room;
    if (g->set) memcpy(g->value, a->value, a->bytes);
}

static cl_int set(fac_opencl *o, cl_kernel k, cl_uint i, const fac_cl_arg *a, given *g) {
    const cl_mem memory =
        a->kind == FAC_CL_BUFFER && a->span.memory ? fac_cl_buffer(a->span) : NULL;
    if (g->set && g->kind == a->kind && g->bytes == a->bytes) {
        if (a->kind == FAC_CL_BUFFER && g->memory == memory) return 0;
        if (a->kind == FAC_CL_LOCAL) return 0;
        if (a->kind == FAC_CL_VALUE && !memcmp(g->value, a->value, a->bytes)) return 0;
    }
    g->kind = a->kind;
    g->bytes = a->bytes;
    g->memory = memory;
    g->set = true;
    if (a->kind == FAC_CL_LOCAL) return o->cl.SetKernelArg(k, i, a->bytes, NULL);
    if (a->kind == FAC_CL_BUFFER) return o->cl.SetKernelArg(k, i, sizeof memory, &memory);
    note(g, a);
    return o->cl.SetKernelArg(k, i, a->bytes, a->value);
}

static void watch(fac_opencl *o, const fac_cl_kernel *k, const fac_cl_range *range,
                  const size_t *items, cl_event event) {
    size_t groups = 1, each = 1;
    for (int i = 0; i < range->dims; i++) {
        groups *= items[i] / range->group[i];
        each *= range->group[i];
    }
    fac_cl_watch_add(o, k->name, groups, each, event);
}

static fac_status submit(fac_opencl *o, const fac_cl_kernel *k, const fac_cl_range *range,
                         const size_t *items, int n, const fac_cl_arg *args, fac_error *err) {
    setting *s = k->setting;
    FAC_TRY(fac_cl_alive(o, err));
    FAC_TRY(ready(o, k, err));
    FAC_TRY(room_for(o, s, n, args, err));
    const size_t released = o->memory.released;
    for (int i = 0; s->released != released && i < s->n; i++)
        s->args[i].set &= s->args[i].kind != FAC_CL_BUFFER;
    s->released = released;
    cl_int code = 0;
    for (int i = 0; i < n && !code; i++)
        if ((code = set(o, s->kernel, (cl_uint)i, &args[i], &s->args[i]))) s->args[i].set = false;
    const bool leaves_event =
        o->traced || fac_cl_watching(o) || o->submitted % EVENT_EVERY == EVENT_EVERY - 1;
    cl_event event = NULL;
    if (!code)
        code =
            o->cl.EnqueueNDRangeKernel(fac_cl_queue(o), s->kernel, (cl_uint)range->dims, NULL,
                                       items, range->group, 0, NULL, leaves_event ? &event : NULL);
    if (code) return fac_cl_raise_in(o, code, o->step, k->name, err);
    if (event && fac_cl_watching(o)) watch(o, k, range, items, event);
    fac_cl_pending_add(o, event);
    return FAC_OK;
}

fac_status fac_cl_launch(fac_opencl *o, const fac_cl_kernel *k, const fac_cl_range *range, int n,
                         const fac_cl_arg *args, fac_error *err) {
    size_t items[3];
    for (int i = 0; i < range->dims; i++) {
        if (!range->items[i]) return FAC_OK;
        items[i] = (range->items[i] + range->group[i] - 1) / range->group[i] * range->group[i];
    }
    pthread_mutex_lock(&o->launch);
    fac_status status = submit(o, k, range, items, n, args, err);
    pthread_mutex_unlock(&o->launch);
    return status;
}

fac_status fac_cl_kernel_get(fac_opencl *o, const fac_cl_kernel *k, cl_kernel *out,
                             fac_error *err) {
    pthread_mutex_lock(&o->launch);
    fac_status status = ready(o, k, err);
    if (!status) *out = k->setting->kernel;
    pthread_mutex_unlock(&o->launch);
    return status;
}
