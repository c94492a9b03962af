/* The solver "reduce" as it cuts its work for a GPU (wherever it runs) and for the device at hand:
 * sums over the pixels of images with channels last or plain, lines, columns, parts of them and
 * what is folded of those, against the reference driver. */
#include "opencl_solver_check.h"
#include "opencl_solvers.h"

static const fac_case cases[] = {
    { "sum(f32[3,64,37,41], i64{0,2,3})", -1, 1, 3e-6 },
    { "mean(bf16[2,24,75,33], i64{0,2,3})", -1, 1, 1e-2 },
    { "sum(f32[20001,132], i64{0})", -1, 1, 3e-6 },
    { "reduce_max(f32[6000,300], i64{0})", -9, 9, 0 },
    { "sum(f32[300001], i64{0})", -1, 2, 3e-6 },
    { "sum(i64[9000,129], i64{0})", -9, 9, 0 },
    { "mean(f32[7,70000], i64{1}) keep", -1, 1, 3e-6 },
    { "sum_like(f32[6,40,31,17], f32[40,1,1])", -1, 1, 3e-6 },
};

static void folds(void **state) {
    (void)state;
    fac_opencl *o = fac_opencl_of(device);
    if (!o) skip();
    const bool gpu = o->limits.gpu;
    const unsigned units = o->limits.units;
    of_largest = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fac_graph *g = NULL;
        OK(fac_problem_graph(cases[i].problem, false, &g, &err));
        for (int k = 0; k < 4; k++) {
            o->limits.gpu = k < 3 || gpu;
            o->limits.units = k < 3 ? 132 : units;
            channels_last = k & 1;
            if (!solve(&fac_cl_reduce, g->last, &cases[i], k == 2))
                fail_msg("no offer: %s", cases[i].problem);
        }
        fac_graph_free(g);
    }
    o->limits.gpu = gpu;
    o->limits.units = units;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(folds) };
    return cmocka_run_group_tests_name("opencl_reduce", tests, open_device, close_device);
}
