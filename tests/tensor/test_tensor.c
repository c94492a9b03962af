/* src/tensor: element types, shapes, making, borrowing, files, sharing. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "allocations.h"
#include "tensor/tensor_internal.h"

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

/* ---- element types and shapes ---- */

static void dtypes_have_facts(void **state) {
    (void)state;
    for (int k = FAC_F32; k < FAC_DTYPES; k++) {
        const fac_dtype_info *i = fac_dtype_get((fac_dtype)k);
        assert_int_equal(fac_dtype_find(i->name), k);
        assert_true(i->block_bytes > 0 && i->block_elements > 0 && strchr("fiubtq", i->kind));
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
    const int64_t big = INT64_C(1) << 28;
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
    assert_int_equal(fac_type_bytes(&(fac_type){ FAC_F64, fac_shape(big, big - 1) }),
                     8 * big * (big - 1));
    assert_true(fac_type_bytes(&(fac_type){ FAC_F64, fac_shape(big, big) }) == SIZE_MAX);
    assert_true(fac_type_bytes(&(fac_type){ FAC_F32, fac_shape(-1) }) == SIZE_MAX);
    assert_true(fac_type_bytes(&(fac_type){ FAC_NONE, fac_shape(1) }) == SIZE_MAX);
    assert_int_equal(fac_type_bytes(&(fac_type){ FAC_BIT, fac_shape(3, 65) }), 3 * 16);
    assert_int_equal(fac_type_bytes(&(fac_type){ FAC_BIT, { 0 } }), 8);
    assert_true(fac_dims_equal(&fac_shape(1, 2), &fac_shape(1, 2)));
    assert_false(fac_dims_equal(&fac_shape(1, 2), &fac_shape(1, 3)));
    assert_false(fac_dims_equal(&fac_shape(1, 2), &fac_shape(1, 2, 1)));
    int64_t strides[FAC_DIMS];
    fac_dims_strides(&fac_shape(0, INT64_MAX, INT64_MAX), FAC_F32,
                     strides); /* no overflow: the sanitizer looks */
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
        if (k == FAC_TEXT)
            for (int i = 0; i < 210; i++)
                assert_string_equal(((char *const *)fac_tensor_data(t))[i], "");
        else
            for (size_t i = 0; i < bytes; i++) assert_int_equal(data[i], 0);
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
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, (fac_dims){ 9, { 0 } }, &t, &err),
                     FAC_E_ARGUMENT);
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
    assert_int_equal(fac_tensor_borrow(FAC_F32, fac_shape(2), (int64_t[]){ -1 }, data,
                                       count_release, &released, &t, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(
        fac_tensor_borrow(FAC_F32, fac_shape(2), NULL, NULL, count_release, &released, &t, &err),
        FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_borrow(FAC_F32, fac_shape(1), NULL, (char *)data + 1, count_release,
                                       &released, &t, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_borrow(FAC_F32, fac_shape(4, 4), (int64_t[]){ INT64_MAX / 2, 1 },
                                       data, count_release, &released, &t, &err),
                     FAC_E_ARGUMENT);
    for (long k = 0; k < 2; k++) {
        allocations_left = k;
        assert_int_equal(fac_tensor_borrow(FAC_F32, fac_shape(3), NULL, data, count_release,
                                           &released, &t, &err),
                         FAC_E_NOMEM);
    }
    allocations_left = -1;
    assert_int_equal(released, 1);
    OK(fac_tensor_borrow(FAC_F32, fac_shape(5, 3), (int64_t[]){ 0, 1 }, data, NULL, NULL, &t,
                         &err));
    assert_false(fac_tensor_contiguous(t));
    assert_int_equal(fac_tensor_write(t, back, 60, &err), FAC_E_ARGUMENT); /* five rows are one */
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
    assert_int_equal(fac_tensor_view(t, fac_shape(2, 2), (int64_t[]){ 23, 1 }, 0, &v, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(
        fac_tensor_view(t, fac_shape(2, 2), (int64_t[]){ INT64_MAX, INT64_MAX }, 0, &v, &err),
        FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_view(t, fac_shape(2), (int64_t[]){ -1 }, 5, &v, &err),
                     FAC_E_ARGUMENT);
    assert_null(v);
    OK(fac_tensor_view(t, fac_shape(2, 2), (int64_t[]){ 22, 1 }, 0, &v, &err));
    fac_tensor_free(v);
    OK(fac_tensor_view(t, fac_shape(2), NULL, 22, &v, &err));
    OK(fac_tensor_view(v, fac_shape(24), NULL, -22, &w,
                       &err)); /* back to where the storage begins */
    assert_ptr_equal(fac_tensor_data(w), fac_tensor_data(t));
    fac_tensor_free(w);
    fac_tensor_free(v);
    OK(fac_tensor_view(t, fac_shape(0), NULL, 24, &v, &err));
    fac_tensor_free(v);
    fac_tensor_free(t);
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
    OK(fac_tensor_from_file(f, 1, (fac_type){ FAC_U16, fac_shape(2, 3) }, (int64_t[]){ 1, 2 },
                            &strided, &err));
    uint16_t read[6], word;
    OK(fac_tensor_read(strided, read, sizeof read, &err));
    memcpy(&word, (char *)x + 1 + 2 * 3, 2);
    assert_int_equal(read[4], word); /* element 1, 1 lies at 1 + 2 */
    assert_int_equal(
        fac_tensor_from_file(f, 8, (fac_type){ FAC_F32, fac_shape(7) }, NULL, &none, &err),
        FAC_E_FORMAT);
    assert_int_equal(
        fac_tensor_from_file(f, SIZE_MAX, (fac_type){ FAC_F32, fac_shape(7) }, NULL, &none, &err),
        FAC_E_FORMAT);
    assert_int_equal(fac_tensor_from_file(f, 1, (fac_type){ FAC_F32, fac_shape(2, 2) },
                                          (int64_t[]){ 5, 2 }, &none, &err),
                     FAC_E_FORMAT);
    for (long k = 0; k < 6; k++)
        for (size_t at = 0; at < 2; at++) {
            allocations_left = k;
            fac_status s = fac_tensor_from_file(f, at, (fac_type){ FAC_U16, fac_shape(2) },
                                                (int64_t[]){ 2 }, &none, &err);
            allocations_left = -1;
            if (s)
                assert_int_equal(s, FAC_E_NOMEM);
            else
                fac_tensor_free(none);
        }
    fac_file_free(f);
    assert_true(((const float *)fac_tensor_data(aligned))[6] == 7);
    fac_tensor_free(aligned);
    fac_tensor_free(copied);
    fac_tensor_free(strided);
}

/* Bytes that are not aligned are copied on the first read, and the file is there until then. */
static void unaligned_bytes_are_copied_late(void **state) {
    (void)state;
    const char bytes[17] = "0123456789abcdef";
    fac_file *f = fac_file_memory(bytes, 16);
    fac_tensor *read = NULL, *written = NULL, *unseen = NULL, *window = NULL;
    const fac_type type = { FAC_I32, fac_shape(3) };
    OK(fac_tensor_from_file(f, 1, type, NULL, &read, &err));
    OK(fac_tensor_from_file(f, 2, type, NULL, &written, &err));
    OK(fac_tensor_from_file(f, 3, type, NULL, &unseen, &err));
    OK(fac_tensor_view(unseen, fac_shape(2), NULL, 1, &window, &err));
    fac_file_free(f);
    char to[12];
    allocations_left = 0;
    assert_int_equal(fac_tensor_read(read, to, sizeof to, &err), FAC_E_NOMEM);
    assert_null(fac_tensor_data(read));
    allocations_left = -1;
    OK(fac_tensor_read(read, to, sizeof to, &err));
    assert_memory_equal(to, bytes + 1, sizeof to);
    fac_tensor *one = NULL;
    OK(fac_tensor_view(written, fac_shape(1), NULL, 2, &one, &err));
    OK(fac_tensor_write(one, "WXYZ", 4, &err));
    assert_memory_equal(fac_tensor_data(written), "23456789WXYZ", 12);
    assert_memory_equal(fac_tensor_data(window), bytes + 7, 8);
    fac_tensor_free(read), fac_tensor_free(written), fac_tensor_free(one), fac_tensor_free(unseen),
        fac_tensor_free(window);
}

/* ---- threads and memory ---- */

static void *share_tensor(void *arg) {
    fac_tensor *t = arg;
    for (int k = 0; k < 2000; k++) {
        fac_tensor *v = NULL;
        float x[4];
        if (fac_tensor_view(t, fac_shape(2, 2), (int64_t[]){ 1, 2 }, 0, &v, NULL) ||
            fac_tensor_read(v, x, sizeof x, NULL))
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
    for (int k = 0; k < 4; k++)
        pthread_create(&threads[k], NULL, share_tensor, fac_tensor_retain(t));
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
    if (!status)
        status = fac_tensor_write(s, (char *[]){ "a", "b", "c", "d", "e", "f" }, 6 * sizeof(char *),
                                  &err);
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
        cmocka_unit_test(dtypes_have_facts),
        cmocka_unit_test(counts_and_bytes_are_checked),
        cmocka_unit_test(new_tensors_are_zero),
        cmocka_unit_test(absurd_tensors_are_refused),
        cmocka_unit_test(zero_size_and_scalar),
        cmocka_unit_test(borrowing),
        cmocka_unit_test(views_stay_inside),
        cmocka_unit_test(begin_write_raises_the_version),
        cmocka_unit_test(tensors_borrow_from_files),
        cmocka_unit_test(unaligned_bytes_are_copied_late),
        cmocka_unit_test(tensors_are_shared_by_threads),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests_name("tensor", tests, NULL, NULL);
}
