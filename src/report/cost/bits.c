/* In how many bits the numbers of a layer lie: by the quantizer that makes them, or for weights of
 * a file by how many different numbers each filter has.  Of an integer type, its own.
 *
 * A product of w and a bits is w a products of planes of bits, each an AND that is counted (LQ-Nets
 * 2018, DoReFa-Net 2016).  That is what kernels do up to 4 bits; above these count as integers. */
#include <math.h>
#include <stdio.h>
#include "facula/text.h"
#include "graph/attr.h"
#include "op_list.h"
#include "ops/conv_basis.h"
#include "ops/qonnx.h"
#include "passes/common/single.h"
#include "report/cost/report.h"
#include "tensor/mirror.h"
#include "tensor/tensor_internal.h"

enum { FLOATS = 32, FEW = 4, LEVELS = 1 << FEW, DEPTH = 64, SAMPLES_A_LEVEL = 4 };

static int bits_for(double levels) {
    const int bits = (int)ceil(log2(fmax(levels, 2)));
    return bits < FLOATS ? bits : FLOATS;
}

static bool early(const fac_value *v) { return v && v->time != FAC_RUN; }

static int bits_of_dtype(fac_dtype dtype) {
    return dtype == FAC_BOOL ? 1 : fac_dtype_get(dtype)->bits;
}

/* ---- integers between limits: round(clip(x, least, most) n + c) ---- */

static bool limits_of(const fac_value *v, int depth, double *lo, double *hi);

/* x and a number, in either order. */
static bool scaled_limits(const fac_node *n, int depth, double *lo, double *hi) {
    double c;
    const bool plus = FAC_IS(n, add) || FAC_IS(n, sub), times = FAC_IS(n, mul) || FAC_IS(n, div);
    if ((!plus && !times) || !fac_const_number(n->in[1], &c)) return false;
    if (!limits_of(n->in[0], depth, lo, hi)) return false;
    if (FAC_IS(n, sub)) c = -c;
    if (FAC_IS(n, div)) c = 1 / c;
    *lo = plus ? *lo + c : *lo * c;
    *hi = plus ? *hi + c : *hi * c;
    return true;
}

static bool limits_of(const fac_value *v, int depth, double *lo, double *hi) {
    const fac_node *n = v->node;
    if (!n || !depth--) return false;
    if (FAC_IS(n, clip)) return fac_const_number(n->in[1], lo) && fac_const_number(n->in[2], hi);
    return scaled_limits(n, depth, lo, hi);
}

static int bits_of_round(const fac_node *n) {
    double lo, hi;
    if (!limits_of(n->in[0], DEPTH, &lo, &hi)) return FLOATS;
    return bits_for(fabs(rint(hi) - rint(lo)) + 1);
}

/* ---- where(x > t3, q3, where(x > t2, q2, ...)) of numbers, as dequantized files have it ---- */

static int bits_of_choices(const fac_value *v) {
    int levels = 1;
    double number;
    for (; v->node && FAC_IS(v->node, where) && levels <= LEVELS; levels++) {
        if (!fac_const_number(v->node->in[1], &number)) return FLOATS;
        v = v->node->in[2];
    }
    return fac_const_number(v, &number) && levels <= LEVELS ? bits_for(levels) : FLOATS;
}

/* ---- weights of a file: how many different numbers a filter has ---- */

/* false: more than LEVELS. */
static bool take_level(float x, float *levels, int *n) {
    for (int k = 0; k < *n; k++)
        if (levels[k] == x) return true;
    if (*n == LEVELS) return false;
    levels[(*n)++] = x;
    return true;
}

/* Of the filter with the most levels; few elements say nothing. */
static int levels_of(const float *x, int64_t filters, int64_t each) {
    int most = 0;
    for (int64_t c = 0; c < filters; c++) {
        float levels[LEVELS];
        int n = 0;
        for (int64_t k = 0; k < each; k++)
            if (!take_level(x[c * each + k], levels, &n)) return 0;
        if (n * SAMPLES_A_LEVEL > each) return 0;
        if (n > most) most = n;
    }
    return most;
}

