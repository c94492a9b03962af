/* What the ops that only move data have in common. */
#ifndef FACULA_OPS_SHAPE_H
#define FACULA_OPS_SHAPE_H
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/known.h"

/* x as a scalar of like's dtype. */
static inline fac_value *fac_number_as(const fac_value *like, double x) {
    return fac_number(fac_value_graph(like), fac_value_type(like).dtype, x);
}

/* The size of one dim of x, an i64 scalar. */
static inline fac_value *fac_dim_of(fac_value *x, int axis) {
    return fac_squeeze(fac_slice(fac_shape_of(x), 0, axis, axis + 1, 1), fac_shape(0));
}

/* move: the same elements in the same row-major order (reshape, flatten, squeeze, unsqueeze). */
bool fac_move_flat(const fac_move *m, const int64_t *to, int *input, int64_t *from);
/* move: element for element. */
bool fac_move_same(const fac_move *m, const int64_t *to, int *input, int64_t *from);

/* view of the same elements in row-major order under other dims: possible if every group of dims
 * that is merged or split lies evenly in memory. */
bool fac_view_flat(const fac_node *n, const fac_layout *in, fac_layout *out);
bool fac_view_same(const fac_node *n, const fac_layout *in, fac_layout *out);

/* out[0] knows what in[0] knows, when it still has rank <= 1.  Always true. */
bool fac_knows_same(fac_node *n);

/* A set of axes, of a FAC_HOST input or given: set[k] for each.  false after fac_fail: out of
 * range, or one twice. */
bool fac_axes_set(fac_node *n, const fac_contents *axes, int rank, bool set[FAC_DIMS]);

/* The one number of a constant; false: v is no constant or has more of them. */
bool fac_scalar_known(const fac_value *v, double *x);

/* A constant i64[n], of any length; for attributes of old opsets that became inputs. */
fac_value *fac_ints_long(fac_graph *g, const int64_t *numbers, int n);

/* Two sizes that are known and not the same. */
static inline bool fac_differ(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }
#endif
