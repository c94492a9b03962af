/* Floats between bytes become ops on bytes.
 *
 *     quantize(relu(conv2d(dequantize(x), dequantize(w), dequantize(b))))   ->  qlinear_conv
 *     the same of matmul, gemm and linear                                   ->  qlinear_matmul
 *     quantize(add(dequantize(a), dequantize(b))), likewise mul             ->  qlinear_add, _mul
 *     quantize(mean over planes(dequantize(x)))              ->  qlinear_global_avg_pool
 *     quantize(max_pool2d, reshape, transpose ...(dequantize(x)))           ->  the same of x
 *     quantize(erf, div ...(dequantize(x), number))                         ->  byte_table
 *
 * as ONNX Runtime does it, with the arithmetic of its integer kernels: results may differ by one
 * unit from floats that are rounded.  A relu or clip goes where the range of the bytes ends there
 * anyway. */
#include <math.h>
#include <string.h>
#include "facula/ops.h"
#include "ops/reshapes.h"
#include "op_list.h"
#include "ops/quant.h"
#include "ops/reduce.h"
#include "graph/attr.h"
#include "passes/common/each.h"
#include "passes/passes.h"
#include "passes/quantized/quantized.h"
#include "passes/common/single.h"

typedef fac_coded bytes;

static bool is_single(const fac_value *v) { return fac_dims_count(&v->type.dims) == 1; }

/* Files share numbers through Identity. */
static fac_value *source(const fac_value *v) {
    while (v && FAC_IS(v->node, identity)) v = v->node->in[0];
    return (fac_value *)(uintptr_t)v;
}

static fac_value *zero_of(const fac_node *n) {
    return n->in[2] ? source(n->in[2]) : fac_number(n->graph, n->in[0]->type.dtype, 0);
}

/* v is dequantize_linear of such: bytes, or i32. */
static bool opened(const fac_value *v, bytes *to) {
    const fac_value *from = source(v);
    const fac_node *n = from ? from->node : NULL;
    if (!FAC_IS(n, dequantize_linear) || n->body[0]) return false;
    const fac_dequantize_opts *o = n->attrs;
    const fac_dtype t = n->in[0]->type.dtype;
    if (o->block || v->type.dtype != FAC_F32 || n->in[1]->type.dtype != FAC_F32) return false;
    if (!fac_is_byte(t) && t != FAC_I32) return false;
    *to = (bytes){ source(n->in[0]), source(n->in[1]), zero_of(n), o->axis };
    return true;
}

static bool opened_bytes(const fac_value *v, bytes *to) {
    return opened(v, to) && fac_is_byte(to->q->type.dtype);
}
bool fac_coded_whole(const fac_value *v, bytes *to) {
    return opened_bytes(v, to) && is_single(to->scale) && is_single(to->zero);
}
/* Scales along this axis, or one. */
static bool opened_along(const fac_value *v, int64_t axis, bytes *to) {
    if (!opened_bytes(v, to)) return false;
    const int rank = to->q->type.dims.n;
    return is_single(to->scale) || fac_axis(to->axis, rank) == fac_axis(axis, rank);
}

static bool same_number(const fac_value *a, const fac_value *b) {
    double x, y;
    return a == b || (fac_const_number(a, &x) && fac_const_number(b, &y) && x == y &&
                      a->type.dtype == b->type.dtype);
}
bool fac_coded_alike(const bytes *a, const bytes *b) {
    return same_number(a->scale, b->scale) && same_number(a->zero, b->zero);
}

/* ---- what goes before the rounding ---- */

/* Whether bytes of this scale reach no further than lo..hi. */
static bool covers(const bytes *y, double lo, double hi) {
    double scale, zero, least, most;
    if (!fac_const_number(y->scale, &scale) || !fac_const_number(y->zero, &zero)) return false;
    fac_quant_range(y->zero->type.dtype, &least, &most);
    const double low = nearbyint((float)((float)lo / (float)scale)) + zero;
    const double high = nearbyint((float)((float)hi / (float)scale)) + zero;
    return low <= least && high >= most;
}

/* What the limits in front of Q limit, if the bytes do the same; else v. */
static fac_value *unlimited(fac_value *v, const bytes *y) {
    const fac_node *n = v->node;
    double lo = -INFINITY, hi = INFINITY;
    if (!n || n->body[0] || !fac_used_once(v)) return v;
    if (FAC_IS(n, relu))
        lo = 0;
    else if (FAC_IS(n, max))
        fac_const_number(n->in[1], &lo);
    else if (FAC_IS(n, min))
        fac_const_number(n->in[1], &hi);
    else if (!FAC_IS(n, clip) || !fac_const_number(n->in[1], &lo) ||
             !fac_const_number(n->in[2], &hi))
        return v;
    const bool limits = n->nin == 1 || n->in[1]->leaf == FAC_CONST;
    return limits && covers(y, lo, hi) ? n->in[0] : v;
}

