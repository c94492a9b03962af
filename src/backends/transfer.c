/* See transfer.h. */
#include "base/error.h"
#include "base/memory.h"
#include "backends/layout_copy.h"
#include "backends/transfer.h"

static size_t element(const fac_type *type) {
    return (size_t)fac_dtype_get(type->dtype)->block_bytes;
}

/* Between contiguous host memory and an operand: to host memory, or from it. */
static fac_status transfer(fac_device *d, const fac_type *type, fac_span at,
                           const fac_layout *layout, void *to, const void *from, fac_error *err) {
    const fac_layout flat = fac_layout_plain(&type->dims);
    if (fac_in_sight(d)) {
        char *seen = (char *)d->backend->host(d, at.memory) + at.at;
        if (to)
            fac_copy_layout(type, seen, layout, to, &flat);
        else
            fac_copy_layout(type, from, &flat, seen, layout);
        return FAC_OK;
    }
    if (fac_layout_is_plain(layout, &type->dims)) {
        const fac_span begin = { at.memory, at.at + (size_t)layout->offset * element(type) };
        const size_t bytes = fac_type_bytes(type);
        return to ? d->backend->read(d, begin, to, bytes, err)
                  : d->backend->write(d, begin, from, bytes, err);
    }
    /* what lies between the elements is read and written as it is */
    const size_t bytes = fac_layout_bytes(layout, type);
    void *all = fac_alloc(bytes ? bytes : 1, 1);
    if (!all) return fac_raise_memory(err, "%zu bytes", bytes);
    fac_status status = d->backend->read(d, at, all, bytes, err);
    if (!status && to) fac_copy_layout(type, all, layout, to, &flat);
    if (!status && !to) {
        fac_copy_layout(type, from, &flat, all, layout);
        status = d->backend->write(d, at, all, bytes, err);
    }
    fac_release(all);
    return status;
}

fac_status fac_fetch(fac_device *d, const fac_type *type, fac_span from, const fac_layout *layout,
                     void *plain, fac_error *err) {
    return transfer(d, type, from, layout, plain, NULL, err);
}

fac_status fac_store(fac_device *d, const fac_type *type, const void *plain, fac_span to,
                     const fac_layout *layout, fac_error *err) {
    return transfer(d, type, to, layout, NULL, plain, err);
}
