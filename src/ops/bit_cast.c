/* The same bits as another dtype. */
#include <string.h>
#include "ops/cost.h"
#include "facula/op.h"
#include "facula/ops.h"
#include "tensor/tensor_internal.h"

#if FAC_INTERFACE
/* x's bits read as dtype `to`, which has as many: f32 as i32, i8 as u8; a bool is a byte, 0 or
 * 1.  No bits or texts. */
fac_value *fac_bit_cast(fac_value *x, fac_dtype to);
#endif

typedef struct attrs {
    fac_dtype to;
} attrs;
static const fac_attr table[] = {
    { "to", FAC_A_DTYPE, offsetof(attrs, to), 0, 0, 0, 0, NULL, "the dtype of the result" }, { 0 }
};
static const fac_port in[] = { { "x", FAC_NUMBERS | FAC_BOOLS | FAC_SMALL, 0 }, { 0 } };
static const fac_port out[] = { { "y", FAC_NUMBERS | FAC_BOOLS | FAC_SMALL, 0 }, { 0 } };

/* A bool is a byte. */
static int width(const fac_dtype_info *t) { return t->kind == 'b' ? 8 : t->bits; }

static bool infer(fac_node *n) {
    const fac_dtype from = n->in[0]->type.dtype, to = ((const attrs *)n->attrs)->to;
    const fac_dtype_info *a = fac_dtype_get(from), *b = fac_dtype_get(to);
    if (to == FAC_NONE) return fac_fail(n, FAC_E_ARGUMENT, "the attribute 'to' is missing");
    if (width(a) != width(b) || !strchr("fiub", b->kind))
        return fac_fail(n, FAC_E_DTYPE, "%s has %d bits, %s has %d", a->name, width(a), b->name,
                        width(b));
    n->out[0]->type = (fac_type){ to, n->in[0]->type.dims };
    return true;
}

/* A signed number of 4 or 2 bits fills its byte with its sign, a code does not. */
static uint8_t held(fac_dtype dtype, uint8_t byte) {
    const fac_dtype_info *t = fac_dtype_get(dtype);
    const unsigned code = byte & ((1u << t->bits) - 1), sign = 1u << (t->bits - 1);
    return (uint8_t)(t->kind == 'i' && t->bits < 8 ? (code ^ sign) - sign : code);
}

/* Through memory of either dtype. */
static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_array *x = &r->in[0], *y = &r->out[0];
    const int64_t n = fac_dims_count(&x->type.dims);
    const bool byte = fac_dtype_get(x->type.dtype)->block_bytes == 1;
    (void)err;
    for (int64_t e = 0; e < n; e++) {
        uint64_t bits = 0;
        const void *from = x->f ? (const void *)(x->f + e) : (const void *)(x->i + e);
        void *to = y->f ? (void *)(y->f + e) : (void *)(y->i + e);
        fac_convert(x->type.dtype, &bits, x->f ? FAC_F64 : FAC_I64, from, 1);
        if (byte) bits = held(y->type.dtype, (uint8_t)bits);
        fac_convert(y->f ? FAC_F64 : FAC_I64, to, y->type.dtype, &bits, 1);
    }
    return FAC_OK;
}

static bool view(const fac_node *n, const fac_layout *in_, fac_layout *out_) {
    if (fac_dtype_get(n->in[0]->type.dtype)->bits < 8 || n->out[0]->type.dtype == FAC_BOOL)
        return false;
    *out_ = *in_;
    return true;
}

static const fac_onnx onnx[] = { { "", "BitCast", 26, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = {
    { "bit_cast(f32[2,7]) to=i32", -9, 9, 0 }, { "bit_cast(i32[9]) to=u32", -9, 9, 0 },
    { "bit_cast(i16[9]) to=u16", -9, 9, 0 },   { "bit_cast(u8[]) to=i8", 0, 255, 0 },
    { "bit_cast(u64[0,3]) to=i64", 0, 0, 0 },  { 0 }
};

extern const fac_op fac_op_bit_cast;
const fac_op fac_op_bit_cast = {
    .name = "bit_cast",
    .doc = "the same bits as another dtype",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .view = view,
    .onnx = onnx,
    .cases = cases,
    .is = FAC_OP_NO_GRAD | FAC_OP_TYPED,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_bit_cast(fac_value *x, fac_dtype to) {
    return fac_emit(&fac_op_bit_cast, &(attrs){ to }, 1, &x);
}
