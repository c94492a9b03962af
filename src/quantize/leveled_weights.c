/* Weights that have few levels, whoever made them: see leveled.h. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "passes/common/single.h"
#include "quantize/quantize.h"

/* The different |w| of a row, the largest first; more than there may be: -1. */
static int sizes_of(const fac_rows *w, int64_t r, double *to) {
    int count = 0;
    for (int64_t i = 0; i < w->terms; i++) {
        const double x = fabs((double)w->at[r * w->row_step + i * w->term_step]);
        int k = 0;
        while (k < count && to[k] > x && !fac_leveled_close(to[k], x, to[0])) k++;
        if (k < count && fac_leveled_close(to[k], x, to[0])) continue;
        if (count == FAC_BASIS_LEVELS / 2) return -1;
        memmove(to + k + 1, to + k, (size_t)(count - k) * sizeof *to);
        to[k] = x;
        count++;
    }
    return count;
}

/* v0 <= v1 <= v2 of the largest sizes l0 = v0 + v1 + v2, l1 = l0 - 2 v0, l2 = l0 - 2 v1... */
static void basis_of_sizes(const double *l, int count, int bits, double *v) {
    double rest = l[0];
    for (int j = 0; j + 1 < bits; j++) {
        v[j] = j + 1 < count ? (l[0] - l[j + 1]) / 2 : 0;
        rest -= v[j];
    }
    v[bits - 1] = rest;
}

static bool has_levels(const fac_rows *w, int64_t r, const double *v, int bits, double most) {
    fac_basis b;
    fac_basis_of(v, 1, bits, false, true, &b);
    for (int64_t i = 0; i < w->terms; i++) {
        const double x = (double)w->at[r * w->row_step + i * w->term_step];
        if (!fac_leveled_close(b.level[fac_basis_find(&b, x)], x, most)) return false;
    }
    return true;
}

/* So many bits for all rows, into basis [bits][rows]. */
static bool rows_fit(const fac_rows *w, int bits, float *basis) {
    double sizes[FAC_BASIS_LEVELS / 2 + 1], v[FAC_BASIS_BITS];
    for (int64_t r = 0; r < w->rows; r++) {
        const int count = sizes_of(w, r, sizes);
        if (count < 1 || count > 1 << (bits - 1)) return false;
        basis_of_sizes(sizes, count, bits, v);
        if (!has_levels(w, r, v, bits, sizes[0])) return false;
        for (int j = 0; j < bits; j++) basis[j * w->rows + r] = (float)v[j];
    }
    return true;
}

int fac_leveled_bits(const fac_rows *w, float *basis) {
    for (int bits = 1; bits <= FAC_LEVELED_WEIGHT_BITS && w->terms > 1 << bits; bits++)
        if (rows_fit(w, bits, basis)) return bits;
    return 0;
}

/* ---- layers ---- */

/* Levels that are chosen by comparisons with numbers, or a quantizer. */
static bool reads_levels(const fac_value *x) {
    fac_leveled of;
    const fac_node *n = x->node;
    if (!n) return false;
    if (!FAC_IS(n, where)) return fac_leveled_of(n, &of);
    const fac_node *by = n->in[0]->node;
    if (!by || !(FAC_IS(by, greater) || FAC_IS(by, less))) return false;
    return fac_is_number(by->in[1]) && fac_is_number(n->in[1]);
}

fac_status fac_leveled_layer(const fac_node *n, bool *is, fac_error *err) {
    fac_rows w;
    *is = false;
    if (!fac_is_weighted(n) || !reads_levels(n->in[0])) return FAC_OK;
    FAC_TRY(fac_rows_of(n, &w, err));
    float *basis = fac_alloc((size_t)w.rows * FAC_LEVELED_WEIGHT_BITS + 1, sizeof *basis);
    if (basis) *is = fac_leveled_bits(&w, basis) > 0;
    fac_release(basis);
    fac_rows_free(&w);
    return basis ? FAC_OK : fac_raise_memory(err, "the levels of a weight");
}
