#include "ops/shape.h"

#if FAC_INTERFACE
/* a matrix of x's shape: 1 where column - row = k, else 0; FAC_NONE: x's dtype */
fac_value *fac_eye_like(fac_value *x, fac_dtype dtype, int64_t k);
#endif

typedef struct attrs {
    fac_dtype dtype;
    int64_t k;
} attrs;
static const fac_attr table[] = { { "dtype", FAC_A_DTYPE, offsetof(attrs, dtype), 0, 0, 0, 0, NULL,
                                    "of the result; none: x's" },
                                  { "k", FAC_A_INT, offsetof(attrs, k), 0, 0, 0, 0, NULL,
                                    "the diagonal: 0 the main one, above it positive" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_NUMBERS | FAC_BOOLS, FAC_SHAPE_ONLY }, { 0 } };

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type;
    const fac_dtype dtype = ((const attrs *)n->attrs)->dtype;
    if (x->dims.n != 2) return fac_fail(n, FAC_E_SHAPE, "x has %d dims, not 2", x->dims.n);
    n->out[0]->type = (fac_type){ dtype ? dtype : x->dtype, x->dims };
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const int64_t rows = r->out[0].type.dims.d[0], columns = r->out[0].type.dims.d[1],
                  k = ((const attrs *)r->attrs)->k;
    (void)err;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            if (r->out[0].f)
                r->out[0].f[i * columns + j] = j - i == k;
            else
                r->out[0].i[i * columns + j] = j - i == k;
        }
    return FAC_OK;
}

static const fac_onnx onnx[] = { { "", "EyeLike", 9, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "eye_like(f32[3,4]) k=1", -4, 4, 0 },
                                  { "eye_like(i32[4,3]) dtype=f64 k=-2", -4, 4, 0 },
                                  { "eye_like(f32[0,3]) dtype=i64", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_eye_like = {
    .name = "eye_like",
    .doc = "ones on a diagonal, zeros elsewhere",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .onnx = onnx,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_eye_like(fac_value *x, fac_dtype dtype, int64_t k) {
    return fac_emit(&fac_op_eye_like, &(attrs){ dtype, k }, 1, &x);
}
