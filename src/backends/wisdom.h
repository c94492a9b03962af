/* Wisdom beyond facula/tune.h: text that lies in memory, and what the library brings along. */
#ifndef FACULA_BACKENDS_WISDOM_H
#define FACULA_BACKENDS_WISDOM_H
#include "backends/device.h"
#include "facula/tune.h"

#define FAC_WISDOM_HEADING "facula wisdom 1"

/* text: bytes of it and one more, changed on the way; name: what errors call it. */
fac_status fac_wisdom_parse(const char *name, char *text, size_t bytes, fac_wisdom **out,
                            fac_error *err);

/* The entries of `text`, as fac_wisdom_save writes it, that are of the device of this key, under
 * this key.  A line "device D" is of every device whose key has all parts of D, which commas
 * divide, in their order, and begins with the first: so "device opencl, 132 units, sm_90" serves
 * cards of several names and all drivers.  Of two entries for one problem the later one counts.
 * *out stays NULL where there are none. */
fac_status fac_wisdom_pick(const char *text, const char *key, fac_wisdom **out, fac_error *err);

/* Gives the device what fac_wisdom_pick finds for it, beside its own wisdom: what the user measured
 * stays. */
fac_status fac_device_ship(fac_device *d, const char *text, fac_error *err);
#endif
