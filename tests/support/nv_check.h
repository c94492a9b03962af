/* For the tests of NVIDIA's matrix units: problems as solvers see them, on a device that need not
 * be there. */
#ifndef NV_CHECK_H
#define NV_CHECK_H
#include "opencl_solver_check.h"

static fac_opencl pretended; /* limits of a device that is not there */

static inline void as_problem(const fac_node *n, fac_precision asked, fac_operand *o,
                              fac_problem *p) {
    *p = (fac_problem){
        .node = n, .precision = asked, .nin = n->nin, .nout = n->nout, .in = o, .out = o + n->nin
    };
    for (int i = 0; i < n->nin + n->nout; i++) {
        const fac_value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
        o[i] = v ? (fac_operand){ v->type, fac_layout_plain(&v->type.dims), FAC_RUN, v->known }
                 : (fac_operand){ 0 };
    }
}

static inline int64_t number(int64_t least, int64_t most) {
    return least + (int64_t)(fac_random_bits(seed, ++stream, 0) % (uint64_t)(most - least + 1));
}
#endif
