/* The table of element types. */
#include <string.h>
#include "facula/tensor.h"

static const fac_dtype_info table[FAC_DTYPES] = {
    [FAC_NONE] = { "none", 0, 1, 0, 0 },       [FAC_F32] = { "f32", 'f', 1, 4, 32 },
    [FAC_F64] = { "f64", 'f', 1, 8, 64 },      [FAC_F16] = { "f16", 'f', 1, 2, 16 },
    [FAC_BF16] = { "bf16", 'f', 1, 2, 16 },    [FAC_I8] = { "i8", 'i', 1, 1, 8 },
    [FAC_I16] = { "i16", 'i', 1, 2, 16 },      [FAC_I32] = { "i32", 'i', 1, 4, 32 },
    [FAC_I64] = { "i64", 'i', 1, 8, 64 },      [FAC_U8] = { "u8", 'u', 1, 1, 8 },
    [FAC_U16] = { "u16", 'u', 1, 2, 16 },      [FAC_U32] = { "u32", 'u', 1, 4, 32 },
    [FAC_U64] = { "u64", 'u', 1, 8, 64 },      [FAC_BOOL] = { "bool", 'b', 1, 1, 1 },
    [FAC_BIT] = { "bit", 'b', 64, 8, 1 },      [FAC_TEXT] = { "text", 't', 1, sizeof(char *), 0 },
    [FAC_Q4_0] = { "q4_0", 'q', 32, 18, 0 },   [FAC_Q4_1] = { "q4_1", 'q', 32, 20, 0 },
    [FAC_Q5_0] = { "q5_0", 'q', 32, 22, 0 },   [FAC_Q5_1] = { "q5_1", 'q', 32, 24, 0 },
    [FAC_Q8_0] = { "q8_0", 'q', 32, 34, 0 },   [FAC_IQ4_NL] = { "iq4_nl", 'q', 32, 18, 0 },
    [FAC_Q2_K] = { "q2_k", 'q', 256, 84, 0 },  [FAC_Q3_K] = { "q3_k", 'q', 256, 110, 0 },
    [FAC_Q4_K] = { "q4_k", 'q', 256, 144, 0 }, [FAC_Q5_K] = { "q5_k", 'q', 256, 176, 0 },
    [FAC_Q6_K] = { "q6_k", 'q', 256, 210, 0 }, [FAC_IQ4_XS] = { "iq4_xs", 'q', 256, 136, 0 },
    [FAC_F8E4M3] = { "f8e4m3", 'f', 1, 1, 8 }, [FAC_F8E4M3UZ] = { "f8e4m3uz", 'f', 1, 1, 8 },
    [FAC_F8E5M2] = { "f8e5m2", 'f', 1, 1, 8 }, [FAC_F8E5M2UZ] = { "f8e5m2uz", 'f', 1, 1, 8 },
    [FAC_F8E8M0] = { "f8e8m0", 'f', 1, 1, 8 }, [FAC_F4E2M1] = { "f4e2m1", 'f', 1, 1, 4 },
    [FAC_I4] = { "i4", 'i', 1, 1, 4 },         [FAC_U4] = { "u4", 'u', 1, 1, 4 },
    [FAC_I2] = { "i2", 'i', 1, 1, 2 },         [FAC_U2] = { "u2", 'u', 1, 1, 2 },
};

const fac_dtype_info *fac_dtype_get(fac_dtype dtype) {
    return &table[(unsigned)dtype < FAC_DTYPES ? dtype : FAC_NONE];
}

bool fac_dtype_is_stored(fac_dtype d) { return d >= FAC_F8E4M3 && d <= FAC_U2; }

fac_dtype fac_dtype_find(const char *name) {
    for (int k = FAC_NONE + 1; name && k < FAC_DTYPES; k++)
        if (!strcmp(table[k].name, name)) return (fac_dtype)k;
    return FAC_NONE;
}
