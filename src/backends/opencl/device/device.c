/* The opencl backend: opening a device by number or name, and what a backend has to offer besides
 * solvers. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backends/opencl/device/clock.h"
#include "backends/opencl/device/complaint.h"
#include "backends/opencl/nvidia/unit/pack.h"
#include "backends/opencl/nvidia/relay/relay.h"
#include "backends/opencl/device/peaks.h"
#include "backends/opencl/device/probe.h"
#include "backends/gpu/speed.h"
#include "base/optional.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/memory.h"

enum { PLACES = 64 };
/* Questions for NVIDIA's devices. */
enum { COMPUTE_CAPABILITY_MAJOR = 0x4000, COMPUTE_CAPABILITY_MINOR = 0x4001 };

fac_status fac_cl_raise_in(fac_opencl *o, cl_int code, const char *step, const char *what,
                           fac_error *err) {
    const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
    fac_error own = { 0 };
    fac_status status = fac_raise(&own, memory ? FAC_E_NOMEM : FAC_E_DEVICE, "%s: %s%s%s: %s (%d)",
                                  o->device.name, fac_text_or(step, ""), fac_text_if(step, ": "),
                                  what, fac_cl_error_name(code), (int)code);
    pthread_mutex_lock(&o->fault);
    if (!memory && !o->broken.status) o->broken = own;
    if (!memory) o->failed = true;
    pthread_mutex_unlock(&o->fault);
    return fac_raise(err, status, "%s", own.text);
}

fac_status fac_cl_raise(fac_opencl *o, cl_int code, const char *what, fac_error *err) {
    return fac_cl_raise_in(o, code, NULL, what, err);
}

static fac_status check(fac_opencl *o, cl_int code, const char *what, fac_error *err) {
    return code ? fac_cl_blame(o, code, what, err) : FAC_OK;
}

fac_status fac_cl_alive(fac_opencl *o, fac_error *err) {
    if (!o->failed) return FAC_OK;
    pthread_mutex_lock(&o->fault);
    const fac_status status =
        o->broken.status ? fac_raise(err, o->broken.status, "%s", o->broken.text) : FAC_OK;
    pthread_mutex_unlock(&o->fault);
    return status;
}

/* ---- memory ---- */

static fac_status alloc(fac_device *d, size_t bytes, void **memory, fac_error *err) {
    fac_cl_block *b;
    FAC_TRY(fac_cl_take(fac_opencl_of(d), bytes, &b, err));
    *memory = b;
    return FAC_OK;
}

static void release(fac_device *d, void *memory, size_t bytes) {
    (void)bytes;
    if (memory) fac_cl_give(fac_opencl_of(d), memory);
}

static fac_status put(fac_device *d, fac_span to, const void *from, size_t bytes, fac_error *err) {
    FAC_TRY(fac_cl_alive(fac_opencl_of(d), err));
    return bytes ? fac_cl_write(fac_opencl_of(d), to, from, bytes, err) : FAC_OK;
}

static fac_status get(fac_device *d, fac_span from, void *to, size_t bytes, fac_error *err) {
    FAC_TRY(fac_cl_alive(fac_opencl_of(d), err));
    if (bytes) FAC_TRY(fac_cl_read(fac_opencl_of(d), from, to, bytes, err));
    return bytes ? fac_cl_hear(fac_opencl_of(d), err) : FAC_OK;
}

static fac_status copy(fac_device *d, fac_span from, fac_span to, size_t bytes, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    FAC_TRY(fac_cl_alive(o, err));
    if (!bytes) return FAC_OK;
    cl_event event = NULL;
    const cl_int code = o->cl.EnqueueCopyBuffer(fac_cl_queue(o), fac_cl_buffer(from),
                                                fac_cl_buffer(to), fac_cl_at(from), fac_cl_at(to),
                                                bytes, 0, NULL, fac_cl_watching(o) ? &event : NULL);
    fac_cl_watch_end(o, "copy", event);
    return check(o, code, "copying on the device", err);
}

static fac_status sync(fac_device *d, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    FAC_TRY(fac_cl_alive(o, err));
    const size_t mark = fac_cl_pending_mark(o);
    FAC_TRY(check(o, o->cl.Finish(o->queue), "waiting for the device", err));
    fac_cl_pending_clear(o, mark);
    return fac_cl_hear(o, err);
}

static fac_status check_data(fac_device *d, fac_error *err) {
    FAC_TRY(fac_cl_alive(fac_opencl_of(d), err));
    return fac_cl_hear(fac_opencl_of(d), err);
}

static fac_status settle(fac_device *d, fac_error *err) {
    return fac_cl_builds_settle(fac_opencl_of(d), err);
}

static void step(fac_device *d, const char *name) { fac_opencl_of(d)->step = name; }

static size_t reserved(fac_device *d) {
    fac_opencl *o = fac_opencl_of(d);
    pthread_mutex_lock(&o->memory.lock);
    const size_t bytes = o->memory.reserved;
    pthread_mutex_unlock(&o->memory.lock);
    return bytes;
}

static size_t trim(fac_device *d) { return fac_cl_trim(fac_opencl_of(d)); }

