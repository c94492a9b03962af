/* The solver "stft/fft" of the OpenCL device against the reference driver in f64: lengths of every
 * radix in any order, odd ones, windows, hops and numbers of frames at all edges, signals of pairs,
 * all types, as a CPU and as a GPU cut it, in local memory and out of it; FACULA_ALL=1 tries more
 * lengths.  Skipped where no driver is. */
#include "opencl_solver_check.h"

static const fac_solver *solver(void) {
    for (const fac_solver *const *s = device->backend->solvers; *s; s++)
        if (!strcmp((*s)->name, "stft/fft")) return *s;
    fail_msg("no solver stft/fft");
    return NULL;
}

/* |error| of a transform in f32, of its largest bin: 2^-24 times a few, and one for each
 * doubling. */
static double bound(int n) { return ldexp(2 + log2(n), -24); }

typedef enum form { AS_CPU, AS_GPU, AS_GPU_LONG, FORMS } form;

/* false: the solver leaves it to others.  AS_GPU_LONG: hardly anything fits into local memory. */
static bool pose(const char *text, form how, double tolerance) {
    fac_graph *g = NULL;
    fac_opencl *o = fac_opencl_of(device);
    const fac_gpu_limits limits = o->limits;
    const fac_case c = { text, -1, 1, tolerance };
    if (fac_problem_graph(text, false, &g, &err)) fail_msg("%s: %s", text, err.text);
    if (getenv("FACULA_VERBOSE")) print_message("%s, form %d\n", text, how);
    o->limits.gpu = how != AS_CPU;
    if (how == AS_GPU_LONG) o->limits.local = 64;
    of_largest = true;
    const bool took = solve(solver(), g->last, &c, false);
    o->limits = limits;
    fac_graph_free(g);
    return took;
}

static void edges(void **state) {
    static const struct {
        const char *problem;
        int n;
        form how;
    } all[] = {
        { "stft(f32[1,1], -, i64{1}, i64{1}) onesided", 1, AS_CPU },
        { "stft(f32[2,5], -, i64{3}, i64{2})", 2, AS_GPU },
        { "stft(f32[1,3], f32[3], i64{9}, -) onesided", 3, AS_GPU_LONG },
        { "stft(f32[3,40], f32[4], i64{1}, -)", 4, AS_GPU },
        { "stft(f32[1,70], f32[5], i64{2}, i64{5})", 5, AS_CPU },
        { "stft(f32[1,66], f32[1], i64{7}, i64{10}) onesided", 10, AS_GPU },
        { "stft(f32[2,1800], f32[400], i64{90}, -) onesided", 400, AS_GPU },
        { "stft(f32[2,1800], f32[400], i64{90}, -) onesided", 400, AS_CPU },
        { "stft(f32[1,2600], f32[320], i64{51}, i64{512}) onesided", 512, AS_GPU_LONG },
        { "stft(f32[1,3000], f32[375], i64{105}, -)", 375, AS_GPU },
        { "stft(f32[1,2600], f32[2048], i64{512}, -) onesided", 2048, AS_GPU },
    };
    (void)state;
    if (!device) skip();
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        assert_true(pose(all[k].problem, all[k].how, bound(all[k].n)));
    assert_false(pose("stft(f32[1,30], f32[14], i64{3}, -) onesided", AS_GPU, 0));
}

/* Numbers of 16 bits are rounded when they are stored, and nowhere else. */
static void types(void **state) {
    (void)state;
    if (!device) skip();
    for (form how = 0; how < FORMS; how++) {
        assert_true(pose("stft(f16[1,200], f16[40], i64{16}, -) onesided", how, 0x1p-11 + 1e-6));
        if (how == AS_GPU_LONG) continue;
        assert_true(pose("stft(bf16[2,90], f32[30], i64{16}, -)", how, 0x1p-8 + 1e-6));
        assert_true(pose("stft(f32[2,2,120], f32[20], i64{9}, i64{24})", how, bound(24)));
        if (fac_opencl_of(device)->limits.fp64)
            assert_true(pose("stft(f64[1,200], f64[40], i64{20}, -) onesided", how, 1e-14));
    }
}

static int below(int n) { return (int)(fac_random_bits(seed, ++stream, 0) % (uint64_t)n); }

/* Every radix, in any order, with any number of frames. */
static void any_length(void **state) {
    static const int factors[] = { 2, 2, 2, 3, 5, 4, 8 };
    (void)state;
    if (!device) skip();
    for (int k = 0; k < (getenv("FACULA_ALL") ? 60 : 6); k++) {
        enum { WORK = 300000 }; /* of the reference, for each signal */
        char problem[160];
        int n = 1;
        while (n < 8 + below(300)) n *= factors[below(7)];
        const int most = 1 + WORK / (n * n), wide = 1 + below(n), hop = 1 + below(n);
        const int frames = 1 + below(most < 50 ? most : 50), batch = 1 + below(3);
        snprintf(problem, sizeof problem, "stft(f32[%d,%d], f32[%d], i64{%d}, i64{%d})%s", batch,
                 n + (frames - 1) * hop + below(hop), wide, hop, n, k % 2 ? " onesided" : "");
        assert_true(pose(problem, (form)below(FORMS), bound(n)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(edges), cmocka_unit_test(types),
                                        cmocka_unit_test(any_length) };
    return cmocka_run_group_tests_name("opencl stft", tests, open_device, close_device);
}
