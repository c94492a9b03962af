/* Packed parameters on disk: the next process maps what this one computed. */
#ifndef FACULA_BACKENDS_PACKED_H
#define FACULA_BACKENDS_PACKED_H
#include "backends/device.h"

/* The options' folder, made absolute; part of fac_device_settle. */
fac_status fac_packed_open(fac_device *d, fac_error *err);

/* What a packed form is made from and by, in any process: contents and type, solver, input, pack
 * key; the device and the build of the library are added.  false: nothing of this is kept (no
 * folder, a device out of sight, a build without a name, small). */
bool fac_packed_key(const fac_device *d, const fac_type *type, const void *contents,
                    const fac_solver *solver, int input, uint64_t pack_key, size_t bytes,
                    fac_hash *out);
/* From the disk into the pack, whose own memory it replaces; false when it is not there, or
 * damaged. */
bool fac_packed_find(fac_device *d, fac_hash key, fac_pack *pack);
/* To the disk; whatever fails leaves the cache without it. */
void fac_packed_keep(fac_device *d, fac_hash key, const fac_pack *pack);
#endif
