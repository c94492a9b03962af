/* Random numbers of the Mersenne Twister, the same as NumPy's RandomState gives: ONNX's reference
 * draws masks of Dropout so. Source: Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8
 * (1998), with their initialization of 2002. */
#include <stdint.h>
#include "base/memory.h"
#include "base/error.h"
#include "ops/host_list.h"
#include "ops/known.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* f64 in [0, 1), dims from an i64[n]: the first numbers that
 * numpy.random.RandomState(seed).uniform() gives, in row-major order. */
fac_value *fac_uniform_mt(fac_value *shape, int64_t seed);
#endif

typedef struct attrs {
    int64_t seed;
} attrs;
static const fac_attr table[] = { { "seed", FAC_A_INT, offsetof(attrs, seed), 0, 0, 0, 4294967295.0,
                                    NULL, "where the numbers begin" },
                                  { 0 } };
static const fac_port in[] = { { "shape", FAC_INTS, FAC_HOST }, { 0 } };

static bool infer(fac_node *n) {
    fac_contents c;
    const int length = fac_host_length(n->in[0]);
    const bool known = fac_known(n->in[0], &c);
    if (fac_list_is_open(n->in[0])) return fac_rankless(n->out[0], FAC_F64), true;
    if (length < 0 || length > FAC_DIMS)
        return fac_fail(n, FAC_E_SHAPE, "shape must be a list of at most %d sizes", FAC_DIMS);
    n->out[0]->type = (fac_type){ FAC_F64, { .n = length } };
    for (int k = 0; k < length; k++)
        n->out[0]->type.dims.d[k] = known ? c.v[k] : fac_symbol(n->graph, NULL);
    return true;
}

enum { N = 624, M = 397 };
typedef struct twister {
    uint32_t state[N];
    int at;
} twister;

static void begin(twister *t, uint32_t seed) {
    t->state[0] = seed;
    for (uint32_t k = 1; k < N; k++)
        t->state[k] = 1812433253u * (t->state[k - 1] ^ t->state[k - 1] >> 30) + k;
    t->at = N;
}

static void twist(twister *t) {
    for (int k = 0; k < N; k++) {
        const uint32_t y = (t->state[k] & 0x80000000u) | (t->state[(k + 1) % N] & 0x7fffffffu);
        t->state[k] = t->state[(k + M) % N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    t->at = 0;
}

static uint32_t next(twister *t) {
    if (t->at == N) twist(t);
    uint32_t y = t->state[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const int64_t n = fac_dims_count(&r->out[0].type.dims);
    twister *t = fac_alloc(1, sizeof *t);
    if (!t) return fac_raise_memory(err, "random numbers");
    begin(t, (uint32_t)((const attrs *)r->attrs)->seed);
    for (int64_t k = 0; k < n; k++) {
        const uint32_t high = next(t) >> 5, low = next(t) >> 6;
        r->out[0].f[k] = (high * 67108864.0 + low) / 9007199254740992.0;
    }
    fac_release(t);
    return FAC_OK;
}

static const fac_case cases[] = { { "uniform_mt(i64{3,2}) seed=7", 0, 0, 0 },
                                  { "uniform_mt(i64{0})", 0, 0, 0 },
                                  { "uniform_mt(i64[0])", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_uniform_mt;
const fac_op fac_op_uniform_mt = {
    .name = "uniform_mt",
    .doc = "random numbers of the Mersenne Twister",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_uniform_mt(fac_value *shape, int64_t seed) {
    return fac_emit(&fac_op_uniform_mt, &(attrs){ seed }, 1, &shape);
}
