#include "ops/random.h"

#if FAC_INTERFACE
/* i64[shape]: integers in [low, high), each as likely as any other but for (high - low) / 2^64.
 * low, high: one number each, i64, low < high.  The same on every device.  counter, stream,
 * shape: see fac_random_words. */
fac_value *fac_randint(fac_value *counter, int64_t stream, fac_value *shape, fac_value *low,
                       fac_value *high);
#endif

typedef struct attrs {
    int64_t stream;
} attrs;
static const fac_attr table[] = { { "stream", FAC_A_INT, offsetof(attrs, stream), 0, 0, 0, 0, NULL,
                                    "which of the noises of a counter" },
                                  { 0 } };
static const fac_port in[] = { { "counter", FAC_INTS, 0 },
                               { "shape", FAC_INTS, FAC_HOST },
                               { "low", FAC_INTS, 0 },
                               { "high", FAC_INTS, 0 },
                               { 0 } };

static bool infer(fac_node *n) {
    fac_contents low, high;
    for (int i = 2; i < 4; i++)
        if (n->in[i]->type.dims.n > 1 || n->in[i]->type.dtype != FAC_I64)
            return fac_fail(n, FAC_E_SHAPE, "%s must be one number, i64", in[i].name);
    const bool known = fac_known_numbers(n->in[2], &low) && fac_known_numbers(n->in[3], &high);
    if (known && low.v[0] >= high.v[0])
        return fac_fail(n, FAC_E_ARGUMENT,
                        "there is no integer from %lld up to but not including %lld",
                        (long long)low.v[0], (long long)high.v[0]);
    return fac_random_infer(n, FAC_I64);
}

/* low + bits mod (high - low), modulo 2^64 */
static void expand(const fac_node *n, fac_value *y[]) {
    const fac_dims scalar = { 0 };
    fac_value *low = fac_cast(fac_reshape(n->in[2], scalar), FAC_U64);
    fac_value *high = fac_cast(fac_reshape(n->in[3], scalar), FAC_U64);
    fac_value *bits = fac_random_noise(n, ((const attrs *)n->attrs)->stream);
    y[0] = fac_cast(fac_add(low, fac_mod(bits, fac_sub(high, low))), FAC_I64);
}

static const fac_case cases[] = { { "randint(i64[], i64{3,37}, i64{-3}, i64{9})", 0, 9, 0 },
                                  { 0 } };

const fac_op fac_op_randint = {
    .name = "randint",
    .doc = "random integers from low up to high",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .expand = expand,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_randint(fac_value *counter, int64_t stream, fac_value *shape, fac_value *low,
                       fac_value *high) {
    return fac_emit(&fac_op_randint, &(attrs){ stream }, 4,
                    (fac_value *[]){ counter, shape, low, high });
}
