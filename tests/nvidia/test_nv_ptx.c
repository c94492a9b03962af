/* What stands between OpenCL C and NVIDIA's matrix units, as far as it needs none of them: PTX
 * rewritten, instructions written, division by multiplication; and where there is such a device,
 * that its probe's answer is what programs with marked instructions find. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "backends/gpu/nvidia/divide.h"
#include "backends/opencl/device/launch.h"
#include "backends/opencl/nvidia/unit/nvidia.h"
#include "base/memory.h"
#include "base/rng.h"
#include "cl_nv_common.h"
#include "fresh_seed.h"
#include "opencl_check.h"

static fac_error err;

static void is_rewritten(const char *from, const char *to) {
    char *out = NULL;
    size_t bytes = 0;
    assert_int_equal(fac_nv_rewrite(from, strlen(from) + 1, &out, &bytes, &err), FAC_OK);
    assert_string_equal(out, to);
    assert_int_equal(bytes, strlen(to) + 1);
    fac_release(out);
    out = NULL;
    assert_int_equal(fac_nv_rewrite(from, strlen(from), &out, &bytes, &err),
                     FAC_OK); /* without a closing zero */
    assert_string_equal(out, to);
    fac_release(out);
}

static void test_rewrite(void **state) {
    (void)state;
    is_rewritten(
        ".version 8.0\n.target sm_90, texmode_independent\n//@@wgmma.fence;\n// a "
        "comment\n//@@//@@x",
        ".version 8.0\n.target sm_90a, texmode_independent\nwgmma.fence;\n// a comment\nx");
    is_rewritten(".target sm_90a\n//@", ".target sm_90a\n//@");
    is_rewritten(".target sm_90\n.target sm_90\n", ".target sm_90a\n.target sm_90\n");
    is_rewritten(".target sm_90\n//@@", ".target sm_90a\n");
    is_rewritten(".target sm_90\n.reqntid 32", ".target sm_90a\n.reqntid 32");
    is_rewritten(
        ".target sm_90\n.reqntid 32, 1, 1\n//@alone\n.reqntid 64",
        ".target sm_90a\n.minnctapersm 1 .reqntid 32, 1, 1\n//@alone\n.minnctapersm 1 .reqntid 64");
    char *out = NULL;
    size_t bytes = 7;
    static const char *const others[] = { "", ".target sm_9", ".target sm_80\n//@@x",
                                          ".target sm_900\n", "\177ELF" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(fac_nv_rewrite(others[i], strlen(others[i]), &out, &bytes, &err),
                         FAC_E_UNSUPPORTED);
        assert_non_null(strstr(err.text, "sm_90"));
    }
    assert_null(out);
    assert_int_equal(bytes, 7);
}

static void test_instructions(void **state) {
    (void)state;
    fac_text t = { 0 };
    fac_nv_wgmma_text(&t, 8, FAC_NV_KIND_TF32, 0);
    assert_non_null(strstr(t.s, "wgmma_tf32_n8_ss(float *d, ulong a, ulong b)"));
    assert_non_null(strstr(t.s, "m64n8k8.f32.tf32.tf32 {%0,%1,%2,%3}, %4, %5, add, 1, 1;"));
    fac_text_free(&t);
    fac_nv_wgmma_text(&t, 16, FAC_NV_KIND_BF16, FAC_NV_A_REGISTERS | FAC_NV_B_TRANSPOSED);
    assert_non_null(strstr(t.s, "wgmma_bf16_n16_rs_tb(float *d, const uint *a, ulong b)"));
    assert_non_null(strstr(t.s, "{%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, %12, add, 1, 1, 1;"));
    fac_text_free(&t);
    fac_nv_wgmma_text(&t, 8, FAC_NV_KIND_F16, FAC_NV_A_TRANSPOSED);
    assert_non_null(strstr(t.s, "%4, %5, add, 1, 1, 1, 0;"));
    fac_text_free(&t);
}

/* As nv_divide has it. */
static void divides(uint32_t x, uint32_t d) {
    const fac_nv_divisor by = fac_nv_divide(d);
    const uint32_t q = (uint32_t)(((uint64_t)x * by.multiplier) >> 32) >> by.shift;
    if (q != x / d) fail_msg("%u / %u = %u, not %u", x, d, x / d, q);
}

static void test_divide(void **state) {
    (void)state;
    const uint64_t seed = fresh_seed();
    for (uint32_t i = 0; i < 200000; i++) {
        const uint64_t bits = fac_random_bits(seed, 1, i);
        const uint32_t d = (uint32_t)(bits >> 33) >> (i % 30), x = (uint32_t)(bits & INT32_MAX);
        if (d < 2) continue;
        divides(x, d);
        divides(x / d * d, d);
        if (x >= d) divides(x / d * d - 1, d);
        divides(INT32_MAX, d);
    }
    for (uint32_t d = 2; d < 5000; d++)
        divides(d - 1, d), divides(d, d), divides(INT32_MAX, d), divides(0, d);
}

static void test_mode(void **state) {
    (void)state;
    fac_nv_mode mode = FAC_NV_F16;
    assert_true(fac_nv_mode_of(FAC_F32, FAC_PRECISION_HIGH, &mode) && mode == FAC_NV_TF32);
    assert_true(fac_nv_mode_of(FAC_F32, FAC_PRECISION_MEDIUM, &mode) && mode == FAC_NV_BF16);
    assert_true(fac_nv_mode_of(FAC_F32, FAC_PRECISION_DEFAULT, &mode) && mode == FAC_NV_3XTF32);
    assert_true(fac_nv_mode_of(FAC_F32, FAC_PRECISION_HIGHEST, &mode) && mode == FAC_NV_3XTF32);
    assert_true(fac_nv_mode_of(FAC_BF16, FAC_PRECISION_HIGHEST, &mode) && mode == FAC_NV_BF16);
    assert_true(fac_nv_mode_of(FAC_F16, FAC_PRECISION_MEDIUM, &mode) && mode == FAC_NV_F16);
    assert_false(fac_nv_mode_of(FAC_F64, FAC_PRECISION_HIGH, &mode));
}

/* A marked instruction is a comment where it is not uncovered, so another device must refuse, not
 * compute something else. */
static void test_device(void **state) {
    (void)state;
    fac_device *d = NULL;
    assert_int_equal(opencl_open(&d, &err), 0);
    if (!d) skip();
    fac_opencl *o = fac_opencl_of(d);
    fac_text t = { 0 };
    fac_text_add(&t, "#define SM90A \"" FAC_NV_MARK "\"\n");
    fac_text_add(&t, fac_kernel_nv_common);
    fac_text_add(&t, "kernel void f(global int *y) { asm volatile(SM90A "
                     "\"wgmma.fence.sync.aligned;\\n\"); y[0] = 1; }");
    fac_cl_kernel k;
    cl_kernel made;
    assert_int_equal(fac_cl_kernel_new(o, t.s, "", "f", &k, &err), FAC_OK);
    const fac_status status = fac_cl_kernel_get(o, &k, &made, &err);
    if (fac_cl_has_path(o, FAC_CL_WGMMA))
        assert_int_equal(status, FAC_OK);
    else
        assert_true(status == FAC_E_DEVICE || status == FAC_E_UNSUPPORTED);
    fac_cl_kernel_free(o, &k);
    fac_text_free(&t);
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rewrite),
                                        cmocka_unit_test(test_instructions),
                                        cmocka_unit_test(test_divide), cmocka_unit_test(test_mode),
                                        cmocka_unit_test(test_device) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
