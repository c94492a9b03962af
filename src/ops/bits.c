/* Bits of masks as ops: see bits.h. */
#include "facula/ops.h"
#include "ops/bits.h"

/* u8[FAC_BITS, 1, 1] of these numbers. */
static fac_value *column(fac_graph *g, fac_dims numbers) {
    return fac_reshape(fac_cast(fac_ints(g, numbers), FAC_U8), fac_shape(FAC_BITS, 1, 1));
}

fac_value *fac_bits_of(fac_value *passes) {
    fac_graph *g = passes->graph;
    const fac_dims image = passes->type.dims, d = fac_bits_dims(&image);
    fac_value *v = fac_cast(passes, FAC_U8);
    const int64_t more = FAC_BITS * d.d[1] - image.d[1];
    if (more)
        v = fac_pad(v, fac_ints(g, fac_shape(0, 0, 0, 0, 0, more, 0, 0)), NULL, NULL,
                    FAC_PAD_CONSTANT);
    v = fac_reshape_sizes(v, fac_shape(d.d[0], d.d[1], FAC_BITS, d.d[2], d.d[3]));
    v = fac_mul(v, column(g, fac_shape(1, 2, 4, 8)));
    return fac_cast(fac_sum(fac_cast(v, FAC_I32), fac_shape(2), false), FAC_U8);
}

fac_value *fac_bits_apart(fac_value *bits, int64_t channels) {
    fac_graph *g = bits->graph;
    const fac_dims d = bits->type.dims;
    fac_value *v = fac_reshape_sizes(bits, fac_shape(d.d[0], d.d[1], 1, d.d[2], d.d[3]));
    fac_value *one = fac_cast(fac_ints(g, fac_shape(1)), FAC_U8);
    v = fac_bitwise_and(fac_shift_right(v, column(g, fac_shape(0, 1, 2, 3))), one);
    v = fac_reshape_sizes(fac_cast(v, FAC_BOOL),
                          fac_shape(d.d[0], FAC_BITS * d.d[1], d.d[2], d.d[3]));
    return fac_slice(v, 1, 0, channels, 1);
}
