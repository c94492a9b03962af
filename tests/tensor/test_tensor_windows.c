/* src/tensor: strided reading and writing, on the host and on a device that the host cannot look
 * into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fresh_seed.h"
#include "base/rng.h"
#include "tensor/tensor_internal.h"

static uint64_t seed, drawn;
static uint64_t draw(uint64_t below) { return fac_random_bits(seed, 0, drawn++) % below; }

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

/* A device whose memory the host sees or does not see, and which may fail. */
typedef struct machine {
    const fac_memory_ops *ops;
    size_t held;
    bool visible, broken;
} machine;
static machine *machine_of(fac_device *d) { return (machine *)d; }

static fac_status machine_alloc(fac_device *d, size_t bytes, void **memory, fac_error *e) {
    (void)e;
    *memory = malloc(bytes);
    memset(*memory, 0xee, bytes);
    machine_of(d)->held += bytes;
    return FAC_OK;
}
static void machine_free(fac_device *d, void *memory, size_t bytes) {
    machine_of(d)->held -= bytes;
    free(memory);
}
static fac_status machine_write(fac_device *d, void *memory, size_t at, const void *from,
                                size_t bytes, fac_error *e) {
    (void)e;
    if (machine_of(d)->broken) return FAC_E_DEVICE;
    memcpy((char *)memory + at, from, bytes);
    return FAC_OK;
}
static fac_status machine_read(fac_device *d, void *memory, size_t at, void *to, size_t bytes,
                               fac_error *e) {
    (void)e;
    if (machine_of(d)->broken) return FAC_E_DEVICE;
    memcpy(to, (char *)memory + at, bytes);
    return FAC_OK;
}
static void *machine_host(fac_device *d, void *memory) {
    return machine_of(d)->visible ? memory : NULL;
}
static const fac_memory_ops machine_ops = { .alloc = machine_alloc,
                                            .free = machine_free,
                                            .write = machine_write,
                                            .read = machine_read,
                                            .host = machine_host };

/* Random windows on one storage of bytes; each is written and read, and a plain array does the same
 * by index. */
static void windows_of(fac_device *device) {
    enum { N = 400 };
    fac_tensor *t = NULL;
    uint16_t model[N], values[N], back[N], all[N];
    OK(fac_tensor_new(device, FAC_U16, fac_shape(N), &t, &err));
    for (int i = 0; i < N; i++) model[i] = (uint16_t)draw(65536);
    OK(fac_tensor_write(t, model, sizeof model, &err));
    for (int turn = 0; turn < 300; turn++) {
        fac_dims dims = { (int)draw(5), { 0 } };
        int64_t strides[FAC_DIMS], offset, stride = 1 + (int64_t)draw(3), count;
        int order[FAC_DIMS];
        for (int k = 0; k < dims.n; k++) {
            int j = (int)draw((uint64_t)k + 1);
            order[k] = order[j];
            order[j] = k;
            dims.d[k] = (int64_t)draw(5);
        }
        for (int k = 0; k < dims.n; k++) { /* disjoint elements in a random order of dims */
            strides[order[k]] = stride;
            stride *= dims.d[order[k]] ? dims.d[order[k]] : 1;
            stride += (int64_t)draw(3);
        }
        offset = (int64_t)draw(N / 2);
        count = fac_dims_count(&dims);
        fac_tensor *v = NULL;
        fac_status status = fac_tensor_view(t, dims, strides, offset, &v, &err);
        int64_t extent = fac_dims_extent(&dims, strides);
        assert_int_equal(status == FAC_OK, extent + offset <= N);
        if (status) continue;
        uint64_t version = fac_tensor_version(t);
        for (int64_t i = 0; i < count; i++) {
            int64_t rest = i, at = offset;
            for (int k = dims.n - 1; k >= 0; k--) {
                at += rest % dims.d[k] * strides[k];
                rest /= dims.d[k];
            }
            model[at] = values[i] = (uint16_t)draw(65536);
        }
        OK(fac_tensor_write(v, values, (size_t)count * 2, &err));
        OK(fac_tensor_read(v, back, (size_t)count * 2, &err));
        OK(fac_tensor_read(t, all, sizeof all, &err));
        assert_memory_equal(all, model, sizeof all);
        if (count) {
            assert_memory_equal(back, values, (size_t)count * 2);
            assert_int_equal(fac_tensor_version(v), version + 1);
            fac_tensor *copy = NULL, *wide = NULL;
            OK(fac_tensor_copy_contiguous(v, &copy, &err));
            assert_memory_equal(fac_tensor_data(copy), values, (size_t)count * 2);
            OK(fac_tensor_convert(v, FAC_I64, &wide, &err));
            for (int64_t i = 0; i < count; i++)
                assert_int_equal(((const int64_t *)fac_tensor_data(wide))[i], values[i]);
            fac_tensor_free(wide);
            fac_tensor_free(copy);
        }
        assert_int_equal(fac_tensor_read(v, back, (size_t)count * 2 + 1, &err), FAC_E_ARGUMENT);
        fac_tensor_free(v);
    }
    fac_tensor_free(t);
}

static void windows(void **state) {
    (void)state;
    machine hidden = { &machine_ops, 0, false, false }, visible = { &machine_ops, 0, true, false };
    windows_of(NULL);
    windows_of((fac_device *)&hidden);
    windows_of((fac_device *)&visible);
    assert_int_equal(hidden.held + visible.held, 0);
}

static void device_memory_is_used(void **state) {
    (void)state;
    machine m = { &machine_ops, 0, false, false };
    fac_tensor *t = NULL, *empty = NULL;
    OK(fac_tensor_new((fac_device *)&m, FAC_F32, fac_shape(300, 300), &t, &err));
    assert_int_equal(m.held, 360000);
    assert_ptr_equal(fac_tensor_device(t), &m);
    assert_null(fac_tensor_data(t));
    float *x = malloc(360000);
    OK(fac_tensor_read(t, x, 360000, &err));
    for (int i = 0; i < 90000; i++) assert_true(x[i] == 0);
    m.broken = true;
    assert_int_equal(fac_tensor_read(t, x, 360000, &err), FAC_E_DEVICE);
    assert_int_equal(fac_tensor_new((fac_device *)&m, FAC_F32, fac_shape(10), &empty, &err),
                     FAC_E_DEVICE);
    assert_null(empty);
    m.broken = false;
    free(x);
    fac_tensor_free(t);
    assert_int_equal(m.held, 0);
    OK(fac_tensor_new((fac_device *)&m, FAC_F32, fac_shape(0), &empty, &err));
    OK(fac_tensor_new((fac_device *)&m, FAC_TEXT, fac_shape(2), &t,
                      &err)); /* always in host memory */
    assert_null(fac_tensor_device(t));
    assert_int_equal(m.held, 0);
    fac_tensor_free(t);
    fac_tensor_free(empty);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(windows),
                                        cmocka_unit_test(device_memory_is_used) };
    seed = fresh_seed();
    return cmocka_run_group_tests_name("tensor_windows", tests, NULL, NULL);
}
