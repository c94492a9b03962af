/* A cast after a cast: one, or none, where the first loses nothing. */
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/casts.h"
#include "tensor/dtype.h"

/* Every number of `from` is one of `to`. */
static bool holds(fac_dtype from, fac_dtype to) {
    static const struct {
        fac_dtype from, to[8];
    } table[] = { { FAC_F16, { FAC_F32, FAC_F64 } },
                  { FAC_BF16, { FAC_F32, FAC_F64 } },
                  { FAC_F32, { FAC_F64 } },
                  { FAC_BOOL, { FAC_U8, FAC_I8, FAC_I32, FAC_I64, FAC_F16, FAC_F32, FAC_F64 } },
                  { FAC_I8, { FAC_I16, FAC_I32, FAC_I64, FAC_F32, FAC_F64 } },
                  { FAC_U8, { FAC_I16, FAC_U16, FAC_I32, FAC_I64, FAC_F32, FAC_F64 } },
                  { FAC_I16, { FAC_I32, FAC_I64, FAC_F32, FAC_F64 } },
                  { FAC_U16, { FAC_I32, FAC_I64, FAC_F32, FAC_F64 } },
                  { FAC_I32, { FAC_I64, FAC_F64 } } };
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        for (int i = 0; table[k].from == from && i < 8; i++)
            if (table[k].to[i] == to) return true;
    return from == to;
}

static bool computes(fac_dtype t) { return t == FAC_F64 || t == FAC_F32 || fac_dtype_is_half(t); }

bool fac_cast_keeps(const fac_node *n) {
    return FAC_IS(n, cast) && holds(n->in[0]->type.dtype, n->out[0]->type.dtype);
}

bool fac_is_float_cast(const fac_node *n) {
    return FAC_IS(n, cast) && computes(n->in[0]->type.dtype) && computes(n->out[0]->type.dtype);
}

fac_value *fac_cast_once(const fac_node *n, fac_value *const in[]) {
    const fac_node *first = in[0]->node;
    if (!FAC_IS(n, cast) || !FAC_IS(first, cast)) return NULL;
    fac_value *x = first->in[0];
    if (!holds(x->type.dtype, in[0]->type.dtype)) return NULL;
    return x->type.dtype == n->out[0]->type.dtype ? x : fac_cast(x, n->out[0]->type.dtype);
}