static fac_status zero(fac_device *d, fac_span at, size_t bytes, fac_error *err) {
    static const cl_uchar none = 0;
    fac_opencl *o = fac_opencl_of(d);
    FAC_TRY(fac_cl_alive(o, err));
    if (!bytes) return FAC_OK;
    cl_event event = NULL;
    const cl_int code =
        o->cl.EnqueueFillBuffer(fac_cl_queue(o), fac_cl_buffer(at), &none, sizeof none,
                                fac_cl_at(at), bytes, 0, NULL, fac_cl_watching(o) ? &event : NULL);
    fac_cl_watch_end(o, "fill", event);
    return check(o, code, "filling memory of the device", err);
}

static fac_status zero_at(fac_device *d, void *memory, size_t at, size_t bytes, fac_error *err) {
    return zero(d, (fac_span){ memory, at }, bytes, err);
}

static fac_status put_at(fac_device *d, void *memory, size_t at, const void *from, size_t bytes,
                         fac_error *err) {
    return put(d, (fac_span){ memory, at }, from, bytes, err);
}

static fac_status get_at(fac_device *d, void *memory, size_t at, void *to, size_t bytes,
                         fac_error *err) {
    return get(d, (fac_span){ memory, at }, to, bytes, err);
}

static void *hidden(fac_device *d, void *memory) {
    (void)d, (void)memory;
    return NULL;
}

const fac_memory_ops fac_cl_memory_ops = { fac_device_alloc, fac_device_release,
                                           put_at,           get_at,
                                           hidden,           zero_at };

/* ---- which device ---- */

static bool contains(const char *text, const char *part) {
    size_t n = strlen(part);
    for (; *text; text++) {
        size_t i = 0;
        while (i < n && text[i] &&
               tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (i == n) return true;
    }
    return n == 0;
}

/* "": the first; a number; part of a name of device, vendor or platform.  -1: none. */
static int find(const fac_cl_place *places, int n, const char *which) {
    char *end;
    long number = strtol(which, &end, 10);
    if (!*which) return n ? 0 : -1;
    if (!*end) return number >= 0 && number < n ? (int)number : -1;
    for (int i = 0; i < n; i++)
        if (contains(places[i].name, which) || contains(places[i].vendor, which) ||
            contains(places[i].platform_name, which))
            return i;
    return -1;
}

static fac_status choose(fac_opencl *o, const char *which, int *number, fac_error *err) {
    fac_cl_place places[PLACES];
    int n = fac_cl_places(&o->cl, places, PLACES);
    if (n > PLACES) n = PLACES;
    if (!n)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "opencl: the library is there, but no driver offers a device (Debian: "
                         "pocl-opencl-icd runs OpenCL on the CPU)");
    *number = find(places, n, which);
    if (*number < 0) {
        char list[256] = "";
        for (int i = 0; i < n; i++) {
            size_t used = strlen(list);
            snprintf(list + used, sizeof list - used, "%s%d (%s)", i ? ", " : "", i,
                     places[i].name);
        }
        return fac_raise(err, FAC_E_ARGUMENT, "opencl:%s: there is no such device; there are: %s",
                         which, list);
    }
    o->place = places[*number];
    return FAC_OK;
}

/* ---- opening ---- */

static fac_status open_queue(fac_opencl *o, fac_error *err) {
    cl_int code;
    o->context = o->cl.CreateContext(NULL, 1, &o->place.device, NULL, NULL, &code);
    if (code) return fac_cl_raise(o, code, "making a context", err);
    o->queue = o->cl.CreateCommandQueue(o->context, o->place.device, 0, &code);
    return check(o, code, "making a queue", err);
}

/* One of the caller's. */
static fac_status share_queue(fac_opencl *o, cl_context context, cl_command_queue queue,
                              fac_error *err) {
    cl_int code = o->cl.RetainContext(context);
    if (code) return fac_cl_raise(o, code, "taking a context", err);
    o->context = context;
    code = o->cl.RetainCommandQueue(queue);
    if (code) return fac_cl_raise(o, code, "taking a queue", err);
    o->queue = queue;
    o->borrowed = true;
    return FAC_OK;
}

static fac_status open_locks(fac_opencl *o, fac_error *err) {
    if (pthread_mutex_init(&o->launch, NULL) || pthread_mutex_init(&o->fault, NULL) ||
        pthread_mutex_init(&o->staging.lock, NULL))
        return fac_raise(err, FAC_E_NOMEM, "%s: no mutex", o->device.name);
    FAC_TRY(fac_cl_memory_init(&o->memory, err));
    FAC_TRY(fac_cl_builds_init(&o->builds, o->device.opts.kernel_texts, err));
    o->locks = true;
    return FAC_OK;
}

static void close_locks(fac_opencl *o) {
    fac_cl_memory_fini(o);
    pthread_mutex_destroy(&o->launch);
    pthread_mutex_destroy(&o->fault);
    pthread_mutex_destroy(&o->staging.lock);
}

