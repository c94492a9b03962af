/* See quant.h. */
#include "op_list.h"
#include "ops/host_list.h"
#include "ops/quant.h"
#include "tensor/half.h"
#include "ops/shape.h"

/* ---- which scale belongs to an element ---- */

static bool is_one(const fac_dims *d) { return d->n == 0 || fac_dims_count(d) == 1; }

fac_grid fac_grid_of(const fac_dims *x, const fac_dims *scale, int64_t axis, int64_t block) {
    const int a = x->n ? fac_axis(axis, x->n) : -1;
    fac_grid g = { 1, 1, 0, 1, false };
    if (a < 0 || (is_one(scale) && !block)) return g;
    g.size = x->d[a];
    for (int k = a + 1; k < x->n; k++) g.inner *= x->d[k];
    g.block = block ? block : 1;
    g.blocks = (g.size + g.block - 1) / g.block;
    g.apart = block != 0;
    return g;
}

static bool fits_blocks(fac_node *n, const fac_dims *x, const fac_dims *s, int axis,
                        int64_t block) {
    bool fits = s->n == x->n;
    for (int k = 0; fits && k < x->n; k++) {
        const int64_t size = k == axis && x->d[k] >= 0 ? (x->d[k] + block - 1) / block : x->d[k];
        fits = !fac_differ(size, s->d[k]);
    }
    return fits || fac_fail(n, FAC_E_SHAPE,
                            "scale must have a number for each block of %lld along "
                            "axis %d",
                            (long long)block, axis);
}

static bool fits(fac_node *n, const fac_dims *x, const fac_dims *s, int64_t axis, int64_t block) {
    if (!block && is_one(s)) return true;
    const int a = fac_axis(axis, x->n);
    if (a < 0) return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims", (long long)axis, x->n);
    if (block) return fits_blocks(n, x, s, a, block);
    return (s->n == 1 && !fac_differ(s->d[0], x->d[a])) ||
           fac_fail(n, FAC_E_SHAPE,
                    "scale must be one number or one for each of the %lld of axis "
                    "%d",
                    (long long)x->d[a], a);
}

bool fac_grid_fits(fac_node *n, const fac_dims *x, const fac_value *scale, const fac_value *zero,
                   int64_t axis, int64_t block) {
    const fac_dims *s = &scale->type.dims;
    if (!fits(n, x, s, axis, block)) return false;
    if (!zero) return true;
    const fac_dims *z = &zero->type.dims;
    bool same = (is_one(s) && fac_may_be_one(zero)) || (is_one(z) && fac_may_be_one(scale));
    same |= s->n == z->n;
    for (int k = 0; same && s->n == z->n && k < s->n; k++) same = !fac_differ(s->d[k], z->d[k]);
    return same || fac_fail(n, FAC_E_SHAPE, "zero must have the shape of scale");
}

/* Each element of axis `axis` `block` times, cut to x's size. */
static fac_value *repeat(fac_value *v, fac_value *x, int axis, int64_t block) {
    fac_value *sizes = fac_shape_of(v), *of_x = fac_shape_of(x);
    fac_dims shape = v->type.dims, times = { .n = shape.n + 1 };
    for (int k = 0; k < times.n; k++) times.d[k] = 1;
    times.d[axis + 1] = block;
    fac_value *wide = fac_tile(fac_unsqueeze(v, fac_shape(axis + 1)), times);
    fac_value *along = fac_slice(sizes, 0, axis, axis + 1, 1);
    along = fac_mul(along, fac_number(v->graph, FAC_I64, (double)block));
    fac_value *parts[] = { fac_slice(sizes, 0, 0, axis, 1), along,
                           fac_slice(sizes, 0, axis + 1, shape.n, 1) };
    wide = fac_reshape_exactly(wide, fac_concat(parts, 3, 0));
    if (x->type.dims.d[axis] >= 0) return fac_slice(wide, axis, 0, x->type.dims.d[axis], 1);
    fac_value *cut[] = { wide, fac_ints(v->graph, fac_shape(0)),
                         fac_slice(of_x, 0, axis, axis + 1, 1),
                         fac_ints(v->graph, fac_shape(axis)) };
    return fac_emit(&fac_op_slice, NULL, 4, cut);
}

fac_value *fac_grid_spread(fac_value *v, fac_value *x, int64_t axis, int64_t block) {
    const fac_dims *d = &v->type.dims;
    const int rank = x->type.dims.n, a = rank ? fac_axis(axis, rank) : -1;
    if (!v || a < 0) return v;
    if (block) return repeat(v, x, a, block);
    if (d->n != 1) return v;
    fac_dims shape = { .n = rank - a };
    for (int k = 0; k < shape.n; k++) shape.d[k] = 1;
    shape.d[0] = d->d[0];
    return fac_dims_count(d) == 1 ? fac_reshape(v, (fac_dims){ 0 }) : fac_reshape(v, shape);
}

/* ---- numbers ---- */

void fac_quant_range(fac_dtype dtype, double *least, double *most) {
    const fac_dtype_info *t = fac_dtype_get(dtype);
    const bool sign = t->kind == 'i';
    *least = sign ? -ldexp(1, t->bits - 1) : 0;
    *most = ldexp(1, t->bits - sign) - 1;
}

double fac_quant_round(fac_dtype dtype, double x) {
    if (dtype == FAC_F32) return (float)x;
    if (dtype == FAC_F16) return fac_f16_to_f32(fac_f64_to_f16(x));
    if (dtype == FAC_BF16) return fac_bf16_to_f32(fac_f64_to_bf16(x));
    return x;
}

/* ---- in graphs ---- */

fac_value *fac_requantize(fac_value *acc, fac_value *factor, fac_value *zero) {
    fac_graph *g = acc->graph;
    const fac_dtype to = zero->type.dtype;
    double least, most;
    fac_quant_range(to, &least, &most);
    fac_value *y = fac_round(fac_mul(fac_cast(acc, FAC_F32), factor));
    y = fac_add(y, fac_cast(zero, FAC_F32));
    y = fac_clip(y, fac_number(g, FAC_F32, least), fac_number(g, FAC_F32, most));
    return fac_cast(y, to);
}

fac_value *fac_zero_or(fac_graph *g, fac_value *zero, fac_dtype dtype) {
    return zero ? zero : fac_number(g, dtype, 0);
}

fac_value *fac_quant_channels(fac_value *v) {
    if (v->type.dims.n != 1) return v;
    if (v->type.dims.d[0] == 1) return fac_reshape(v, (fac_dims){ 0 });
    return fac_unsqueeze(v, fac_shape(1, 2));
}

/* ---- checks ---- */

bool fac_quant_bytes(fac_node *n, int input, const char *name) {
    const fac_value *v = n->in[input];
    if (!v || fac_is_byte(v->type.dtype)) return true;
    return fac_fail(n, FAC_E_DTYPE, "%s must be i8 or u8", name);
}

bool fac_quant_each(fac_node *n, int input, int64_t count, const char *name) {
    const fac_value *v = n->in[input];
    if (!v || is_one(&v->type.dims)) return true;
    const fac_dims *d = &v->type.dims;
    if (d->n == 1 && !fac_differ(d->d[0], count)) return true;
    return fac_fail(n, FAC_E_SHAPE, "%s must be one number, or one for each of %lld", name,
                    (long long)count);
}

bool fac_quant_scalar(fac_node *n, int input, const char *name) {
    const fac_value *v = n->in[input];
    if (!v || is_one(&v->type.dims)) return true;
    return fac_fail(n, FAC_E_SHAPE, "%s must be one number", name);
}
