/* Which nodes of whole numbers and bools run in their own type: see chain.h. */
#include "backends/cpu/elementwise/chain.h"
#include "op_list.h"

/* swapped: x > y is y < x. */
typedef struct entry {
    const fac_op *op;
    int loop;
    bool swapped;
} entry;
static const entry of_flags[] = {
    { &fac_op_and, FAC_FLAG_AND, false },     { &fac_op_or, FAC_FLAG_OR, false },
    { &fac_op_xor, FAC_FLAG_XOR, false },     { &fac_op_not, FAC_FLAG_NOT, false },
    { &fac_op_equal, FAC_FLAG_EQUAL, false }, { 0 }
};
static const entry of_integers[] = {
    { &fac_op_add, FAC_INTEGER_ADD, false },
    { &fac_op_sub, FAC_INTEGER_SUB, false },
    { &fac_op_mul, FAC_INTEGER_MUL, false },
    { &fac_op_neg, FAC_INTEGER_NEG, false },
    { &fac_op_abs, FAC_INTEGER_ABS, false },
    { &fac_op_bitwise_and, FAC_INTEGER_AND, false },
    { &fac_op_bitwise_or, FAC_INTEGER_OR, false },
    { &fac_op_bitwise_xor, FAC_INTEGER_XOR, false },
    { &fac_op_bitwise_not, FAC_INTEGER_NOT, false },
    { &fac_op_max, FAC_INTEGER_MAX, false },
    { &fac_op_min, FAC_INTEGER_MIN, false },
    { &fac_op_clip, FAC_INTEGER_CLIP, false },
    { &fac_op_div, FAC_INTEGER_DIV, false },
    { &fac_op_mod, FAC_INTEGER_MOD, false },
    { &fac_op_fmod, FAC_INTEGER_REM, false },
    { &fac_op_equal, FAC_INTEGER_EQUAL, false },
    { &fac_op_less, FAC_INTEGER_LESS, false },
    { &fac_op_less_or_equal, FAC_INTEGER_LESS_EQUAL, false },
    { &fac_op_greater, FAC_INTEGER_LESS, true },
    { &fac_op_greater_or_equal, FAC_INTEGER_LESS_EQUAL, true },
    { &fac_op_where, FAC_INTEGER_WHERE, false },
    { 0 },
};

static const entry *find(const entry *e, const fac_op *op) {
    while (e->op && e->op != op) e++;
    return e->op ? e : NULL;
}

/* The type that whole numbers and bools of these types are computed in: their own, a byte for
 * bools, 64 bits where they differ; FAC_NONE when there is a float among them. */
static fac_dtype common(int n, const fac_dtype *types) {
    fac_dtype t = types[0];
    bool words = false;
    for (int i = 0; i < n; i++) {
        if (!fac_is_integer(types[i]) && types[i] != FAC_BOOL) return FAC_NONE;
        words |= types[i] == FAC_U64;
        if (types[i] != types[0]) t = FAC_I64;
    }
    if (words) return FAC_U64;
    return t == FAC_BOOL ? FAC_U8 : t;
}

static bool compares(const entry *e) {
    return e->loop >= FAC_INTEGER_EQUAL && e->loop <= FAC_INTEGER_LESS_EQUAL;
}

bool fac_chain_compares_f32(const fac_integer_kernels *k, const fac_op *op, const fac_dtype *types,
                            fac_chain_typed *to) {
    const entry *e = find(of_integers, op);
    if (!e || !compares(e) || types[0] != FAC_F32 || types[1] != FAC_F32) return false;
    *to = (fac_chain_typed){ k->f32[e->loop], FAC_F32, FAC_F32, FAC_BOOL, e->swapped };
    return true;
}

bool fac_chain_typed_of(const fac_integer_kernels *k, const fac_op *op, int nin,
                        const fac_dtype *types, fac_chain_typed *to) {
    const entry *e = find(of_flags, op);
    bool flags = e != NULL;
    for (int i = 0; i < nin; i++) flags &= types[i] == FAC_BOOL;
    if (flags) {
        *to = (fac_chain_typed){ k->flag[e->loop], FAC_BOOL, FAC_BOOL, FAC_BOOL, false };
        return true;
    }
    e = find(of_integers, op);
    const bool picks = e && e->loop == FAC_INTEGER_WHERE;
    if (!e || nin != op->map->inputs || (picks && types[0] != FAC_BOOL)) return false;
    const fac_dtype as = common(nin - picks, types + picks);
    if (as == FAC_NONE) return false;
    *to = (fac_chain_typed){ k->loop[as - FAC_I8][e->loop], picks ? FAC_BOOL : as, as,
                             compares(e) ? FAC_BOOL : as, e->swapped };
    return to->loop != NULL;
}
