/* The adjoint of gather, as embeddings need it; has no prototype. */
#include <string.h>
#include "ops/index.h"
#include "ops/lines.h"
#include "ops/shape.h"

typedef struct attrs {
    int64_t axis;
} attrs; /* as those of gather */
static const fac_attr table[] = { { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS,
                                    FAC_DIMS - 1, NULL, "the axis of x that the indices count" },
                                  { 0 } };
static const fac_port in[] = {
    { "x", FAC_ANY, FAC_SHAPE_ONLY }, { "indices", FAC_INTS, 0 }, { "dy", FAC_FLOATS, 0 }, { 0 }
};

extern const fac_op fac_op_gather, fac_op_gather_grad;

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    if (fac_axis(((const attrs *)n->attrs)->axis, x->n) < 0)
        return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims",
                        (long long)((const attrs *)n->attrs)->axis, x->n);
    if (n->in[2]->type.dims.n != x->n - 1 + n->in[1]->type.dims.n)
        return fac_fail(n, FAC_E_SHAPE, "dy must have %d dims", x->n - 1 + n->in[1]->type.dims.n);
    const fac_dims *picks = &n->in[1]->type.dims, *dy = &n->in[2]->type.dims;
    const int axis = fac_axis(((const attrs *)n->attrs)->axis, x->n);
    for (int k = 0; k < dy->n; k++) {
        int64_t want = k < axis ? x->d[k] : 0;
        if (k >= axis && k < axis + picks->n)
            want = picks->d[k - axis];
        else if (k >= axis)
            want = x->d[k - picks->n + 1];
        if (want >= 0 && dy->d[k] >= 0 && want != dy->d[k])
            return fac_fail(n, FAC_E_SHAPE, "dim %d of dy is %lld, what was gathered has %lld", k,
                            (long long)dy->d[k], (long long)want);
    }
    n->out[0]->type = (fac_type){ n->in[2]->type.dtype, *x };
    return true;
}

/* dx[a.., indices[i..], b..] += dy[a.., i.., b..] */
static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_dims *x = &r->out[0].type.dims;
    const fac_lines l = fac_lines_of(x, fac_axis(((const attrs *)r->attrs)->axis, x->n));
    const int64_t picks = fac_dims_count(&r->in[1].type.dims), all = fac_dims_count(x);
    double *dx = r->out[0].f;
    if (all) memset(dx, 0, (size_t)all * sizeof *dx);
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t i = 0; i < picks; i++) {
            const double *dy = r->in[2].f + (o * picks + i) * l.inner;
            int64_t index;
            FAC_TRY(fac_place_of_index(r->in[1].i[i], l.size, &index, err));
            double *to = dx + (o * l.size + index) * l.inner;
            for (int64_t e = 0; e < l.inner; e++) to[e] += dy[e];
        }
    return FAC_OK;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[2] = fac_emit(&fac_op_gather, n->attrs, 2, (fac_value *[]){ dy[0], n->in[1] });
}

static const fac_case cases[] = { { "gather_grad(f32[5,3], i64[2,2], f32[2,2,3])", -5, 4, 1e-5 },
                                  { "gather_grad(f32[3,5,2], i64[4], f32[3,4,2]) axis=1", -5, 4,
                                    1e-5 },
                                  { "gather_grad(f32[3,5], i32[], f32[3]) axis=1", -5, 4, 1e-5 },
                                  { "gather_grad(f32[2,3], i64[40], f32[40,3])", -2, 1, 1e-5 },
                                  { "gather_grad(f32[300,7], i64[40], f32[40,7])", -9, 9, 1e-5 },
                                  { "gather_grad(f16[2,5], i64[0], f16[2,0]) axis=-1", -5, 4, 0 },
                                  { 0 } };

const fac_op fac_op_gather_grad = {
    .name = "gather_grad",
    .doc = "dy summed where gather picked it from",
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
