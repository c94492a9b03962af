/* The product with weights of 2, 4 or 8 bits in blocks. */
#include "ops/cost.h"
#include "ops/fusions_quant.h"
#include "ops/quant.h"

#if FAC_INTERFACE
/* y[..., n] = sum over k of x[..., k] (q[n,k] - zero[n, k / block]) scale[n, k / block] + bias[n],
 * as ONNX Runtime's MatMulNBits.
 *   x      f32 f16 bf16 ...,K
 *   q      u8 N,ceil(K / block),block bits / 8: codes, the first one in the low bits
 *   scale  N,ceil(K / block) (any dims with as many numbers), x's dtype
 *   zero   NULL: 2^(bits - 1); u8: codes packed like q, each row filled up to a byte; or numbers of
 *          scale's dtype
 *   bias   N or NULL
 *   y      ...,N */
typedef struct fac_nbits_opts {
    int64_t k, n, bits, block; /* bits 0 = 4, block 0 = 32 */
    /* Of x, at least, as ONNX Runtime's accuracy_level: FAC_NBITS_INT8 lets kernels round x to 8
     * bits, in blocks as long as those of q, unless the program wants the highest precision; 0 and
     * those below are floats. */
    int64_t accuracy;
} fac_nbits_opts;
enum { FAC_NBITS_INT8 = 4 };
fac_value *fac_matmul_nbits(fac_value *x, fac_value *q, fac_value *scale, fac_value *zero,
                            fac_value *bias, const fac_nbits_opts *opts);
#endif

#define AT(field) offsetof(fac_nbits_opts, field)
static const fac_attr table[] = {
    { "k", FAC_A_INT, AT(k), 0, 0, 0, 1e12, NULL, "terms of a sum" },
    { "n", FAC_A_INT, AT(n), 0, 0, 0, 1e12, NULL, "columns of the result" },
    { "bits", FAC_A_INT, AT(bits), 0, 4, 2, 8, NULL, "of a weight: 2, 4, 8" },
    { "block", FAC_A_INT, AT(block), 0, 32, 1, 1e9, NULL, "weights of one scale" },
    { "accuracy", FAC_A_INT, AT(accuracy), 0, 0, 0, 4, NULL,
      "4: kernels may round x to 8 bits by blocks" },
    { 0 }
};
#undef AT
enum { X, Q, SCALE, ZERO, BIAS };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "q", FAC_INTS, 0 },
                               { "scale", FAC_FLOATS, 0 },
                               { "zero", FAC_NUMBERS, FAC_OPTIONAL },
                               { "bias", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };

static int64_t blocks_of(const fac_nbits_opts *o) { return (o->k + o->block - 1) / o->block; }
/* Bytes of the zero points of a row. */
static int64_t zero_bytes(const fac_nbits_opts *o) { return (blocks_of(o) * o->bits + 7) / 8; }

static bool has(fac_node *n, int input, int64_t count) {
    const int64_t have = n->in[input] ? fac_dims_count(&n->in[input]->type.dims) : count;
    return have < 0 || have == count ||
           fac_fail(n, FAC_E_SHAPE, "%s must have %lld numbers, not %lld", in[input].name,
                    (long long)count, (long long)have);
}

