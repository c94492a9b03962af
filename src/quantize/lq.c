/* lq:wWaA without training: levels of a few numbers for each filter, and for what a layer reads, as
 * in LQ-Nets (Zhang et al. 2018), fitted to the weights and to a histogram of the samples by the
 * same E and M steps, from several beginnings.  The first and the last layer stay floats, as in
 * training, and so do inputs that go below 0, where such levels have none. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/attr.h"
#include "op_list.h"
#include "ops/basis.h"
#include "passes/common/each.h"
#include "quantize/quantize.h"

enum { FLOATS = 32, STEPS = 30, CELLS = 4096 };

/* "lq:w2a2": bits of weights and of inputs, 1 to 4, of inputs 32 as well. */
bool fac_lq_bits(const char *scheme, int *weights, int *inputs) {
    static const char family[] = "lq:w";
    char *end;
    if (!scheme || strncmp(scheme, family, sizeof family - 1)) return false;
    const char *at = scheme + sizeof family - 1;
    if (*at < '1' || *at > '4' || at[1] != 'a' || at[2] < '1' || at[2] > '9') return false;
    *weights = *at - '0';
    const long bits = strtol(at + 2, &end, 10);
    *inputs = (int)bits;
    return !*end && ((bits >= 1 && bits <= FAC_BASIS_BITS) || bits == FLOATS);
}

static bool fits(const char *scheme) {
    int w, a;
    return fac_lq_bits(scheme, &w, &a);
}

static bool takes(const fac_node *n) { return fac_is_weighted(n); }

/* A product whose weight has a column for each output: it gets rows. */
static bool has_columns(const fac_node *n) {
    return FAC_IS(n, matmul) || (FAC_IS(n, gemm) && !fac_attr_flag(n, "trans_b"));
}

/* ---- the best levels for numbers that are counted ---- */

/* Numbers, and how often each is there; count NULL: once. */
typedef struct numbers {
    const double *x, *count;
    int64_t n;
} numbers;

static double gather(const fac_basis *b, const numbers *x, fac_basis_cells *to) {
    double error = 0;
    for (int64_t i = 0; i < x->n; i++) {
        const int k = fac_basis_find(b, x->x[i]);
        const double count = x->count ? x->count[i] : 1, off = x->x[i] - b->level[k];
        to->count[k] += count;
        to->sum[k] += count * x->x[i];
        error += count * off * off;
    }
    return error;
}

/* v as s, 2 s, 4 s ...: the least squares of levels k s. */
static void make_even(const fac_basis *b, const fac_basis_cells *c, double v[]) {
    double sum = 0, weight = 0;
    for (int k = 0; k < b->levels; k++) {
        sum += c->sum[k] * k;
        weight += c->count[k] * k * k;
    }
    for (int j = 0; j < b->bits && sum > 0; j++) v[j] = ldexp(sum / weight, j);
}

/* What levels are for. */
typedef struct wanted {
    int bits;
    bool positive, even; /* even: of positive ones */
} wanted;

/* From v on, to where QEM leads; returns the squared error of the best one on the way. */
static double descend(const numbers *x, const wanted *w, double v[]) {
    const int bits = w->bits;
    double best[FAC_BASIS_BITS], least = INFINITY;
    for (int step = 0; step < STEPS; step++) {
        fac_basis b;
        fac_basis_cells cells = { { 0 }, { 0 } };
        fac_basis_of(v, 1, bits, w->positive, true, &b);
        const double error = gather(&b, x, &cells);
        if (error >= least) break;
        least = error;
        memcpy(best, v, (size_t)bits * sizeof *best);
        if (w->even)
            make_even(&b, &cells, v);
        else
            fac_basis_fit(&b, &cells, v);
    }
    memcpy(v, best, (size_t)bits * sizeof *best);
    return least;
}

