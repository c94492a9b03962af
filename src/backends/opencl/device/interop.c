/* The caller's OpenCL objects and ours: see facula/opencl.h. */
#include "backends/opencl/device/opencl.h"
#include "base/error.h"
#include "base/memory.h"
#include "facula/opencl.h"

static const fac_opencl *opencl_of(const fac_device *d) {
    return d && d->backend == &fac_backend_opencl ? (const fac_opencl *)d : NULL;
}

cl_context fac_opencl_context(const fac_device *d) {
    const fac_opencl *o = opencl_of(d);
    return o ? o->context : NULL;
}

cl_command_queue fac_opencl_queue(const fac_device *d) {
    const fac_opencl *o = opencl_of(d);
    return o ? o->queue : NULL;
}

static fac_status needs(const fac_device *d, const char *call, fac_error *err) {
    return opencl_of(d) ? FAC_OK
                        : fac_raise(err, FAC_E_ARGUMENT, "%s: %s is no OpenCL device", call,
                                    d ? fac_device_name(d) : "NULL");
}

/* ---- devices ---- */

static fac_status look_at(fac_opencl *o, cl_context context, cl_command_queue queue,
                          fac_error *err) {
    cl_command_queue_properties how = 0;
    cl_context of = NULL;
    FAC_TRY(fac_cl_api_open(&o->cl, err));
    if (o->cl.GetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof of, &of, NULL) || of != context)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "fac_opencl_device: the queue is not one of the context");
    if (o->cl.GetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof o->place.device, &o->place.device,
                                  NULL) ||
        o->cl.GetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof how, &how, NULL))
        return fac_raise(err, FAC_E_ARGUMENT,
                         "fac_opencl_device: the queue does not say its device");
    if (how & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return fac_raise(
            err, FAC_E_ARGUMENT,
            "fac_opencl_device: the queue is out of order; programs need one in order");
    return FAC_OK;
}

fac_status fac_opencl_device(cl_context context, cl_command_queue queue,
                             const fac_device_opts *opts, fac_device **out, fac_error *err) {
    const fac_device_opts none = { 0 };
    if (!context || !queue || !out)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_opencl_device: %s is NULL",
                         !context ? "the context"
                         : !queue ? "the queue"
                                  : "out");
    fac_opencl *o = fac_alloc(1, sizeof *o);
    if (!o) return fac_raise(err, FAC_E_NOMEM, "opencl: no memory for a device");
    fac_status status = look_at(o, context, queue, err);
    if (!status) status = fac_cl_open_on(o, context, queue, opts ? opts : &none, err);
    if (status)
        fac_cl_close(o);
    else
        *out = &o->device;
    return status;
}

/* ---- tensors ---- */

/* The caller's buffer is a segment of its own, of which the tensor is the only block. */
static fac_status foreign_alloc(fac_device *d, size_t bytes, void **memory, fac_error *err) {
    (void)memory;
    return fac_raise(err, FAC_E_INTERNAL, "%s: %zu bytes of a buffer that is not ours", d->name,
                     bytes);
}

static void foreign_free(fac_device *d, void *memory, size_t bytes) {
    (void)bytes;
    fac_cl_block *b = memory;
    fac_opencl_of(d)->cl.ReleaseMemObject(b->segment->memory);
    fac_opencl_of(d)->memory.released++;
    fac_release(b->segment);
    fac_release(b);
}

static fac_status foreign_write(fac_device *d, void *memory, size_t at, const void *from,
                                size_t bytes, fac_error *err) {
    return fac_cl_memory_ops.write(d, memory, at, from, bytes, err);
}

static fac_status foreign_read(fac_device *d, void *memory, size_t at, void *to, size_t bytes,
                               fac_error *err) {
    return fac_cl_memory_ops.read(d, memory, at, to, bytes, err);
}

static const fac_memory_ops foreign_ops = { foreign_alloc, foreign_free, foreign_write,
                                            foreign_read,  NULL,         NULL };

