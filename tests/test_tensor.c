/* src/tensor: element types, shapes, windows, reading and writing, conversions. */
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "base/memory.h"
#include "base/rng.h"
#include "tensor/half.h"
#include "tensor/tensor_internal.h"

static long allocations_left = -1;          /* 0: every further allocation fails */
bool fac_test_allows(size_t bytes) {
    (void)bytes;
    if (allocations_left < 0) return true;
    if (!allocations_left) return false;
    allocations_left--;
    return true;
}

static uint64_t seed, drawn;
static uint64_t draw(uint64_t below) { return fac_random_bits(seed, 0, drawn++) % below; }

static fac_error err;
#define OK(call) do { if (call) fail_msg("%s: %s", #call, err.text); } while (0)

/* ---- element types and shapes ---- */

static void dtypes_have_facts(void **state) {
    (void)state;
    for (int k = FAC_F32; k < FAC_DTYPES; k++) {
        const fac_dtype_info *i = fac_dtype_get((fac_dtype)k);
        assert_int_equal(fac_dtype_find(i->name), k);
        assert_true(i->block_bytes > 0 && i->block_elements > 0 && strchr("fiubt", i->kind));
    }
    assert_string_equal(fac_dtype_get(FAC_NONE)->name, "none");
    assert_string_equal(fac_dtype_get((fac_dtype)-3)->name, "none");
    assert_string_equal(fac_dtype_get((fac_dtype)1000)->name, "none");
    assert_int_equal(fac_dtype_find("float"), FAC_NONE);
    assert_int_equal(fac_dtype_find("none"), FAC_NONE);
    assert_int_equal(fac_dtype_find(NULL), FAC_NONE);
}

static void counts_and_bytes_are_checked(void **state) {
    (void)state;
    const int64_t big = INT64_C(1) << 31;
    assert_int_equal(fac_dims_count(&fac_shape(2, 3, 4)), 24);
    assert_int_equal(fac_dims_count(&(fac_dims){ 0 }), 1);
    assert_int_equal(fac_dims_count(&fac_shape(2, -1)), -1);
    assert_int_equal(fac_dims_count(&fac_shape(big, big)), -1);
    assert_int_equal(fac_dims_count(&fac_shape(big, big - 1)), big * (big - 1));
    assert_int_equal(fac_dims_count(&fac_shape(INT64_MAX, INT64_MAX, 0)), 0);
    assert_int_equal(fac_dims_count(&fac_shape(0, -1)), -1);
    assert_int_equal(fac_dims_count(&(fac_dims){ FAC_DIMS + 1, { 0 } }), -1);
    assert_int_equal(fac_dims_count(&(fac_dims){ -1, { 0 } }), -1);
    assert_int_equal(fac_type_bytes(&(fac_type){ FAC_F16, fac_shape(3, 5) }), 30);
    assert_true(fac_type_bytes(&(fac_type){ FAC_F64, fac_shape(big, big - 1) }) == SIZE_MAX);
    assert_true(fac_type_bytes(&(fac_type){ FAC_F32, fac_shape(-1) }) == SIZE_MAX);
    assert_true(fac_type_bytes(&(fac_type){ FAC_NONE, fac_shape(1) }) == SIZE_MAX);
    assert_int_equal(fac_type_bytes(&(fac_type){ FAC_BIT, fac_shape(3, 65) }), 3 * 16);
    assert_int_equal(fac_type_bytes(&(fac_type){ FAC_BIT, { 0 } }), 8);
    assert_true(fac_dims_equal(&fac_shape(1, 2), &fac_shape(1, 2)));
    assert_false(fac_dims_equal(&fac_shape(1, 2), &fac_shape(1, 3)));
    assert_false(fac_dims_equal(&fac_shape(1, 2), &fac_shape(1, 2, 1)));
    int64_t strides[FAC_DIMS];
    fac_dims_strides(&fac_shape(0, INT64_MAX, INT64_MAX), FAC_F32, strides);    /* no overflow: the sanitizer looks */
    assert_int_equal(fac_dims_extent(&fac_shape(2, 3), (int64_t[]){ INT64_MAX, 1 }), -1);
    assert_int_equal(fac_dims_extent(&fac_shape(3, 3), (int64_t[]){ INT64_MAX, 1 }), -1);
    assert_int_equal(fac_dims_extent(&fac_shape(2, 3), (int64_t[]){ 10, 0 }), 11);
}

/* ---- making ---- */