/* Beginnings are even levels up to a part of the largest number. */
static double fit(const numbers *x, double most, const wanted *w, float to[], int64_t step) {
    const int bits = w->bits;
    static const double parts[] = { 1, 0.7, 0.45, 0.25, 0.12 };
    const double span = ldexp(1, bits) - 1;
    double least = INFINITY;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        double v[FAC_BASIS_BITS];
        for (int j = 0; j < bits; j++) v[j] = most * parts[k] / span * ldexp(1, j);
        const double error = descend(x, w, v);
        if (error >= least) continue;
        least = error;
        for (int j = 0; j < bits; j++) to[j * step] = (float)v[j];
    }
    return least;
}

/* ---- weights: a basis for each filter ---- */

static fac_status fit_rows(const fac_rows *w, int bits, float *to, double *sqnr, fac_error *err) {
    double *row = fac_alloc((size_t)w->terms + 1, sizeof *row), signal = 0, error = 0;
    if (!row) return fac_raise_memory(err, "a row of weights");
    for (int64_t r = 0; r < w->rows; r++) {
        double most = 0;
        for (int64_t k = 0; k < w->terms; k++) {
            row[k] = (double)w->at[r * w->row_step + k * w->term_step];
            signal += row[k] * row[k];
            most = fmax(most, fabs(row[k]));
        }
        const numbers x = { row, NULL, w->terms };
        error += fit(&x, most > 0 ? most : 1, &(wanted){ .bits = bits }, to + r, w->rows);
    }
    *sqnr = fac_decibels(signal, error);
    fac_release(row);
    return FAC_OK;
}

/* The weight as rows: a new constant. */
static fac_value *transposed(fac_calibrator *c, const fac_integer_work *l, fac_graph *to,
                             const fac_rows *w) {
    fac_tensor *t = NULL;
    float *at = fac_quantize_tensor(FAC_F32, fac_shape(w->rows, w->terms), &t, &c->wrong);
    if (!at) return NULL;
    for (int64_t r = 0; r < w->rows; r++)
        for (int64_t k = 0; k < w->terms; k++)
            at[r * w->terms + k] = w->at[r * w->row_step + k * w->term_step];
    fac_value *v = fac_quantize_const(to, t, fac_weight_name(l), "rows");
    fac_tensor_free(t);
    return v;
}

static fac_value *weight(fac_calibrator *c, fac_integer_work *l, fac_graph *to, fac_value *w) {
    fac_rows rows;
    fac_tensor *basis = NULL;
    fac_value *v = NULL;
    if (fac_rows_of(l->node, &rows, &c->wrong)) return NULL;
    if (has_columns(l->node)) w = transposed(c, l, to, &rows);
    const fac_dims d = fac_shape(c->weight_bits, rows.rows);
    float *at = w ? fac_quantize_tensor(FAC_F32, d, &basis, &c->wrong) : NULL;
    if (at && !fit_rows(&rows, c->weight_bits, at, &l->is.weight_sqnr, &c->wrong)) {
        v = fac_quantize_const(to, basis, fac_weight_name(l), "basis");
        const int64_t bytes = (rows.terms + 7) / 8 * rows.rows * c->weight_bits;
        l->is.bytes = (double)bytes + (double)c->weight_bits * (double)rows.rows * sizeof(float);
    }
    fac_tensor_free(basis);
    fac_rows_free(&rows);
    return v ? fac_quantize_basis(w, v, NULL) : NULL;
}

/* ---- inputs ---- */

/* Cells of the tally as numbers in their middle; exact zeros are those of relus. */
static fac_status fit_tally(const fac_tally *t, const wanted *w, float *to, fac_error *err) {
    const double most = fac_tally_stats(t).max, step = most / CELLS;
    double *x = fac_alloc(2 * CELLS, sizeof *x);
    if (!x) return fac_raise_memory(err, "a histogram");
    fac_tally_histogram(t, 0, most, CELLS, x + CELLS);
    for (int k = 0; k < CELLS; k++) x[k] = (k + 0.5) * step;
    fit(&(numbers){ x, x + CELLS, CELLS }, most, w, to, 1);
    fac_release(x);
    return FAC_OK;
}