static bool infer(fac_node *n) {
    const fac_nbits_opts *o = n->attrs;
    const fac_dims *x = &n->in[X]->type.dims;
    const fac_dtype t = n->in[X]->type.dtype;
    if (o->bits != 2 && o->bits != 4 && o->bits != 8)
        return fac_fail(n, FAC_E_UNSUPPORTED, "%lld bits: expected 2, 4 or 8", (long long)o->bits);
    if (o->block * o->bits % 8)
        return fac_fail(n, FAC_E_ARGUMENT, "a block of %lld is no whole bytes",
                        (long long)o->block);
    if (x->n < 1 || (x->d[x->n - 1] >= 0 && x->d[x->n - 1] != o->k))
        return fac_fail(n, FAC_E_SHAPE, "the last dim of x must be k, %lld", (long long)o->k);
    if (n->in[Q]->type.dtype != FAC_U8) return fac_fail(n, FAC_E_DTYPE, "q must be u8");
    if (n->in[SCALE]->type.dtype != t) return fac_fail(n, FAC_E_DTYPE, "scale must have x's dtype");
    const bool packed = n->in[ZERO] && n->in[ZERO]->type.dtype == FAC_U8;
    const int64_t blocks = blocks_of(o);
    if (!has(n, Q, o->n * blocks * o->block * o->bits / 8) || !has(n, SCALE, o->n * blocks) ||
        !has(n, ZERO, o->n * (packed ? zero_bytes(o) : blocks)) || !has(n, BIAS, o->n))
        return false;
    n->out[0]->type = (fac_type){ t, *x };
    n->out[0]->type.dims.d[x->n - 1] = o->n;
    return true;
}

static int64_t code(const int64_t *bytes, int64_t at, int64_t bits) {
    return bytes[at * bits / 8] >> at * bits % 8 & ((1 << bits) - 1);
}

/* Weight k of row n. */
static double weight(const fac_ref *r, int64_t n, int64_t k) {
    const fac_nbits_opts *o = r->attrs;
    const int64_t blocks = blocks_of(o), b = k / o->block;
    const fac_array *z = &r->in[ZERO];
    double zero = (double)(1 << (o->bits - 1));
    if (z->f)
        zero = z->f[n * blocks + b];
    else if (z->i)
        zero = (double)code(z->i + n * zero_bytes(o), b, o->bits);
    const double q = (double)code(r->in[Q].i + n * blocks * o->block * o->bits / 8, k, o->bits);
    return (q - zero) * r->in[SCALE].f[n * blocks + b];
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_nbits_opts *o = r->attrs;
    const int64_t rows = o->k ? fac_dims_count(&r->in[X].type.dims) / o->k : 0;
    for (int64_t m = 0; m < rows; m++)
        for (int64_t n = 0; n < o->n; n++)
            r->out[0].f[m * o->n + n] = r->in[BIAS].f ? r->in[BIAS].f[n] : 0;
    for (int64_t n = 0; n < o->n; n++)
        for (int64_t k = 0; k < o->k; k++) {
            const double w = weight(r, n, k);
            for (int64_t m = 0; m < rows; m++)
                r->out[0].f[m * o->n + n] += w * r->in[X].f[m * o->k + k];
        }
    return FAC_OK;
}

/* u8[rows, bytes] as numbers [rows, n], codes apart. */
static fac_value *codes(fac_value *v, int64_t rows, int64_t bytes, int64_t n, int64_t bits,
                        fac_dtype t) {
    fac_graph *g = v->graph;
    const int64_t each = 8 / bits;
    fac_value *parts[4];
    v = fac_reshape(v, fac_shape(rows, bytes, 1));
    for (int64_t k = 0; k < each; k++) {
        fac_value *p = k ? fac_shift_right(v, fac_number(g, FAC_U8, (double)(k * bits))) : v;
        parts[k] = fac_bitwise_and(p, fac_number(g, FAC_U8, (double)((1 << bits) - 1)));
    }
    v = each > 1 ? fac_concat(parts, (int)each, 2) : v;
    v = fac_slice(fac_reshape(v, fac_shape(rows, bytes * each)), 1, 0, n, 1);
    return fac_cast(v, t);
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_nbits_opts *o = n->attrs;
    const int64_t blocks = blocks_of(o), all = blocks * o->block;
    const fac_dtype t = n->in[X]->type.dtype;
    const fac_dims shape = fac_shape(o->n, blocks, 1);
    fac_value *zero = n->in[ZERO];
    if (!zero)
        zero = fac_number(n->graph, t, (double)(1 << (o->bits - 1)));
    else if (zero->type.dtype == FAC_U8)
        zero = codes(zero, o->n, zero_bytes(o), blocks, o->bits, t);
    else
        zero = fac_cast(zero, t);
    if (zero->type.dims.n) zero = fac_reshape(zero, shape);
    fac_value *q = codes(n->in[Q], o->n, all * o->bits / 8, all, o->bits, t);
    q = fac_sub(fac_reshape(q, fac_shape(o->n, blocks, o->block)), zero);
    q = fac_reshape(fac_mul(q, fac_reshape(n->in[SCALE], shape)), fac_shape(o->n, all));
    y[0] = fac_linear(n->in[X], all > o->k ? fac_slice(q, 1, 0, o->k, 1) : q, n->in[BIAS]);
}

