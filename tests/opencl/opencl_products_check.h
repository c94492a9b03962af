/* Any solver of the OpenCL device on any problem. */
#ifndef FACULA_TESTS_OPENCL_PRODUCTS_CHECK_H
#define FACULA_TESTS_OPENCL_PRODUCTS_CHECK_H
#include "opencl_solver_check.h"
#include "backends/opencl/product/gemm.h"
#include "backends/opencl/device/probe.h"

static inline int below(int n) { return (int)(fac_random_bits(seed, ++stream, 0) % (uint64_t)n); }

static inline const fac_solver *solver(const char *name) {
    for (const fac_solver *const *s = device->backend->solvers; *s; s++)
        if (!strcmp((*s)->name, name)) return *s;
    fail_msg("no solver %s", name);
    return NULL;
}

/* true: the solver took it. */
static inline bool pose_text(const char *name, const char *text, bool gaps, double tolerance) {
    fac_graph *g = NULL;
    const fac_case c = { text, -1, 1, tolerance };
    if (fac_problem_graph(text, false, &g, &err)) fail_msg("%s: %s", text, err.text);
    if (getenv("FACULA_VERBOSE")) print_message("%s: %s%s\n", name, text, gaps ? " (gaps)" : "");
    const bool took = solve(solver(name), g->last, &c, gaps);
    fac_graph_free(g);
    return took;
}

static inline bool try_text(const char *name, const char *text, bool gaps, double tolerance) {
    fac_opencl_of(device)->limits.gpu = below(2); /* kernels shaped for a GPU, or for a cpu */
    return pose_text(name, text, gaps, tolerance);
}

#endif
