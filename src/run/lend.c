/* A run on a device out of sight works on memory of that device; the caller's tensors, wherever they are, are copied there
 * before it and back behind it. */
#include "base/error.h"
#include "base/memory.h"
#include "facula/tensor.h"
#include "run/reach.h"

static size_t some(size_t bytes) { return bytes ? bytes : 1; }

fac_status fac_lend_out(fac_device *d, const fac_type *type, void **memory, fac_error *err) {
    return fac_device_alloc(d, some(fac_type_bytes(type)), memory, err);
}

fac_status fac_lend_in(fac_device *d, const fac_tensor *t, void **memory, fac_error *err) {
    const fac_type type = fac_tensor_type(t);
    const size_t bytes = fac_type_bytes(&type);
    void *host = fac_alloc(some(bytes), 1), *there = NULL;
    if (!host) return fac_raise(err, FAC_E_NOMEM, "no memory for %zu bytes", bytes);
    fac_status status = fac_tensor_read(t, host, bytes, err);
    if (!status) status = fac_lend_out(d, &type, &there, err);
    if (!status) status = d->backend->write(d, (fac_span){ there, 0 }, host, bytes, err);
    fac_release(host);
    if (status) fac_device_release(d, there, some(bytes));
    else *memory = there;
    return status;
}

fac_status fac_lend_back(fac_device *d, const fac_type *type, void *memory, fac_tensor *to, fac_error *err) {
    const size_t bytes = fac_type_bytes(type);
    void *host = fac_alloc(some(bytes), 1);
    if (!host) return fac_raise(err, FAC_E_NOMEM, "no memory for %zu bytes", bytes);
    fac_status status = d->backend->read(d, (fac_span){ memory, 0 }, host, bytes, err);
    if (!status) status = fac_tensor_write(to, host, bytes, err);
    fac_release(host);
    return status;
}
