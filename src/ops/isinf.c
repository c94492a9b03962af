#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_isinf(fac_value *x, bool positive,
                     bool negative); /* bool: is it +inf (positive), -inf (negative)? */
#endif

typedef struct attrs {
    double positive, negative;
} attrs; /* 0 or 1 */
static const fac_attr table[] = {
    { "positive", FAC_A_REAL, offsetof(attrs, positive), 0, 0, 0, 1, NULL, "1: find +inf" },
    { "negative", FAC_A_REAL, offsetof(attrs, negative), 0, 0, 0, 1, NULL, "1: find -inf" },
    { 0 }
};

/* clang-format off */
MAP1_P2(x == (T)INFINITY    ? P(0)
        : x == -(T)INFINITY ? P(1)
                            : (T)0)
/* clang-format on */

static bool infer(fac_node *n) {
    n->out[0]->type = (fac_type){ FAC_BOOL, n->in[0]->type.dims };
    return true;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    const bool small = fac_dtype_is_stored(fac_value_type(in[0]).dtype);
    out[0] = fac_isinf(small ? fac_cast(in[0], FAC_F32) : in[0],
                       fac_onnx_int(n, "detect_positive", 1) != 0,
                       fac_onnx_int(n, "detect_negative", 1) != 0);
}
static const fac_onnx_attr names[] = { { "detect_positive", NULL },
                                       { "detect_negative", NULL },
                                       { 0 } };
static const fac_onnx onnx[] = { { "", "IsInf", 10, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    fac_onnx_put(w, "IsInf", 1, (const char *[]){ fac_onnx_name(w, n->in[0]) },
                 fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "detect_positive", a->positive != 0);
    fac_onnx_put_int(w, "detect_negative", a->negative != 0);
    return true;
}

static const fac_case cases[] = { { "isinf(f32[2,37]) positive=1", -4, 4, 0 },
                                  { "isinf(f64[5]) positive=1 negative=1", -4, 4, 0 },
                                  { "isinf(f32[0]) negative=1", 0, 0, 0 },
                                  { "isinf(f16[]) positive=1 negative=1", -4, 4, 0 },
                                  { 0 } };

static int steps(const fac_node *n, double at[]) {
    (void)n;
    at[0] = -INFINITY;
    at[1] = INFINITY;
    return 2;
}

const fac_op fac_op_isinf = {
    MAP_OP("isinf", "is x infinite?", fac_ports_x, infer),
    .save = save,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .steps = steps,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_isinf(fac_value *x, bool positive, bool negative) {
    return fac_emit(&fac_op_isinf, &(attrs){ positive, negative }, 1, &x);
}
