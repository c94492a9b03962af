/* The cpu backend: host memory, a pool of threads.  Work is done when run()
 * returns, so there is nothing to wait for, and two programs may run at once: the pool serves one
 * and the other computes on its own thread. */
#include <stdio.h>
#include <string.h>
#include "backends/cpu/device/cpu.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"

/* ---- memory ---- */

static fac_status alloc(fac_device *d, size_t bytes, void **memory, fac_error *err) {
    void *p = fac_alloc_aligned(bytes ? bytes : 1);
    if (!p) return fac_raise(err, FAC_E_NOMEM, "%s: no host memory for %zu bytes", d->name, bytes);
    *memory = p;
    return FAC_OK;
}

static void release(fac_device *d, void *memory, size_t bytes) {
    (void)d, (void)bytes;
    fac_release_aligned(memory);
}

static fac_status put(fac_device *d, fac_span to, const void *from, size_t bytes, fac_error *err) {
    (void)d, (void)err;
    if (bytes) memcpy((char *)to.memory + to.at, from, bytes);
    return FAC_OK;
}

static fac_status get(fac_device *d, fac_span from, void *to, size_t bytes, fac_error *err) {
    (void)d, (void)err;
    if (bytes) memcpy(to, (const char *)from.memory + from.at, bytes);
    return FAC_OK;
}

static fac_status copy(fac_device *d, fac_span from, fac_span to, size_t bytes, fac_error *err) {
    (void)d, (void)err;
    if (bytes) memmove((char *)to.memory + to.at, (const char *)from.memory + from.at, bytes);
    return FAC_OK;
}

static void *host(fac_device *d, void *memory) {
    (void)d;
    return memory;
}

static fac_status put_at(fac_device *d, void *memory, size_t at, const void *from, size_t bytes,
                         fac_error *err) {
    return put(d, (fac_span){ memory, at }, from, bytes, err);
}

static fac_status get_at(fac_device *d, void *memory, size_t at, void *to, size_t bytes,
                         fac_error *err) {
    return get(d, (fac_span){ memory, at }, to, bytes, err);
}

static const fac_memory_ops memory_ops = {
    fac_device_alloc, fac_device_release, put_at, get_at, host, NULL
};

/* ---- the device ---- */

static fac_status set_pool(fac_cpu *c, const fac_device_opts *o, fac_error *err) {
    if (o->pool) {
        const char *missing = !o->pool->run          ? "run function"
                              : o->pool->threads < 1 ? "threads"
                                                     : NULL;
        if (missing)
            return fac_raise(err, FAC_E_ARGUMENT, "cpu: the pool of the options has no %s",
                             missing);
        c->pool = *o->pool;
        return FAC_OK;
    }
    if (o->threads < 0 || o->threads > FAC_MOST_THREADS)
        return fac_raise(err, FAC_E_ARGUMENT, "cpu: %d threads: from 1 to %d, or 0 for one a core",
                         o->threads, FAC_MOST_THREADS);
    c->threads = fac_threads_new(o->threads);
    if (!c->threads) return fac_raise(err, FAC_E_NOMEM, "cpu: no memory for the threads");
    c->pool = fac_threads_pool(c->threads);
    return FAC_OK;
}

static fac_status open_parts(fac_cpu *c, const fac_device_opts *o, fac_error *err) {
    FAC_TRY(set_pool(c, o, err));
    FAC_TRY(fac_cpu_detect(c, o->isa, err));
    FAC_TRY(fac_device_init(&c->device, &fac_backend_cpu, "cpu", o, err));
    c->apart = fac_alloc(1, sizeof *c->apart);
    if (!c->apart) return fac_raise(err, FAC_E_NOMEM, "cpu: no memory for a device");
    c->device.memory_ops = &memory_ops;
    c->device.near = c->l2 * (size_t)c->pool.threads +
                     c->l3 / 2; /* the rest of the third cache is for weights and others */
    const char *plural = c->pool.threads == 1 ? "" : "s";
    snprintf(c->device.about, sizeof c->device.about, "%s, %d thread%s", c->simd->name,
             c->pool.threads, plural);
    fac_cpu_model(c, c->device.model, sizeof c->device.model);
    return FAC_OK;
}

static fac_status open_cpu(const char *which, const fac_device_opts *o, fac_device **out,
                           fac_error *err) {
    if (which && *which)
        return fac_raise(err, FAC_E_UNSUPPORTED, "cpu:%s: there is one cpu device, \"cpu\"", which);
    fac_cpu *c = fac_alloc(1, sizeof *c);
    if (!c) return fac_raise(err, FAC_E_NOMEM, "cpu: no memory for a device");
    fac_status status = open_parts(c, o, err);
    if (status) {
        fac_threads_free(c->threads);
        fac_release(c->apart);
        fac_release(c);
        return status;
    }
    *out = &c->device;
    return FAC_OK;
}

static void close_cpu(fac_device *d) {
    fac_cpu *c = (fac_cpu *)d;
    fac_device_fini(d);
    fac_threads_free(c->threads);
    fac_release(c->apart);
    fac_release(c);
}

const fac_backend fac_backend_cpu = {
    .api = FAC_BACKEND_API,
    .name = "cpu",
    .solvers = fac_cpu_solvers, /* after them all stands the reference driver (src/ref/ref.h) */
    .open = open_cpu,
    .close = close_cpu,
    .alloc = alloc,
    .free = release,
    .write = put,
    .read = get,
    .copy = copy,
    .host = host,
    .peaks = fac_cpu_peaks,
};
