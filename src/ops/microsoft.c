/* Operators of com.microsoft that are read as a few ops: tables and weights of 4 bits, distances.
 */
#include <string.h>
#include "graph/onnx_write.h"
#include "ops/fusions.h"
#include "ops/known.h"
#include "ops/shape.h"

/* ---- codes of 4 bits ---- */

/* Bytes ...,N as codes ...,2N, u8: two of each byte, the low half first or the high one. */
static fac_value *halves(fac_value *q, bool low_first) {
    fac_graph *g = fac_value_graph(q);
    const fac_dims last = fac_shape(q->type.dims.n);
    fac_value *low = fac_unsqueeze(fac_bitwise_and(q, fac_number(g, FAC_U8, 15)), last);
    fac_value *high = fac_unsqueeze(fac_shift_right(q, fac_number(g, FAC_U8, 4)), last);
    fac_value *first = low_first ? low : high;
    fac_value *second = low_first ? high : low;
    fac_value *both = fac_concat((fac_value *[]){ first, second }, 2, -1);
    fac_dims to = { .n = q->type.dims.n };
    to.d[to.n - 1] = -1;
    return fac_reshape(both, to);
}

/* Rows in blocks, ...,N/block,block. */
static fac_value *in_blocks(fac_value *x, int64_t block) {
    fac_dims to = { .n = x->type.dims.n + 1 };
    to.d[to.n - 2] = -1;
    to.d[to.n - 1] = block;
    return fac_reshape(x, to);
}

/* (rows - zero points) times scales, each of a block of the last dim. */
static fac_value *in_numbers(fac_value *q, fac_value *scale, fac_value *zero, int64_t block) {
    const fac_dtype t = scale->type.dtype;
    const fac_dims last = fac_shape(scale->type.dims.n);
    fac_value *x = in_blocks(fac_cast(q, t), block);
    if (zero) x = fac_sub(x, zero->type.dims.n ? fac_unsqueeze(fac_cast(zero, t), last) : zero);
    x = fac_mul(x, fac_unsqueeze(scale, last));
    fac_dims to = { .n = q->type.dims.n };
    to.d[to.n - 1] = -1;
    return fac_reshape(x, to);
}

/* Rows of a table of codes: data V,.., indices, scales and zero points by blocks of the last dim.
 */
static void load_gather(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                        fac_value *y[]) {
    const int rank = x[0]->type.dims.n;
    const int64_t block = fac_onnx_int(n, "block_size", 128), bits = fac_onnx_int(n, "bits", 4);
    const int axis = fac_axis(fac_onnx_int(n, "gather_axis", 0), rank);
    const bool bytes = x[0]->type.dtype == FAC_U8, packed = bytes && bits == 4;
    if (axis || fac_axis(fac_onnx_int(n, "quantize_axis", 1), rank) != rank - 1 || block < 1 ||
        rank < 2 || (bits != 4 && bits != 8)) {
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED,
                              "GatherBlockQuantized: only rows with blocks of their last dim, of 4 "
                              "or 8 bits, are supported");
        return;
    }
    fac_value *codes = fac_gather(x[0], x[1], 0), *scale = fac_gather(x[2], x[1], 0);
    fac_value *zero = fac_onnx_in(n, x, 3);
    if (zero) {
        zero = fac_gather(zero, x[1], 0);
        if (packed)
            zero =
                fac_slice(halves(zero, true), -1, 0, scale->type.dims.d[scale->type.dims.n - 1], 1);
    } else if (bytes)
        zero = fac_number(g, scale->type.dtype, bits == 4 ? 8 : 128);
    y[0] = in_numbers(packed ? halves(codes, true) : codes, scale, zero, block);
}

/* The values of codes: 4 bits with a mantissa (0) and of equal mass under a normal curve (1), as
 * bitsandbytes has them (Dettmers et al. 2023, https://arxiv.org/abs/2305.14314). */
static const double fp4[] = {
    0,   0.005208333333,  0.66666667,  1,  0.33333333,  0.5,  0.16666667,  0.25,
    -0., -0.005208333333, -0.66666667, -1, -0.33333333, -0.5, -0.16666667, -0.25
};
static const double nf4[] = { -1.0,
                              -0.6961928009986877,
                              -0.5250730514526367,
                              -0.39491748809814453,
                              -0.28444138169288635,
                              -0.18477343022823334,
                              -0.09105003625154495,
                              0.0,
                              0.07958029955625534,
                              0.16093020141124725,
                              0.24611230194568634,
                              0.33791524171829224,
                              0.44070982933044434,
                              0.5626170039176941,
                              0.7229568362236023,
                              1.0 };

