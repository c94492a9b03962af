/* How exact the convolutions of the cpu are, and what a program that wants exact results gets. */
#include "cpu_conv_check.h"
#include "op_list.h"
#include "ops/conv.h"

/* The rules of accuracy that conv_winograd.c and conv_first_winograd.c state: the largest error of
 * a layer, of its largest output, against that of the solver that does the textbook's
 * multiplications, one sum after the other: of images so large that it takes all channels at once.
 */
static void accuracy(fac_device *d, uint64_t seed) {
    static const struct {
        const char *solver;
        int64_t C, K, size, kernel, stride;
        double times;
    } of[] = { { "conv2d/winograd_2x2", 64, 48, 28, 3, 1, 1 },
               { "conv2d/winograd_2x2", 256, 32, 29, 3, 1, 1 },
               { "conv2d/winograd_4x4", 64, 48, 28, 3, 1, 4 },
               { "conv2d/winograd_4x4", 256, 32, 29, 3, 1, 4 },
               { "conv2d/winograd_5x5", 48, 32, 27, 5, 1, 2 },
               { "conv2d/winograd_4x4_5x5", 48, 32, 27, 5, 1, 10 },
               { "conv2d/winograd_2x2_strided", 64, 48, 56, 3, 2, 1 },
               { "conv2d/winograd_2x2_strided", 256, 32, 57, 3, 2, 1 },
               { "conv2d/winograd_4x4_strided", 64, 48, 56, 3, 2, 6 },
               { "conv2d/winograd_4x4_strided", 256, 32, 57, 3, 2, 6 },
               { "conv2d/first_winograd", 3, 32, 60, 3, 1, 3 },
               { "conv2d/first_winograd", 3, 32, 90, 7, 2, 3 },
               { "conv2d/first_winograd", 4, 32, 140, 11, 4, 3 } };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        const int64_t pad = of[k].kernel / 2;
        shape s = { 1,
                    of[k].C,
                    of[k].size,
                    of[k].size,
                    of[k].K,
                    of[k].kernel,
                    of[k].kernel,
                    1,
                    { .pad = { pad, pad, pad, pad }, .stride = { of[k].stride, of[k].stride } },
                    true,
                    0 };
        check_largest = true;
        check_tolerance = 1e-5f;
        assert_true(
            conv(d, of[k].C <= FAC_FEW_PLANES ? "conv2d/first" : "conv2d/direct", &s, seed));
        const double direct = check_error;
        assert_true(conv(d, of[k].solver, &s, seed));
        if (check_error > of[k].times * direct)
            fail_msg("%s, seed %llu: error %g, direct convolution has %g", of[k].solver,
                     (unsigned long long)seed, check_error, direct);
    }
    check_largest = false;
    check_tolerance = 1e-6f;
}

/* A program that wants exact results keeps F(2, 3) alone. */
static void exact(fac_device *d, uint64_t seed) {
    static const char *const inexact[] = { "conv2d/winograd_4x4", "conv2d/winograd_5x5",
                                           "conv2d/winograd_4x4_5x5", "conv2d/first_winograd",
                                           "conv2d/winograd_4x4_strided" };
    const fac_conv2d_opts strided = { .stride = { 2, 2 } };
    (void)seed;
    static const struct {
        int64_t kernel, channels;
    } sizes[] = { { 3, 16 }, { 5, 16 }, { 3, 3 }, { 3, 16 } };
    for (int64_t k = 0; k < 4; k++) {
        const int64_t kernel = sizes[k].kernel, channels = sizes[k].channels;
        fac_graph *g = fac_graph_new();
        fac_value *w = input(g, 1, fac_shape(16, channels, kernel, kernel));
        fac_value *y = fac_conv2d(input(g, 0, fac_shape(1, channels, 28, 28)), w, NULL,
                                  k == 3 ? &strided : NULL);
        int offers = 0;
        for (const fac_solver *const *s = d->backend->solvers; *s; s++) {
            fac_operand in[3] = { 0 },
                        out = { y->type, fac_layout_plain(&y->type.dims), FAC_RUN, NULL };
            for (int i = 0; i < 2; i++) {
                in[i].type = y->node->in[i]->type;
                in[i].layout = fac_layout_plain(&in[i].type.dims);
                in[i].time = i ? FAC_PREPARE : FAC_RUN;
            }
            fac_problem p = { .node = y->node,
                              .precision = FAC_PRECISION_HIGHEST,
                              .nin = y->node->nin,
                              .nout = 1,
                              .in = in,
                              .out = &out };
            fac_offer o = { 0 };
            if ((*s)->op != &fac_op_conv2d || !fac_solver_offer(*s, d, &p, &o)) continue;
            fac_offer_drop(&o);
            for (size_t i = 0; i < sizeof inexact / sizeof *inexact; i++)
                assert_string_not_equal((*s)->name, inexact[i]);
            offers += strstr((*s)->name, "winograd") != NULL;
        }
        assert_int_equal(offers, kernel == 3 && k < 3);
        fac_graph_free(g);
    }
}

static uint64_t seed;

static void test_accuracy(void **s) { (void)s, check_everywhere(accuracy, seed + 9000); }
static void test_exact(void **s) { (void)s, check_everywhere(exact, seed); }

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_accuracy),
                                        cmocka_unit_test(test_exact) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
