/* Memory that is lent to a device: when its owner sees what a run wrote.  Skipped where no driver
 * is.
 */
#include "opencl_pair.h"

/* Memory that was lent has the contents once its tensor is freed, but not when it is discarded. */
static void contents_come_home_or_are_discarded(void **state) {
    (void)state;
    NEEDS_DEVICE();
    enum { N = 100 };
    fac_program *p = doubling(opencl, N);
    fac_tensor *x = random_tensor(NULL, fac_shape(N), 4);
    const float *a = fac_tensor_data(x);
    for (int discard = 0; discard < 2; discard++) {
        float y[N] = { 0 };
        fac_tensor *t, *held;
        OK(fac_tensor_lend(FAC_F32, fac_shape(N), NULL, y, NULL, NULL, &t, &err));
        OK(fac_program_run(p, &x, &t, &err));
        assert_true(away(t));
        held = fac_tensor_retain(t);
        if (discard)
            fac_tensor_discard(t);
        else
            fac_tensor_free(t);
        assert_true(away(held)); /* who still has it may read it */
        fac_tensor_free(held);
        for (int i = 0; i < N; i++) assert_true(y[i] == (discard ? 0 : 2 * a[i]));
    }
    fac_tensor_discard(NULL);
    fac_program_free(p);
    fac_tensor_free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(contents_come_home_or_are_discarded) };
    return cmocka_run_group_tests_name("opencl lent", tests, open_devices, close_devices);
}