static fac_value *table_of(fac_graph *g, fac_dtype dtype, const double *numbers, int64_t count) {
    fac_tensor *t = NULL, *as = NULL;
    fac_error err = { 0 };
    fac_status status = fac_tensor_new(NULL, FAC_F64, fac_shape(count), &t, &err);
    if (!status) status = fac_tensor_write(t, numbers, (size_t)count * sizeof *numbers, &err);
    if (!status) status = fac_tensor_convert(t, dtype, &as, &err);
    fac_value *v = status ? fac_fail_graph(g, status, "%s", err.text) : fac_const(g, as);
    fac_tensor_free(t);
    fac_tensor_free(as);
    return v;
}

/* Inputs a, the codes of b N,K in one row, and the largest number of each block. */
static void load_bnb4(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const int64_t k = fac_onnx_int(n, "K", 0), rows = fac_onnx_int(n, "N", 0);
    const int64_t block = fac_onnx_int(n, "block_size", 0), kind = fac_onnx_int(n, "quant_type", 1);
    const bool transposed = fac_onnx_int(n, "transB", 1) != 0;
    fac_onnx_int(n, "training_mode", 0);
    if (k < 1 || rows < 1 || block < 1 || kind < 0 || kind > 1 || !transposed || rows * k % block ||
        rows * k % 2) {
        y[0] =
            fac_fail_graph(g, FAC_E_UNSUPPORTED,
                           "MatMulBnb4: N = %lld, K = %lld, block_size = %lld, quant_type = %lld",
                           (long long)rows, (long long)k, (long long)block, (long long)kind);
        return;
    }
    fac_value *codes = halves(fac_reshape(x[1], fac_shape(-1)), false);
    fac_value *table = table_of(g, x[2]->type.dtype, kind ? nf4 : fp4, 16);
    fac_value *b = fac_gather(table, fac_cast(codes, FAC_I32), 0);
    b = in_numbers(b, fac_reshape(x[2], fac_shape(-1)), NULL, block);
    b = fac_transpose(fac_reshape(b, fac_shape(rows, k)), fac_shape(1, 0));
    y[0] = fac_matmul(x[0], b);
}

/* ---- others ---- */

static void load_expand_dims(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                             fac_value *y[]) {
    fac_contents c;
    (void)n;
    if (fac_known(x[1], &c) && c.n == 1 && !c.symbolic)
        y[0] = fac_unsqueeze(x[0], fac_shape(c.v[0]));
    else
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "ExpandDims: the axis must be known");
}

/* Between all rows of a and all of b. */
static void load_cdist(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const char *metric = fac_onnx_text(n, "metric", "sqeuclidean");
    const bool square = !strcmp(metric, "sqeuclidean");
    if (!square && strcmp(metric, "euclidean")) {
        y[0] = fac_fail_graph(g, FAC_E_FORMAT, "CDist: metric \"%s\"", metric);
        return;
    }
    fac_value *d = fac_sub(fac_unsqueeze(x[0], fac_shape(1)), fac_unsqueeze(x[1], fac_shape(0)));
    y[0] = fac_sum(fac_mul(d, d), fac_shape(2), false);
    if (!square) y[0] = fac_sqrt(y[0]);
}

static const fac_onnx_attr gather_names[] = { { "gather_axis", NULL },
                                              { "quantize_axis", NULL },
                                              { "block_size", NULL },
                                              { "bits", NULL },
                                              { 0 } };
static const fac_onnx_attr bnb4_names[] = { { "K", NULL },
                                            { "N", NULL },
                                            { "block_size", NULL },
                                            { "quant_type", NULL },
                                            { "transB", NULL },
                                            { "training_mode", NULL },
                                            { 0 } };
static const fac_onnx_attr cdist_names[] = { { "metric", NULL }, { 0 } };
const fac_onnx fac_reads_microsoft[] = {
    { "com.microsoft", "GatherBlockQuantized", 1, 0, gather_names, load_gather, 3 },
    { "com.microsoft", "MatMulBnb4", 1, 0, bnb4_names, load_bnb4, 3 },
    { "com.microsoft", "ExpandDims", 1, 0, NULL, load_expand_dims, 2 },
    { "com.microsoft", "CDist", 1, 0, cdist_names, load_cdist, 2 },
    { 0 }
};
