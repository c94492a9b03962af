/* Operands of a run on a device out of sight. */
#ifndef FACULA_RUN_LOAN_H
#define FACULA_RUN_LOAN_H
#include "backends/device.h"

/* The memory of a device out of sight that is an operand of a run.  It is the tensor's own where
 * the tensor lives there, its mirror where that is or becomes current, else a copy for this run. */
typedef struct fac_loan {
    fac_span span;
    fac_mirror *mirror; /* in use until the end */
    void *copy;         /* of `bytes`, given back at the end */
    size_t bytes;
    fac_tensor *to; /* a result: where it goes; with a copy, the copy is brought there */
} fac_loan;

/* A tensor to be read.  own: a copy, because steps write over the tensor itself. */
fac_status fac_lend_in(fac_device *d, fac_tensor *t, bool own, fac_loan *out, fac_error *err);
/* A tensor whose contents a run replaces; nothing is changed before fac_lend_end. */
fac_status fac_lend_out(fac_device *d, fac_tensor *t, fac_loan *out, fac_error *err);
/* A parameter that steps read, and write where `written`: contiguous, with its present contents. */
fac_status fac_lend_param(fac_device *d, fac_tensor *t, fac_loan *out, fac_error *err);
/* done: what writes it was submitted. */
fac_status fac_lend_end(fac_device *d, fac_loan *loan, bool done, fac_error *err);
#endif
