/* facula/nn/loss.h: losses, made of ops; PyTorch's formulas and numbers. */
#ifndef FACULA_LOSS_H
#define FACULA_LOSS_H

#include "facula/ops.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of the losses of all elements.  Mean: over all that count (labels that are not
 * ignored); batch mean: their sum divided by the first dim. */
typedef enum fac_reduction {
    FAC_REDUCE_MEAN,
    FAC_REDUCE_SUM,
    FAC_REDUCE_NONE,
    FAC_REDUCE_BATCH_MEAN
} fac_reduction;

typedef struct fac_cross_entropy_opts {
    fac_reduction reduction;
    double label_smoothing; /* this part of each label is spread over all classes */
    bool ignore; /* elements with label ignore_index do not count; else, as in torch, those with
                    -100 */
    int64_t ignore_index;
} fac_cross_entropy_opts;

/* logits N,C,...  labels i64 N,...:  -log softmax(logits over C)[label].  Labels that are floats
 * N,C,... are probabilities t: -sum over C of t log softmax(logits), of which none is ignored.
 * opts may be NULL. */
fac_value *fac_cross_entropy(fac_value *logits, fac_value *labels,
                             const fac_cross_entropy_opts *opts);
/* The same from logarithms of probabilities: -log_probs[label]. */
fac_value *fac_nll_loss(fac_value *log_probs, fac_value *labels,
                        const fac_cross_entropy_opts *opts);

/* x and target (floats) broadcast against each other. */
fac_value *fac_mse_loss(fac_value *x, fac_value *target,
                        fac_reduction reduction); /* (x - target)^2 */
fac_value *fac_l1_loss(fac_value *x, fac_value *target, fac_reduction reduction); /* |x - target| */
/* d^2 / (2 beta) where |d| < beta, else |d| - beta/2; d = x - target, beta > 0 (torch: 1) */
fac_value *fac_smooth_l1_loss(fac_value *x, fac_value *target, double beta,
                              fac_reduction reduction);
/* -target log sigmoid(x) - (1 - target) log(1 - sigmoid(x)), without overflow */
fac_value *fac_bce_with_logits(fac_value *x, fac_value *target, fac_reduction reduction);
/* target (log target - log_probs), 0 where target is 0.  MEAN divides by all elements, as torch
 * does; BATCH_MEAN gives the divergence. */
fac_value *fac_kl_div(fac_value *log_probs, fac_value *target, fac_reduction reduction);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
