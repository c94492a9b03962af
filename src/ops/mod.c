#include "facula/ops.h"
#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_mod(fac_value *a,
                   fac_value *b); /* remainder with the sign of b (Python's %); integer a % 0 = 0 */
#endif

MAP2_NUM(MOD(x, y))

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_grad_remainder(n, dy[0], true, dx);
}

static bool infer(fac_node *n) { return fac_infer_broadcast(n) && fac_knows_map(n, NULL); }

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    out[0] = (fac_onnx_int(n, "fmod", 0) ? fac_fmod : fac_mod)(in[0], in[1]);
}
static const fac_onnx_attr names[] = { { "fmod", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Mod", 10, 0, names, load, 0 }, { 0 } };
/* Of floats ONNX has only C's fmod: y is added where the rest has the other sign than y. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dtype dtype = n->in[0]->type.dtype;
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->in[1]),
               *to = fac_onnx_name(w, n->out[0]);
    const bool floats = fac_dtype_get(dtype)->kind == 'f';
    const char *r = fac_onnx_binary(w, "Mod", x, y, floats ? NULL : to);
    fac_onnx_put_int(w, "fmod", floats);
    if (!floats) return true;
    const char *zero = fac_onnx_number(w, dtype, 0);
    const char *differ = fac_onnx_binary(w, "Xor", fac_onnx_binary(w, "Less", r, zero, NULL),
                                         fac_onnx_binary(w, "Less", y, zero, NULL), NULL);
    const char *some = fac_onnx_unary(w, "Not", fac_onnx_binary(w, "Equal", r, zero, NULL), NULL);
    const char *in[] = { fac_onnx_binary(w, "And", differ, some, NULL),
                         fac_onnx_binary(w, "Add", r, y, NULL), r };
    fac_onnx_put(w, "Where", 3, in, to);
    return true;
}

static const fac_case cases[] = {
    { "mod(i64[200], i64[200])", -9, 9, 0 },  { "mod(i8[300], i8[300])", -128, 127, 0 },
    { "mod(u64[20], u64[20])", 0, 99, 0 },    { "mod(i32[4,1], i32[3])", -9, 9, 0 },
    { "mod(f64[2,30], f64[])", -9, 9, 1e-9 }, { "mod(i64[0], i64[])", 0, 0, 0 },
    { "mod(i64[], i64[])", -9, 9, 0 },        { 0 }
};

static void define(const fac_node *n, fac_value *out[]) {
    fac_value *y = n->in[1];
    if (fac_dtype_get(y->type.dtype)->kind != 'f') return;
    fac_value *rest = fac_fmod(n->in[0], y);
    fac_value *zero = fac_number_as(y, 0), *some = fac_not(fac_equal(rest, zero));
    fac_value *differ = fac_xor(fac_less(rest, zero), fac_less(y, zero));
    out[0] = fac_where(fac_and(differ, some), fac_add(rest, y), rest);
}

const fac_op fac_op_mod = {
    MAP_OP("mod", "remainder with the sign of y", fac_ports_num_xy, infer),
    .is = FAC_OP_INPLACE | FAC_OP_KNOWS,
    .save = save,
    .grad = grad,
    .define = define,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_mod(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_mod, NULL, 2, (fac_value *[]){ a, b });
}
