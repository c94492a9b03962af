/* Paths after probes, each forced and hidden: exchanges in subgroups under folds of lines and
 * products of few rows, factors that are halves, dot products of bytes.  Kernels are shaped for a
 * GPU, whatever the device is.  Where a device has no such path all other tests are of the plain
 * kernels; here it is said that it is skipped. */
#include "backends/opencl/device/probe.h"
#include "opencl_solver_check.h"

/* Lines of less than a subgroup, of some, and of as many items as a group may have. */
static const fac_case lines[] = {
    { "softmax(f32[37,9]) axis=1", -4, 4, 1e-6 },
    { "softmax(f32[5,100]) axis=1", -4, 4, 1e-6 },
    { "softmax(f32[3,1000]) axis=1", -4, 4, 1e-6 },
    { "softmax(f32[2,9000]) axis=1", -4, 4, 1e-6 },
    { "log_softmax(f16[3,1000]) axis=1", -4, 4, 1e-2 },
    { "layer_norm(f32[9,40], f32[40], f32[40]) axis=-1 epsilon=1e-5", -1, 1, 1e-5 },
    { "layer_norm(f32[3,768], f32[768], f32[768]) axis=-1 epsilon=1e-5", -1, 1, 1e-5 },
    { "rms_norm(f32[2,5000], f32[5000]) axis=-1 epsilon=1e-5", -1, 1, 1e-5 },
    { "sum(f32[7,3000], i64{1})", -1, 1, 1e-5 },
    { "sum(i64[5,777], i64{1})", -99, 99, 0 },
    { "sum(f64[5,777], i64{1})", -1, 1, 1e-12 },
    { "reduce_max(f32[9,2000], i64{1})", -9, 9, 0 },
    { "reduce_prod(f64[4,300], i64{1})", 0.9, 1.1, 1e-9 },
    { "mean(f32[100,17], i64{1})", -1, 1, 1e-5 },
    { "softmax_grad(f32[3,700], f32[3,700]) axis=1", -1, 1, 1e-5 },
    { "log_softmax_grad(f32[3,700], f32[3,700]) axis=1", -4, 1, 1e-5 },
    { "cross_entropy(f32[37,9], i64[37]) label_smoothing=0.1", -4, 4, 2e-6 },
    { "cross_entropy(f32[3,1000], i64[3])", -9, 9, 2e-6 },
    { "cross_entropy_grad(f32[37,9], i64[37], f32[], f32[])", 1, 4, 2e-6 },
    { "cross_entropy_grad(f32[3,1000], i64[3], f32[3]) label_smoothing=0.1", -9, 9, 4e-6 }
};

static const fac_case thin[] = { { "matmul(f32[1,5000], f32[5000,33])", -1, 1, 1e-5 },
                                 { "matmul(f32[3,1200], f32[1200,64])", -1, 1, 1e-5 },
                                 { "linear(f32[1,4096], f32[50,4096], f32[50])", -1, 1, 1e-5 },
                                 { "linear(f32[4,999], f32[17,999])", -1, 1, 1e-5 },
                                 { "linear(f32[8,130], f32[9,130])", -1, 1, 1e-5 },
                                 { "matmul(f64[2,600], f64[600,9])", -1, 1, 1e-12 },
                                 { "matmul(i32[1,700], i32[700,12])", -99, 99, 0 },
                                 { "linear(f16[2,600], f16[40,600])", -1, 1, 4e-3 } };

static const fac_case halves[] = {
    { "matmul(f16[65,130], f16[130,70])", -1, 1, 4e-3 },
    { "matmul(f16[2,64,33], f16[33,64])", -1, 1, 4e-3 },
    { "linear(f16[128,256], f16[64,256], f16[64])", -1, 1, 4e-3 },
    { "matmul(f16[64,16], f16[16,64])", -3e-4, 3e-4, 1e-7 }, /* products below the smallest half */
    { "conv2d(f16[2,19,9,9], f16[24,19,3,3], f16[24]) pad=1,1,1,1", -1, 1, 4e-3 },
    { "conv2d_grad_x(f16[2,24,9,9], f16[24,19,3,3], f16[2,19,9,9]) pad=1,1,1,1", -1, 1, 4e-3 },
    { "conv2d_grad_w(f16[2,19,9,9], f16[2,24,9,9], f16[24,19,3,3]) pad=1,1,1,1", -1, 1, 8e-3 }
};

