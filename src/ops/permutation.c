#include "ops/random.h"

#if FAC_INTERFACE
/* i64[n]: 0 to n - 1 in a random order, each as likely as any other.  n: a constant i64[1].  The
 * same on every device.  counter, stream: see fac_random_words. */
fac_value *fac_permutation(fac_value *counter, int64_t stream, fac_value *n);
#endif

extern const fac_op fac_op_top_k;
typedef struct attrs {
    int64_t stream;
} attrs;
static const fac_attr table[] = { { "stream", FAC_A_INT, offsetof(attrs, stream), 0, 0, 0, 0, NULL,
                                    "which of the noises of a counter" },
                                  { 0 } };
static const fac_port in[] = { { "counter", FAC_INTS, 0 }, { "n", FAC_INTS, FAC_HOST }, { 0 } };

static bool infer(fac_node *n) {
    if (!fac_random_infer(n, FAC_I64)) return false;
    return n->out[0]->type.dims.n == 1 ||
           fac_fail(n, FAC_E_SHAPE, "n must be a list of one number");
}

/* The order of random keys: of 63 bits, two are equal once in 2^63 / n^2 times, and then the
 * first stays first. */
static void expand(const fac_node *n, fac_value *y[]) {
    fac_value *bits = fac_random_noise(n, ((const attrs *)n->attrs)->stream);
    fac_value *in_order[] = { fac_cast(bits, FAC_I64), n->in[1] };
    y[0] = fac_value_other(fac_apply(n->graph, &fac_op_top_k, "axis=0", 2, in_order), 1);
}

static const fac_case cases[] = { { "permutation(i64[], i64{37})", 0, 9, 0 },
                                  { "permutation(i32[], i64{1}) stream=3", 0, 9, 0 },
                                  { "permutation(i64[], i64{0})", 0, 9, 0 },
                                  { 0 } };

const fac_op fac_op_permutation = {
    .name = "permutation",
    .doc = "0 to n - 1 in a random order",
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
fac_value *fac_permutation(fac_value *counter, int64_t stream, fac_value *n) {
    return fac_emit(&fac_op_permutation, &(attrs){ stream }, 2, (fac_value *[]){ counter, n });
}
