/* Reading Python pickles that hold weights or NumPy arrays, without executing anything.
 *
 * The interpreter knows the opcodes that torch.save() of dicts of tensors emits (pickle protocol
 * 2), those for bytes, and the classes and functions that occur there, each by what it means
 * (pickle_global.c); any other opcode or global is refused by its name.  The result is a tree of
 * values in an arena.  A value may be reached by several ways, and a list or dict may even contain
 * itself. */
#ifndef FACULA_TENSOR_PICKLE_H
#define FACULA_TENSOR_PICKLE_H
#include "base/arena.h"
#include "facula/tensor.h"

typedef enum fac_pickle_kind {
    FAC_PICKLE_NONE,
    FAC_PICKLE_BOOL,
    FAC_PICKLE_INT,
    FAC_PICKLE_LONG /* more than 64 bits */,
    FAC_PICKLE_REAL,
    FAC_PICKLE_TEXT,
    FAC_PICKLE_TUPLE,
    FAC_PICKLE_LIST,
    FAC_PICKLE_DICT,
    FAC_PICKLE_GLOBAL,
    FAC_PICKLE_STORAGE,
    FAC_PICKLE_TENSOR,
    FAC_PICKLE_ARRAY /* of NumPy: row-major, its storage is a TEXT, the bytes */,
    FAC_PICKLE_MARK,
    FAC_PICKLE_OTHER /* passed over: text says what it is; i: it would be a tensor, or an array, of
                        elements that we have not */
} fac_pickle_kind;

/* Small, for a pickle makes one from every byte or two. */
typedef struct fac_pickle_value fac_pickle_value;
typedef struct fac_pickle_tensor {
    fac_pickle_value *storage;
    int64_t offset;
    fac_dims dims;
    int64_t stride[FAC_DIMS];
} fac_pickle_tensor;
struct fac_pickle_value {
    unsigned char kind;  /* fac_pickle_kind */
    unsigned char dtype; /* STORAGE, GLOBAL of a storage class; ARRAY and a dtype of NumPy; TENSOR:
                            instead of that of its storage, which is bytes then */
    unsigned char row;   /* STORAGE, GLOBAL: of pickle_global.h */
    bool visited;        /* by who walks the tree */
    int64_t i;           /* BOOL, INT; STORAGE: its elements; GLOBAL: which */
    size_t n;            /* bytes of text; items */
    union {
        const char *text;          /* TEXT; STORAGE: its key; GLOBAL: its name */
        fac_pickle_value **item;   /* TUPLE, LIST; DICT: key, value, key, value... */
        fac_pickle_tensor *tensor; /* TENSOR; ARRAY, NULL until it was built */
    };
    union {
        size_t room;            /* of item */
        fac_pickle_value *next; /* STORAGE: the one that was named before it */
    };
};

/* One pickle, from the first of `size` bytes on: its value, how many bytes it has, and all storages
 * that it names. */
typedef struct fac_pickle {
    fac_pickle_value *value, *storages;
    size_t bytes;
} fac_pickle;
fac_status fac_pickle_read(fac_arena *arena, const void *data, size_t size, fac_pickle *out,
                           fac_error *err);
/* The value of a text key; NULL if there is none. */
fac_pickle_value *fac_pickle_get(const fac_pickle_value *dict, const char *key);
#endif