static fac_value *input(fac_calibrator *c, const fac_integer_work *l, fac_graph *to, fac_value *x) {
    const fac_tally *t = fac_slot_of(c, l->node->in[0])->tally;
    const fac_stats seen = t ? fac_tally_stats(t) : (fac_stats){ 0 };
    fac_tensor *basis = NULL;
    fac_value *v = NULL;
    if (c->input_bits == FLOATS || !t || seen.negative || !(seen.max > 0)) return x;
    float *at = fac_quantize_tensor(FAC_F32, fac_shape(c->input_bits), &basis, &c->wrong);
    const wanted w = { c->input_bits, true, c->how.even_levels };
    if (at && !fit_tally(t, &w, at, &c->wrong))
        v = fac_quantize_const(to, basis, fac_weight_name(l), "input_basis");
    fac_tensor_free(basis);
    return v ? fac_quantize_basis(x, v, &(fac_basis_opts){ .positive = true }) : NULL;
}

/* ---- the scheme ---- */

/* The first and the last layer with weights stay floats, or have weights of 8 bits. */
static void plan(fac_calibrator *c) {
    fac_integer_work *first = NULL, *last = NULL;
    int left = 0;
    for (int i = 0; i < c->nlayers; i++) {
        if (!fac_is_weighted(c->layers[i].node)) continue;
        if (!first) first = &c->layers[i];
        last = &c->layers[i];
    }
    fac_integer_work *const ends[] = { first, last };
    for (int k = 0; k < 2 && first; k++) {
        ends[k]->bytes = c->how.rest_int8 && !ends[k]->is.kept;
        if (!ends[k]->bytes) ends[k]->is.kept = true;
    }
    for (int i = 0; i < c->nlayers; i++) {
        const fac_integer_work *l = &c->layers[i];
        if (l->is.kept || l->bytes) continue;
        fac_slot_of(c, l->node->in[0])->tallied = c->input_bits < FLOATS;
        left++;
    }
    if (!left)
        fac_raise(&c->wrong, FAC_E_ARGUMENT,
                  "nothing to quantize: scheme %s leaves the first and the last layer as floats, "
                  "and there is no other one that it takes",
                  c->how.scheme);
}

/* The same product of a weight that has rows. */
static fac_value *with_rows(const fac_node *n, fac_value *const in[]) {
    fac_value *y;
    if (FAC_IS(n, gemm)) {
        fac_gemm_opts o = *(const fac_gemm_opts *)n->attrs;
        o.trans_b = true;
        y = fac_emit(n->op, &o, n->nin, in);
    } else
        y = fac_linear(in[0], in[1], NULL);
    if (y->node) fac_node_named_as(y->node, n);
    return y;
}

/* A layer that would be floats. */
static bool put_bytes(fac_calibrator *c, fac_integer_work *l, fac_graph *to, fac_value *with[],
                      fac_value *out[]) {
    with[1] = fac_byte_weight(l->node, to, fac_weight_name(l), &l->is.weight_sqnr, &c->wrong);
    if (!with[1]) return false;
    l->is.bytes = l->is.bytes_before / (double)sizeof(float);
    l->is.rest = true;
    fac_node_copy(to, l->node, with, out);
    return true;
}

static bool put(fac_calibrator *c, fac_integer_work *l, fac_graph *to, fac_value *const in[],
                fac_value *out[]) {
    fac_value *with[3] = { in[0], NULL, l->node->nin > 2 ? in[2] : NULL };
    if (l->is.kept || l->node->nin > 3) return false;
    if (l->bytes) return put_bytes(c, l, to, with, out);
    with[1] = weight(c, l, to, in[1]);
    if (with[1]) with[0] = input(c, l, to, in[0]);
    if (!with[0] || !with[1]) return false;
    l->is.float_input = with[0] == in[0] && c->input_bits < FLOATS;
    if (has_columns(l->node))
        out[0] = with_rows(l->node, with);
    else
        fac_node_copy(to, l->node, with, out);
    return true;
}

const fac_scheme_row fac_scheme_lq = {
    .name = "lq:wWaA",
    .about = "W and A bits, 1 to 4 (A 32: floats), learned levels; train --quantize loses less",
    .fits = fits,
    .calibrates = true,
    .refits = true,
    .takes = takes,
    .plan = plan,
    .put = put,
};
