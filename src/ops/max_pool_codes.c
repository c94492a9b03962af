/* A max pool of codes, which are bits: the largest level of each window.  Made by
 * src/passes/quantized/bits_between.c.  Has no prototype.
 *
 *     y = the codes of max_pool2d(the levels of x)
 *
 *   x, y u32 A,N,H,W,words: see conv_basis.h   basis A, positive digits; absent: signs.   A window
 *   without any tap gives the lowest level. */
#include "base/error.h"
#include "op_list.h"
#include "ops/cost.h"
#include "ops/max_pool_codes.h"

static const fac_port in[] = { { "x", FAC_INTS, 0 }, { "basis", FAC_FLOATS, FAC_OPTIONAL }, { 0 } };

/* By max_pool2d's rules, for images whose channels are words. */
static bool infer(fac_node *n) {
    const fac_type *t = &n->in[0]->type;
    const fac_dims *d = &t->dims, *b = n->in[1] ? &n->in[1]->type.dims : NULL;
    if (t->dtype != FAC_U32 || d->n != 5)
        return fac_fail(n, FAC_E_SHAPE, "x must be codes u32 A,N,H,W,words");
    if (b && (b->n != 1 || b->d[0] > FAC_BASIS_BITS || (d->d[0] >= 0 && b->d[0] != d->d[0])))
        return fac_fail(n, FAC_E_SHAPE, "basis must have a number for each plane, at most %d",
                        FAC_BASIS_BITS);
    if (!b && d->d[0] >= 0 && d->d[0] != 1)
        return fac_fail(n, FAC_E_SHAPE, "signs have one plane, not %lld", (long long)d->d[0]);
    fac_node pool = *n;
    fac_value x = *n->in[0], *ins[1] = { &x };
    x.type.dims = fac_shape(d->d[1], d->d[4], d->d[2], d->d[3]);
    pool.op = &fac_op_max_pool2d;
    pool.in = ins;
    pool.nin = pool.nports = 1;
    if (!fac_pool_infer(&pool)) return false;
    const fac_dims y = n->out[0]->type.dims;
    n->out[0]->type = (fac_type){ FAC_U32, fac_shape(d->d[0], y.d[0], y.d[2], y.d[3], y.d[1]) };
    return true;
}

static unsigned code_at(const fac_array *x, int64_t image, int64_t row, int64_t column, int64_t c) {
    unsigned code = 0;
    for (int64_t j = 0; j < x->type.dims.d[0]; j++) {
        const int64_t at = fac_code_at(&x->type.dims, j, image, row, column, c / FAC_WORD_BITS);
        code |= (unsigned)(x->i[at] >> c % FAC_WORD_BITS & 1) << j;
    }
    return code;
}

static int rank_of(const fac_basis *b, unsigned code) {
    int k = 0;
    while (b->code[k] != code) k++;
    return k;
}

/* The largest level of channel c in a window. */
static int largest(const fac_ref *r, const fac_pool_geom *g, const fac_basis *b, int64_t image,
                   int64_t p, int64_t q, int64_t c) {
    const fac_window *h = &g->window[1], *w = &g->window[2];
    int64_t r0, r1, s0, s1;
    int best = 0;
    fac_window_taps(h, p, &r0, &r1);
    fac_window_taps(w, q, &s0, &s1);
    for (int64_t i = r0; i < r1; i++)
        for (int64_t k = s0; k < s1; k++) {
            const int64_t row = p * h->stride + i * h->dilation - h->pad;
            const int64_t column = q * w->stride + k * w->dilation - w->pad;
            const int rank = rank_of(b, code_at(&r->in[0], image, row, column, c));
            if (rank > best) best = rank;
        }
    return best;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_dims *x = &r->in[0].type.dims, *d = &r->out[0].type.dims;
    const fac_dims image = fac_shape(x->d[1], x->d[4], x->d[2], x->d[3]);
    const int64_t n = fac_dims_count(d), each = n / (d->d[0] ? d->d[0] : 1) * FAC_WORD_BITS;
    fac_pool_geom g;
    fac_basis b;
    if (!fac_pool_geometry_of(2, r->attrs, &image, &g))
        return fac_raise(err, FAC_E_INTERNAL, "max_pool_codes: an open size");
    fac_code_levels(&r->in[1], r->in[1].type.dtype != FAC_F64, &b);
    for (int64_t i = 0; i < n; i++) r->out[0].i[i] = 0;
    for (int64_t i = 0; i < each; i++) {
        const int64_t channels = d->d[4] * FAC_WORD_BITS, c = i % channels, at = i / channels;
        const int64_t q = at % d->d[3], p = at / d->d[3] % d->d[2], k = at / d->d[3] / d->d[2];
        const unsigned code = b.code[largest(r, &g, &b, k, p, q, c)];
        for (int j = 0; j < b.bits; j++)
            r->out[0].i[fac_code_at(d, j, k, p, q, c / FAC_WORD_BITS)] |= (int64_t)(code >> j & 1)
                                                                          << c % FAC_WORD_BITS;
    }
    return FAC_OK;
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 8, to); }

static const fac_case cases[] = {
    { "max_pool_codes(u32[1,2,8,7,2], f32{0.5}) kernel=2,2 stride=2,2", 0, 4e9, 0 },
    { "max_pool_codes(u32[2,1,9,8,1], f32{0.5, 1}) kernel=3,3 stride=2,2 pad=1,1,1,1", 0, 4e9, 0 },
    { "max_pool_codes(u32[2,1,6,6,1], f32{1, 0.25}) kernel=3,2 stride=1,1 dilation=2,1", 0, 4e9,
      0 },
    { "max_pool_codes(u32[3,1,5,5,1], f32{1, -0.25, 0.5}) kernel=2,2", 0, 4e9, 0 },
    { "max_pool_codes(u32[1,3,6,6,1]) kernel=2,2 stride=2,2", 0, 4e9, 0 },
    { "max_pool_codes(u32[1,0,6,6,1]) kernel=2,2", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_max_pool_codes = {
    .name = "max_pool_codes",
    .doc = "the largest level of codes in each window",
    .in = in,
    .out = fac_ports_y,
    .attrs = fac_pool2d_table,
    .attrs_size = sizeof(fac_pool2d_attrs),
    .infer = infer,
    .ref = ref,
    .cost = cost,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .layer = FAC_CLASS_MAX_POOL,
    .rounding = { .rule = FAC_ROUND_NONE },
};
