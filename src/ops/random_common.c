/* See random.h. */
#include "ops/host_list.h"
#include "ops/random.h"
#include "ops/shape.h"

const fac_port fac_random_ports[] = { { "counter", FAC_INTS, 0 },
                                      { "shape", FAC_INTS, FAC_HOST },
                                      { 0 } };

bool fac_random_infer(fac_node *n, fac_dtype dtype) {
    fac_contents c;
    fac_type *y = &n->out[0]->type;
    const fac_type *counter = &n->in[0]->type;
    if (counter->dims.n || (counter->dtype != FAC_I64 && counter->dtype != FAC_I32))
        return fac_fail(n, FAC_E_SHAPE, "the counter must be a scalar, i32 or i64");
    if (fac_list_is_open(n->in[1])) return fac_rankless(n->out[0], dtype), true;
    *y = (fac_type){ dtype, { fac_host_length(n->in[1]), { 0 } } };
    if (y->dims.n < 0 || y->dims.n > FAC_DIMS)
        return fac_fail(n, FAC_E_SHAPE, "the shape must be a list of at most %d dims", FAC_DIMS);
    const bool known = fac_known(n->in[1], &c);
    for (int k = 0; k < y->dims.n; k++) {
        y->dims.d[k] = known ? c.v[k] : fac_symbol(n->graph, NULL);
        if (known && c.v[k] < 0 && !(c.symbolic >> k & 1))
            return fac_fail(n, FAC_E_ARGUMENT, "dim %d is %lld", k, (long long)c.v[k]);
    }
    return true;
}

fac_dtype fac_random_type(const fac_node *n) {
    const fac_dtype t = ((const fac_random_attrs *)n->attrs)->dtype;
    return t == FAC_NONE ? FAC_F32 : t;
}

bool fac_random_infer_floats(fac_node *n) {
    if (fac_dtype_get(fac_random_type(n))->kind != 'f')
        return fac_fail(n, FAC_E_DTYPE, "%s is no type of floats",
                        fac_dtype_get(fac_random_type(n))->name);
    return fac_random_infer(n, fac_random_type(n));
}

fac_value *fac_random_noise(const fac_node *n, int64_t stream) {
    return fac_random_words(n->in[0], stream, n->in[1]);
}

static fac_value *word(const fac_value *like, uint64_t x) {
    fac_graph *g = fac_value_graph(like);
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    fac_status s = fac_tensor_new(NULL, FAC_U64, (fac_dims){ 0 }, &t, &err);
    if (!s) s = fac_tensor_write(t, &x, sizeof x, &err);
    fac_value *v = s ? fac_fail_graph(g, s, "%s", err.text) : fac_const(g, t);
    fac_tensor_free(t);
    return v;
}

/* Bits of a significand. */
static int digits_of(fac_dtype dtype) {
    switch (dtype) {
    case FAC_F64:
        return 53;
    case FAC_F32:
        return 24;
    case FAC_F16:
        return 11;
    default:
        return 8;
    }
}

fac_value *fac_random_unit(fac_value *bits, fac_dtype dtype) {
    const int kept = digits_of(dtype);
    fac_value *whole = fac_cast(fac_shift_right(bits, word(bits, (uint64_t)(64 - kept))), dtype);
    double scale = 1;
    for (int k = 0; k < kept; k++) scale /= 2;
    return fac_mul(whole, fac_number(fac_value_graph(bits), dtype, scale));
}
