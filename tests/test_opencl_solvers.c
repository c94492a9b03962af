/* Every solver of the OpenCL device on every operator that it takes, operands plain or with random gaps, against the reference
 * driver.  A compiler that runs on the CPU takes its time, so one random case of each operator is tried; FACULA_ALL=1 tries all,
 * FACULA_SOLVER=name one solver only, -name all others.  Kernels are shaped for a GPU half of the time (FACULA_GPU=1: always).
 * Skipped where no driver is. */
#include "backends/opencl/probe.h"
#include "opencl_solver_check.h"

static bool asked_for(const char *solver) {
    const char *only = getenv("FACULA_SOLVER");
    return !only || (*only == '-' ? strcmp(only + 1, solver) != 0 : !strcmp(only, solver));
}

typedef enum effort { ONE, UNTIL_TAKEN, ALL } effort;

/* How many problems the solver took: of each operator one random case, or from a random one on until it takes one, for a GPU or
 * not, or all cases for both. */
static int try_solver(const fac_solver *s, effort how) {
    int solved = 0;
    for (const fac_op *const *op = fac_ops; *op; op++) {
        if (s->op && strcmp(s->op, (*op)->name)) continue;
        int cases = 0, taken = 0;
        while ((*op)->cases && (*op)->cases[cases].problem) cases++;
        const int first = cases ? (int)(fac_random_bits(seed, ++stream, 0) % (uint64_t)cases) : 0;
        for (int k = 0; k < cases && !(k && how == ONE) && !(taken && how == UNTIL_TAKEN); k++) {
            const fac_case *c = &(*op)->cases[(first + k) % cases];
            fac_graph *g = NULL;
            OK(fac_problem_graph(c->problem, false, &g, &err));
            const bool gaps = fac_random_bits(seed, ++stream, 0) & 1, gpu = fac_random_bits(seed, ++stream, 0) & 1;
            fac_opencl_of(device)->limits.gpu = getenv("FACULA_GPU") || gpu;
            if (how == ONE || gaps) taken += solve(s, g->last, c, gaps);
            for (int turn = 0; how != ONE && turn < 2 && !(taken && how == UNTIL_TAKEN); turn++) {
                fac_opencl_of(device)->limits.gpu = getenv("FACULA_GPU") || gpu == !turn;
                taken += solve(s, g->last, c, !gaps);
            }
            fac_graph_free(g);
        }
        solved += taken;
    }
    return solved;
}

/* Whether the device has what a solver multiplies by. */
static bool may_be_asked(const char *solver) {
    fac_opencl *o = fac_opencl_of(device);
    if (strstr(solver, "wgmma")) return fac_cl_has_path(o, FAC_CL_WGMMA);
    if (strstr(solver, "mma") || !strcmp(solver, "conv/warps")) return fac_cl_has_path(o, FAC_CL_MMA);
    if (!strcmp(solver, "product/dot")) return fac_cl_has_path(o, FAC_CL_DOT8) || fac_cl_has_path(o, FAC_CL_DOT8_NVIDIA);
    return true;
}

/* Takes no case of an operator: it leaves scores and keys to others, or works in no precision that f32 has by default.  They have
 * tests of their own (test_nv_attention.c). */
static bool is_tested_elsewhere(const char *solver) {
    return !strcmp(solver, "attention/wgmma") || !strcmp(solver, "attention_grad/wgmma");
}

/* How many were compiled or found on disk so far. */
static size_t programs(void) {
    const fac_cl_builds *b = &fac_opencl_of(device)->builds;
    return b->compiled + b->found;
}

static void every_case_of_every_op(void **state) {
    (void)state;
    if (!device) skip();
    exact = false;
    fac_opencl_of(device)->memory.apart = watched();        /* the simulator takes a new buffer for an old one of its number */
    fac_opencl *o = fac_opencl_of(device);
    if (!o->limits.gpu) snprintf(o->place.vendor, sizeof o->place.vendor, "ARM");  /* the smallest tiles: soonest compiled */
    for (const fac_solver *const *s = device->backend->solvers; *s; s++) {
        if (!asked_for((*s)->name) || !may_be_asked((*s)->name)) continue;
        const size_t before = programs();
        int solved = try_solver(*s, getenv("FACULA_ALL") ? ALL : ONE);
        if (!solved) solved = try_solver(*s, UNTIL_TAKEN);      /* one that takes few problems */
        print_message("%-24s %d problems, %zu programs\n", (*s)->name, solved, programs() - before);
        assert_int_equal(solved > 0, !is_tested_elsewhere((*s)->name));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_case_of_every_op) };
    return cmocka_run_group_tests_name("opencl solvers", tests, open_device, close_device);
}
