/* Convolutions of three dims as such of two, all at once or summed: the same as the reference
 * kernels, for strides, dilations, groups, uneven padding, several images and kernels of one place
 * in depth. */
#include "problem_check.h"

static const struct {
    const char *problem;
    bool becomes; /* convolutions of two dims for certain; else where that is faster */
} all[] = {
    { "conv3d(f32[1,16,5,15,13], f32[32,16,3,3,3], f32[32]) pad=1,1,1,1,1,1", true },
    { "conv3d(f32[2,16,7,17,16], f32[24,16,3,3,3]) pad=2,1,1,0,1,1 stride=2,1,1", false },
    { "conv3d(f32[1,32,9,14,14], f32[32,16,2,3,3], f32[32]) dilation=3,1,1 groups=2", false },
    { "conv3d(f32[3,16,4,19,15], f32[16,16,1,3,3], f32[16]) pad=0,1,1,0,1,1", true },
    { "conv3d(f32[1,16,6,16,16], f32[16,16,3,3,3]) stride=3,2,2 auto_pad=same_upper", false },
    { "conv3d(f32[1,16,3,14,14], f32[16,16,5,3,3], f32[16]) pad=4,1,1,3,1,1", true },
    { "conv3d(f32[1,3,9,28,28], f32[16,3,3,3,3], f32[16]) pad=1,1,1,1,1,1", true },
    { "conv3d(f32[2,2,11,20,19], f32[24,2,4,3,3]) pad=1,0,1,4,1,1 stride=2,1,1 dilation=2,1,1",
      false },
    { "conv3d(f32[1,1,20,16,16], f32[16,1,17,3,3], f32[16]) pad=2,1,1,2,1,1", false },
    { "conv3d(f32[1,4,8,12,12], f32[32,2,3,3,3]) groups=2 pad=1,1,1,1,1,1", false },
    { "conv3d(f64[1,4,3,5,5], f64[4,4,3,3,3]) pad=1,1,1,1,1,1", false },
};

static fac_tensor *result(fac_device *d, const fac_graph *g, bool plain, fac_tensor *const in[],
                          bool *becomes) {
    fac_error err = { 0 };
    fac_program *p;
    fac_tensor *y = NULL, *wide;
    const fac_program_opts o = { .solver = plain ? "ref" : NULL, .no_fuse = plain };
    if (fac_program_new(g, d, &o, &p, &err) || fac_program_run(p, in, &y, &err))
        fail_msg("%s", err.text);
    fac_step_stat s[64];
    const size_t n = fac_program_steps(p, s, 64);
    *becomes = true;
    for (size_t k = 0; k < n && k < 64; k++)
        if (!strncmp(s[k].solver, "conv3d", 6) || !strcmp(s[k].solver, "ref")) *becomes = false;
    assert_int_equal(fac_tensor_convert(y, FAC_F64, &wide, &err), FAC_OK);
    fac_tensor_free(y);
    fac_program_free(p);
    return wide;
}

static void on(const char *isa) {
    fac_error err = { 0 };
    fac_device *d;
    const fac_device_opts o = { .threads = 2, .isa = isa };
    if (fac_device_open("cpu", &o, &d, &err)) return; /* this machine has no such instructions */
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fac_graph *g;
        fac_tensor *in[3] = { NULL };
        bool becomes, plain;
        const problem_check c = { .seed = i + 1, .lo = -1, .hi = 1, .tolerance = 2e-5 };
        if (fac_problem_graph(all[i].problem, false, &g, &err)) fail_msg("%s", err.text);
        for (int k = 0; k < fac_graph_inputs(g); k++) {
            const fac_type t = fac_value_type(fac_graph_input(g, k));
            assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &in[k], &err), FAC_OK);
            problem_fill(&c, k, in[k]);
        }
        fac_tensor *got = result(d, g, false, in, &becomes), *want = result(d, g, true, in, &plain);
        problem_compare(&c, got, want, all[i].problem);
        if (strcmp(isa, "portable") && all[i].becomes && !becomes)
            fail_msg("%s, %s: no convolutions of two dims", isa, all[i].problem);
        fac_tensor_free(got);
        fac_tensor_free(want);
        for (int k = 0; k < 3; k++) fac_tensor_free(in[k]);
        fac_graph_free(g);
    }
    fac_device_free(d);
}

static void every_instruction_set(void **state) {
    (void)state;
    for (const char *const *isa = problem_isas; *isa; isa++) on(*isa);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_instruction_set) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
