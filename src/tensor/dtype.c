/* The table of element types. */
#include <string.h>
#include "facula/tensor.h"

static const fac_dtype_info table[FAC_DTYPES] = {
    [FAC_NONE] = { "none", 0,   1, 0, 0 },
    [FAC_F32]  = { "f32",  'f', 1, 4, 32 },
    [FAC_F64]  = { "f64",  'f', 1, 8, 64 },
    [FAC_F16]  = { "f16",  'f', 1, 2, 16 },
    [FAC_BF16] = { "bf16", 'f', 1, 2, 16 },
    [FAC_I8]   = { "i8",   'i', 1, 1, 8 },
    [FAC_I16]  = { "i16",  'i', 1, 2, 16 },
    [FAC_I32]  = { "i32",  'i', 1, 4, 32 },
    [FAC_I64]  = { "i64",  'i', 1, 8, 64 },
    [FAC_U8]   = { "u8",   'u', 1, 1, 8 },
    [FAC_U16]  = { "u16",  'u', 1, 2, 16 },
    [FAC_U32]  = { "u32",  'u', 1, 4, 32 },
    [FAC_U64]  = { "u64",  'u', 1, 8, 64 },
    [FAC_BOOL] = { "bool", 'b', 1, 1, 1 },
    [FAC_BIT]  = { "bit",  'b', 64, 8, 1 },
    [FAC_TEXT] = { "text", 't', 1, sizeof(char *), 0 },
    [FAC_F8E4M3]   = { "f8e4m3", 'f', 1, 1, 8 },
    [FAC_F8E4M3UZ] = { "f8e4m3uz", 'f', 1, 1, 8 },
    [FAC_F8E5M2]   = { "f8e5m2", 'f', 1, 1, 8 },
    [FAC_F8E5M2UZ] = { "f8e5m2uz", 'f', 1, 1, 8 },
    [FAC_F8E8M0]   = { "f8e8m0", 'f', 1, 1, 8 },
    [FAC_F4E2M1]   = { "f4e2m1", 'f', 1, 1, 4 },
    [FAC_I4]   = { "i4",   'i', 1, 1, 4 },
    [FAC_U4]   = { "u4",   'u', 1, 1, 4 },
    [FAC_I2]   = { "i2",   'i', 1, 1, 2 },
    [FAC_U2]   = { "u2",   'u', 1, 1, 2 },
};

const fac_dtype_info *fac_dtype_get(fac_dtype dtype) { return &table[(unsigned)dtype < FAC_DTYPES ? dtype : FAC_NONE]; }

bool fac_dtype_is_stored(fac_dtype d) { return d >= FAC_F8E4M3 && d < FAC_DTYPES; }

fac_dtype fac_dtype_find(const char *name) {
    for (int k = FAC_NONE + 1; name && k < FAC_DTYPES; k++)
        if (!strcmp(table[k].name, name)) return (fac_dtype)k;
    return FAC_NONE;
}
