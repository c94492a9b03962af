/* The device's own clock: a profiled run tells every launch with its step and its times, in order,
 * and whole runs are as ever before and afterwards; peaks are numbers that can be compared with.
 * Skipped where no driver is. */
#include <string.h>
#include "opencl_pair.h"
#include "backends/device.h"
#include "base/memory.h"

enum { MOST = 200 };

static fac_graph *chain_of_three(void) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(32, 64));
    x = fac_softmax(fac_matmul(x, fac_transpose(x, fac_shape(1, 0))), 1);
    fac_output(g, "y", fac_sum(x, fac_shape(0, 1), false));
    return g;
}

static void launches_have_steps_and_times(void **state) {
    (void)state;
    NEEDS_DEVICE();
    static fac_launch_stat l[MOST];
    static fac_step_stat s[MOST];
    fac_graph *g = chain_of_three();
    fac_program *p = NULL;
    fac_tensor *x = random_tensor(opencl, fac_shape(32, 64), 1), *y = NULL;
    float before = 0, watched = 1;
    OK(fac_program_new(g, opencl, NULL, &p, &err));
    OK(fac_program_run(p, &x, &y, &err));
    OK(fac_tensor_read(y, &before, sizeof before, &err));
    assert_int_equal(fac_program_launches(p, l, MOST), 0);
    fac_program_profile(p, true);
    for (int run = 1; run <= 3; run++) {
        OK(fac_program_run(p, &x, &y, &err));
        const size_t n = fac_program_launches(p, l, MOST), steps = fac_program_steps(p, s, MOST);
        assert_true(n >= steps && n < MOST);
        double sum[MOST] = { 0 };
        for (size_t i = 0; i < n; i++) {
            assert_true(l[i].seconds > 0);
            assert_true(strlen(l[i].kernel) > 0 && l[i].step < (int)steps);
            if (i) assert_true(l[i].start >= l[i - 1].start && l[i].step >= l[i - 1].step);
            if (l[i].groups) assert_true(l[i].items > 0);
            sum[l[i].step] += l[i].seconds;
        }
        for (size_t i = 0; i < steps; i++) {
            assert_int_equal(s[i].runs, run);
            assert_true(s[i].seconds > 0 && (run > 1 || s[i].seconds == sum[i]));
        }
    }
    OK(fac_tensor_read(y, &watched, sizeof watched, &err));
    assert_true(before == watched);
    fac_program_profile(p, false);
    OK(fac_program_run(p, &x, &y, &err));
    OK(fac_tensor_read(y, &watched, sizeof watched, &err));
    assert_true(before == watched);
    fac_program_free(p);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_graph_free(g);
}

static void watching_ends_once(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_command *all = NULL;
    size_t n = 0;
    assert_int_equal(opencl->backend->watch(opencl, &all, &n, &err), FAC_E_ARGUMENT);
    OK(opencl->backend->watch(opencl, NULL, NULL, &err));
    OK(opencl->backend->watch(opencl, &all, &n, &err));
    assert_int_equal(n, 0);
    assert_non_null(all);
    fac_release(all);
}

static void peaks_are_measured(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_peaks p;
    OK(fac_device_peaks(opencl, &p, &err));
    assert_true(p.threads > 0 && p.flops > 0 && p.flops_one > 0 && p.flops_one <= p.flops);
    assert_true(p.memory_read > 0 && p.memory_copy > 0 && p.fork_join > 0 && p.launch > 0);
    assert_true(p.tensor_tf32 >= 0 && (p.tensor_tf32 > 0) == (p.tensor_half > 0));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(launches_have_steps_and_times),
                                        cmocka_unit_test(watching_ends_once),
                                        cmocka_unit_test(peaks_are_measured) };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
