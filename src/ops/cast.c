#include "ops/known.h"
#include "facula/ops.h"
#include "tensor/tensor_internal.h"

#if FAC_INTERFACE
/* x as another dtype, as fac_tensor_convert does it: floats to integers truncate and wrap, anything to bool is != 0, floats
 * round to nearest even; numbers to text and back as ONNX prints them.  Weights in blocks become floats; nothing becomes blocks. */
fac_value *fac_cast(fac_value *x, fac_dtype to);
#endif

static const fac_port ports[] = { { "x", FAC_ANY | FAC_BLOCKS, 0 }, { 0 } };
typedef struct attrs { fac_dtype to; } attrs;
static const fac_attr table[] = {
    { "to", FAC_A_DTYPE, offsetof(attrs, to), 0, 0, 0, 0, NULL, "the dtype of the result" }, { 0 }
};

static bool in_blocks(fac_dtype t) { return fac_dtype_get(t)->kind == 'q'; }

static bool infer(fac_node *n) {
    fac_dtype from = n->in[0]->type.dtype, to = ((const attrs *)n->attrs)->to;
    fac_contents c;
    if (to == FAC_NONE) return fac_fail(n, FAC_E_ARGUMENT, "the attribute 'to' is missing");
    if (in_blocks(to) && from != to) return fac_fail(n, FAC_E_DTYPE, "nothing is rounded to blocks in a graph");
    n->out[0]->type = (fac_type){ to, n->in[0]->type.dims };
    bool widens = to == FAC_I64 || to == from || (to == FAC_I32 && from != FAC_U32 && from != FAC_U64);
    if (!fac_known(n->in[0], &c)) return true;
    for (int k = 0; k < c.n; k++) {     /* i64 sizes become i32 in many files; a size that does not fit is not known any more */
        fac_item x = fac_contents_get(&c, k);
        if (to == FAC_BOOL && !x.symbolic) fac_contents_put(&c, k, (fac_item){ x.v != 0, false });
        else if (!widens || (to == FAC_I32 && !x.symbolic && x.v != (int32_t)x.v)) return true;
    }
    return fac_knows_items(n, &c);
}

/* Between the two types that the reference driver computes in; what it converts before and after does the rest. */
static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_array *x = &r->in[0];
    fac_array *y = &r->out[0];
    const int64_t n = fac_dims_count(&x->type.dims);
    const fac_dtype from = x->f ? FAC_F64 : x->type.dtype == FAC_U64 ? FAC_U64 : FAC_I64;
    const fac_dtype to = y->f ? FAC_F64 : y->type.dtype == FAC_U64 ? FAC_U64 : FAC_I64;
    (void)err;
    if (y->type.dtype == FAC_BOOL && x->f) {
        for (int64_t i = 0; i < n; i++) y->i[i] = x->f[i] != 0;
    } else {
        fac_convert(to, y->f ? (void *)y->f : (void *)y->i, from, x->f ? (const void *)x->f : (const void *)x->i, (size_t)n);
    }
    return FAC_OK;
}

static bool view(const fac_node *n, const fac_layout *in, fac_layout *out) {
    if (n->in[0]->type.dtype != n->out[0]->type.dtype) return false;
    *out = *in;
    return true;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) { 
    if (!in_blocks(n->in[0]->type.dtype)) dx[0] = fac_cast(dy[0], n->in[0]->type.dtype);
}

static void cost(const fac_node *n, fac_cost *c) {
    int64_t count = fac_dims_count(&n->out[0]->type.dims);
    size_t in = fac_type_bytes(&n->in[0]->type), out = fac_type_bytes(&n->out[0]->type);
    *c = (fac_cost){ 0, count > 0 ? (double)count : 0, in == SIZE_MAX ? 0 : (double)in, out == SIZE_MAX ? 0 : (double)out };
}

static void load_like(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)n, (void)g;
    out[0] = fac_cast(in[0], fac_value_type(in[1]).dtype);
}
/* saturate and round_mode are about 8-bit floats. */
static const fac_onnx_attr names[] = { { "saturate", NULL }, { "round_mode", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Cast", 6, 0, names, NULL, 0 }, { "", "CastLike", 15, 0, names, load_like, 2 }, { 0 } };
static const fac_case cases[] = {
    { "cast(f32[2,30]) to=f16", -4, 4, 1e-3 }, { "cast(f16[9]) to=f32", -4, 4, 0 }, { "cast(f32[9]) to=bf16", -4, 4, 1e-2 },
    { "cast(f32[30]) to=i64", -9, 9, 0 }, { "cast(f64[30]) to=u8", -300, 300, 0 }, { "cast(i64[30]) to=f32", -99, 99, 0 },
    { "cast(f32[30]) to=bool", -1, 1, 0 }, { "cast(bool[30]) to=f32", 0, 1, 0 }, { "cast(i64[30]) to=i8", -999, 999, 0 },
    { "cast(i32[30]) to=u64", -9, 9, 0 }, { "cast(f32[9]) to=f32", -4, 4, 0 }, { "cast(f32[0,3]) to=i32", 0, 0, 0 },
    { "cast(u8[]) to=f64", 0, 255, 0 }, { 0 }
};

const fac_op fac_op_cast = {
    .name = "cast", .doc = "x as another dtype", .in = ports, .out = fac_ports_y, .attrs = table,
        .attrs_size = sizeof(attrs),
    .is = FAC_OP_KNOWS, .infer = infer, .ref = ref, .view = view, .cost = cost, .onnx = onnx, .grad = grad, .cases = cases,
    .rounding = { FAC_ROUND_MOVES },
};
fac_value *fac_cast(fac_value *x, fac_dtype to) { return fac_emit(&fac_op_cast, &(attrs){ to }, 1, &x); }
