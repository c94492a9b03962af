#include <math.h>
#include <string.h>
#include "ops/known.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/onnx_put.h"
#include "tensor/tensor_internal.h"

#if FAC_INTERFACE
/* x as another dtype, as fac_tensor_convert does it: floats to integers truncate and wrap, anything
 * to bool is != 0, floats round to nearest even; numbers to text (fac_to_text) and back as ONNX
 * prints them. Weights in blocks become floats; nothing becomes blocks. */
fac_value *fac_cast(fac_value *x, fac_dtype to);
#endif

static const fac_port ports[] = { { "x", FAC_ANY | FAC_BLOCKS, 0 }, { 0 } };
typedef struct attrs {
    fac_dtype to;
    bool unsaturated;
    int rounding;
} attrs;
enum { UP, DOWN, NEAREST };
static const char *const roundings[] = { "up", "down", "nearest", NULL };
static const fac_attr table[] = {
    { "to", FAC_A_DTYPE, offsetof(attrs, to), 0, 0, 0, 0, NULL, "the dtype of the result" },
    { "unsaturated", FAC_A_FLAG, offsetof(attrs, unsaturated), 0, 0, 0, 0, NULL,
      "8-bit floats: what is too large becomes infinity or NaN" },
    { "rounding", FAC_A_ENUM, offsetof(attrs, rounding), 0, 0, 0, 0, roundings, "to f8e8m0" },
    { 0 }
};

static bool in_blocks(fac_dtype t) { return fac_dtype_get(t)->kind == 'q'; }

static bool infer(fac_node *n) {
    fac_dtype from = n->in[0]->type.dtype, to = ((const attrs *)n->attrs)->to;
    fac_contents c;
    if (to == FAC_NONE) return fac_fail(n, FAC_E_ARGUMENT, "the attribute 'to' is missing");
    if (in_blocks(to) && from != to)
        return fac_fail(n, FAC_E_DTYPE, "nothing is rounded to blocks in a graph");
    if (to == FAC_TEXT && from != to)
        return fac_fail(n, FAC_E_DTYPE, "numbers become texts by to_text, not by cast");
    n->out[0]->type = (fac_type){ to, n->in[0]->type.dims };
    bool widens =
        to == FAC_I64 || to == from || (to == FAC_I32 && from != FAC_U32 && from != FAC_U64);
    if (!fac_known(n->in[0], &c)) return true;
    for (int k = 0; k < c.n; k++) { /* i64 sizes become i32 in many files; a size that does not fit
                                       is not known any more */
        fac_item x = fac_contents_get(&c, k);
        if (to == FAC_BOOL && !x.symbolic)
            fac_contents_put(&c, k, (fac_item){ x.v != 0, false });
        else if (!widens || (to == FAC_I32 && !x.symbolic && x.v != (int32_t)x.v))
            return true;
    }
    return fac_knows_items(n, &c);
}

/* The largest number, and from where on numbers are beyond it. */
static bool small_limits(fac_dtype t, double *most, double *beyond) {
    switch (t) {
    case FAC_F8E4M3:
        *most = 448;
        *beyond = 464;
        return true;
    case FAC_F8E4M3UZ:
        *most = 240;
        *beyond = 248;
        return true;
    case FAC_F8E5M2:
    case FAC_F8E5M2UZ:
        *most = 57344;
        *beyond = 61440;
        return true;
    default:
        return false;
    }
}

/* Saturated, infinities become the largest number. */
static double saturated(fac_dtype t, bool unsaturated, double x) {
    double most, beyond;
    if (!small_limits(t, &most, &beyond)) return x;
    if (unsaturated) return fabs(x) >= beyond ? copysign(INFINITY, x) : x;
    return isinf(x) ? copysign(most, x) : x;
}

/* A power of two. */
static double power(int rounding, double x) {
    int e;
    if (!(x > 0) || isinf(x)) return x;
    const double half = frexp(x, &e);
    if (half == 0.5 || rounding == DOWN || (rounding == NEAREST && half < 0.75)) e--;
    return ldexp(1, e);
}

static fac_dtype wide_of(const fac_array *x) {
    if (x->f) return FAC_F64;
    return x->type.dtype == FAC_U64 ? FAC_U64 : FAC_I64;
}

/* Between the two types that the reference driver computes in; what it converts before and after
 * does the rest. */
static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_array *x = &r->in[0];
    fac_array *y = &r->out[0];
    const int64_t n = fac_dims_count(&x->type.dims);
    const fac_dtype from = wide_of(x), to = wide_of(y);
    const attrs *a = r->attrs;
    (void)err;
    if (y->f && fac_dtype_is_stored(y->type.dtype)) {
        for (int64_t i = 0; i < n; i++) {
            const double v = x->f ? x->f[i] : (double)x->i[i];
            y->f[i] = y->type.dtype == FAC_F8E8M0 ? power(a->rounding, v)
                                                  : saturated(y->type.dtype, a->unsaturated, v);
        }
    } else if (y->type.dtype == FAC_BOOL && x->f) {
        for (int64_t i = 0; i < n; i++) y->i[i] = x->f[i] != 0;
    } else {
        fac_convert(to, y->f ? (void *)y->f : (void *)y->i, from,
                    x->f ? (const void *)x->f : (const void *)x->i, (size_t)n);
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
    *c = (fac_cost){ 0, fac_cost_count(n->out[0]), fac_cost_operand(n->in[0]),
                     fac_cost_operand(n->out[0]) };
}

