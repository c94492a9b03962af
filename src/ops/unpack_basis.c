/* Planes of bits as the numbers that they stand for: weights of a packed file. */
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/pack_basis.h"

#if FAC_INTERFACE
/* The inverse of fac_pack_basis: y[c,k] = the sum over j of +-basis[j,c], + where bit k is set.
 *   bits u8 K,C,B   basis K,C   y has the dims `dims` and basis' dtype; C = dims[0], and B bytes
 * hold a bit for each element of a channel.  No gradient. */
fac_value *fac_unpack_basis(fac_value *bits, fac_value *basis, fac_dims dims);
#endif

typedef struct attrs {
    fac_dims dims;
} attrs;
static const fac_attr table[] = {
    { "dims", FAC_A_DIMS, offsetof(attrs, dims), 0, 0, 0, 0, NULL, "of the result" }, { 0 }
};

static bool infer(fac_node *n) {
    const fac_dims *d = &((const attrs *)n->attrs)->dims;
    const fac_type *bits = &n->in[0]->type, *basis = &n->in[1]->type;
    const int64_t each = fac_pack_row(d);
    if (bits->dtype != FAC_U8) return fac_fail(n, FAC_E_DTYPE, "bits must be u8");
    if (bits->dims.n != 3 || basis->dims.n != 2 || d->n < 1)
        return fac_fail(n, FAC_E_SHAPE, "expected bits K,C,B, a basis K,C and dims of a result");
    const fac_dims want = fac_shape(basis->dims.d[0], d->d[0], (each + 7) / 8);
    if (each < 0 || d->d[0] < 0 || basis->dims.d[1] != d->d[0] ||
        !fac_dims_equal(&want, &bits->dims))
        return fac_fail(n, FAC_E_SHAPE,
                        "bits and basis do not have the channels and elements of "
                        "dims");
    n->out[0]->type = (fac_type){ basis->dtype, *d };
    return true;
}

void fac_unpack(const fac_array *bits, const fac_array *basis, const fac_array *y) {
    const fac_dims *b = &bits->type.dims;
    const int64_t channels = b->d[1], bytes = b->d[2], each = fac_pack_row(&y->type.dims);
    const bool single = y->type.dtype != FAC_F64;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t k = 0; k < each; k++) {
            double sum = 0;
            for (int64_t j = 0; j < b->d[0]; j++) {
                const int64_t bit = bits->i[(j * channels + c) * bytes + k / 8] >> k % 8 & 1;
                const double v = basis->f[j * channels + c];
                sum += bit ? v : -v;
                if (single) sum = (double)(float)sum;
            }
            y->f[c * each + k] = sum;
        }
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    fac_unpack(&r->in[0], &r->in[1], &r->out[0]);
    return FAC_OK;
}

/* In arithmetic that ONNX has: bit j of a byte is  byte / 2^j  mod 2. */
static void expand(const fac_node *n, fac_value *out[]) {
    fac_graph *g = n->graph;
    const fac_dims *b = &n->in[0]->type.dims, *y = &n->out[0]->type.dims;
    const fac_dtype dtype = n->out[0]->type.dtype;
    if (fac_dims_count(b) < 0 || fac_dims_count(y) < 0) {
        out[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "unpack_basis: its sizes are not known");
        return;
    }
    fac_value *bytes = fac_unsqueeze(fac_cast(n->in[0], FAC_I64), fac_shape(3));
    fac_value *bits = fac_div(bytes, fac_ints(g, fac_shape(1, 2, 4, 8, 16, 32, 64, 128)));
    bits = fac_mod(bits, fac_number(g, FAC_I64, 2));
    bits = fac_reshape_sizes(bits, fac_shape(b->d[0], b->d[1], 8 * b->d[2]));
    bits = fac_cast(fac_slice(bits, 2, 0, fac_pack_row(y), 1), dtype);
    fac_value *signs = fac_mul(bits, fac_number(g, dtype, 2));
    signs = fac_sub(signs, fac_number(g, dtype, 1));
    fac_value *levels = fac_mul(signs, fac_unsqueeze(n->in[1], fac_shape(2)));
    out[0] = fac_reshape_sizes(fac_sum(levels, fac_shape(0), false), *y);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 8, to); }

static const fac_port in[] = { { "bits", FAC_INTS, 0 }, { "basis", FAC_FLOATS, 0 }, { 0 } };
static const fac_case cases[] = { { "unpack_basis(u8[2,4,4], f32[2,4]) dims=4,3,3,3", 0, 255,
                                    1e-6 },
                                  { "unpack_basis(u8[1,5,1], f32[1,5]) dims=5,7", 0, 255, 0 },
                                  { "unpack_basis(u8[3,2,1], f64[3,2]) dims=2,8", 0, 255, 1e-12 },
                                  { "unpack_basis(u8[2,0,1], f32[2,0]) dims=0,3", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_unpack_basis;
const fac_op fac_op_unpack_basis = {
    .name = "unpack_basis",
    .doc = "planes of bits as the levels of a basis",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_unpack_basis(fac_value *bits, fac_value *basis, fac_dims dims) {
    return fac_emit(&fac_op_unpack_basis, &(attrs){ dims }, 2, (fac_value *[]){ bits, basis });
}
