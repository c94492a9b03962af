/* The table of element types. */
#include <string.h>
#include "facula/tensor.h"

static const fac_dtype_info table[FAC_DTYPES] = {
    [FAC_NONE] = { "none", 0,   1, 0 },
    [FAC_F32]  = { "f32",  'f', 1, 4 },
    [FAC_F64]  = { "f64",  'f', 1, 8 },
    [FAC_F16]  = { "f16",  'f', 1, 2 },
    [FAC_BF16] = { "bf16", 'f', 1, 2 },
    [FAC_I8]   = { "i8",   'i', 1, 1 },
    [FAC_I16]  = { "i16",  'i', 1, 2 },
    [FAC_I32]  = { "i32",  'i', 1, 4 },
    [FAC_I64]  = { "i64",  'i', 1, 8 },
    [FAC_U8]   = { "u8",   'u', 1, 1 },
    [FAC_U16]  = { "u16",  'u', 1, 2 },
    [FAC_U32]  = { "u32",  'u', 1, 4 },
    [FAC_U64]  = { "u64",  'u', 1, 8 },
    [FAC_BOOL] = { "bool", 'b', 1, 1 },
    [FAC_BIT]  = { "bit",  'b', 64, 8 },
    [FAC_TEXT] = { "text", 't', 1, sizeof(char *) },
};

const fac_dtype_info *fac_dtype_get(fac_dtype dtype) { return &table[(unsigned)dtype < FAC_DTYPES ? dtype : FAC_NONE]; }

fac_dtype fac_dtype_find(const char *name) {
    for (int k = FAC_NONE + 1; name && k < FAC_DTYPES; k++)
        if (!strcmp(table[k].name, name)) return (fac_dtype)k;
    return FAC_NONE;
}
