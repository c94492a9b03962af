/* See transfer.h. */
#include "base/error.h"
#include "base/memory.h"
#include "backends/layout_copy.h"
#include "backends/transfer.h"

static size_t element(const fac_type *type) {
    return (size_t)fac_dtype_get(type->dtype)->block_bytes;
}

fac_status fac_fetch(fac_device *d, const fac_type *type, fac_span from, const fac_layout *layout,
                     void *plain, fac_error *err) {
    const fac_layout flat = fac_layout_plain(&type->dims);
    if (fac_in_sight(d)) {
        fac_copy_layout(type, (const char *)d->backend->host(d, from.memory) + from.at, layout,
                        plain, &flat);
        return FAC_OK;
    }
    if (fac_layout_is_plain(layout, &type->dims))
        return d->backend->read(
            d, (fac_span){ from.memory, from.at + (size_t)layout->offset * element(type) }, plain,
            fac_type_bytes(type), err);
    const size_t bytes = fac_layout_bytes(layout, type);
    void *all = fac_alloc(bytes ? bytes : 1, 1);
    if (!all) return fac_raise(err, FAC_E_NOMEM, "no memory for %zu bytes", bytes);
    fac_status status = d->backend->read(d, from, all, bytes, err);
    if (!status) fac_copy_layout(type, all, layout, plain, &flat);
    fac_release(all);
    return status;
}

fac_status fac_store(fac_device *d, const fac_type *type, const void *plain, fac_span to,
                     const fac_layout *layout, fac_error *err) {
    const fac_layout flat = fac_layout_plain(&type->dims);
    if (fac_in_sight(d)) {
        fac_copy_layout(type, plain, &flat, (char *)d->backend->host(d, to.memory) + to.at, layout);
        return FAC_OK;
    }
    if (fac_layout_is_plain(layout, &type->dims))
        return d->backend->write(
            d, (fac_span){ to.memory, to.at + (size_t)layout->offset * element(type) }, plain,
            fac_type_bytes(type), err);
    const size_t bytes = fac_layout_bytes(layout, type);
    void *all = fac_alloc(bytes ? bytes : 1, 1);
    if (!all) return fac_raise(err, FAC_E_NOMEM, "no memory for %zu bytes", bytes);
    fac_status status = d->backend->read(d, to, all, bytes, err);
    if (!status) {
        fac_copy_layout(type, plain, &flat, all, layout);
        status = d->backend->write(d, to, all, bytes, err);
    }
    fac_release(all);
    return status;
}
