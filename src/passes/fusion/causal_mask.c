/* See causal_mask.h.  Exporters write such a mask out, as a constant or as
 *   where(column <= row and sequence == sequence, 0, lowest)
 * whose sequences are all the same one where nothing was packed together. */
#include "passes/fusion/causal_mask.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/single.h"

enum { DEPTH = 16 };
static const double LOWEST = -1e30; /* below all scores */

/* The contents of a constant in f64, for fac_tensor_free; NULL. */
static fac_tensor *contents(const fac_value *v) {
    fac_tensor *t = NULL;
    if (v->leaf != FAC_CONST || !v->tensor || v->type.dtype == FAC_TEXT) return NULL;
    return fac_tensor_convert(v->tensor, FAC_F64, &t, NULL) ? NULL : t;
}

/* ---- values whose elements are all one number ---- */

/* Its elements are some of the first operand's, or all of them. */
static bool only_moves(const fac_node *n) {
    static const fac_op *const names[] = { &fac_op_reshape,
                                           &fac_op_squeeze,
                                           &fac_op_unsqueeze,
                                           &fac_op_flatten,
                                           &fac_op_transpose,
                                           &fac_op_expand,
                                           &fac_op_gather,
                                           &fac_op_gather_elements,
                                           &fac_op_gather_nd,
                                           &fac_op_slice,
                                           &fac_op_cast,
                                           &fac_op_identity,
                                           NULL };
    return fac_op_is_one_of(n->op, names) && !n->body[0];
}

static bool is_all(const fac_value *v, double *x, int depth) {
    const fac_node *n = v->node;
    if (!depth) return false;
    if (n && only_moves(n)) return is_all(n->in[0], x, depth - 1);
    if (n && FAC_IS(n, cum_sum)) return is_all(n->in[0], x, depth - 1) && *x == 0;
    fac_tensor *t = contents(v);
    const int64_t count = fac_dims_count(&v->type.dims);
    const double *a = t && count > 0 ? fac_tensor_data(t) : NULL;
    bool all = a != NULL;
    for (int64_t k = 1; all && k < count; k++) all = a[k] == a[0];
    if (all) *x = a[0];
    fac_tensor_free(t);
    return all;
}

static bool is_true(const fac_value *v, int depth) {
    double x, y;
    const fac_node *n = v->node;
    if (n && FAC_IS(n, equal) && !n->body[0])
        return is_all(n->in[0], &x, depth) && is_all(n->in[1], &y, depth) && x == y;
    return v->type.dtype == FAC_BOOL && is_all(v, &x, depth) && x != 0;
}

/* ---- conditions ---- */

/* Numbers that count from *base on along dim `axis` from the end, and along no other. */
static bool counts(const fac_value *v, int axis, int64_t size, double *base) {
    const fac_dims *d = &v->type.dims;
    fac_tensor *t = contents(v);
    const double *a = t ? fac_tensor_data(t) : NULL;
    bool good = a && d->n >= axis && d->d[d->n - axis] == size && fac_dims_count(d) > 0;
    int64_t inner = 1;
    for (int k = d->n - axis + 1; good && k < d->n; k++) inner *= d->d[k];
    if (good) *base = a[0];
    for (int64_t k = 0; good && k < fac_dims_count(d); k++)
        good = a[k] == *base + (double)(k / inner % size);
    fac_tensor_free(t);
    return good;
}

static bool compares(const fac_value *columns, const fac_value *rows, int64_t size) {
    double from, of;
    return counts(columns, 1, size, &from) && counts(rows, 2, size, &of) && from == of;
}

/* A constant mask: of each plane, what lies on and below the diagonal is seen.  hidden: flags say
 * what is not. */
static bool is_triangle(const fac_value *v, int64_t size, bool hidden) {
    const fac_dims *d = &v->type.dims;
    const bool flags = v->type.dtype == FAC_BOOL;
    if (d->n < 2 || d->d[d->n - 1] != size || d->d[d->n - 2] != size) return false;
    fac_tensor *t = contents(v);
    const double *a = t ? fac_tensor_data(t) : NULL;
    bool good = a != NULL;
    for (int64_t k = 0; good && k < fac_dims_count(d); k++) {
        const bool seen = k % size <= k / size % size;
        if (flags)
            good = (a[k] != 0) == (seen != hidden);
        else
            good = seen ? a[k] == 0 : a[k] <= LOWEST;
    }
    fac_tensor_free(t);
    return good;
}

/* v: bools, true where a key is hidden. */
static bool is_above(const fac_value *v, int64_t size) {
    const fac_node *n = v->node;
    if (n && !n->body[0] && FAC_IS(n, greater)) return compares(n->in[0], n->in[1], size);
    if (n && !n->body[0] && FAC_IS(n, less)) return compares(n->in[1], n->in[0], size);
    return is_triangle(v, size, true);
}

/* v: bools.  *hides: it is the triangle, and not only true everywhere. */
static bool holds(const fac_value *v, int64_t size, bool *hides, int depth) {
    const fac_node *n = v->node;
    if (!depth) return false;
    if (n && !n->body[0] && FAC_IS(n, and))
        return holds(n->in[0], size, hides, depth - 1) && holds(n->in[1], size, hides, depth - 1);
    if (n && !n->body[0] &&
        ((FAC_IS(n, less_or_equal) && compares(n->in[0], n->in[1], size)) ||
         (FAC_IS(n, greater_or_equal) && compares(n->in[1], n->in[0], size))))
        return *hides = true;
    if (n && only_moves(n) && FAC_IS(n, expand)) return holds(n->in[0], size, hides, depth - 1);
    if (n && !n->body[0] && FAC_IS(n, not ) && is_above(n->in[0], size)) return *hides = true;
    if (is_triangle(v, size, false)) return *hides = true;
    return is_true(v, depth);
}

bool fac_mask_is_causal(const fac_value *mask, int64_t queries, int64_t keys) {
    bool hides = false;
    double x, y;
    if (queries != keys || keys < 2) return false;
    while (mask->node && !mask->node->body[0] &&
           (FAC_IS(mask->node, cast) || FAC_IS(mask->node, expand)))
        mask = mask->node->in[0];
    const fac_node *n = mask->node;
    if (mask->type.dtype == FAC_BOOL) return holds(mask, keys, &hides, DEPTH) && hides;
    if (!n) return is_triangle(mask, keys, false);
    return FAC_IS(n, where) && !n->body[0] && fac_const_number(n->in[1], &x) && x == 0 &&
           fac_const_number(n->in[2], &y) && y <= LOWEST && holds(n->in[0], keys, &hides, DEPTH) &&
           hides;
}
