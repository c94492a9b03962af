/* Reading and writing device memory from the host, mapped or not. */
#ifndef FACULA_BACKENDS_TRANSFER_H
#define FACULA_BACKENDS_TRANSFER_H
#include "backends/device.h"

/* Can the host look into the device's memory? */
static inline bool fac_in_sight(const fac_device *d) { return d->backend->host != NULL; }

/* May images have their channels last there? */
static inline bool fac_chooses_forms(fac_device *d) {
    return d->backend->channels_last && d->backend->channels_last(d);
}

/* An operand's elements to contiguous host memory, and back; what lies between the elements of a
 * strided one stays as it is. Waits for the device. */
fac_status fac_fetch(fac_device *d, const fac_type *type, fac_span from, const fac_layout *layout,
                     void *plain, fac_error *err);
fac_status fac_store(fac_device *d, const fac_type *type, const void *plain, fac_span to,
                     const fac_layout *layout, fac_error *err);
#endif
