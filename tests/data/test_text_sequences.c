/* Data sets for language models: windows of a text, rows whose tokens have labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "facula/data/data.h"

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

enum { TEXT = 200, LENGTH = 8, COUNT = 50 };

static void stream_of(int64_t count, fac_dataset *d) {
    int32_t ids[TEXT];
    for (int k = 0; k < TEXT; k++) ids[k] = k;
    OK(fac_dataset_stream(ids, TEXT, LENGTH, count, TEXT, d, &err));
}

/* The first token of each window of a batch, whose labels are checked. */
static void firsts(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t index,
                   int64_t *to) {
    fac_tensor *x, *labels;
    OK(fac_batch(d, b, epoch, index, &x, &labels, &err));
    const fac_dims dims = fac_tensor_type(labels).dims;
    assert_int_equal(dims.n, 2);
    assert_int_equal(dims.d[1], LENGTH);
    const int64_t *tokens = fac_tensor_data(x), *next = fac_tensor_data(labels);
    for (int64_t i = 0; i < dims.d[0]; i++) {
        to[i] = tokens[i * LENGTH];
        for (int t = 0; t < LENGTH; t++) {
            assert_int_equal(tokens[i * LENGTH + t], to[i] + t);
            assert_int_equal(next[i * LENGTH + t], to[i] + t + 1);
        }
    }
    fac_tensor_free(x);
    fac_tensor_free(labels);
}

static void windows_begin_where_the_seed_says(void **state) {
    (void)state;
    fac_dataset d;
    int64_t a[COUNT], b[COUNT];
    const fac_batches one = { .size = COUNT, .shuffle = true, .seed = 5 };
    stream_of(COUNT, &d);
    firsts(&d, &one, 3, 0, a);
    firsts(&d, &one, 3, 0, b);
    assert_memory_equal(a, b, sizeof a);
    firsts(&d, &one, 4, 0, b);
    assert_memory_not_equal(a, b, sizeof a);
    firsts(&d, &(fac_batches){ .size = COUNT, .shuffle = true, .seed = 6 }, 3, 0, b);
    assert_memory_not_equal(a, b, sizeof a);
    const fac_batches part = { .size = 10, .shuffle = true, .seed = 5 }; /* by their place alone */
    for (int k = 0; k < 5; k++) firsts(&d, &part, 3, k, b + 10 * k);
    assert_memory_equal(a, b, sizeof a);
    fac_dataset_free(&d);
}

static void every_place_is_drawn(void **state) {
    (void)state;
    enum { MANY = 20000 };
    static int64_t at[MANY];
    int seen[TEXT] = { 0 };
    fac_dataset d;
    stream_of(MANY, &d);
    firsts(&d, &(fac_batches){ .size = MANY, .shuffle = true }, 0, 0, at);
    for (int k = 0; k < MANY; k++) seen[at[k]]++;
    for (int k = 0; k < TEXT - LENGTH; k++) assert_in_range(seen[k], 50, 180); /* 104 +- 10 */
    fac_dataset_free(&d);
}

static void in_order_they_lie_evenly(void **state) {
    (void)state;
    fac_dataset d;
    int64_t at[COUNT];
    stream_of(COUNT, &d);
    firsts(&d, &(fac_batches){ .size = COUNT }, 0, 0, at);
    assert_int_equal(at[0], 0);
    assert_int_equal(at[COUNT - 1], TEXT - LENGTH - 1);
    for (int k = 1; k < COUNT; k++) assert_in_range(at[k] - at[k - 1], 3, 4);
    fac_dataset_free(&d);
}

static void rows_are_as_long_as_their_labels(void **state) {
    (void)state;
    static const int32_t tokens[] = { 1, 2, 3, 0, 0, 0, 0, 0, 4, 3, 2, 1, 1, 0, 0, 0 };
    static const int64_t labels[] = { -100, 3,    1,    -100, -100, -100, -100, -100,
                                      -100, -100, -100, 2,    3,    -100, -100, -100 };
    fac_dataset d;
    fac_tensor *x, *y;
    OK(fac_dataset_sequences(tokens, labels, 2, 8, 5, &d, &err));
    OK(fac_batch(&d, &(fac_batches){ .size = 2, .trim = 2 }, 0, 0, &x, &y, &err));
    assert_int_equal(fac_tensor_type(x).dims.d[1], 6);
    const int64_t *a = fac_tensor_data(x), *b = fac_tensor_data(y);
    for (int i = 0; i < 2; i++)
        for (int t = 0; t < 6; t++) {
            assert_int_equal(a[6 * i + t], tokens[8 * i + t]);
            assert_int_equal(b[6 * i + t], labels[8 * i + t]);
        }
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_dataset_free(&d);
}

static void what_cannot_be(void **state) {
    (void)state;
    static const int32_t ids[] = { 0, 1, 2 };
    static const int64_t labels[] = { 0, 1, 7 };
    fac_dataset d, a, b;
    fac_tensor *x, *y;
    assert_int_equal(fac_dataset_stream(ids, 3, 3, 1, 3, &d, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_dataset_stream(ids, 3, 2, 1, 2, &d, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_dataset_stream(ids, 3, 2, 0, 3, &d, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_dataset_sequences(ids, labels, 1, 3, 3, &d, &err), FAC_E_ARGUMENT);
    OK(fac_dataset_stream(ids, 3, 2, 1, 3, &d, &err));
    assert_int_equal(fac_dataset_split(&d, 0.5, 0, &a, &b, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_batch(&d, &(fac_batches){ .size = 1, .trim = 2 }, 0, 0, &x, &y, &err),
                     FAC_E_ARGUMENT);
    fac_batches mixed = { .size = 1, .augment = { .mixup = 0.2 } };
    assert_int_equal(fac_batch(&d, &mixed, 0, 0, &x, &y, &err), FAC_E_ARGUMENT);
    fac_dataset_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_begin_where_the_seed_says),
        cmocka_unit_test(every_place_is_drawn),
        cmocka_unit_test(in_order_they_lie_evenly),
        cmocka_unit_test(rows_are_as_long_as_their_labels),
        cmocka_unit_test(what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
