/* Contents of device memory from the host's side, wherever the device keeps them. */
#ifndef FACULA_RUN_REACH_H
#define FACULA_RUN_REACH_H
#include "backends/device.h"
#include "graph/graph_internal.h"

/* Can the host look into the device's memory? */
static inline bool fac_in_sight(const fac_device *d) { return d->backend->host != NULL; }

/* An operand's elements to contiguous host memory, and back; what lies between the elements of a strided one stays as it is.
 * Waits for the device. */
fac_status fac_fetch(fac_device *d, const fac_type *type, fac_span from, const fac_layout *layout, void *plain, fac_error *err);
fac_status fac_store(fac_device *d, const fac_type *type, const void *plain, fac_span to, const fac_layout *layout, fac_error *err);

/* lend.c: memory of a device out of sight that stands for a tensor during a run; freed with fac_device_release. */
fac_status fac_lend_in(fac_device *d, const fac_tensor *t, void **memory, fac_error *err);       /* with its contents */
fac_status fac_lend_out(fac_device *d, const fac_type *type, void **memory, fac_error *err);
fac_status fac_lend_back(fac_device *d, const fac_type *type, void *memory, fac_tensor *to, fac_error *err);

/* The solver that takes what no other takes: the reference kernels, on a device out of sight those of the cpu. */
const fac_solver *fac_last_solver(const fac_device *d);

/* away.c: a node of a device out of sight, solved by the cpu with copies there and back. */
extern const fac_solver fac_solver_away;
#endif