extern const fac_op fac_op_cast;
/* saturate and round_mode are about 8-bit floats; elsewhere they mean nothing and are left out. */
static fac_value *loaded(const fac_onnx_node *n, fac_graph *g, fac_value *x, fac_dtype to) {
    const char *how = fac_onnx_text(n, "round_mode", "up");
    attrs a = { .to = to };
    double most, beyond;
    if (to == FAC_TEXT) return fac_cast(x, to);
    if (small_limits(to, &most, &beyond)) a.unsaturated = !fac_onnx_int(n, "saturate", 1);
    if (to == FAC_F8E8M0) {
        while (roundings[a.rounding] && strcmp(roundings[a.rounding], how)) a.rounding++;
        if (!roundings[a.rounding])
            return fac_fail_graph(g, FAC_E_FORMAT, "Cast: round_mode \"%s\"", how);
    }
    return fac_emit(&fac_op_cast, &a, 1, &x);
}
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    out[0] = loaded(n, g, in[0], fac_onnx_dtype(n, "to", FAC_NONE));
}
/* Opsets 1 to 5 say the name of the type. */
static void load_old(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                     fac_value *out[]) {
    static const struct {
        const char *name;
        fac_dtype dtype;
    } types[] = { { "FLOAT", FAC_F32 },   { "FLOAT16", FAC_F16 }, { "DOUBLE", FAC_F64 },
                  { "INT8", FAC_I8 },     { "INT16", FAC_I16 },   { "INT32", FAC_I32 },
                  { "INT64", FAC_I64 },   { "UINT8", FAC_U8 },    { "UINT16", FAC_U16 },
                  { "UINT32", FAC_U32 },  { "UINT64", FAC_U64 },  { "BOOL", FAC_BOOL },
                  { "STRING", FAC_TEXT }, { NULL, FAC_NONE } };
    const char *to = fac_onnx_text(n, "to", "");
    int k = 0;
    while (types[k].name && strcmp(types[k].name, to)) k++;
    out[0] = types[k].name ? fac_cast(in[0], types[k].dtype)
                           : fac_fail_graph(g, FAC_E_FORMAT, "Cast: to = \"%s\"", to);
}
static void load_like(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                      fac_value *out[]) {
    out[0] = loaded(n, g, in[0], fac_value_type(in[1]).dtype);
}
static const fac_onnx_attr names[] = {
    { "to", NULL }, { "saturate", NULL }, { "round_mode", NULL }, { 0 }
};
static const fac_onnx onnx[] = { { "", "Cast", 6, 0, names, load, 0 },
                                 { "", "Cast", 1, 5, names, load_old, 1 },
                                 { "", "CastLike", 15, 0, names, load_like, 2 },
                                 { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const fac_dtype from = n->in[0]->type.dtype;
    if (w->opset < fac_onnx_cast_since(from) || w->opset < fac_onnx_cast_since(a->to)) return false;
    fac_onnx_put(w, "Cast", 1, (const char *[]){ fac_onnx_name(w, n->in[0]) },
                 fac_onnx_name(w, n->out[0]));
    fac_onnx_put_dtype(w, "to", a->to);
    if (a->unsaturated) fac_onnx_put_int(w, "saturate", 0);
    if (a->to == FAC_F8E8M0) fac_onnx_put_text(w, "round_mode", roundings[a->rounding]);
    return true;
}
static const fac_case cases[] = { { "cast(f32[2,30]) to=f16", -4, 4, 1e-3 },
                                  { "cast(f16[9]) to=f32", -4, 4, 0 },
                                  { "cast(f32[9]) to=bf16", -4, 4, 1e-2 },
                                  { "cast(f32[30]) to=i64", -9, 9, 0 },
                                  { "cast(f64[30]) to=u8", -300, 300, 0 },
                                  { "cast(i64[30]) to=f32", -99, 99, 0 },
                                  { "cast(f32[30]) to=bool", -1, 1, 0 },
                                  { "cast(bool[30]) to=f32", 0, 1, 0 },
                                  { "cast(i64[30]) to=i8", -999, 999, 0 },
                                  { "cast(i32[30]) to=u64", -9, 9, 0 },
                                  { "cast(f32[9]) to=f32", -4, 4, 0 },
                                  { "cast(f32[0,3]) to=i32", 0, 0, 0 },
                                  { "cast(u8[]) to=f64", 0, 255, 0 },
                                  { "cast(f32[99]) to=f8e4m3", -600, 600, 0.1 },
                                  { "cast(f16[99]) to=f8e5m2uz unsaturated", -600, 600, 0.2 },
                                  { "cast(f8e4m3uz[9]) to=f32", -9, 9, 0 },
                                  { "cast(f32[9]) to=i4", -8, 7, 0 },
                                  { "cast(u2[9]) to=i64", 0, 3, 0 },
                                  { "cast(f32[9]) to=f4e2m1", -9, 9, 0.5 },
                                  { "cast(f32[9]) to=f8e8m0 rounding=nearest", 1, 9, 1 },
                                  { 0 } };

const fac_op fac_op_cast = {
    .name = "cast",
    .doc = "x as another dtype",
    .in = ports,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_KNOWS,
    .infer = infer,
    .ref = ref,
    .view = view,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .grad = grad,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_cast(fac_value *x, fac_dtype to) {
    if (to == FAC_TEXT && fac_value_type(x).dtype != to) return fac_to_text(x);
    return fac_emit(&fac_op_cast, &(attrs){ .to = to }, 1, &x);
}
