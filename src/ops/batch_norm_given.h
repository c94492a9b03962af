/* What batch_norm_given.c shares with the form that also keeps what relu lets pass. */
#ifndef FACULA_OPS_BATCH_NORM_GIVEN_H
#define FACULA_OPS_BATCH_NORM_GIVEN_H
#include "facula/op.h"

typedef struct fac_norm_given {
    double epsilon, momentum;
} fac_norm_given;            /* the attributes of both */
enum { FAC_NORM_GIVEN = 7 }; /* operands */

bool fac_batch_norm_given_infer(fac_node *n);
fac_status fac_batch_norm_given_ref(const fac_ref *r, fac_error *err);
#endif
