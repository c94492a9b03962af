/* What gives numbers few levels: a basis, planes of bits, signs, steps of LSQ. */
#ifndef FACULA_QUANTIZE_LEVELED_H
#define FACULA_QUANTIZE_LEVELED_H
#include <math.h>
#include "graph/graph_internal.h"
#include "ops/basis.h"

typedef enum fac_leveled_kind {
    FAC_LEVELED_BASIS,
    FAC_LEVELED_PLANES, /* x is bits: see fac_pack_basis */
    FAC_LEVELED_SIGNS,
    FAC_LEVELED_STEPS
} fac_leveled_kind;

typedef struct fac_leveled {
    fac_leveled_kind kind;
    const fac_value *x, *by; /* by: a basis, or the step; NULL of signs */
    int bits;
    int64_t filters, axis; /* filters with levels of their own; 0: all have the same */
    bool positive;
    int lowest; /* of steps: level k is (lowest + k) steps */
} fac_leveled;

/* false: n is something else.  Of LSQ n is the product with the step. */
bool fac_leveled_of(const fac_node *n, fac_leveled *to);
/* The levels of filter c, as the numbers of `by` say (NULL of signs). */
void fac_leveled_levels(const fac_leveled *l, const double *by, int64_t c, bool single,
                        fac_basis *to);
/* Whether two numbers are one level but for rounding, beside the largest level. */
static inline bool fac_leveled_close(double a, double b, double most) {
    return fabs(a - b) <= 1e-6 * most;
}

/* ---- leveled_weights.c: weights that have levels of a basis without a quantizer ---- */
enum { FAC_LEVELED_WEIGHT_BITS = 3 };
typedef struct fac_rows fac_rows;
/* The fewest bits of levels +-v_j for each row, and the v_j: [bits][rows]; 0: there are more. */
int fac_leveled_bits(const fac_rows *w, float *basis);
/* Whether both the weight of a layer and what it reads have few levels. */
fac_status fac_leveled_layer(const fac_node *n, bool *is, fac_error *err);

/* Whether results depend on v: not those that only gradients go to. */
bool *fac_leveled_live(const fac_graph *g);
#endif
