/* Numbers as planes of bits: what the levels of a basis need in a file. */
#include "ops/basis.h"
#include "ops/cost.h"
#include "ops/pack_basis.h"

#if FAC_INTERFACE
/* The codes of x by a basis whose digits are -1 and 1, as planes of bits: bit k % 8 of y[j,c,k /
 * 8] says that element k of channel c has v_j added.  Bits after the last element are 0.
 *   x C,...   basis K,C   y u8 K,C,(elements of a channel + 7) / 8.   No gradient. */
fac_value *fac_pack_basis(fac_value *x, fac_value *basis);
#endif

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims, *b = &n->in[1]->type.dims;
    if (b->n != 2 || x->n < 1)
        return fac_fail(n, FAC_E_SHAPE, "x must have channels, and basis 2 dims");
    if (!fac_basis_fits(n, n->in[0], n->in[1], 0)) return false;
    const int64_t each = fac_pack_row(x);
    if (each < 0) return fac_fail(n, FAC_E_SHAPE, "the sizes of x must be known");
    n->out[0]->type = (fac_type){ FAC_U8, fac_shape(b->d[0], b->d[1], (each + 7) / 8) };
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_dims *d = &r->out[0].type.dims;
    int64_t *y = r->out[0].i;
    const int64_t channels = d->d[1], bytes = d->d[2], each = fac_pack_row(&r->in[0].type.dims);
    const bool single = r->in[0].type.dtype != FAC_F64;
    const int64_t all = fac_dims_count(d);
    for (int64_t i = 0; i < all; i++) y[i] = 0;
    for (int64_t c = 0; c < channels; c++) {
        fac_basis b;
        fac_basis_of(r->in[1].f + c, channels, (int)d->d[0], false, single, &b);
        for (int64_t k = 0; k < each; k++) {
            const unsigned code = b.code[fac_basis_find(&b, r->in[0].f[c * each + k])];
            for (int j = 0; j < b.bits; j++)
                y[(j * channels + c) * bytes + k / 8] |= (int64_t)(code >> j & 1) << k % 8;
        }
    }
    return FAC_OK;
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 4, to); }

static const fac_port in[] = { { "x", FAC_FLOATS, 0 }, { "basis", FAC_FLOATS, 0 }, { 0 } };
static const fac_port out[] = { { "y", FAC_INTS, 0 }, { 0 } };
static const fac_case cases[] = { { "pack_basis(f32[4,3,3,3], f32[2,4])", -1, 1, 0 },
                                  { "pack_basis(f32[5,7], f32[1,5])", -1, 1, 0 },
                                  { "pack_basis(f64[2,8], f64[4,2])", -1, 1, 0 },
                                  { "pack_basis(f32[0,3], f32[2,0])", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_pack_basis;
const fac_op fac_op_pack_basis = {
    .name = "pack_basis",
    .doc = "codes of a basis as planes of bits",
    .in = in,
    .out = out,
    .infer = infer,
    .ref = ref,
    .cost = cost,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
};
fac_value *fac_pack_basis(fac_value *x, fac_value *basis) {
    return fac_emit(&fac_op_pack_basis, NULL, 2, (fac_value *[]){ x, basis });
}
