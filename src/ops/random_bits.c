/* Random bits, a function of (counter, stream, place) alone: Philox of src/base/rng.h, so that a
 * seed gives the same numbers on any device and number of threads.  The other random ops are
 * made of it. */
#include "base/rng.h"
#include "ops/cost.h"
#include "ops/random.h"

#if FAC_INTERFACE
/* u64[shape]: 64 random bits each.  counter: a scalar i32 or i64, usually a state that begins
 * with the seed; every value of it and every stream are other noise.  shape: an i64[n]. */
fac_value *fac_random_words(fac_value *counter, int64_t stream, fac_value *shape);
#endif

typedef struct attrs {
    int64_t stream;
} attrs;
static const fac_attr table[] = { { "stream", FAC_A_INT, offsetof(attrs, stream), 0, 0, 0, 0, NULL,
                                    "which of the noises of a counter" },
                                  { 0 } };

static bool infer(fac_node *n) { return fac_random_infer(n, FAC_U64); }

static fac_status ref(const fac_ref *r, fac_error *err) {
    const attrs *a = r->attrs;
    const int64_t n = fac_dims_count(&r->out[0].type.dims);
    (void)err;
    for (int64_t i = 0; i < n; i++)
        r->out[0].i[i] =
            (int64_t)fac_random_bits((uint64_t)r->in[0].i[0], (uint64_t)a->stream, (uint64_t)i);
    return FAC_OK;
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 0, to); }

static const fac_case cases[] = { { "random_bits(i64[], i64{3,37})", -9, 9, 0 },
                                  { "random_bits(i32[], i64{5}) stream=3", 0, 99, 0 },
                                  { "random_bits(i64[], i64{})", 0, 9, 0 },
                                  { "random_bits(i64[], i64{0,3})", 0, 9, 0 },
                                  { 0 } };

const fac_op fac_op_random_bits = {
    .name = "random_bits",
    .doc = "64 random bits an element",
    .in = fac_random_ports,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_random_words(fac_value *counter, int64_t stream, fac_value *shape) {
    return fac_emit(&fac_op_random_bits, &(attrs){ stream }, 2, (fac_value *[]){ counter, shape });
}
