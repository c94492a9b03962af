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
    [FAC_Q4_0] = { "q4_0", 'q', 32, 18 },
    [FAC_Q4_1] = { "q4_1", 'q', 32, 20 },
    [FAC_Q5_0] = { "q5_0", 'q', 32, 22 },
    [FAC_Q5_1] = { "q5_1", 'q', 32, 24 },
    [FAC_Q8_0] = { "q8_0", 'q', 32, 34 },
    [FAC_IQ4_NL] = { "iq4_nl", 'q', 32, 18 },
    [FAC_Q2_K] = { "q2_k", 'q', 256, 84 },
    [FAC_Q3_K] = { "q3_k", 'q', 256, 110 },
    [FAC_Q4_K] = { "q4_k", 'q', 256, 144 },
    [FAC_Q5_K] = { "q5_k", 'q', 256, 176 },
    [FAC_Q6_K] = { "q6_k", 'q', 256, 210 },
    [FAC_IQ4_XS] = { "iq4_xs", 'q', 256, 136 },
};

const fac_dtype_info *fac_dtype_get(fac_dtype dtype) { return &table[(unsigned)dtype < FAC_DTYPES ? dtype : FAC_NONE]; }

fac_dtype fac_dtype_find(const char *name) {
    for (int k = FAC_NONE + 1; name && k < FAC_DTYPES; k++)
        if (!strcmp(table[k].name, name)) return (fac_dtype)k;
    return FAC_NONE;
}
