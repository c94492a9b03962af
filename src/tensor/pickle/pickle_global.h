/* What pickles may name: classes, functions and values by what they mean here.  Nothing of it is
 * ever executed. */
#ifndef FACULA_TENSOR_PICKLE_GLOBAL_H
#define FACULA_TENSOR_PICKLE_GLOBAL_H
#include <stddef.h>
#include "facula/tensor.h"

typedef enum fac_pickle_meaning {
    FAC_PICKLE_ORDERED_DICT,
    FAC_PICKLE_DEFAULT_DICT,
    FAC_PICKLE_REBUILD,
    FAC_PICKLE_REBUILD_TYPED,
    FAC_PICKLE_PARAMETER,
    FAC_PICKLE_STORAGE_CLASS,
    FAC_PICKLE_TYPE,
    FAC_PICKLE_RECONSTRUCT,
    FAC_PICKLE_NUMPY_DTYPE,
    FAC_PICKLE_ENCODE,
    FAC_PICKLE_STRANGE, /* a call makes a tensor that cannot be one here */
    FAC_PICKLE_PLAIN    /* a value, or a class of values, that weights do not need: it and what it
                           makes are passed over */
} fac_pickle_meaning;

/* dtype: of a storage class or a torch.dtype, FAC_NONE when we have none like it; then `what` names
 * it for messages, and bytes are those of an element of the storage. */
typedef struct fac_pickle_name {
    const char *name;
    fac_pickle_meaning is;
    fac_dtype dtype;
    int bytes;
    const char *what;
} fac_pickle_name;

/* The row of "module.name"; -1 when there is none. */
int fac_pickle_name_find(const char *module, size_t a, const char *name, size_t b);
const fac_pickle_name *fac_pickle_name_at(int row);
#endif