static fac_status look_at_buffer(const fac_opencl *o, cl_mem buffer, size_t at,
                                 const fac_type *type, size_t *bytes, fac_error *err) {
    const size_t need = fac_type_bytes(type),
                 each = (size_t)fac_dtype_get(type->dtype)->block_bytes;
    cl_context of = NULL;
    size_t size = 0, end;
    if (type->dtype == FAC_TEXT || need == SIZE_MAX || !each)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_opencl_tensor: a buffer cannot hold this type");
    if (o->cl.GetMemObjectInfo(buffer, CL_MEM_CONTEXT, sizeof of, &of, NULL) || of != o->context)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "fac_opencl_tensor: the buffer is not one of the device's context");
    if (o->cl.GetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, NULL) ||
        !fac_size_add(at, need, &end) || end > size || at % each)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "fac_opencl_tensor: %zu bytes from %zu on do not fit into a buffer of %zu",
                         need, at, size);
    *bytes = need;
    return FAC_OK;
}

fac_status fac_opencl_tensor(fac_device *d, cl_mem buffer, size_t at, fac_dtype dtype,
                             fac_dims dims, fac_tensor **out, fac_error *err) {
    const fac_type type = { dtype, dims };
    size_t bytes;
    FAC_TRY(needs(d, "fac_opencl_tensor", err));
    if (!buffer || !out)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_opencl_tensor: %s is NULL",
                         buffer ? "out" : "the buffer");
    fac_opencl *o = fac_opencl_of(d);
    FAC_TRY(look_at_buffer(o, buffer, at, &type, &bytes, err));
    fac_cl_segment *s = fac_alloc(1, sizeof *s);
    fac_cl_block *b = fac_alloc(1, sizeof *b);
    fac_status status = s && b ? FAC_OK : fac_raise_memory(err, "a tensor");
    if (!status) {
        *s = (fac_cl_segment){ .memory = buffer, .bytes = bytes, .first = b };
        *b = (fac_cl_block){ .segment = s, .at = at, .bytes = bytes, .used = true };
        status = fac_tensor_over(&foreign_ops, d, b, type, out, err);
    }
    if (status) {
        fac_release(s);
        fac_release(b);
        return status;
    }
    o->cl.RetainMemObject(buffer);
    return FAC_OK;
}

void fac_opencl_changed(fac_tensor *t) { fac_tensor_begin_write(t, NULL, NULL); }

cl_mem fac_opencl_buffer(const fac_tensor *t, size_t *at) {
    const fac_storage *s = fac_tensor_storage(t);
    if (!opencl_of(s->device) || !s->memory) return NULL;
    const fac_span span = { s->memory, fac_tensor_at(t) };
    if (at) *at = fac_cl_at(span);
    return fac_cl_buffer(span);
}

/* ---- events ---- */

fac_status fac_opencl_wait_for(fac_device *d, struct _cl_event *const *events, int n,
                               fac_error *err) {
    FAC_TRY(needs(d, "fac_opencl_wait_for", err));
    if (n <= 0) return FAC_OK;
    fac_opencl *o = fac_opencl_of(d);
    FAC_TRY(fac_cl_alive(o, err));
    cl_int code = o->cl.EnqueueBarrierWithWaitList(o->queue, (cl_uint)n, events, NULL);
    return code ? fac_cl_blame(o, code, "waiting for events", err) : FAC_OK;
}

fac_status fac_opencl_event(fac_device *d, struct _cl_event **out, fac_error *err) {
    FAC_TRY(needs(d, "fac_opencl_event", err));
    fac_opencl *o = fac_opencl_of(d);
    FAC_TRY(fac_cl_alive(o, err));
    cl_event event;
    cl_int code = o->cl.EnqueueMarkerWithWaitList(o->queue, 0, NULL, &event);
    if (!code) code = o->cl.Flush(o->queue);
    if (code) return fac_cl_blame(o, code, "making an event", err);
    *out = event;
    return FAC_OK;
}
