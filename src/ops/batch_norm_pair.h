/* What batch_norm_pair.c shares with the form that also keeps what relu lets pass. */
#ifndef FACULA_OPS_BATCH_NORM_PAIR_H
#define FACULA_OPS_BATCH_NORM_PAIR_H
#include "facula/op.h"

typedef struct fac_norm_pair {
    double epsilon, momentum, other_epsilon, other_momentum;
} fac_norm_pair;                                    /* the attributes of both */
enum { FAC_NORM_PAIR = 14, FAC_NORM_PAIR_OUT = 5 }; /* operands; y and running statistics */

bool fac_batch_norm_pair_infer(fac_node *n);
/* Element `at` of a contiguous image, of channel c, before an activation; all running statistics.
 */
double fac_batch_norm_pair_sum(const fac_ref *r, int64_t c, int64_t at);
void fac_batch_norm_pair_running(const fac_ref *r);
#endif