/* ---- convolutions and products ---- */

static bool numbers_in(const fac_value *v, fac_tensor **to) {
    if (!v->tensor || v->next) return false;
    return !fac_tensor_convert(v->tensor, FAC_F32, to, NULL);
}

/* Whether a bias counts in units of x's scale times w's. */
static bool bias_fits(const bytes *b, const bytes *x, const bytes *w) {
    fac_tensor *t[3] = { NULL };
    const bytes *of[] = { b, x, w };
    bool fits = b->q->type.dtype == FAC_I32;
    for (int k = 0; k < 3; k++) fits = fits && numbers_in(of[k]->scale, &t[k]);
    const int64_t n = fits ? fac_dims_count(&b->q->type.dims) : 0;
    for (int64_t k = 0; k < n && fits; k++) {
        float s[3];
        for (int i = 0; i < 3; i++) {
            const int64_t count = fac_dims_count(&of[i]->scale->type.dims);
            s[i] = ((const float *)fac_tensor_data(t[i]))[count > 1 ? k : 0];
        }
        fits = fabsf(s[0] - s[1] * s[2]) <= 1e-4f * fabsf(s[0]);
    }
    for (int k = 0; k < 3; k++) fac_tensor_free(t[k]);
    return fits;
}

/* b absent, or in these units. */
static bool bias_of(fac_value *v, const bytes *x, const bytes *w, fac_value **to) {
    bytes b;
    *to = NULL;
    if (!v) return true;
    if (!opened(v, &b) || !bias_fits(&b, x, w) || b.q->type.dims.n != 1) return false;
    *to = b.q;
    return true;
}

static fac_qlinear_scales scales(const bytes *x, const bytes *w, const bytes *y) {
    return (fac_qlinear_scales){ x->scale, x->zero, w->scale, w->zero, y->scale, y->zero };
}

static fac_value *conv(const fac_node *n, const bytes *y) {
    bytes x, w;
    fac_value *b;
    if (n->nin != 3 || !fac_coded_whole(n->in[0], &x) || !opened_along(n->in[1], 0, &w))
        return NULL;
    if (!bias_of(n->in[2], &x, &w, &b)) return NULL;
    const fac_qlinear_scales s = scales(&x, &w, y);
    return fac_qlinear_conv(x.q, w.q, b, &s, n->attrs);
}

static fac_value *product(fac_value *a, fac_value *b, fac_value *bias, bool transposed,
                          const bytes *y) {
    bytes x, w;
    fac_value *c;
    const int rank = b->type.dims.n;
    if (a->type.dims.n < 2 || rank < 2 || !fac_coded_whole(a, &x)) return NULL;
    if (!opened_along(b, transposed ? 0 : rank - 1, &w) || !bias_of(bias, &x, &w, &c)) return NULL;
    const fac_qlinear_scales s = scales(&x, &w, y);
    fac_value *q = transposed ? fac_transpose(w.q, fac_shape(1, 0)) : w.q;
    return fac_qlinear_matmul(x.q, q, c, &s);
}

static fac_value *gemm(const fac_node *n, const bytes *y) {
    const fac_gemm_opts *o = n->attrs;
    if (o->alpha != 1 || o->beta != 1 || o->trans_a) return NULL;
    return product(n->in[0], n->in[1], n->in[2], o->trans_b, y);
}

/* ---- the rest ---- */

static fac_value *pair(const fac_node *n, const bytes *y, bool add) {
    bytes a, b;
    if (!fac_coded_whole(n->in[0], &a) || !fac_coded_whole(n->in[1], &b)) return NULL;
    const fac_dtype t = y->zero->type.dtype;
    if (a.q->type.dtype != t || b.q->type.dtype != t) return NULL;
    const fac_qlinear_scales s = scales(&a, &b, y);
    return add ? fac_qlinear_add(a.q, b.q, &s) : fac_qlinear_mul(a.q, b.q, &s);
}

/* The mean over all but the first two dims. */
static fac_value *planes(const fac_node *n, const bytes *y) {
    bytes x;
    fac_contents axes;
    const int rank = n->in[0]->type.dims.n;
    const fac_reduce_attrs *o = n->attrs;
    if (!n->in[1] || !fac_known_numbers(n->in[1], &axes) || axes.n != rank - 2) return NULL;
    for (int k = 0; k < axes.n; k++)
        if (fac_axis(axes.v[k], rank) < 2) return NULL;
    if (rank < 3 || !fac_coded_whole(n->in[0], &x)) return NULL;
    fac_value *q = fac_qlinear_global_avg_pool(x.q, x.scale, x.zero, y->scale, y->zero);
    return o->keep ? q : fac_flatten(q, 1);
}

