/* Contents of device memory from the host's side, wherever the device keeps them. */
#ifndef FACULA_RUN_REACH_H
#define FACULA_RUN_REACH_H
#include "backends/device.h"
#include "graph/graph_internal.h"

/* Can the host look into the device's memory? */
static inline bool fac_in_sight(const fac_device *d) { return d->backend->host != NULL; }

/* May images have their channels last there? */
static inline bool fac_chooses_forms(fac_device *d) { return d->backend->channels_last && d->backend->channels_last(d); }

/* An operand's elements to contiguous host memory, and back; what lies between the elements of a strided one stays as it is.
 * Waits for the device. */
fac_status fac_fetch(fac_device *d, const fac_type *type, fac_span from, const fac_layout *layout, void *plain, fac_error *err);
fac_status fac_store(fac_device *d, const fac_type *type, const void *plain, fac_span to, const fac_layout *layout, fac_error *err);

/* lend.c: the memory of a device out of sight that is an operand of a run.  It is the tensor's own where the tensor lives there,
 * its mirror where that is or becomes current, else a copy for this run. */
typedef struct fac_loan {
    fac_span    span;
    fac_mirror *mirror;             /* in use until the end */
    void       *copy;               /* of `bytes`, given back at the end */
    size_t      bytes;
    fac_tensor *to;                 /* a result: where it goes; with a copy, the copy is brought there */
} fac_loan;

/* A tensor to be read.  own: a copy, because steps write over the tensor itself. */
fac_status fac_lend_in(fac_device *d, fac_tensor *t, bool own, fac_loan *out, fac_error *err);
/* A tensor whose contents a run replaces; nothing is changed before fac_lend_end. */
fac_status fac_lend_out(fac_device *d, fac_tensor *t, fac_loan *out, fac_error *err);
/* A parameter that steps read, and write where `written`: contiguous, with its present contents. */
fac_status fac_lend_param(fac_device *d, fac_tensor *t, fac_loan *out, fac_error *err);
/* done: what writes it was submitted. */
fac_status fac_lend_end(fac_device *d, fac_loan *loan, bool done, fac_error *err);

/* The solver that takes what no other takes: the reference kernels, on a device out of sight those of the cpu. */
const fac_solver *fac_last_solver(const fac_device *d);

/* away.c: a node of a device out of sight, solved by the cpu with copies there and back. */
extern const fac_solver fac_solver_away;
#endif
