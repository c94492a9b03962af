/* What tests of solvers that mostly move memory share: a check with fresh numbers, forced on a
 * solver. */
#ifndef FACULA_MEMORY_CHECK_H
#define FACULA_MEMORY_CHECK_H
#include "solver_check.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/streams.h"
#include "facula/ops.h"
#include "op_list.h"

static check fresh(uint64_t seed, double lo, double hi, double tolerance) {
    return (check){ .seed = seed,
                    .lo = lo,
                    .hi = hi,
                    .tolerance = tolerance,
                    .threads = 2,
                    .strided = true,
                    .blocked = true };
}

/* Every instruction set, several layouts; it must offer each time. */
static void everywhere(check c, const char *solver, const fac_value *y, int rounds) {
    fac_error err = { 0 };
    if (fac_graph_check(y->graph, &err)) fail_msg("%s", err.text);
    for (size_t i = 0; i < sizeof check_isas / sizeof *check_isas; i++)
        for (int round = 0; round < rounds; round++) {
            c.isa = check_isas[i];
            c.in_place = round % 2 && y->node->op->is & FAC_OP_INPLACE;
            if (!check_node(&c, solver, y->node))
                fail_msg("%s: no offer for %s, %d dims (seed %llu)", solver, y->node->op->name,
                         y->node->in[0]->type.dims.n, (unsigned long long)c.seed);
        }
}

static fac_value *in(fac_graph *g, const char *name, fac_dtype t, fac_dims d) {
    return fac_input(g, name, t, d);
}
#endif