static void cost(const fac_node *n, fac_cost *to) {
    fac_cost_bytes(n, to);
    to->macs = fac_cost_count(n->out[0]) * (double)((const fac_nbits_opts *)n->attrs)->k;
    to->other = 0;
}

/* x, q, scales, zero points, g_idx, bias */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const fac_nbits_opts o = { fac_onnx_int(n, "K", 0), fac_onnx_int(n, "N", 0),
                               fac_onnx_int(n, "bits", 4), fac_onnx_int(n, "block_size", 32),
                               fac_onnx_int(n, "accuracy_level", 0) };
    if (fac_onnx_in(n, x, 4)) {
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "MatMulNBits: g_idx is not supported");
        return;
    }
    y[0] = fac_matmul_nbits(x[0], x[1], x[2], fac_onnx_in(n, x, 3), fac_onnx_in(n, x, 5), &o);
}
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_nbits_opts *o = n->attrs;
    const char *ins[] = { fac_onnx_name(w, n->in[X]),
                          fac_onnx_name(w, n->in[Q]),
                          fac_onnx_name(w, n->in[SCALE]),
                          fac_onnx_name(w, n->in[ZERO]),
                          NULL,
                          fac_onnx_name(w, n->in[BIAS]) };
    fac_onnx_put(w, "com.microsoft:MatMulNBits", 6, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "K", o->k);
    fac_onnx_put_int(w, "N", o->n);
    fac_onnx_put_int(w, "bits", o->bits);
    fac_onnx_put_int(w, "block_size", o->block);
    if (o->accuracy) fac_onnx_put_int(w, "accuracy_level", o->accuracy);
    return true;
}

static const fac_onnx_attr names[] = { { "K", NULL },
                                       { "N", NULL },
                                       { "bits", NULL },
                                       { "block_size", NULL },
                                       { "accuracy_level", NULL },
                                       { "weight_prepacked", NULL },
                                       { 0 } };
static const fac_onnx onnx[] = { { "com.microsoft", "MatMulNBits", 1, 0, names, load, 3 }, { 0 } };
static const fac_case cases[] = {
    { "matmul_nbits(f32[3,40], u8[6,3,8], f32[6,3]) k=40 n=6 block=16", 0, 9, 1e-4 },
    { "matmul_nbits(f32[2,2,64], u8[5,2,32], f32[10], u8[10], f32[5]) k=64 n=5 bits=8", 0, 9,
      1e-4 },
    { "matmul_nbits(f32[4,16], u8[3,1,4], f32[3], u8[3]) k=16 n=3 bits=2 block=16", 0, 9, 1e-5 },
    { "matmul_nbits(f32[3,70], u8[5,3,16], f32[5,3], u8[5,2]) k=70 n=5 accuracy=4", 0, 9, 2e-2 },
    { "matmul_nbits(f32[0,32], u8[3,1,16], f32[3]) k=32 n=3", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_matmul_nbits = {
    .name = "matmul_nbits",
    .doc = "the product with weights of 2, 4 or 8 bits in blocks",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_nbits_opts),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_matmul_nbits(fac_value *x, fac_value *q, fac_value *scale, fac_value *zero,
                            fac_value *bias, const fac_nbits_opts *opts) {
    return fac_emit(&fac_op_matmul_nbits, opts, 5, (fac_value *[]){ x, q, scale, zero, bias });
}
