/* The BLAS matrix product. */
#include <string.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/define.h"
#include "ops/fusions.h"
#include "ops/grad.h"
#include "ops/product.h"

#if FAC_INTERFACE
/* y[m,n] = alpha (sum over k of a'[m,k] b'[k,n]) + beta c[m,n],  a' = a or its transpose, b'
 * likewise
 *   a M,K or K,M   b K,N or N,K   c anything that broadcasts to M,N, or NULL.   Floats and
 *                  integers, all of one dtype. */
typedef struct fac_gemm_opts {
    double alpha, beta; /* 0 = 1 */
    bool trans_a, trans_b;
} fac_gemm_opts;
fac_value *fac_gemm(fac_value *a, fac_value *b, fac_value *c, const fac_gemm_opts *opts);
#endif

#define AT(field) offsetof(fac_gemm_opts, field)
static const fac_attr table[] = {
    { "alpha", FAC_A_REAL, AT(alpha), 0, 1, 0, 0, NULL, "factor of the product" },
    { "beta", FAC_A_REAL, AT(beta), 0, 1, 0, 0, NULL, "factor of c" },
    { "trans_a", FAC_A_FLAG, AT(trans_a), 0, 0, 0, 0, NULL, "a is K,M" },
    { "trans_b", FAC_A_FLAG, AT(trans_b), 0, 0, 0, 0, NULL, "b is N,K" },
    { 0 }
};
#undef AT
static const fac_port in[] = {
    { "a", FAC_NUMBERS, 0 }, { "b", FAC_NUMBERS, 0 }, { "c", FAC_NUMBERS, FAC_OPTIONAL }, { 0 }
};

static bool infer(fac_node *n) {
    const fac_gemm_opts *o = n->attrs;
    const fac_type *a = &n->in[0]->type, *b = &n->in[1]->type,
                   *c = n->in[2] ? &n->in[2]->type : NULL;
    if (a->dims.n != 2 || b->dims.n != 2)
        return fac_fail(n, FAC_E_SHAPE, "a and b must be matrices");
    if (a->dtype != b->dtype || (c && c->dtype != a->dtype))
        return fac_fail(n, FAC_E_DTYPE, "a, b and c must have one dtype");
    int64_t m = a->dims.d[o->trans_a], k = a->dims.d[!o->trans_a], l = b->dims.d[o->trans_b],
            s = b->dims.d[!o->trans_b];
    if (k >= 0 && l >= 0 && k != l)
        return fac_fail(n, FAC_E_SHAPE, "the inner sizes differ: %lld of a, %lld of b",
                        (long long)k, (long long)l);
    fac_dims y = fac_shape(m, s);
    if (c) {
        int lead = 2 - c->dims.n;
        bool fits = lead >= 0;
        for (int i = 0; fits && i < c->dims.n; i++) {
            int64_t have = c->dims.d[i], want = y.d[lead + i];
            fits = have == 1 || have < 0 || want < 0 || have == want;
        }
        if (!fits)
            return fac_fail(n, FAC_E_SHAPE, "c must broadcast to %lld x %lld", (long long)m,
                            (long long)s);
    }
    n->out[0]->type = (fac_type){ a->dtype, y };
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_gemm_opts *o = r->attrs;
    const fac_array *a = &r->in[0], *b = &r->in[1], *c = &r->in[2], *y = &r->out[0];
    int64_t m = y->type.dims.d[0], n = y->type.dims.d[1], k = a->type.dims.d[!o->trans_a];
    if (m * n == 0) return FAC_OK;
    const int64_t a_row = o->trans_a ? 1 : k;
    const int64_t a_column = o->trans_a ? m : 1;
    const int64_t b_row = o->trans_b ? 1 : n;
    const int64_t b_column = o->trans_b ? k : 1;
    if (y->f) {
        memset(y->f, 0, (size_t)(m * n) * sizeof *y->f);
        fac_product_real(m, n, k, a->f, a_row, a_column, b->f, b_row, b_column, y->f);
    } else {
        memset(y->i, 0, (size_t)(m * n) * sizeof *y->i);
        fac_product_int(m, n, k, a->i, a_row, a_column, b->i, b_row, b_column, y->i);
    }
    bool have = c->f || c->i;
    const fac_dims *d = have ? &c->type.dims : NULL;
    int64_t c_column = have && d->n > 0 && d->d[d->n - 1] != 1,
            c_row = have && d->n > 1 && d->d[0] != 1 ? d->d[1] : 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t at = i * n + j, from = i * c_row + j * c_column;
            if (y->f)
                y->f[at] = o->alpha * y->f[at] + (have ? o->beta * c->f[from] : 0);
            else {
                /* real factors of integers truncate, but whole ones must stay exact and wrap */
                uint64_t p =
                    (uint64_t)(o->alpha == 1 ? y->i[at] : (int64_t)(o->alpha * (double)y->i[at]));
                if (have)
                    p += (uint64_t)(o->beta == 1 ? c->i[from]
                                                 : (int64_t)(o->beta * (double)c->i[from]));
                y->i[at] = (int64_t)p;
            }
        }
    return FAC_OK;
}