static int bits_of_tensor(const fac_value *v) {
    const fac_dims *d = &v->type.dims;
    const int64_t n = fac_dims_count(d);
    if (!v->tensor || v->type.dtype != FAC_F32 || d->n < 2 || n < 1) return FLOATS;
    if (fac_storage_undrawn(fac_tensor_storage(v->tensor))) return FLOATS;
    const float *x = fac_tensor_contiguous(v->tensor) ? fac_tensor_data(v->tensor) : NULL;
    const int levels = x ? levels_of(x, d->d[0], n / d->d[0]) : 0;
    return levels > 1 ? bits_for(levels) : FLOATS;
}

/* ---- values ---- */

static int bits_of(const fac_value *v, int depth);

/* Ops that give some of the numbers that they read. */
static bool picks(const fac_node *n) {
    return FAC_IS(n, surrogate) || FAC_IS(n, identity) || FAC_IS(n, stop) || FAC_IS(n, reshape) ||
           FAC_IS(n, transpose) || FAC_IS(n, relu) || FAC_IS(n, max_pool2d);
}

/* A number, or one for each channel. */
static bool is_scale(const fac_value *v, const fac_value *whole) {
    return early(v) && fac_dims_count(&v->type.dims) < fac_dims_count(&whole->type.dims);
}

/* Which of two operands is scaled or shifted by the other one; NULL: neither. */
static const fac_value *scaled(const fac_node *n) {
    if (!FAC_IS(n, mul) && !FAC_IS(n, div) && !FAC_IS(n, add) && !FAC_IS(n, sub)) return NULL;
    if (is_scale(n->in[1], n->out[0])) return n->in[0];
    return is_scale(n->in[0], n->out[0]) ? n->in[1] : NULL;
}

/* Ops whose results, or whose choice, follow from each number of their first operand. */
static bool follows(const fac_node *n) {
    return picks(n) || FAC_IS(n, binarize) || FAC_IS(n, bipolar_quant) || FAC_IS(n, clip) ||
           FAC_IS(n, where) || FAC_IS(n, less) || FAC_IS(n, greater);
}

/* What signs are taken of, before it was shifted and cut. */
static const fac_value *source_of(const fac_value *v) {
    for (int left = DEPTH; left && v->node; left--) {
        const fac_value *x = scaled(v->node);
        if (!x && !follows(v->node)) break;
        v = x ? x : v->node->in[0];
    }
    return v;
}

/* Planes that are added: of a weight, or of the same numbers. */
static int bits_of_sum(const fac_node *n, int depth) {
    if (!early(n->out[0]) && source_of(n->in[0]) != source_of(n->in[1])) return FLOATS;
    const int a = bits_of(n->in[0], depth), b = a <= FEW ? bits_of(n->in[1], depth) : FLOATS;
    return a + b <= 2 * FEW ? a + b : FLOATS;
}

static int bits_of_quantizer(const fac_node *n) {
    double bits;
    if (FAC_IS(n, quantize_basis)) return (int)n->in[1]->type.dims.d[0];
    if (FAC_IS(n, unpack_basis)) return (int)n->in[0]->type.dims.d[0];
    if (FAC_IS(n, binarize) || FAC_IS(n, bipolar_quant)) return 1;
    if (FAC_IS(n, multi_threshold)) return bits_for((double)n->in[1]->type.dims.d[1] + 1);
    if (FAC_IS(n, dequantize_linear)) return bits_of_dtype(n->in[0]->type.dtype);
    if (FAC_IS(n, round)) return bits_of_round(n);
    if (FAC_IS(n, where)) return bits_of_choices(n->out[0]);
    return FAC_IS(n, int_quant) && fac_const_number(n->in[3], &bits) ? (int)bits : FLOATS;
}