static void new_tensors_are_zero(void **state) {
    (void)state;
    for (int k = FAC_F32; k < FAC_DTYPES; k++) {
        fac_tensor *t = NULL;
        OK(fac_tensor_new(NULL, (fac_dtype)k, fac_shape(3, 70), &t, &err));
        fac_type type = fac_tensor_type(t);
        assert_int_equal(type.dtype, k);
        assert_true(fac_tensor_contiguous(t));
        assert_null(fac_tensor_device(t));
        assert_int_equal(fac_tensor_version(t), 1);
        size_t bytes = fac_type_bytes(&type);
        const char *data = fac_tensor_data(t);
        if (k == FAC_TEXT) for (int i = 0; i < 210; i++) assert_string_equal(((char *const *)fac_tensor_data(t))[i], "");
        else for (size_t i = 0; i < bytes; i++) assert_int_equal(data[i], 0);
        fac_tensor_free(t);
    }
    fac_tensor_free(NULL);
}

static void absurd_tensors_are_refused(void **state) {
    (void)state;
    fac_tensor *t = NULL;
    const int64_t big = INT64_C(1) << 31;
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(-1, 2), &t, &err), FAC_E_ARGUMENT);
    assert_string_equal(err.text, "dim 0 of a tensor is -1");
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, (fac_dims){ 9, { 0 } }, &t, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_new(NULL, FAC_NONE, fac_shape(1), &t, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_new(NULL, (fac_dtype)77, fac_shape(1), &t, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(big, big), &t, &err), FAC_E_NOMEM);
    assert_int_equal(fac_tensor_new(NULL, FAC_U8, fac_shape(big, big - 1), &t, &err), FAC_E_NOMEM);
    assert_null(t);
}

static void zero_size_and_scalar(void **state) {
    (void)state;
    fac_tensor *t = NULL, *v = NULL, *c = NULL;
    float x = 3;
    OK(fac_tensor_new(NULL, FAC_F32, (fac_dims){ 0 }, &t, &err));
    OK(fac_tensor_write(t, &x, sizeof x, &err));
    x = 0;
    OK(fac_tensor_read(t, &x, sizeof x, &err));
    assert_true(x == 3);
    fac_tensor_free(t);
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(3, 0, 5), &t, &err));
    assert_non_null(fac_tensor_data(t));
    OK(fac_tensor_write(t, NULL, 0, &err));
    OK(fac_tensor_read(t, NULL, 0, &err));
    OK(fac_tensor_view(t, fac_shape(0), NULL, 0, &v, &err));
    OK(fac_tensor_convert(v, FAC_TEXT, &c, &err));
    assert_int_equal(fac_tensor_view(t, fac_shape(1), NULL, 0, &v, &err), FAC_E_ARGUMENT);
    fac_tensor_free(c);
    fac_tensor_free(v);
    fac_tensor_free(t);
}

static void count_release(void *owner) { ++*(int *)owner; }