/* What cards of other names have in common with this one: wisdom for it serves them all. */
static void find_model(fac_opencl *o) {
    cl_uint major, minor;
    if (!strstr(o->extensions, "cl_nv_device_attribute_query")) return;
    fac_cl_ask(o, COMPUTE_CAPABILITY_MAJOR, &major, sizeof major);
    fac_cl_ask(o, COMPUTE_CAPABILITY_MINOR, &minor, sizeof minor);
    snprintf(o->device.model, sizeof o->device.model, "sm_%u%u", (unsigned)major, (unsigned)minor);
}

/* With a place and an open library. */
static fac_status open_parts(fac_opencl *o, const char *name, const fac_device_opts *opts,
                             fac_error *err) {
    fac_cl_find_limits(o);
    if (o->limits.major < 2 && o->limits.minor < 2)
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s: %s speaks OpenCL C %d.%d, 1.2 is needed",
                         name, o->place.name, o->limits.major, o->limits.minor);
    FAC_TRY(fac_device_init(&o->device, &fac_backend_opencl, name, opts, err));
    o->device.memory_ops = &fac_cl_memory_ops;
    o->traced = !o->limits.gpu; /* on a CPU an event costs nothing more */
    snprintf(o->device.about, sizeof o->device.about, "%.40s, %u units, %.1f GB, driver %.16s",
             o->place.name, o->limits.units, (double)o->limits.memory / 1e9, o->place.driver);
    find_model(o);
    return open_locks(o, err);
}

static fac_status open_named(fac_opencl *o, const char *which, const fac_device_opts *opts,
                             fac_error *err) {
    char name[32];
    int number = 0;
    FAC_TRY(fac_cl_api_open(&o->cl, err));
    FAC_TRY(choose(o, which, &number, err));
    snprintf(name, sizeof name, "opencl:%d", number);
    FAC_TRY(open_parts(o, name, opts, err));
    return open_queue(o, err);
}

fac_status fac_cl_open_on(fac_opencl *o, cl_context context, cl_command_queue queue,
                          const fac_device_opts *opts, fac_error *err) {
    fac_cl_place places[PLACES];
    char name[32] = "opencl";
    const int n = fac_cl_places(&o->cl, places, PLACES);
    for (int i = 0; i < n && i < PLACES; i++)
        if (places[i].device == o->place.device) {
            o->place = places[i];
            snprintf(name, sizeof name, "opencl:%d", i);
        }
    FAC_TRY(open_parts(o, name, opts, err));
    return share_queue(o, context, queue, err);
}

void fac_cl_close(fac_opencl *o) {
    if (o->device.backend) fac_device_fini(&o->device); /* brings home what only the device has */
    if (o->locks) fac_cl_builds_fini(o);
    fac_cl_watch_fini(o);
    fac_cl_second_fini(o);
    if (o->queue) {
        o->cl.Finish(o->queue);
        if (o->locks) fac_cl_pending_clear(o, o->submitted);
        fac_cl_staging_fini(o);
        o->cl.ReleaseCommandQueue(o->queue);
    }
    if (o->locks) close_locks(o);
    if (o->context) o->cl.ReleaseContext(o->context);
    fac_cl_api_close(&o->cl);
    fac_release(o);
}

static fac_status open_opencl(const char *which, const fac_device_opts *opts, fac_device **out,
                              fac_error *err) {
    fac_opencl *o = fac_alloc(1, sizeof *o);
    if (!o) return fac_raise(err, FAC_E_NOMEM, "opencl: no memory for a device");
    fac_status status = open_named(o, which ? which : "", opts, err);
    if (status)
        fac_cl_close(o);
    else
        *out = &o->device;
    return status;
}

static void close_opencl(fac_device *d) { fac_cl_close(fac_opencl_of(d)); }

static double reorder(const fac_device *d, const fac_type *t) {
    const fac_opencl *o = (const fac_opencl *)d;
    return fac_gpu_speed_of(&o->limits)->launch +
           2 * (double)fac_type_bytes(t) / fac_gpu_bandwidth(&o->limits);
}

/* Where solvers for matrix units want it; what else is there reads either form as fast as the
 * other. */
static bool channels_last(fac_device *d) {
    fac_opencl *o = fac_opencl_of(d);
    if (!o->last) o->last = o->limits.gpu && fac_cl_has_path(o, FAC_CL_MMA) ? 1 : -1;
    return o->last > 0;
}

const fac_backend fac_backend_opencl = {
    .api = FAC_BACKEND_API,
    .name = "opencl",
    .solvers = fac_cl_solvers,
    .open = open_opencl,
    .close = close_opencl,
    .alloc = alloc,
    .free = release,
    .write = put,
    .read = get,
    .copy = copy,
    .sync = sync,
    .zero = zero,
    .settle = settle,
    .step = step,
    .reserved = reserved,
    .trim = trim,
    .check = check_data,
    .facts = fac_cl_facts,
    .paths = fac_cl_tell_paths,
    .peaks = fac_cl_peaks,
    .watch = fac_cl_watch,
    .reorder = reorder,
    .channels_last = channels_last,
    .packer = &fac_nv_packer,
    .beside = &fac_cl_beside,
    .relay = &fac_nv_relay,
};
