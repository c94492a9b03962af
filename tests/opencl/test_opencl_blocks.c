/* Linear layers of weights in blocks on OpenCL, against sums in f64 of what the blocks stand
 * for. */
/* clang-format off */
#include "opencl_check.h"
#include "blocks_check.h"
/* clang-format on */

static fac_device *device;

static void every_type(void **state) {
    (void)state;
    static const fac_dtype of[] = { FAC_Q8_0, FAC_Q4_0, FAC_Q4_1, FAC_Q4_K, FAC_Q6_K };
    if (!device) skip();
    for (int k = 0; k < 5; k++)
        for (int round = 0; round < 4; round++) {
            const int64_t block = fac_dtype_get(of[k])->block_elements,
                          K = block * (1 + (int64_t)draw(block > 32 ? 4 : 20));
            const int64_t M = round == 0   ? 1
                              : round == 1 ? 2 + (int64_t)draw(3)
                                           : 5 + (int64_t)draw(20),
                          N = 1 + (int64_t)draw(70);
            fac_tensor *x = floats(fac_shape(M, K)), *w = weights(of[k], N, K),
                       *b = draw(2) ? floats(fac_shape(N)) : NULL;
            fac_tensor *y = run(device, x, w, b, FAC_PRECISION_DEFAULT);
            const double off = worst(x, w, b, y);
            if (!(off < 1e-6))
                fail_msg("%s: %lld x %lld x %lld is off by %g", fac_dtype_get(of[k])->name,
                         (long long)M, (long long)K, (long long)N, off);
            fac_tensor_free(x);
            fac_tensor_free(w);
            fac_tensor_free(b);
            fac_tensor_free(y);
        }
}

int main(void) {
    seed = fresh_seed();
    if (opencl_open(&device, &err)) return 1;
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_type) };
    const int failed = cmocka_run_group_tests_name("opencl blocks", tests, NULL, NULL);
    fac_device_free(device);
    return failed;
}
