/* What else is asked of a loop node: by what runs it when it cannot be expanded. */
#ifndef FACULA_OPS_LOOP_H
#define FACULA_OPS_LOOP_H
#include "facula/op.h"

typedef struct fac_loop_attrs {
    int64_t carried;
} fac_loop_attrs;
enum {
    FAC_LOOP_FIXED = 2
}; /* inputs before the carried ones: trip count and condition; of the body: iteration and condition
    */

/* How many iterations a loop with this body does: -1 unknown before the run; INT64_MAX: without
 * end. */
int64_t fac_loop_trips(const fac_node *n, const fac_graph *body);
#endif
