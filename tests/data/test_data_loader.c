/* The loader: the batches of fac_batch in their order, however far ahead; errors at their turn; no
 * allocations once it runs. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "facula/facula.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

static atomic_long allocations, fails_at = -1;
bool fac_test_allows(size_t size);
bool fac_test_allows(size_t size) {
    (void)size;
    return atomic_fetch_add(&allocations, 1) != atomic_load(&fails_at);
}

enum { N = 23, CLASSES = 4 };
static uint8_t pixels[N * 25];
static int64_t labels_of[N];

static fac_dataset images(void) {
    for (int i = 0; i < N * 25; i++) pixels[i] = (uint8_t)(i * 37 % 251);
    for (int i = 0; i < N; i++) labels_of[i] = i % CLASSES;
    return (fac_dataset){ .count = N,
                          .item = fac_shape(1, 5, 5),
                          .classes = CLASSES,
                          .bytes = pixels,
                          .labels = labels_of };
}

static bool same(const fac_tensor *a, const fac_tensor *b) {
    const fac_type x = fac_tensor_type(a), y = fac_tensor_type(b);
    return x.dtype == y.dtype && fac_dims_equal(&x.dims, &y.dims) && fac_tensor_contiguous(a) &&
           !memcmp(fac_tensor_data(a), fac_tensor_data(b), fac_type_bytes(&x));
}

static void batches_come_in_order(void **state) {
    (void)state;
    const fac_dataset d = images();
    static const int ahead[] = { 0, 1, 2, 50 };
    for (int k = 0; k < 8; k++) {
        const fac_batches b = { .size = 5,
                                .shuffle = true,
                                .seed = 3,
                                .augment = { .crop = 1, .flip = true, .mixup = k & 1 } };
        fac_loader *l = NULL;
        OK(fac_loader_new(&d, &b, 3, 16, ahead[k / 2], &l, err));
        for (int64_t i = 3; i < 16; i++) {
            fac_tensor *x, *labels, *want = NULL, *want_labels = NULL;
            OK(fac_loader_next(l, &x, &labels, err));
            OK(fac_batch(&d, &b, i / 5, i % 5, &want, &want_labels, err));
            assert_true(same(x, want) && same(labels, want_labels));
            fac_tensor_free(want);
            fac_tensor_free(want_labels);
        }
        fac_tensor *x = NULL, *labels = NULL;
        fac_error e = { 0 };
        assert_int_equal(fac_loader_next(l, &x, &labels, &e), FAC_E_ARGUMENT);
        assert_non_null(strstr(e.text, "batch 16"));
        assert_null(x);
        fac_loader_free(l);
    }
}

static void errors_come_at_their_turn(void **state) {
    (void)state;
    fac_dataset d = images();
    labels_of[13] = CLASSES;
    for (int ahead = 0; ahead < 4; ahead++) {
        fac_loader *l = NULL;
        fac_tensor *x = NULL, *labels = NULL;
        OK(fac_loader_new(&d, &(fac_batches){ .size = 5 }, 0, 5, ahead, &l, err));
        OK(fac_loader_next(l, &x, &labels, err));
        OK(fac_loader_next(l, &x, &labels, err));
        for (int again = 0; again < 3; again++) {
            fac_error e = { 0 };
            assert_int_equal(fac_loader_next(l, &x, &labels, &e), FAC_E_FORMAT);
            assert_string_equal(e.text, "sample 13 has label 4, the data set has 4 classes");
        }
        fac_loader_free(l);
    }
}

static void it_stops_at_any_time(void **state) {
    (void)state;
    const fac_dataset d = images();
    for (int taken = 0; taken < 5; taken++)
        for (int ahead = 0; ahead < 4; ahead++) {
            fac_loader *l = NULL;
            fac_tensor *x, *labels;
            OK(fac_loader_new(&d, &(fac_batches){ .size = 5 }, 0, 1000, ahead, &l, err));
            for (int i = 0; i < taken; i++) OK(fac_loader_next(l, &x, &labels, err));
            fac_loader_free(l);
        }
    fac_loader_free(NULL);
}

/* Whoever retains a tensor keeps it; all other batches go on in the old buffers. */
static void nothing_is_allocated(void **state) {
    (void)state;
    const fac_dataset d = images();
    for (int k = 0; k < 4; k++) {
        const fac_batches b = { .size = 5,
                                .shuffle = true,
                                .augment = { .crop = 1, .mixup = k & 1, .rotate = 5 } };
        fac_loader *l = NULL;
        fac_tensor *x, *labels, *kept = NULL, *copy = NULL, *gone = NULL;
        OK(fac_loader_new(&d, &b, 0, 100, k & 2, &l, err));
        for (int i = 0; i < 10; i++) OK(fac_loader_next(l, &x, &labels, err));
        const long before = atomic_load(&allocations);
        for (int i = 10; i < 50; i++) OK(fac_loader_next(l, &x, &labels, err));
        assert_int_equal(atomic_load(&allocations) - before, 0);
        kept = fac_tensor_retain(x);
        for (int i = 50; i < 60; i++) OK(fac_loader_next(l, &x, &labels, err));
        OK(fac_batch(&d, &b, 9, 4, &copy, &gone, err));
        assert_true(same(kept, copy));
        fac_tensor_free(kept);
        fac_tensor_free(copy);
        fac_tensor_free(gone);
        fac_loader_free(l);
    }
}

static void lost_memory_is_an_error(void **state) {
    (void)state;
    const fac_dataset d = images();
    const fac_batches b = { .size = 5, .augment = { .mixup = 1 } };
    int lost = 0;
    for (long k = 0; k < 60; k++) {
        fac_loader *l = NULL;
        fac_tensor *x, *labels;
        atomic_store(&allocations, 0);
        atomic_store(&fails_at, k);
        fac_status status = fac_loader_new(&d, &b, 0, 20, k & 1, &l, NULL);
        for (int i = 0; i < 20 && !status; i++) status = fac_loader_next(l, &x, &labels, NULL);
        assert_true(!status || status == FAC_E_NOMEM);
        lost += status == FAC_E_NOMEM;
        fac_loader_free(l);
    }
    atomic_store(&fails_at, -1);
    assert_true(lost > 10);
}

static void wrong_loaders_are_refused(void **state) {
    (void)state;
    const fac_dataset d = images();
    static const struct {
        int64_t size, first, end;
        int ahead;
        fac_augment a;
    } wrong[] = { { 0, 0, 1, 0, { .crop = 0 } },
                  { 5, -1, 1, 0, { .crop = 0 } },
                  { 5, 3, 2, 0, { .crop = 0 } },
                  { 5, 0, 1, -1, { .crop = 0 } },
                  { 5, 0, 1, 0, { .erase = 2 } } };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        fac_loader *l = NULL;
        const fac_batches b = { .size = wrong[k].size, .augment = wrong[k].a };
        assert_int_equal(
            fac_loader_new(&d, &b, wrong[k].first, wrong[k].end, wrong[k].ahead, &l, NULL),
            FAC_E_ARGUMENT);
        assert_null(l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_come_in_order),   cmocka_unit_test(errors_come_at_their_turn),
        cmocka_unit_test(it_stops_at_any_time),    cmocka_unit_test(nothing_is_allocated),
        cmocka_unit_test(lost_memory_is_an_error), cmocka_unit_test(wrong_loaders_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
