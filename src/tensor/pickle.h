/* Reading Python pickles that hold weights, without executing anything.
 *
 * The interpreter knows the opcodes that torch.save() of dicts of tensors emits (pickle protocol 2), and the few classes and
 * functions that occur there, each by what it means; any other opcode or global is refused by its name.  The result is a
 * tree of values in an arena.  A value may be reached by several ways, and a list or dict may even contain itself. */
#ifndef FACULA_TENSOR_PICKLE_H
#define FACULA_TENSOR_PICKLE_H
#include "base/arena.h"
#include "facula/tensor.h"

typedef enum fac_pickle_kind {
    FAC_PICKLE_NONE, FAC_PICKLE_BOOL, FAC_PICKLE_INT, FAC_PICKLE_LONG /* more than 64 bits */, FAC_PICKLE_REAL, FAC_PICKLE_TEXT,
    FAC_PICKLE_TUPLE, FAC_PICKLE_LIST, FAC_PICKLE_DICT, FAC_PICKLE_GLOBAL, FAC_PICKLE_STORAGE, FAC_PICKLE_TENSOR, FAC_PICKLE_MARK
} fac_pickle_kind;

typedef struct fac_pickle_value fac_pickle_value;
struct fac_pickle_value {
    fac_pickle_kind kind;
    bool            visited;        /* for who walks the tree */
    fac_dtype       dtype;          /* STORAGE, and GLOBAL of a storage class                     */
    int64_t         i;              /* BOOL, INT; STORAGE: its elements; TENSOR: offset; GLOBAL: which */
    const char     *text;           /* TEXT; STORAGE: its key; GLOBAL: its name                   */
    size_t          n, room;        /* bytes of text; items                                       */
    fac_pickle_value **item;        /* TUPLE, LIST; DICT: key, value, key, value...; TENSOR: storage */
    fac_dims        dims;           /* TENSOR */
    int64_t         stride[FAC_DIMS];
};

/* One pickle, from the first of `size` bytes on; *used (may be NULL) receives how many it has. */
fac_status fac_pickle_read(fac_arena *arena, const void *data, size_t size, size_t *used, fac_pickle_value **out, fac_error *err);
/* The value of a text key; NULL if there is none. */
fac_pickle_value *fac_pickle_get(const fac_pickle_value *dict, const char *key);
#endif
