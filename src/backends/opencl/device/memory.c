/* The caching allocator: segments cut into blocks.
 *
 * Small blocks (up to 1 MiB) share segments of 2 MiB; on GPUs those up to 10 MiB share segments of
 * 32 MiB, since each buffer of a launch costs the driver time; larger ones get a segment of their
 * own size, rounded up to 2 MiB, or a part of a free one.
 *
 * Of all free blocks that are large enough the smallest is taken, and what it has too much becomes
 * a block of its own. Neighbours that are free are one. */
#include "base/error.h"
#include "base/memory.h"
#include "backends/opencl/device/opencl.h"

static const size_t grain = 512, small_limit = (size_t)1 << 20, chunk = (size_t)2 << 20,
                    shared_limit = (size_t)10 << 20, shared = (size_t)32 << 20;

fac_status fac_cl_memory_init(fac_cl_memory *m, fac_error *err) {
    return pthread_mutex_init(&m->lock, NULL) ? fac_raise(err, FAC_E_NOMEM, "opencl: no mutex")
                                              : FAC_OK;
}

static void segment_free(fac_opencl *o, fac_cl_segment *s) {
    for (fac_cl_block *b = s->first, *next; b; b = next) {
        next = b->next;
        fac_release(b);
    }
    o->memory.reserved -= s->bytes;
    o->memory.released++;
    o->cl.ReleaseMemObject(s->memory);
    fac_release(s);
}

void fac_cl_memory_fini(fac_opencl *o) {
    for (fac_cl_segment *s = o->memory.segments, *next; s; s = next) {
        next = s->next;
        segment_free(o, s);
    }
    pthread_mutex_destroy(&o->memory.lock);
}

static size_t trim(fac_opencl *o) {
    size_t before = o->memory.reserved;
    for (fac_cl_segment **at = &o->memory.segments; *at;) {
        fac_cl_segment *s = *at;
        if (s->first->used || s->first->next) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        segment_free(o, s);
    }
    return before - o->memory.reserved;
}

size_t fac_cl_trim(fac_opencl *o) {
    pthread_mutex_lock(&o->memory.lock);
    size_t freed = trim(o);
    pthread_mutex_unlock(&o->memory.lock);
    return freed;
}

/* Drivers of GPUs may find out that there is no memory only when something is written, so a byte of
 * it is, at once.  NULL: *code says why. */
static cl_mem buffer_new(fac_opencl *o, size_t bytes, cl_int *code) {
    static const cl_uchar none = 0;
    cl_mem memory = o->cl.CreateBuffer(o->context, CL_MEM_READ_WRITE, bytes, NULL, code);
    if (*code) return NULL;
    if (!o->limits.gpu || o->memory.apart) return memory;
    *code = o->cl.EnqueueFillBuffer(o->queue, memory, &none, sizeof none, 0, sizeof none, 0, NULL,
                                    NULL);
    if (!*code) return memory;
    o->cl.ReleaseMemObject(memory);
    return NULL;
}

/* A new segment with one free block. */
static fac_status segment_new(fac_opencl *o, size_t bytes, bool small, fac_cl_segment **out,
                              fac_error *err) {
    if (bytes > o->limits.largest)
        return fac_raise(err, FAC_E_NOMEM,
                         "%s: %zu bytes in one piece, the device gives at most %zu", o->device.name,
                         bytes, o->limits.largest);
    fac_cl_segment *s = fac_alloc(1, sizeof *s);
    fac_cl_block *b = fac_alloc(1, sizeof *b);
    cl_int code = CL_OUT_OF_HOST_MEMORY;
    if (s && b) {
        s->memory = buffer_new(o, bytes, &code);
        if (code && trim(o)) s->memory = buffer_new(o, bytes, &code);
    }
    if (code) {
        fac_release(s);
        fac_release(b);
        return fac_raise(err, FAC_E_NOMEM,
                         "%s: no %zu bytes of memory: %zu are in use, %zu more are held for reuse, "
                         "the device has %zu "
                         "for all that use it",
                         o->device.name, bytes, o->memory.used, o->memory.reserved - o->memory.used,
                         o->limits.memory);
    }
    *b = (fac_cl_block){ .segment = s, .bytes = bytes };
    s->bytes = bytes;
    s->small = small;
    s->first = b;
    s->next = o->memory.segments;
    o->memory.segments = s;
    o->memory.reserved += bytes;
    *out = s;
    return FAC_OK;
}

