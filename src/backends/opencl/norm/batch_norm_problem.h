/* A problem of the solver "batch_norm" and of its gradients: which operands it has, how they lie,
 * how its sums are cut. */
#ifndef FACULA_OPENCL_BATCH_NORM_PROBLEM_H
#define FACULA_OPENCL_BATCH_NORM_PROBLEM_H
#include <string.h>
#include "backends/opencl/reduce/fold.h"
#include "op_list.h"

typedef struct fac_cl_norm_shape {
    fac_cl_fold f;
    int64_t images, channels, plane, count;
    int near;               /* neighbours in an access of what is applied */
    bool last, grad, given; /* channels last; the gradient; mean and var are given */
    bool straight;          /* the batch's statistics are given */
    bool backwards;         /* what of x is in the cache still when it is applied comes first */
    int held;               /* how many items that sum a unit holds, then */
    bool settles; /* the last group of a channel's settles what the parts make, without a launch */
    size_t item, coefficients; /* bytes of a number computed with; where the coefficients begin in
                                  the scratch */
} fac_cl_norm_shape;

enum { FAC_CL_NORM_MASK = 3 }; /* output of batch_norm_given_relu: bits of what is above 0 */

static inline fac_dtype fac_cl_norm_computing(const fac_problem *p) {
    return fac_cl_folding(p->in[0].type.dtype);
}
static inline bool fac_cl_norm_is_masked(const fac_node *n) {
    return FAC_IS(n, batch_norm_act_grad);
}
static inline bool fac_cl_norm_is_grad(const fac_node *n) {
    return FAC_IS(n, batch_norm_grad) || fac_cl_norm_is_masked(n) ||
           FAC_IS(n, batch_norm_grad_given);
}
/* With an addend of its own, if any, and bits. */
static inline bool fac_cl_norm_is_relu(const fac_node *n) {
    return FAC_IS(n, batch_norm_given_relu);
}
static inline bool fac_cl_norm_has_bits(const fac_problem *p) {
    return fac_cl_norm_is_relu(p->node) && p->nout > FAC_CL_NORM_MASK &&
           p->out[FAC_CL_NORM_MASK].type.dtype != FAC_NONE;
}

/* Which operand is added to what the norm made; 0: none. */
int fac_cl_norm_addend(const fac_problem *p);
/* Where the mean of the batch is among the operands; its variance is after it.  0: it is none of
 * them. */
int fac_cl_norm_own(const fac_node *n);
static inline bool fac_cl_norm_is_straight(const fac_node *n) { return fac_cl_norm_own(n) > 0; }
/* From pixel to pixel, all channels of each lying side by side: more than there are in a slice.  0:
 * other layouts. */
int64_t fac_cl_norm_step(const fac_operand *x);

void fac_cl_norm_of(fac_opencl *o, const fac_problem *p, fac_cl_norm_shape *s);
/* The layouts it asks for; false: types that the device lacks. */
bool fac_cl_norm_layouts(const fac_opencl *o, fac_problem *p);
/* All channels of each pixel side by side, and no others between. */
void fac_cl_norm_lay_together(fac_problem *p);
#endif