static void borrowing(void **state) {
    (void)state;
    float data[12];
    int released = 0;
    fac_tensor *t = NULL, *v = NULL;
    for (int i = 0; i < 12; i++) data[i] = (float)i;
    OK(fac_tensor_borrow(FAC_F32, fac_shape(3, 4), NULL, data, count_release, &released, &t, &err));
    assert_ptr_equal(fac_tensor_data(t), data);
    OK(fac_tensor_view(t, fac_shape(4, 3), (int64_t[]){ 1, 4 }, 0, &v, &err));
    fac_tensor_free(t);
    assert_int_equal(released, 0);
    float back[12];
    OK(fac_tensor_read(v, back, sizeof back, &err));
    for (int i = 0; i < 12; i++) assert_true(back[i] == (float)(i % 3 * 4 + i / 3));
    /* a write makes a copy and leaves the owner's memory alone */
    uint64_t version = fac_tensor_version(v);
    float twos[12];
    for (int i = 0; i < 12; i++) twos[i] = 2;
    OK(fac_tensor_write(v, twos, sizeof twos, &err));
    assert_int_equal(released, 1);
    assert_true(data[5] == 5);
    assert_true(fac_tensor_version(v) > version);
    OK(fac_tensor_read(v, back, sizeof back, &err));
    assert_memory_equal(back, twos, sizeof back);
    fac_tensor_free(v);
    assert_int_equal(released, 1);

    /* release is not called by a failure */
    assert_int_equal(fac_tensor_borrow(FAC_F32, fac_shape(2), (int64_t[]){ -1 }, data, count_release, &released, &t, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_borrow(FAC_F32, fac_shape(2), NULL, NULL, count_release, &released, &t, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_borrow(FAC_F32, fac_shape(1), NULL, (char *)data + 1, count_release, &released, &t, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_borrow(FAC_F32, fac_shape(4, 4), (int64_t[]){ INT64_MAX / 2, 1 }, data, count_release,
                                       &released, &t, &err), FAC_E_ARGUMENT);
    for (long k = 0; k < 2; k++) {
        allocations_left = k;
        assert_int_equal(fac_tensor_borrow(FAC_F32, fac_shape(3), NULL, data, count_release, &released, &t, &err), FAC_E_NOMEM);
    }
    allocations_left = -1;
    assert_int_equal(released, 1);
    OK(fac_tensor_borrow(FAC_F32, fac_shape(5, 3), (int64_t[]){ 0, 1 }, data, NULL, NULL, &t, &err));
    assert_false(fac_tensor_contiguous(t));
    assert_int_equal(fac_tensor_write(t, back, 60, &err), FAC_E_ARGUMENT);      /* five rows are one */
    fac_tensor_free(t);
}

static void views_stay_inside(void **state) {
    (void)state;
    fac_tensor *t = NULL, *v = NULL, *w = NULL;
    OK(fac_tensor_new(NULL, FAC_I32, fac_shape(4, 6), &t, &err));
    assert_int_equal(fac_tensor_view(t, fac_shape(25), NULL, 0, &v, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_view(t, fac_shape(24), NULL, 1, &v, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_view(t, fac_shape(1), NULL, -1, &v, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_view(t, fac_shape(1), NULL, INT64_MAX, &v, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_view(t, fac_shape(2, 2), (int64_t[]){ 23, 1 }, 0, &v, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_view(t, fac_shape(2, 2), (int64_t[]){ INT64_MAX, INT64_MAX }, 0, &v, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_view(t, fac_shape(2), (int64_t[]){ -1 }, 5, &v, &err), FAC_E_ARGUMENT);
    assert_null(v);
    OK(fac_tensor_view(t, fac_shape(2, 2), (int64_t[]){ 22, 1 }, 0, &v, &err));
    fac_tensor_free(v);
    OK(fac_tensor_view(t, fac_shape(2), NULL, 22, &v, &err));
    OK(fac_tensor_view(v, fac_shape(24), NULL, -22, &w, &err));                 /* back to where the storage begins */
    assert_ptr_equal(fac_tensor_data(w), fac_tensor_data(t));
    fac_tensor_free(w);
    fac_tensor_free(v);
    OK(fac_tensor_view(t, fac_shape(0), NULL, 24, &v, &err));
    fac_tensor_free(v);
    fac_tensor_free(t);
}

/* ---- strided reading and writing, on the host and on a device that the host cannot look into ---- */

typedef struct machine { const fac_memory_ops *ops; size_t held; bool visible, broken; } machine;
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
static fac_status machine_write(fac_device *d, void *memory, size_t at, const void *from, size_t bytes, fac_error *e) {
    (void)e;
    if (machine_of(d)->broken) return FAC_E_DEVICE;
    memcpy((char *)memory + at, from, bytes);
    return FAC_OK;
}
static fac_status machine_read(fac_device *d, void *memory, size_t at, void *to, size_t bytes, fac_error *e) {
    (void)e;
    if (machine_of(d)->broken) return FAC_E_DEVICE;
    memcpy(to, (char *)memory + at, bytes);
    return FAC_OK;
}
static void *machine_host(fac_device *d, void *memory) { return machine_of(d)->visible ? memory : NULL; }
static const fac_memory_ops machine_ops = { machine_alloc, machine_free, machine_write, machine_read, machine_host };

/* Random windows on one storage of bytes; each is written and read, and a plain array does the same by index. */
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
            order[k] = order[j], order[j] = k;
            dims.d[k] = (int64_t)draw(5);
        }
        for (int k = 0; k < dims.n; k++) {                  /* disjoint elements in a random order of dims */
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
            for (int64_t i = 0; i < count; i++) assert_int_equal(((const int64_t *)fac_tensor_data(wide))[i], values[i]);
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
    assert_int_equal(fac_tensor_new((fac_device *)&m, FAC_F32, fac_shape(10), &empty, &err), FAC_E_DEVICE);
    assert_null(empty);
    m.broken = false;
    free(x);
    fac_tensor_free(t);
    assert_int_equal(m.held, 0);
    OK(fac_tensor_new((fac_device *)&m, FAC_F32, fac_shape(0), &empty, &err));
    OK(fac_tensor_new((fac_device *)&m, FAC_TEXT, fac_shape(2), &t, &err));         /* always in host memory */
    assert_null(fac_tensor_device(t));
    assert_int_equal(m.held, 0);
    fac_tensor_free(t);
    fac_tensor_free(empty);
}

static void begin_write_raises_the_version(void **state) {
    (void)state;
    fac_tensor *t = NULL;
    const float data[2] = { 1, 2 };
    void *memory = NULL;
    OK(fac_tensor_borrow(FAC_F32, fac_shape(2), NULL, data, NULL, NULL, &t, &err));
    OK(fac_tensor_begin_write(t, &memory, &err));
    assert_ptr_not_equal(memory, data);
    assert_memory_equal(memory, data, sizeof data);
    ((float *)memory)[0] = 7;
    assert_true(((const float *)fac_tensor_data(t))[0] == 7);
    assert_int_equal(fac_tensor_version(t), 2);
    fac_tensor_free(t);
}

/* ---- texts ---- */

static void texts_are_copied(void **state) {
    (void)state;
    fac_tensor *t = NULL, *v = NULL, *c = NULL;
    char first[] = "first";
    char *in[4] = { first, "second", NULL, "" }, *out[4];
    OK(fac_tensor_new(NULL, FAC_TEXT, fac_shape(2, 2), &t, &err));
    OK(fac_tensor_write(t, in, sizeof in, &err));
    first[0] = 'F';
    OK(fac_tensor_read(t, out, sizeof out, &err));
    assert_string_equal(out[0], "first");
    assert_string_equal(out[1], "second");
    assert_string_equal(out[2], "");
    OK(fac_tensor_view(t, fac_shape(2), (int64_t[]){ 2 }, 1, &v, &err));        /* the second column */
    OK(fac_tensor_write(v, (char *[]){ "x", "yy" }, 2 * sizeof(char *), &err));
    OK(fac_tensor_read(t, out, sizeof out, &err));
    assert_string_equal(out[0], "first");
    assert_string_equal(out[1], "x");
    assert_string_equal(out[3], "yy");
    OK(fac_tensor_copy_contiguous(v, &c, &err));
    OK(fac_tensor_write(t, out, sizeof out, &err));                             /* its own texts */
    fac_tensor_free(v);
    fac_tensor_free(t);
    OK(fac_tensor_read(c, out, 2 * sizeof(char *), &err));
    assert_string_equal(out[1], "yy");
    fac_tensor_free(c);
    OK(fac_tensor_borrow(FAC_TEXT, fac_shape(4), NULL, in, NULL, NULL, &t, &err));
    OK(fac_tensor_view(t, fac_shape(1), NULL, 3, &v, &err));
    OK(fac_tensor_write(v, (char *[]){ "new" }, sizeof(char *), &err));
    OK(fac_tensor_read(t, out, sizeof out, &err));
    assert_string_equal(out[1], "second");
    assert_string_equal(out[3], "new");
    assert_string_equal(in[3], "");
    fac_tensor_free(v);
    fac_tensor_free(t);
}

static void expect_texts(fac_dtype dtype, const void *numbers, int n, const char *const *texts) {
    fac_tensor *t = NULL, *s = NULL, *back = NULL;
    OK(fac_tensor_borrow(dtype, fac_shape(n), NULL, numbers, NULL, NULL, &t, &err));
    OK(fac_tensor_convert(t, FAC_TEXT, &s, &err));
    for (int i = 0; i < n; i++) assert_string_equal(((char *const *)fac_tensor_data(s))[i], texts[i]);
    OK(fac_tensor_convert(s, dtype, &back, &err));
    assert_memory_equal(fac_tensor_data(back), numbers, fac_type_bytes(&t->type));
    fac_tensor_free(back);
    fac_tensor_free(s);
    fac_tensor_free(t);
}

/* What str() gives for NumPy scalars. */
static void numbers_print_as_in_python(void **state) {
    (void)state;
    const float f[] = { 0.1f, 1, -2.5f, 1e-5f, 123456789.f, 3.4028235e38f, 1e16f, INFINITY, -INFINITY, 0.0001f, 0, 1e-45f,
                       100000.f };
    const char *const ftext[] = { "0.1", "1.0", "-2.5", "1e-05", "123456790.0", "3.4028235e+38", "1e+16", "inf", "-inf",
                                 "0.0001", "0.0", "1e-45", "100000.0" };
    expect_texts(FAC_F32, f, 13, ftext);
    const double d[] = { 0.1, 1. / 3, 1e300, 123456789012345680.0, 5e-324 };
    const char *const dtext[] = { "0.1", "0.3333333333333333", "1e+300", "1.2345678901234568e+17", "5e-324" };
    expect_texts(FAC_F64, d, 5, dtext);
    const uint16_t h[] = { 0x3c00, 0x2e66, 0x7bff };
    const char *const htext[] = { "1.0", "0.1", "65500.0" };
    expect_texts(FAC_F16, h, 3, htext);
    const int64_t i[] = { INT64_MIN, INT64_MAX, -1 };
    const char *const itext[] = { "-9223372036854775808", "9223372036854775807", "-1" };
    expect_texts(FAC_I64, i, 3, itext);
    const uint64_t u[] = { UINT64_MAX };
    const char *const utext[] = { "18446744073709551615" };
    expect_texts(FAC_U64, u, 1, utext);
    const uint8_t b[] = { 0, 1 };
    const char *const btext[] = { "False", "True" };
    expect_texts(FAC_BOOL, b, 2, btext);
}

static void texts_parse(void **state) {
    (void)state;
    fac_tensor *t = NULL, *c = NULL;
    char *in[] = { "0.47892547", " 1e-5 ", "NaN", "+INF", "-inf", "100.7", "7" };
    setlocale(LC_ALL, "de_DE.UTF-8");                   /* where it exists: the point must not depend on it */
    OK(fac_tensor_borrow(FAC_TEXT, fac_shape(7), NULL, in, NULL, NULL, &t, &err));
    OK(fac_tensor_convert(t, FAC_F32, &c, &err));
    const float *f = fac_tensor_data(c);
    assert_true(f[0] == 0.47892547f && f[1] == 1e-5f && isnan(f[2]) && f[3] == INFINITY && f[4] == -INFINITY);
    fac_tensor_free(c);
    OK(fac_tensor_convert(t, FAC_I32, &c, &err));
    const int32_t *i = fac_tensor_data(c);
    assert_int_equal(i[5], 100);
    assert_int_equal(i[6], 7);
    fac_tensor_free(c);
    in[3] = "abc";
    assert_int_equal(fac_tensor_convert(t, FAC_F64, &c, &err), FAC_E_FORMAT);
    assert_string_equal(err.text, "\"abc\" is no number");
    in[3] = "";
    assert_int_equal(fac_tensor_convert(t, FAC_I8, &c, &err), FAC_E_FORMAT);
    fac_tensor_free(t);
    setlocale(LC_ALL, "C");
}

/* ---- conversions ---- */

static double half_value(unsigned h, int fraction, int bias) {      /* straight from the definition of the format */
    int exponent = (int)(h >> fraction) & (2 * bias + 1), bits = (int)h & ((1 << fraction) - 1);
    double part = (double)bits / (1 << fraction), x = exponent ? ldexp(part + 1, exponent - bias) : ldexp(part, 1 - bias);
    if (exponent == 2 * bias + 1) x = bits ? NAN : INFINITY;
    return h & 0x8000 ? -x : x;
}

/* Every value of the format, every point half way between two neighbours, and the numbers next to those points. */
static void check_small_float(fac_dtype dtype, int fraction, int bias) {
    const unsigned infinity = (2u * (unsigned)bias + 1) << fraction;
    for (unsigned h = 0; h < 65536; h++) {
        uint16_t in = (uint16_t)h, out;
        double expected = half_value(h, fraction, bias), d;
        float f;
        fac_convert(FAC_F32, &f, dtype, &in, 1);
        fac_convert(FAC_F64, &d, dtype, &in, 1);
        if (isnan(expected)) {
            assert_true(isnan(f) && isnan(d));
            fac_convert(dtype, &out, FAC_F32, &f, 1);
            assert_true(isnan(half_value(out, fraction, bias)));
            fac_convert(dtype, &out, FAC_F64, &d, 1);
            assert_true(isnan(half_value(out, fraction, bias)));
            continue;
        }
        assert_true(f == expected && d == expected && !signbit(f) == !signbit(expected));
        fac_convert(dtype, &out, FAC_F32, &f, 1);
        assert_int_equal(out, h);
        fac_convert(dtype, &out, FAC_F64, &d, 1);
        assert_int_equal(out, h);
        if ((h & 0x7fff) >= infinity) continue;

        /* above the largest finite number the next one would be 2^(bias + 1) */
        bool last = (h & 0x7fff) == infinity - 1;
        double next = last ? copysign(ldexp(1, bias + 1), expected) : half_value(h + 1, fraction, bias);
        double middle = expected / 2 + next / 2, away = next * 2;
        unsigned even = h & 1 ? h + 1 : h;
        const double d3[3] = { nextafter(middle, 0), middle, nextafter(middle, away) };
        const float f3[3] = { nextafterf((float)middle, 0), (float)middle, nextafterf((float)middle, (float)away) };
        const unsigned to[3] = { h, even, h + 1 };
        for (int k = 0; k < 3; k++) {
            fac_convert(dtype, &out, FAC_F64, &d3[k], 1);
            if (out != to[k]) fail_msg("f64 %a became %04x, not %04x", d3[k], out, to[k]);
            if ((double)(float)middle != middle) continue;          /* below the least f32 */
            fac_convert(dtype, &out, FAC_F32, &f3[k], 1);
            if (out != to[k]) fail_msg("f32 %a became %04x, not %04x", (double)f3[k], out, to[k]);
        }
    }
    const double extremes[] = { 1e300, -1e300, 5e-324, -5e-324, INFINITY, 0x1p1000, 0x1p-1070 };
    const unsigned become[] = { infinity, infinity | 0x8000, 0, 0x8000, infinity, infinity, 0 };
    for (int k = 0; k < 7; k++) {
        uint16_t out;
        fac_convert(dtype, &out, FAC_F64, &extremes[k], 1);
        assert_int_equal(out, become[k]);
    }
}

static void f16_is_rounded_to_even(void **state)  { (void)state; check_small_float(FAC_F16, 10, 15); }
static void bf16_is_rounded_to_even(void **state) { (void)state; check_small_float(FAC_BF16, 7, 127); }

/* Small integers are the same number in every type: all pairs, long enough for whole vectors, buffers and rests. */
static void every_pair_keeps_small_integers(void **state) {
    (void)state;
    enum { N = 1100 };
    static int64_t numbers[N], back[N];
    static union { double align; unsigned char bytes[8 * N]; } a, b;
    for (int from = FAC_F32; from < FAC_TEXT; from++)
        for (int to = FAC_F32; to < FAC_TEXT; to++) {
            bool flags = from == FAC_BOOL || from == FAC_BIT || to == FAC_BOOL || to == FAC_BIT;
            size_t n = draw(4) ? N - draw(600) : draw(20);
            for (size_t i = 0; i < n; i++) numbers[i] = (int64_t)draw(flags ? 2 : 100);
            fac_convert((fac_dtype)from, a.bytes, FAC_I64, numbers, n);
            fac_convert((fac_dtype)to, b.bytes, (fac_dtype)from, a.bytes, n);
            fac_convert(FAC_I64, back, (fac_dtype)to, b.bytes, n);
            if (memcmp(back, numbers, n * sizeof *back))
                fail_msg("%s to %s changes small integers", fac_dtype_get((fac_dtype)from)->name,
                         fac_dtype_get((fac_dtype)to)->name);
        }
}

static int64_t to_integer(fac_dtype dtype, fac_dtype from, const void *x) {
    int64_t i;
    union { double align; unsigned char bytes[8]; } y;
    fac_convert(dtype, y.bytes, from, x, 1);
    fac_convert(FAC_I64, &i, dtype, y.bytes, 1);
    return i;
}

static void floats_truncate_and_wrap(void **state) {
    (void)state;
    static const struct { double x; int64_t i64; int i32, i8, u8, flag; } known[] = {
        { 300.7, 300, 300, 44, 44, 1 }, { -1.5, -1, -1, -1, 255, 1 }, { 0.5, 0, 0, 0, 0, 1 }, { -0.0, 0, 0, 0, 0, 0 },
        { 4294967296.0 + 130, 4294967426, 130, -126, 130, 1 }, { -129, -129, -129, 127, 127, 1 },
        { 0x1p63, INT64_MIN, 0, 0, 0, 1 }, { 0x1p64, 0, 0, 0, 0, 1 }, { -0x1p63, INT64_MIN, 0, 0, 0, 1 },
        { 1e20, 7766279631452241920, 1661992960, 0, 0, 1 }, { -1e20, -7766279631452241920, -1661992960, 0, 0, 1 },
        { NAN, 0, 0, 0, 0, 1 }, { INFINITY, 0, 0, 0, 0, 1 }, { -INFINITY, 0, 0, 0, 0, 1 },
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const double *x = &known[k].x;
        assert_int_equal(to_integer(FAC_I64, FAC_F64, x), known[k].i64);
        assert_int_equal(to_integer(FAC_U64, FAC_F64, x), known[k].i64);
        assert_int_equal(to_integer(FAC_I32, FAC_F64, x), known[k].i32);
        assert_int_equal(to_integer(FAC_I8, FAC_F64, x), known[k].i8);
        assert_int_equal(to_integer(FAC_U8, FAC_F64, x), known[k].u8);
        assert_int_equal(to_integer(FAC_BOOL, FAC_F64, x), known[k].flag);
        float f = (float)*x;
        if (isnan(f) || (double)f == *x) assert_int_equal(to_integer(FAC_I8, FAC_F32, &f), known[k].i8);
    }
    const uint64_t largest = UINT64_MAX, odd = (UINT64_C(1) << 63) + (UINT64_C(1) << 39) + 1;
    float f;
    double d;
    uint16_t h;
    fac_convert(FAC_F32, &f, FAC_U64, &largest, 1);
    fac_convert(FAC_F64, &d, FAC_U64, &largest, 1);
    assert_true(f == 0x1p64f && d == 0x1p64);
    fac_convert(FAC_F32, &f, FAC_U64, &odd, 1);             /* by way of f64 it would be rounded twice, down */
    assert_true(f == 0x1p63f + 0x1p40f);
    fac_convert(FAC_BF16, &h, FAC_U64, &largest, 1);
    assert_int_equal(h, 0x5f80);
    const uint16_t half = 0x3800;                           /* 0.5 */
    assert_int_equal(to_integer(FAC_BOOL, FAC_F16, &half), 1);
    assert_int_equal(to_integer(FAC_U8, FAC_F16, &half), 0);
    const uint8_t sloppy = 7;
    assert_int_equal(to_integer(FAC_BOOL, FAC_BOOL, &sloppy), 1);
}

static void bits_are_packed_by_row(void **state) {
    (void)state;
    fac_tensor *t = NULL, *bits = NULL, *back = NULL, *v = NULL;
    float x[3 * 70], y[3 * 70];
    for (int i = 0; i < 210; i++) x[i] = draw(2) ? 0.25f : 0;
    OK(fac_tensor_borrow(FAC_F32, fac_shape(3, 70), NULL, x, NULL, NULL, &t, &err));
    OK(fac_tensor_convert(t, FAC_BIT, &bits, &err));
    const uint64_t *words = fac_tensor_data(bits);
    for (int i = 0; i < 210; i++) assert_int_equal(words[i / 70 * 2 + i % 70 / 64] >> (i % 70 % 64) & 1, x[i] != 0);
    OK(fac_tensor_convert(bits, FAC_F32, &back, &err));
    OK(fac_tensor_read(back, y, sizeof y, &err));
    for (int i = 0; i < 210; i++) assert_true(y[i] == (x[i] != 0));
    fac_tensor_free(back);
    OK(fac_tensor_view(bits, fac_shape(2, 70), (int64_t[]){ 256, 1 }, 0, &v, &err));        /* rows 0 and 2 */
    OK(fac_tensor_convert(v, FAC_F32, &back, &err));
    for (int i = 0; i < 70; i++) assert_true(((const float *)fac_tensor_data(back))[70 + i] == (x[140 + i] != 0));
    fac_tensor_free(v);
    assert_int_equal(fac_tensor_view(bits, fac_shape(64), NULL, 3, &v, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_view(bits, fac_shape(2, 2), (int64_t[]){ 1, 128 }, 0, &v, &err), FAC_E_ARGUMENT);
    fac_tensor_free(back);
    fac_tensor_free(bits);
    fac_tensor_free(t);
}

/* ---- files ---- */

static void tensors_borrow_from_files(void **state) {
    (void)state;
    float x[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    fac_file *f = fac_file_memory(x, sizeof x);
    fac_tensor *aligned = NULL, *copied = NULL, *strided = NULL, *none = NULL;
    OK(fac_tensor_from_file(f, 4, (fac_type){ FAC_F32, fac_shape(7) }, NULL, &aligned, &err));
    assert_ptr_equal(fac_tensor_data(aligned), (const char *)fac_file_data(f) + 4);
    OK(fac_tensor_from_file(f, 2, (fac_type){ FAC_F32, fac_shape(7) }, NULL, &copied, &err));
    assert_memory_equal(fac_tensor_data(copied), (char *)x + 2, 28);
    OK(fac_tensor_from_file(f, 1, (fac_type){ FAC_U16, fac_shape(2, 3) }, (int64_t[]){ 1, 2 }, &strided, &err));
    uint16_t read[6], word;
    OK(fac_tensor_read(strided, read, sizeof read, &err));
    memcpy(&word, (char *)x + 1 + 2 * 3, 2);
    assert_int_equal(read[4], word);                        /* element 1, 1 lies at 1 + 2 */
    assert_int_equal(fac_tensor_from_file(f, 8, (fac_type){ FAC_F32, fac_shape(7) }, NULL, &none, &err), FAC_E_FORMAT);
    assert_int_equal(fac_tensor_from_file(f, SIZE_MAX, (fac_type){ FAC_F32, fac_shape(7) }, NULL, &none, &err), FAC_E_FORMAT);
    assert_int_equal(fac_tensor_from_file(f, 1, (fac_type){ FAC_F32, fac_shape(2, 2) }, (int64_t[]){ 5, 2 }, &none, &err),
                     FAC_E_FORMAT);
    for (long k = 0; k < 6; k++)
        for (size_t at = 0; at < 2; at++) {
            allocations_left = k;
            fac_status s = fac_tensor_from_file(f, at, (fac_type){ FAC_U16, fac_shape(2) }, (int64_t[]){ 2 }, &none, &err);
            allocations_left = -1;
            if (s) assert_int_equal(s, FAC_E_NOMEM);
            else fac_tensor_free(none);
        }
    fac_file_free(f);
    assert_true(((const float *)fac_tensor_data(aligned))[6] == 7);
    fac_tensor_free(aligned);
    fac_tensor_free(copied);
    fac_tensor_free(strided);
}

/* ---- threads and memory ---- */

static void *share_tensor(void *arg) {
    fac_tensor *t = arg;
    for (int k = 0; k < 2000; k++) {
        fac_tensor *v = NULL;
        float x[4];
        if (fac_tensor_view(t, fac_shape(2, 2), (int64_t[]){ 1, 2 }, 0, &v, NULL) || fac_tensor_read(v, x, sizeof x, NULL))
            return arg;
        fac_tensor_free(fac_tensor_retain(t));
        fac_tensor_free(v);
    }
    fac_tensor_free(t);
    return NULL;
}

static void tensors_are_shared_by_threads(void **state) {
    (void)state;
    fac_tensor *t = NULL;
    pthread_t threads[4];
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(4), &t, &err));
    for (int k = 0; k < 4; k++) pthread_create(&threads[k], NULL, share_tensor, fac_tensor_retain(t));
    fac_tensor_free(t);
    for (int k = 0; k < 4; k++) {
        void *failed = NULL;
        pthread_join(threads[k], &failed);
        assert_null(failed);
    }
}

static fac_status use_everything(void) {
    fac_tensor *t = NULL, *v = NULL, *c = NULL, *s = NULL, *b = NULL;
    float x[6] = { 1, 2, 3, 4, 5, 6 };
    fac_status status = fac_tensor_new(NULL, FAC_F32, fac_shape(2, 3), &t, &err);
    if (!status) status = fac_tensor_write(t, x, sizeof x, &err);
    if (!status) status = fac_tensor_view(t, fac_shape(3, 2), (int64_t[]){ 1, 3 }, 0, &v, &err);
    if (!status) status = fac_tensor_convert(v, FAC_TEXT, &s, &err);
    if (!status) status = fac_tensor_convert(s, FAC_F64, &c, &err);
    if (!status) status = fac_tensor_write(s, (char *[]){ "a", "b", "c", "d", "e", "f" }, 6 * sizeof(char *), &err);
    if (!status) status = fac_tensor_borrow(FAC_F32, fac_shape(6), NULL, x, NULL, NULL, &b, &err);
    if (!status) status = fac_tensor_write(b, x, sizeof x, &err);
    fac_tensor_free(b);
    fac_tensor_free(c);
    fac_tensor_free(s);
    fac_tensor_free(v);
    fac_tensor_free(t);
    return status;
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    long n = 0;
    for (fac_status status = FAC_E_NOMEM; status; n++) {
        allocations_left = n;
        status = use_everything();
        allocations_left = -1;
        if (status) assert_int_equal(status, FAC_E_NOMEM);
    }
    assert_true(n > 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_have_facts), cmocka_unit_test(counts_and_bytes_are_checked),
        cmocka_unit_test(new_tensors_are_zero),
        cmocka_unit_test(absurd_tensors_are_refused), cmocka_unit_test(zero_size_and_scalar), cmocka_unit_test(borrowing),
        cmocka_unit_test(views_stay_inside), cmocka_unit_test(windows), cmocka_unit_test(device_memory_is_used),
        cmocka_unit_test(begin_write_raises_the_version), cmocka_unit_test(texts_are_copied),
        cmocka_unit_test(numbers_print_as_in_python), cmocka_unit_test(texts_parse), cmocka_unit_test(f16_is_rounded_to_even),
        cmocka_unit_test(bf16_is_rounded_to_even), cmocka_unit_test(every_pair_keeps_small_integers),
        cmocka_unit_test(floats_truncate_and_wrap), cmocka_unit_test(bits_are_packed_by_row),
        cmocka_unit_test(tensors_borrow_from_files), cmocka_unit_test(tensors_are_shared_by_threads),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    seed = (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests_name("tensor", tests, NULL, NULL);
}
