/* Every solver of the OpenCL device on every operator that it takes, operands plain or with random
 * gaps, against the reference driver.  A compiler that runs on the CPU takes its time, so one
 * random case of each operator is tried; FACULA_ALL=1 tries all (opencl_cases in CMakeLists.txt),
 * FACULA_SHARD=i/n with it those of the i-th of n processes, FACULA_SOLVER=name,name these solvers
 * only, -name,name all others.  Kernels are shaped for a GPU half of the time (FACULA_GPU=1:
 * always).  Skipped where no driver is. */
#include "backends/opencl/device/probe.h"
#include "opencl_solver_check.h"
#include "shard.h"

/* names: separated by commas. */
static bool is_among(const char *names, const char *solver) {
    const size_t n = strlen(solver);
    for (const char *s = names; *s; s += *s == ',') {
        const size_t length = strcspn(s, ",");
        if (length == n && !strncmp(s, solver, n)) return true;
        s += length;
    }
    return false;
}

static bool asked_for(const char *solver) {
    const char *only = getenv("FACULA_SOLVER");
    return !only || (*only == '-' ? !is_among(only + 1, solver) : is_among(only, solver));
}

typedef enum effort { ONE, UNTIL_TAKEN, ALL } effort;

static shard part = { 0, 1, 0 };

/* With gaps or not, shaped for a GPU or not: one at random, or from that one on until the solver
 * takes it. */
static bool solve_in_a_form(const fac_solver *s, const fac_node *n, const fac_case *c, effort how) {
    const uint64_t first = fac_random_bits(seed, ++stream, 0);
    bool taken = false;
    for (uint64_t k = 0; k < (how == ONE ? 1 : 4) && !taken; k++) {
        fac_opencl_of(device)->limits.gpu = getenv("FACULA_GPU") || (first + k) & 2;
        taken = solve(s, n, c, (first + k) & 1);
    }
    return taken;
}

/* How many problems the solver took: of each operator one random case, or from a random one on
 * until it takes one, or all. */
static int try_solver(const fac_solver *s, effort how) {
    int solved = 0;
    for (const fac_op *const *op = fac_ops; *op; op++) {
        if (s->op && s->op != *op) continue;
        int cases = 0, taken = 0;
        while ((*op)->cases && (*op)->cases[cases].problem) cases++;
        const int first =
            cases && how != ALL ? (int)(fac_random_bits(seed, ++stream, 0) % (uint64_t)cases) : 0;
        for (int k = 0; k < cases && !(k && how == ONE) && !(taken && how == UNTIL_TAKEN); k++) {
            const fac_case *c = &(*op)->cases[(first + k) % cases];
            fac_graph *g = NULL;
            if (how == ALL && !shard_is_mine(&part)) continue;
            OK(fac_problem_graph(c->problem, false, &g, &err));
            taken += solve_in_a_form(s, g->last, c, how);
            fac_graph_free(g);
        }
        solved += taken;
    }
    return solved;
}

/* Whether the device has what a solver multiplies by. */
static bool may_be_asked(const char *solver) {
    fac_opencl *o = fac_opencl_of(device);
    if (strstr(solver, "/relay")) return fac_cl_has_path(o, FAC_CL_RELAY);
    if (strstr(solver, "wgmma")) return fac_cl_has_path(o, FAC_CL_WGMMA);
    if (strstr(solver, "mma") || !strcmp(solver, "conv/warps") ||
        !strcmp(solver, "attention/warps"))
        return fac_cl_has_path(o, FAC_CL_MMA);
    if (!strcmp(solver, "product/dot"))
        return fac_cl_has_path(o, FAC_CL_DOT8) || fac_cl_has_path(o, FAC_CL_DOT8_NVIDIA);
    return true;
}

/* Takes no case of an operator: it leaves scores and keys to others, works in no precision that f32
 * has by default, or wants weights in blocks.  They have tests of their own
 * (test_opencl_attention.c, test_nv_attention.c, test_opencl_products.c, test_opencl_blocks.c). */
static bool is_tested_elsewhere(const char *solver) {
    return !strcmp(solver, "attention/few") || !strcmp(solver, "attention/warps") ||
           !strcmp(solver, "attention/wgmma") || !strcmp(solver, "attention_grad/wgmma") ||
           !strcmp(solver, "product/thin_f16") || !strcmp(solver, "linear/blocks") ||
           !strcmp(solver, "cast/blocks");
}

/* How many were compiled or found on disk so far. */
static size_t programs(void) {
    const fac_cl_builds *b = &fac_opencl_of(device)->builds;
    return b->compiled + b->found;
}

static void every_case_of_every_op(void **state) {
    (void)state;
    if (!device) skip();
    const bool all = getenv("FACULA_ALL");
    part = shard_asked_for();
    exact = false;
    fac_opencl_of(device)->memory.apart =
        watched(); /* the simulator takes a new buffer for an old one of its number */
    fac_opencl *o = fac_opencl_of(device);
    if (!o->limits.gpu)
        snprintf(o->limits.vendor, sizeof o->limits.vendor,
                 "ARM"); /* the smallest tiles: soonest compiled */
    for (const fac_solver *const *s = device->backend->solvers; *s; s++) {
        if (!asked_for((*s)->name) || !may_be_asked((*s)->name)) continue;
        const size_t before = programs();
        int solved = try_solver(*s, all ? ALL : ONE);
        if (!solved && !all) solved = try_solver(*s, UNTIL_TAKEN); /* one that takes few problems */
        print_message("%-24s %d problems, %zu programs\n", (*s)->name, solved, programs() - before);
        if (part.of == 1) assert_int_equal(solved > 0, !is_tested_elsewhere((*s)->name));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_case_of_every_op) };
    return cmocka_run_group_tests_name("opencl solvers", tests, open_device, close_device);
}
