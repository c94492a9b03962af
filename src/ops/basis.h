/* Levels that a few learned numbers span, as in LQ-Nets (Zhang et al. 2018, arXiv 1807.10029).
 *
 * A basis v of K numbers has 2^K levels v'e, one for each code e in {-1,1}^K, or in {0,1}^K where
 * codes are positive.  Bit j of a code says that v_j is added.  Thresholds lie halfway between
 * neighbouring levels, and what is larger than a threshold belongs to the level above it. */
#ifndef FACULA_OPS_BASIS_H
#define FACULA_OPS_BASIS_H
#include "facula/op.h"
#include "facula/ops.h"

enum { FAC_BASIS_BITS = 4, FAC_BASIS_LEVELS = 1 << FAC_BASIS_BITS };

/* The levels in rising order, the code of each, and the thresholds between them. */
typedef struct fac_basis {
    int bits, levels;
    double v[FAC_BASIS_BITS], level[FAC_BASIS_LEVELS], threshold[FAC_BASIS_LEVELS - 1];
    unsigned code[FAC_BASIS_LEVELS];
    bool positive;
} fac_basis;

/* Of `bits` numbers that lie `stride` apart.  single: sums are rounded to f32, as kernels make
 * them. */
void fac_basis_of(const double *v, int64_t stride, int bits, bool positive, bool single,
                  fac_basis *to);
/* The place of x among the levels. */
static inline int fac_basis_find(const fac_basis *b, double x) {
    int k = 0;
    for (int i = 0; i + 1 < b->levels; i++) k += x > b->threshold[i];
    return k;
}
/* Whether v[j] is times[j] v[*unit], in floats as they are, and all of them are at most 15
 * v[*unit].
 */
bool fac_basis_multiples(const float *v, int bits, int times[FAC_BASIS_BITS], int *unit);

/* Of each level, how many numbers it has and their sum: all that a least squares fit needs. */
typedef struct fac_basis_cells {
    double count[FAC_BASIS_LEVELS], sum[FAC_BASIS_LEVELS];
} fac_basis_cells;
/* The M step of QEM, see fac_fit_basis: y[b->bits]. */
void fac_basis_fit(const fac_basis *b, const fac_basis_cells *c, double y[]);

/* The factor of v_j in a code. */
static inline double fac_basis_digit(const fac_basis *b, unsigned code, int j) {
    if (code >> j & 1) return 1;
    return b->positive ? 0 : -1;
}

/* Dims of x as [outer, channels, inner] around the axis; one channel where the basis has one dim.
 * */
typedef struct fac_basis_grid {
    int64_t outer, channels, inner;
    int bits;
} fac_basis_grid;
fac_basis_grid fac_basis_grid_of(const fac_dims *x, const fac_dims *basis, int64_t axis);

/* Whether basis fits to x: [K], or [K, channels]; false after fac_fail. */
bool fac_basis_fits(fac_node *n, const fac_value *x, const fac_value *basis, int64_t axis);

extern const fac_attr fac_basis_table[];
extern const fac_port fac_basis_in[];
#endif
