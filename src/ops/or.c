#include "ops/fusions.h"
#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_or(fac_value *a, fac_value *b); /* bool: at least one; NumPy broadcasting */
#endif

MAP2_INT(x | y)

static bool infer(fac_node *n) { return fac_infer_broadcast(n) && fac_knows_map(n, NULL); }

static const fac_onnx onnx[] = { { "", "Or", 7, 0, NULL, NULL, 0 },
                                 { "", "Or", 1, 6, fac_names_first, fac_load_first, 2 },
                                 { 0 } };
static const fac_case cases[] = { { "or(bool[2,30], bool[30])", 0, 1, 0 },
                                  { "or(bool[4,1], bool[3])", 0, 1, 0 },
                                  { "or(bool[0,3], bool[3])", 0, 0, 0 },
                                  { "or(bool[], bool[])", 0, 1, 0 },
                                  { 0 } };

const fac_op fac_op_or = {
    MAP_OP("or", "at least one", fac_ports_bool_xy, infer),
    .is = FAC_OP_NO_GRAD | FAC_OP_INPLACE | FAC_OP_KNOWS,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_or(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_or, NULL, 2, (fac_value *[]){ a, b });
}
