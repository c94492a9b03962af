/* Kernels whose work items take vectors of neighbours: on shapes that are whole vectors and such
 * that are not, with channels last and plain, in f32, bf16 and f16, shaped for a GPU.  Lines are
 * held in registers, read twice, or cut into parts.  Some of the problems are tried, FACULA_ALL=1
 * tries all.  Skipped where no driver is. */
#include "opencl_neighbours.h"

enum { TEMPLATES = sizeof templates / sizeof *templates, SOME = 12 };

/* Batch norms on slices of more channels, each operand of others, as parts of a concat are. */
static void parts(void **state) {
    (void)state;
    if (!device) skip();
    fac_opencl_of(device)->limits.gpu = true;
    channels_last = slices = true;
    for (int k = 0; k < TEMPLATES && !strncmp(templates[k].solver, "batch_norm", 10); k++)
        for (int j = 0; j < 2; j++) try_one(&templates[k], types[number(0, 2)], j);
    channels_last = slices = false;
}

static void vectors(void **state) {
    (void)state;
    if (!device) skip();
    const bool all = getenv("FACULA_ALL") != NULL;
    const int first = (int)number(0, TEMPLATES - 1);
    fac_opencl_of(device)->limits.gpu = true;
    for (int k = 0; k < (all ? TEMPLATES : SOME); k++) {
        const struct template *t = &templates[(first + k * (all ? 1 : 5)) % TEMPLATES];
        for (int j = 0; j < (all ? 3 : 1); j++) {
            channels_last = number(0, 1);
            try_one(t, types[all ? j : number(0, 2)], number(0, 3));
        }
    }
}

/* A window on a tensor of the device begins where no vector may: it is lent as a copy, as an input
 * and as a result. */
static void windows(void **state) {
    (void)state;
    if (!device) skip();
    enum { ALL = 100, SOME_OF_THEM = 64, FIRST = 3 };
    fac_tensor *x[2] = { NULL }, *in = NULL, *out = NULL;
    float from[ALL], to[ALL] = { 0 };
    fac_graph *g = NULL;
    fac_program *p = NULL;
    fac_opencl_of(device)->limits.gpu = true;
    for (int i = 0; i < ALL; i++) from[i] = (float)(i % 7) - 3;
    for (int k = 0; k < 2; k++) OK(fac_tensor_new(device, FAC_F32, fac_shape(ALL), &x[k], &err));
    OK(fac_tensor_write(x[0], from, sizeof from, &err));
    OK(fac_tensor_view(x[0], fac_shape(SOME_OF_THEM), NULL, FIRST, &in, &err));
    OK(fac_tensor_view(x[1], fac_shape(SOME_OF_THEM), NULL, FIRST, &out, &err));
    OK(fac_problem_graph("relu(f32[64])", false, &g, &err));
    OK(fac_program_new(g, device, NULL, &p, &err));
    OK(fac_program_run(p, &in, &out, &err));
    OK(fac_tensor_read(x[1], to, sizeof to, &err));
    for (int i = 0; i < ALL; i++) {
        const bool inside = i >= FIRST && i < FIRST + SOME_OF_THEM;
        assert_true(to[i] == (inside && from[i] > 0 ? from[i] : 0));
    }
    fac_tensor_free(in), fac_tensor_free(out), fac_tensor_free(x[0]), fac_tensor_free(x[1]);
    fac_program_free(p);
    fac_graph_free(g);
}

int main(void) {
    decide = away_from_zeros;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(parts),
        cmocka_unit_test(windows),
    };
    return cmocka_run_group_tests_name("opencl channels last", tests, open_device, close_device);
}