static const fac_case bytes[] = { { "matmul(i8[65,132], i8[132,70])", -128, 127, 0 },
                                  { "matmul(u8[65,132], u8[132,70])", 0, 255, 0 },
                                  { "matmul(i8[3,40,64], i8[64,200])", -128, 127, 0 },
                                  { "matmul(u8[3,9,16], u8[3,16,5])", 0, 255, 0 },
                                  { "matmul(i8[4], i8[4,9])", -128, 127, 0 },
                                  { "matmul(u8[70,4], u8[4,1])", 0, 255, 0 },
                                  { "matmul(i8[40,4096], i8[4096,36])", -128, 127, 0 },
                                  { "gemm(i8[64,33], i8[64,48], i8[48]) trans_a", -128, 127, 0 },
                                  { "gemm(u8[33,64], u8[48,64], u8[48]) trans_b", 0, 255, 0 } };

/* Tries each case by each of the named solvers that takes it, as a GPU, operands with gaps or
 * plain. */
static int solved(const fac_case *cases, int n, const char *const *solvers) {
    const bool gpu = fac_opencl_of(device)->limits.gpu;
    int count = 0;
    fac_opencl_of(device)->limits.gpu = true;
    for (int k = 0; k < n; k++) {
        fac_graph *g = NULL;
        if (strstr(cases[k].problem, "f64") && !fac_opencl_of(device)->limits.fp64) continue;
        OK(fac_problem_graph(cases[k].problem, false, &g, &err));
        for (const fac_solver *const *s = device->backend->solvers; *s; s++)
            for (int i = 0; solvers[i]; i++)
                if (!strcmp((*s)->name, solvers[i]) && (!(*s)->op || (*s)->op == g->last->op))
                    count += (fac_random_bits(seed, ++stream, 0) & 1 &&
                              solve(*s, g->last, &cases[k], true)) ||
                             solve(*s, g->last, &cases[k], false);
        fac_graph_free(g);
    }
    fac_opencl_of(device)->limits.gpu = gpu;
    return count;
}

static void hide(const fac_cl_path *paths, int n, bool hidden) {
    for (int i = 0; i < n; i++)
        fac_opencl_of(device)->paths[paths[i]] = hidden ? FAC_CL_BAD : FAC_CL_UNKNOWN;
}

/* With each of the paths alone, then with none; how many problems were solved in all, 0 where the
 * device has none of them.  Ways after the first that works differ from it in a word: some cases
 * are enough. */
static int forced_and_hidden(const fac_cl_path *paths, int n, const fac_case *cases, int ncases,
                             const char *const *solvers) {
    fac_opencl *o = fac_opencl_of(device);
    enum { SOME = 4 };
    int all = 0;
    for (int i = 0; i < n; i++) {
        hide(paths, n, true);
        hide(&paths[i], 1, false);
        int these = 0;
        if (fac_cl_has_path(o, paths[i]))
            these = solved(cases, all && ncases > SOME ? SOME : ncases, solvers);
        if (these)
            print_message("%s: %d problems\n", fac_cl_path_name(paths[i]), these);
        else
            print_message("%s: skipped, %s\n", fac_cl_path_name(paths[i]),
                          fac_cl_promises(o, paths[i]) ? "its probe fails"
                                                       : "the device does not report it");
        all += these;
    }
    hide(paths, n, true);
    if (all) print_message("without: %d problems\n", solved(cases, ncases, solvers));
    hide(paths, n, false);
    return all;
}
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static void subgroups_fold_lines(void **state) {
    (void)state;
    if (!device) skip();
    const fac_cl_path paths[] = { FAC_CL_SHUFFLE, FAC_CL_SHUFFLE_INTEL, FAC_CL_SHUFFLE_NVIDIA };
    const char *const folds[] = { "softmax",
                                  "norm",
                                  "reduce",
                                  "softmax_grad",
                                  "log_softmax_grad",
                                  "cross_entropy",
                                  "cross_entropy_grad",
                                  NULL };
    const char *const few[] = { "product/thin", NULL };
    exact = false;
    const int all = forced_and_hidden(paths, COUNT(paths), lines, COUNT(lines), folds);
    if (!all) skip();
    assert_true(all >= COUNT(lines));
    assert_true(forced_and_hidden(paths, COUNT(paths), thin, COUNT(thin), few) >= COUNT(thin));
}

static void halves_stay_halves(void **state) {
    (void)state;
    if (!device) skip();
    const fac_cl_path paths[] = { FAC_CL_HALF };
    const char *const tiles[] = { "product/tile", "conv/tile", NULL };
    exact = false;
    const int all = forced_and_hidden(paths, 1, halves, COUNT(halves), tiles);
    if (!all) skip();
    assert_int_equal(all, COUNT(halves));
}

