/* Attributes of batch_norm, for what builds one. */
#ifndef FACULA_OPS_BATCH_NORM_H
#define FACULA_OPS_BATCH_NORM_H
#include <stdbool.h>

/* momentum: share of the old running statistics; training: statistics of x instead of mean and var.
 */
typedef struct fac_batch_norm_attrs {
    double epsilon, momentum;
    bool training;
} fac_batch_norm_attrs;
#endif