static fac_value *rescaled(const bytes *x, const bytes *y) {
    if (fac_coded_alike(x, y)) return x->q;
    fac_value *v = fac_dequantize_linear(x->q, x->scale, x->zero, NULL);
    return fac_quantize_linear(v, y->scale, y->zero, NULL);
}

static fac_value *concat(const fac_node *n, const bytes *y) {
    enum { PARTS = 64 };
    fac_value *part[PARTS];
    if (n->nin > PARTS) return NULL;
    for (int k = 0; k < n->nin; k++) {
        bytes x;
        if (!fac_coded_whole(n->in[k], &x) || x.q->type.dtype != y->zero->type.dtype) return NULL;
        part[k] = rescaled(&x, y);
    }
    return fac_emit(n->op, n->attrs, n->nin, part);
}

bool fac_picks_elements(const fac_node *n) {
    static const fac_op *const ops[] = {
        &fac_op_max_pool2d, &fac_op_transpose, &fac_op_slice, &fac_op_gather,
        &fac_op_expand,     &fac_op_identity,  NULL
    };
    return fac_node_reshapes(n) || fac_op_is_one_of(n->op, ops);
}

static fac_value *moved(const fac_node *n, const bytes *y) {
    enum { INPUTS = 8 };
    fac_value *in[INPUTS];
    bytes x;
    if (!fac_picks_elements(n) || n->nin > INPUTS || n->nin < 1) return NULL;
    if (!fac_coded_whole(n->in[0], &x) || !fac_coded_alike(&x, y)) return NULL;
    for (int k = 0; k < n->nin; k++) in[k] = k ? n->in[k] : x.q;
    return fac_emit(n->op, n->attrs, n->nin, in);
}

static fac_value *made(const fac_node *n, const bytes *y) {
    if (FAC_IS(n, conv2d)) return conv(n, y);
    if (FAC_IS(n, matmul)) return product(n->in[0], n->in[1], NULL, false, y);
    if (FAC_IS(n, linear)) return product(n->in[0], n->in[1], n->in[2], true, y);
    if (FAC_IS(n, gemm)) return gemm(n, y);
    if (FAC_IS(n, add)) return pair(n, y, true);
    if (FAC_IS(n, mul)) return pair(n, y, false);
    if (FAC_IS(n, mean)) return planes(n, y);
    if (FAC_IS(n, concat)) return concat(n, y);
    return moved(n, y);
}

/* A matmul with a bias after it. */
static fac_value *biased(const fac_node *n, const bytes *y) {
    for (int k = 0; k < 2 && FAC_IS(n, add); k++) {
        const fac_value *v = n->in[k];
        const fac_node *m = v->node;
        if (!FAC_IS(m, matmul) || m->body[0] || !fac_used_once(v)) continue;
        return product(m->in[0], m->in[1], n->in[1 - k], false, y);
    }
    return NULL;
}

static void fuse(fac_node *n) {
    const fac_quantize_opts *o = n->attrs;
    fac_value *zero = n->in[2] ? source(n->in[2]) : fac_number(n->graph, n->out[0]->type.dtype, 0);
    const bytes y = { NULL, source(n->in[1]), zero, 0 };
    if (o->block || n->body[0] || !fac_is_byte(n->out[0]->type.dtype)) return;
    if (n->in[0]->type.dtype != FAC_F32 || y.scale->type.dtype != FAC_F32) return;
    if (!is_single(y.scale) || !is_single(y.zero) || y.zero->type.dtype != n->out[0]->type.dtype)
        return;
    fac_value *v = unlimited(n->in[0], &y);
    const fac_node *m = v->node;
    if (!m || m->body[0] || !fac_used_once(v)) return;
    fac_value *q = biased(m, &y);
    if (!q) q = made(m, &y);
    if (!q) q = fac_coded_table(v, &y);
    if (!q || n->graph->error.status) return;
    if (q->node) {
        fac_node_named_as(q->node, m);
        q->node->stage = n->stage;
    }
    fac_replace(n->out[0], q);
}

static void visit(fac_graph *to, fac_node *n, const fac_judge *by) {
    (void)to;
    (void)by;
    if (FAC_IS(n, quantize_linear) && n->out[0]->time == FAC_RUN) fuse(n);
}

fac_graph *fac_pass_quantized(const fac_graph *g) { return fac_pass_each(g, visit, NULL); }