static fac_cl_block *best_free(const fac_cl_memory *m, size_t bytes, bool small) {
    fac_cl_block *best = NULL;
    for (const fac_cl_segment *s = m->segments; s; s = s->next)
        for (fac_cl_block *b = s->small == small ? s->first : NULL; b; b = b->next)
            if (!b->used && b->bytes >= bytes && (!best || b->bytes < best->bytes)) best = b;
    return best;
}

/* What a block has too much becomes a free neighbour; without memory for that it stays as it is. */
static void cut(fac_cl_block *b, size_t bytes) {
    fac_cl_block *rest = b->bytes - bytes >= grain ? fac_alloc(1, sizeof *rest) : NULL;
    if (!rest) return;
    *rest = (fac_cl_block){ .segment = b->segment,
                            .at = b->at + bytes,
                            .bytes = b->bytes - bytes,
                            .next = b->next,
                            .prev = b };
    if (b->next) b->next->prev = rest;
    b->next = rest;
    b->bytes = bytes;
}

/* A segment for a block of so many bytes, and for others of its kind. */
static fac_status segment_for(fac_opencl *o, size_t bytes, bool small, fac_cl_segment **out,
                              fac_error *err) {
    const size_t own = small ? chunk : (bytes + chunk - 1) / chunk * chunk;
    const bool alone = o->memory.apart || small || !o->limits.gpu || bytes > shared_limit ||
                       shared > o->limits.largest;
    if (!alone && !segment_new(o, shared, small, out, NULL)) return FAC_OK;
    return segment_new(o, o->memory.apart ? bytes : own, small, out, err);
}

static fac_status take(fac_opencl *o, size_t bytes, fac_cl_block **out, fac_error *err) {
    const bool apart = o->memory.apart, small = bytes <= small_limit && !apart;
    fac_cl_block *b = apart ? NULL : best_free(&o->memory, bytes, small);
    if (!b) {
        fac_cl_segment *s;
        FAC_TRY(segment_for(o, bytes, small, &s, err));
        b = s->first;
    }
    if (small || b->bytes - bytes >= small_limit) cut(b, bytes);
    b->used = true;
    o->memory.used += b->bytes;
    *out = b;
    return FAC_OK;
}

fac_status fac_cl_take(fac_opencl *o, size_t bytes, fac_cl_block **out, fac_error *err) {
    if (bytes > SIZE_MAX - chunk)
        return fac_raise(err, FAC_E_NOMEM, "%s: %zu bytes", o->device.name, bytes);
    bytes = bytes ? (bytes + grain - 1) / grain * grain : grain;
    pthread_mutex_lock(&o->memory.lock);
    fac_status status = take(o, bytes, out, err);
    pthread_mutex_unlock(&o->memory.lock);
    return status;
}

/* b and its next neighbour become one. */
static void merge(fac_cl_block *b) {
    fac_cl_block *next = b->next;
    b->bytes += next->bytes;
    b->next = next->next;
    if (b->next) b->next->prev = b;
    fac_release(next);
}

void fac_cl_give(fac_opencl *o, fac_cl_block *b) {
    pthread_mutex_lock(&o->memory.lock);
    b->used = false;
    o->memory.used -= b->bytes;
    if (b->next && !b->next->used) merge(b);
    if (b->prev && !b->prev->used) merge(b->prev);
    pthread_mutex_unlock(&o->memory.lock);
}
