#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_where(fac_value *cond, fac_value *a,
                     fac_value *b); /* a where cond (bool), else b; NumPy broadcasting */
#endif

MAP3_NUM(x != (T)0 ? y : z)

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *zero = fac_grad_number(dy[0], 0);
    if (fac_needs(n, 1)) dx[1] = fac_grad_unbroadcast(n, 1, fac_where(n->in[0], dy[0], zero));
    if (fac_needs(n, 2)) dx[2] = fac_grad_unbroadcast(n, 2, fac_where(n->in[0], zero, dy[0]));
}

static const fac_port ports[] = {
    { "condition", FAC_BOOLS, 0 }, { "x", FAC_ANY, 0 }, { "y", FAC_ANY, 0 }, { 0 }
};

static bool symbols(fac_graph *g, const fac_item *x, fac_item *y) {
    (void)g;
    *y = x[x[0].v ? 1 : 2];
    return !x[0].symbolic;
}
static bool infer(fac_node *n) {
    const fac_type *c = &n->in[0]->type, *a = &n->in[1]->type, *b = &n->in[2]->type;
    fac_dims d;
    if (a->dtype != b->dtype) return fac_fail(n, FAC_E_DTYPE, "x and y must have one dtype");
    if (!fac_broadcast(n, &a->dims, &b->dims, &d) || !fac_broadcast(n, &c->dims, &d, &d))
        return false;
    n->out[0]->type = (fac_type){ a->dtype, d };
    return fac_knows_map(n, symbols);
}

static const fac_onnx onnx[] = { { "", "Where", 9, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "where(bool[2,30], f32[30], f32[])", -4, 4, 0 },
                                  { "where(bool[3], f32[4,1], f32[2,1,1])", -4, 4, 0 },
                                  { "where(bool[9], i64[9], i64[9])", -9, 9, 0 },
                                  { "where(bool[9], u64[9], u64[])", 0, 9, 0 },
                                  { "where(bool[9], bool[9], bool[9])", 0, 1, 0 },
                                  { "where(bool[9], f16[9], f16[9])", -4, 4, 0 },
                                  { "where(bool[0,3], f32[3], f32[3])", 0, 0, 0 },
                                  { "where(bool[3], u4[3], u4[3])", 0, 7, 0 },
                                  { "where(bool[], f64[], f64[])", -4, 4, 0 },
                                  { 0 } };

const fac_op fac_op_where = {
    MAP_OP("where", "y where x, else z", ports, infer),
    .is = FAC_OP_INPLACE | FAC_OP_KNOWS | FAC_OP_PICKS,
    .grad = grad,
    .steps = fac_steps_flag,
    .mixed = FAC_MIXED_FOLLOWS,
    .rounding = { .rule = FAC_ROUND_PICK },
};
fac_value *fac_where(fac_value *cond, fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_where, NULL, 3, (fac_value *[]){ cond, a, b });
}