static void cost(const fac_node *n, fac_cost *to) {
    const fac_gemm_opts *o = n->attrs;
    int64_t k = n->in[0]->type.dims.d[!o->trans_a];
    fac_cost_bytes(n, to);
    to->macs = fac_cost_count(n->out[0]) * (k > 0 ? (double)k : 0);
    to->other = n->in[2] ? fac_cost_count(n->out[0]) : 0;
}

/* With a' and b' as above: da' = alpha dy b'^T, db' = alpha a'^T dy, and their transposes. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const fac_gemm_opts *o = n->attrs;
    fac_value *a = n->in[0], *b = n->in[1], *d = dy[0];
    bool ta = o->trans_a, tb = o->trans_b;
    if (fac_needs(n, 0))
        dx[0] = ta ? fac_gemm(b, d, NULL, &(fac_gemm_opts){ o->alpha, 1, tb, true })
                   : fac_gemm(d, b, NULL, &(fac_gemm_opts){ o->alpha, 1, false, !tb });
    if (fac_needs(n, 1))
        dx[1] = tb ? fac_gemm(d, a, NULL, &(fac_gemm_opts){ o->alpha, 1, true, ta })
                   : fac_gemm(a, d, NULL, &(fac_gemm_opts){ o->alpha, 1, !ta, false });
    if (fac_needs(n, 2)) dx[2] = fac_grad_times(fac_sum_like(d, n->in[2]), o->beta);
}

/* ONNX may say alpha = 0 or beta = 0 and mean it. */
void fac_gemm_load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    fac_gemm_opts o = { fac_onnx_real(n, "alpha", 1), fac_onnx_real(n, "beta", 1),
                        fac_onnx_int(n, "transA", 0), fac_onnx_int(n, "transB", 0) };
    fac_value *a = x[0], *c = n->nin > 2 && o.beta != 0 ? x[2] : NULL;
    if (o.alpha == 0) a = fac_mul(a, fac_number(fac_value_graph(a), fac_value_type(a).dtype, 0));
    y[0] = fac_gemm(a, x[1], c, &o);
}

static const fac_onnx_attr spellings[] = { { "transA", "trans_a" },
                                           { "transB", "trans_b" },
                                           { 0 } };
static const fac_onnx_attr first[] = {
    { "transA", "trans_a" }, { "transB", "trans_b" }, { "broadcast", NULL }, { 0 }
};
static const fac_onnx onnx[] = { { "", "Gemm", 7, 0, spellings, fac_gemm_load, 0 },
                                 { "", "Gemm", 1, 6, first, fac_gemm_load, 3 },
                                 { "com.microsoft", "FusedGemm", 1, 0, fac_names_fused_gemm,
                                   fac_load_fused_gemm, 0 },
                                 { 0 } };
static const fac_case cases[] = {
    { "gemm(f32[5,7], f32[7,3])", -1, 1, 1e-5 },
    { "gemm(f32[5,7], f32[3,7], f32[3]) trans_b", -1, 1, 1e-5 },
    { "gemm(f32[7,5], f32[7,3], f32[5,1]) trans_a alpha=0.5 beta=2", -1, 1, 1e-5 },
    { "gemm(f32[7,5], f32[3,7], f32[]) trans_a trans_b beta=-1", -1, 1, 1e-5 },
    { "gemm(f32[1,300], f32[100,300], f32[1,100]) trans_b", -1, 1, 2e-5 },
    { "gemm(f32[0,3], f32[3,2], f32[2])", -1, 1, 0 },
    { "gemm(f32[3,0], f32[0,2], f32[2])", -1, 1, 0 },
    { "gemm(f16[5,7], f16[7,3], f16[3])", -1, 1, 4e-3 },
    { "gemm(i32[5,7], i32[7,3], i32[3])", -9, 9, 0 },
    { "gemm(u32[5,7], u32[7,3], u32[5,3]) beta=2", 0, 9, 0 },
    { 0 }
};

static void define(const fac_node *n, fac_value *out[]) {
    fac_gemm_opts o = *(const fac_gemm_opts *)n->attrs;
    const double alpha = o.alpha, beta = o.beta;
    if (!fac_define_floats(n) || (alpha == 1 && (beta == 1 || !n->in[2]))) return;
    o.alpha = o.beta = 1;
    fac_value *y = fac_grad_times(fac_gemm(n->in[0], n->in[1], NULL, &o), alpha);
    out[0] = fac_grad_plus(y, n->in[2] ? fac_grad_times(n->in[2], beta) : NULL);
}

extern const fac_op fac_op_gemm;
const fac_op fac_op_gemm = {
    .name = "gemm",
    .doc = "alpha a b + beta c, a and b transposed at will",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_gemm_opts),
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .onnx = onnx,
    .save = fac_onnx_plain,
    .cases = cases,
    .define = define,
    .is = FAC_OP_RING,
    .layer = FAC_CLASS_LINEAR,
    .torch = "Linear",
    .mixed = FAC_MIXED_PRODUCT,
    .images = FAC_IMAGES_ROWS,
    .rounding = { .rule = FAC_ROUND_PRODUCT },
};
fac_value *fac_gemm(fac_value *a, fac_value *b, fac_value *c, const fac_gemm_opts *opts) {
    return fac_emit(&fac_op_gemm, opts, 3, (fac_value *[]){ a, b, c });
}
