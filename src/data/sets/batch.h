/* A batch in memory that is used again for the next one. */
#ifndef FACULA_DATA_BATCH_H
#define FACULA_DATA_BATCH_H
#include "facula/data/data.h"

typedef struct fac_batch_memory {
    fac_tensor *x, *labels;
    float *other; /* one sample: what is mixed in */
} fac_batch_memory;

/* { 0 } in the beginning.  After an error the tensors hold anything. */
fac_status fac_batch_into(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t index,
                          fac_batch_memory *m, fac_error *err);
void fac_batch_memory_free(fac_batch_memory *m);
/* FAC_E_ARGUMENT when such batches cannot be made of this data set. */
fac_status fac_batches_check(const fac_dataset *d, const fac_batches *b, fac_error *err);
#endif