static int bits_of(const fac_value *v, int depth) {
    if (fac_dtype_get(v->type.dtype)->kind != 'f') return bits_of_dtype(v->type.dtype);
    const fac_node *n = v->node;
    if (!n) return bits_of_tensor(v);
    if (!depth--) return FLOATS;
    const fac_value *x = picks(n) ? n->in[0] : scaled(n);
    if (x) return bits_of(x, depth);
    return FAC_IS(n, add) ? bits_of_sum(n, depth) : bits_of_quantizer(n);
}

/* Bits that the model spends on an element of a weight, in all tensors that make it.  left: values
 * that may be looked at still, since sums that share their operands have as many ways as they like.
 */
static int stored_bits(const fac_value *v, int *left) {
    const fac_node *n = v->node;
    if (!n || !n->nin || (*left)-- <= 0) return bits_of_dtype(v->type.dtype);
    const bool both = FAC_IS(n, add) && !scaled(n) && n->in[0] != n->in[1];
    const fac_value *x = scaled(n) ? scaled(n) : n->in[0];
    if (FAC_IS(n, unpack_basis)) return (int)n->in[0]->type.dims.d[0];
    const int first = stored_bits(x, left);
    return first + (both ? stored_bits(n->in[1], left) : 0);
}

/* ---- layers ---- */

static int at_most_floats(int bits) { return bits > 0 && bits < FLOATS ? bits : FLOATS; }

static const fac_value *weight_of(const fac_node *n) {
    for (int i = 1; i < n->nin; i++)
        if (n->in[i] && n->in[i]->type.dims.n > 1 && early(n->in[i])) return n->in[i];
    return NULL;
}

static void take_basis(fac_layer *l, const fac_node *n) {
    const fac_value *u = n->in[FAC_CB_X_BASIS];
    l->weight_bits = (int)n->in[FAC_CB_BITS]->type.dims.d[0];
    l->input_bits = u ? (int)u->type.dims.d[0] : 1;
}

/* The two operands of a layer's products. */
static void take_products(fac_layer *l, const fac_node *n) {
    const fac_value *w = weight_of(n);
    if (!w || !n->in[0] || !fac_is_data(n->in[0])) return;
    l->weight_bits = at_most_floats(bits_of(w, DEPTH));
    l->input_bits = at_most_floats(bits_of(n->in[0], DEPTH));
    int left = 4 * DEPTH;
    const int spared = l->params > 0 ? stored_bits(w, &left) - l->weight_bits : 0;
    l->spared_bits = spared > 0 ? spared * (double)fac_dims_count(&w->type.dims) : 0;
}

void fac_take_bits(fac_layer *l, const fac_node *n) {
    if (l->macs <= 0 || n->nin < 2) return;
    if (FAC_IS(n, conv2d_basis))
        take_basis(l, n);
    else
        take_products(l, n);
    if (l->weight_bits && l->weight_bits <= FEW && l->input_bits <= FEW)
        l->binary_ops = l->macs * l->weight_bits * l->input_bits;
}

void fac_sum_bits(fac_totals *t, const fac_layer *l) {
    const bool bytes = l->weight_bits && l->weight_bits <= 8 && l->input_bits <= 8;
    t->spared_bits += l->spared_bits;
    t->binary_ops += l->binary_ops;
    if (l->binary_ops > 0)
        t->binary_macs += l->macs;
    else if (bytes)
        t->integer_macs += l->macs;
}

const char *fac_totals_products(const fac_totals *t, char *to, size_t size) {
    char few[32], ops[32], bytes[32], floats[32];
    const double left = t->macs - t->binary_macs - t->integer_macs;
    snprintf(to, size,
             "%s multiply-adds of 1 to 4 bits (%s ANDs that are counted), "
             "%s of up to 8 bits, %s of floats",
             fac_count_text(t->binary_macs, few, sizeof few),
             fac_count_text(t->binary_ops, ops, sizeof ops),
             fac_count_text(t->integer_macs, bytes, sizeof bytes),
             fac_count_text(left, floats, sizeof floats));
    return to;
}