static void bytes_are_multiplied_by_four(void **state) {
    (void)state;
    if (!device) skip();
    const fac_cl_path paths[] = { FAC_CL_DOT8, FAC_CL_DOT8_NVIDIA };
    const char *const dot[] = { "product/dot", NULL };
    const int all = forced_and_hidden(paths, COUNT(paths), bytes, COUNT(bytes), dot);
    if (!all) skip();
    assert_true(all >= COUNT(bytes));
    hide(paths, COUNT(paths), true);
    assert_int_equal(solved(bytes, COUNT(bytes), dot), 0);
    hide(paths, COUNT(paths), false);
}

static cl_context CL_API_CALL no_context(
    const cl_context_properties *how, cl_uint n, const cl_device_id *devices,
    void(CL_CALLBACK *tell)(const char *, const void *, size_t, void *), void *self, cl_int *code) {
    (void)how, (void)n, (void)devices, (void)tell, (void)self;
    *code = CL_OUT_OF_HOST_MEMORY;
    return NULL;
}

/* A full device says nothing of its paths: the answer is not kept for later processes. */
static void probes_without_memory_are_no_answers(void **state) {
    char folder[] = "/tmp/facula-probes-XXXXXX", remove[64];
    fac_opencl *o = device ? fac_opencl_of(device) : NULL;
    (void)state;
    if (!o || !fac_cl_has_path(o, FAC_CL_DOUBLES)) skip();
    const char *before = getenv("FACULA_CACHE");
    char *kept = before ? strdup(before) : NULL;
    assert_non_null(mkdtemp(folder));
    setenv("FACULA_CACHE", folder, 1);
    const fac_cl_api ordinary = o->cl;
    o->cl.CreateContext = no_context;
    o->paths[FAC_CL_DOUBLES] = FAC_CL_UNKNOWN;
    assert_false(fac_cl_has_path(o, FAC_CL_DOUBLES));
    assert_int_equal(o->paths[FAC_CL_DOUBLES], FAC_CL_UNTOLD);
    o->cl = ordinary;
    o->paths[FAC_CL_DOUBLES] = FAC_CL_UNKNOWN;
    assert_true(fac_cl_has_path(o, FAC_CL_DOUBLES));
    if (kept)
        setenv("FACULA_CACHE", kept, 1);
    else
        unsetenv("FACULA_CACHE");
    snprintf(remove, sizeof remove, "rm -rf %s", folder);
    assert_int_equal(system(remove), 0);
    free(kept);
}

/* A solver that a probe guards is offered only where the device has what it says. */
static void nothing_is_used_without_its_probe(void **state) {
    (void)state;
    if (!device) skip();
    fac_opencl *o = fac_opencl_of(device);
    const fac_cl_path all[] = { FAC_CL_HALF,           FAC_CL_SHUFFLE, FAC_CL_SHUFFLE_INTEL,
                                FAC_CL_SHUFFLE_NVIDIA, FAC_CL_DOT8,    FAC_CL_DOT8_NVIDIA };
    fac_text front = { 0 }, options = { 0 };
    const bool gpu = o->limits.gpu;
    hide(all, COUNT(all), true);
    o->limits.gpu = true;
    assert_false(fac_cl_exchange_text(o, &front, &options));
    assert_false(fac_cl_dot_text(o, &front, &options));
    assert_true(!front.s && !options.s);
    hide(all, COUNT(all), false);
    const bool exchanges = fac_cl_has_path(o, FAC_CL_SHUFFLE) ||
                           fac_cl_has_path(o, FAC_CL_SHUFFLE_INTEL) ||
                           fac_cl_has_path(o, FAC_CL_SHUFFLE_NVIDIA);
    assert_int_equal(fac_cl_exchange_text(o, &front, &options), exchanges);
    o->limits.gpu = false;
    assert_false(fac_cl_exchange_text(o, &front, &options));
    o->limits.gpu = gpu;
    fac_text_free(&front);
    fac_text_free(&options);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(subgroups_fold_lines),
                                        cmocka_unit_test(halves_stay_halves),
                                        cmocka_unit_test(bytes_are_multiplied_by_four),
                                        cmocka_unit_test(nothing_is_used_without_its_probe),
                                        cmocka_unit_test(probes_without_memory_are_no_answers) };
    return cmocka_run_group_tests_name("opencl paths", tests, open_device, close_device);
}
