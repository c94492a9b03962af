/* The adjoint of pad where it repeats elements of x (reflect, edge, wrap); a constant needs none.
 * Has no prototype. */
#include <string.h>
#include "base/error.h"
#include "ops/pad.h"
#include "ops/shape.h"

typedef struct attrs {
    int mode;
} attrs; /* as those of pad */
static const char *const modes[] = { "constant", "reflect", "edge", "wrap", NULL };
static const fac_attr table[] = { { "mode", FAC_A_ENUM, offsetof(attrs, mode), 0, 0, 0, 0, modes,
                                    "what the added elements are" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, FAC_SHAPE_ONLY },
                               { "pads", FAC_INTS, FAC_HOST },
                               { "axes", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { "dy", FAC_FLOATS, 0 },
                               { 0 } };

extern const fac_op fac_op_pad, fac_op_pad_grad;

static bool infer(fac_node *n) {
    if (((const attrs *)n->attrs)->mode == FAC_PAD_CONSTANT)
        return fac_fail(n, FAC_E_ARGUMENT, "mode constant adds nothing of x");
    const fac_dims *dy = &n->in[3]->type.dims;
    fac_dims y;
    if (!fac_pad_dims(n, 2, ((const attrs *)n->attrs)->mode, &y)) return false;
    if (y.n != dy->n) return fac_fail(n, FAC_E_SHAPE, "dy and x differ in rank");
    for (int k = 0; k < y.n; k++)
        if (y.d[k] >= 0 && dy->d[k] >= 0 && y.d[k] != dy->d[k])
            return fac_fail(n, FAC_E_SHAPE, "dim %d of dy is %lld, padded x has %lld", k,
                            (long long)dy->d[k], (long long)y.d[k]);
    n->out[0]->type = (fac_type){ n->in[3]->type.dtype, n->in[0]->type.dims };
    return true;
}

/* dx[where y[i] came from] += dy[i] */
static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_dims *x = &r->out[0].type.dims, *y = &r->in[3].type.dims;
    const int64_t *axes = r->in[2].i, elements = fac_dims_count(x), added = fac_dims_count(y);
    const int count = (int)(fac_dims_count(&r->in[1].type.dims) / 2);
    int64_t before[FAC_DIMS] = { 0 };
    for (int k = 0; k < count; k++) {
        const int axis = axes ? fac_axis(axes[k], x->n) : k;
        if (axis < 0 || axis >= x->n)
            return fac_raise(err, FAC_E_SHAPE, "axis %lld of %d dims",
                             (long long)(axes ? axes[k] : k), x->n);
        before[axis] = r->in[1].i[k];
    }
    if (elements) memset(r->out[0].f, 0, (size_t)elements * sizeof *r->out[0].f);
    for (int64_t e = 0; e < added; e++) {
        int64_t at = 0, rest = e, step = 1;
        for (int k = x->n - 1; k >= 0; k--) {
            at += step * fac_pad_from(((const attrs *)r->attrs)->mode, rest % y->d[k] - before[k],
                                      x->d[k]);
            step *= x->d[k];
            rest /= y->d[k];
        }
        r->out[0].f[at] += r->in[3].f[e];
    }
    return FAC_OK;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[3] = fac_emit(&fac_op_pad, n->attrs, 4, (fac_value *[]){ dy[0], n->in[1], NULL, n->in[2] });
}

static const fac_case cases[] = {
    { "pad_grad(f32[1,2,4,5], i64{0,0,1,2,0,0,2,1}, -, f32[1,2,7,8]) mode=reflect", -4, 4, 1e-5 },
    { "pad_grad(f32[3,4], i64{2,-1,1,3}, -, f32[6,6]) mode=edge", -4, 4, 1e-5 },
    { "pad_grad(f32[3,4], i64{5,6}, i64{-1}, f32[3,15]) mode=wrap", -4, 4, 1e-5 },
    { 0 }
};

const fac_op fac_op_pad_grad = {
    .name = "pad_grad",
    .doc = "dy summed where pad took it from",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
