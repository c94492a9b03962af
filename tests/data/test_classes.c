/* Names of classes, and the best of a row of scores. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "allocations.h"
#include "facula/data/classes.h"
#include "facula/nn/zoo.h"

static fac_labels *labels_of(const char *text) {
    fac_error err = { 0 };
    fac_labels *l = NULL;
    assert_int_equal(fac_labels_parse(text, strlen(text), "names", &l, &err), FAC_OK);
    return l;
}

static void lines_are_classes(void **state) {
    (void)state;
    fac_labels *l = labels_of("cat\r\n\ndog\x1b[2J\n\xc2\x9b"
                              "bird\n\n\n");
    assert_int_equal(fac_labels_count(l), 4);
    assert_string_equal(fac_labels_get(l, 0), "cat");
    assert_null(fac_labels_get(l, 1)); /* an empty line keeps its place */
    assert_string_equal(fac_labels_get(l, 2), "dog?[2J");
    assert_string_equal(fac_labels_get(l, 3), "?bird");
    assert_null(fac_labels_get(l, 4));
    assert_null(fac_labels_get(l, -1));
    assert_null(fac_labels_get(NULL, 0));
    /* what is written into models reads back */
    fac_labels *again = labels_of(fac_labels_text(l));
    assert_int_equal(fac_labels_count(again), 4);
    assert_string_equal(fac_labels_text(again), fac_labels_text(l));
    fac_labels_free(again);
    fac_labels_free(l);
    fac_labels_free(NULL);
}

static void what_is_refused(void **state) {
    (void)state;
    fac_labels *l = NULL;
    fac_error err = { 0 };
    assert_int_equal(fac_labels_parse("\n\r\n", 3, "f", &l, &err), FAC_E_FORMAT);
    assert_string_equal(err.text, "f: has no names of classes, one a line");
    assert_int_equal(fac_labels_parse("", 0, "f", &l, &err), FAC_E_FORMAT);
    assert_int_equal(fac_labels_parse("a\0b", 3, "f", &l, &err), FAC_E_FORMAT);
    assert_int_equal(fac_labels_load("/nonexistent/labels", &l, &err), FAC_E_IO);
    assert_int_equal(fac_labels_load("/tmp", &l, &err), FAC_E_IO);
    assert_null(l);
}

static void of_a_file(void **state) {
    (void)state;
    /* longer than one piece that is read */
    enum { LINES = 30000 };
    char path[] = "/tmp/facula_labels_XXXXXX", line[32];
    fac_labels *l = NULL;
    const int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    assert_non_null(f);
    for (int k = 0; k < LINES; k++) fprintf(f, "class number %d\n", k);
    fclose(f);
    assert_int_equal(fac_labels_load(path, &l, NULL), FAC_OK);
    unlink(path);
    assert_int_equal(fac_labels_count(l), LINES);
    snprintf(line, sizeof line, "class number %d", LINES - 1);
    assert_string_equal(fac_labels_get(l, LINES - 1), line);
    fac_labels_free(l);
}

static fac_tensor *scores_of(fac_dims dims, const float *x, fac_dtype dtype) {
    fac_tensor *t = NULL, *as = NULL;
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, dims, &t, NULL), FAC_OK);
    assert_int_equal(fac_tensor_write(t, x, (size_t)fac_dims_count(&dims) * sizeof *x, NULL),
                     FAC_OK);
    assert_int_equal(fac_tensor_convert(t, dtype, &as, NULL), FAC_OK);
    fac_tensor_free(t);
    return as;
}

static void best_of_each_row(void **state) {
    (void)state;
    static const float x[8] = { 1, 3, 2, 3, -1, NAN, 0, -2 };
    static const fac_dtype dtypes[] = { FAC_F32, FAC_F16, FAC_BF16, FAC_F64 };
    fac_labels *l = labels_of("a\nb\nc\nd\n");
    fac_class best[8];
    int n = 0;
    for (size_t k = 0; k < 4; k++) {
        fac_tensor *t = scores_of(fac_shape(2, 4), x, dtypes[k]);
        assert_int_equal(fac_top(t, 0, l, 3, best, &n, NULL), FAC_OK);
        assert_int_equal(n, 3);
        /* equal ones in their order */
        assert_true(best[0].index == 1 && best[1].index == 3 && best[2].index == 2);
        const double sum = exp(-2) + 1 + exp(-1) + 1;
        assert_true(fabs(best[0].probability - 1 / sum) < 1e-12 && best[0].score == 3);
        assert_true(fabs(best[2].probability - exp(-1) / sum) < 1e-12);
        assert_string_equal(best[1].name, "d");
        assert_int_equal(fac_top(t, 1, NULL, 8, best, &n, NULL), FAC_OK);
        assert_int_equal(n, 4);
        /* NaN last */
        assert_true(best[0].index == 2 && best[1].index == 0 && best[2].index == 3 &&
                    best[3].index == 1);
        assert_null(best[0].name);
        fac_tensor_free(t);
    }
    fac_labels_free(l);
}

static void probabilities_stay(void **state) {
    (void)state;
    static const float p[3] = { 0.25f, 0.625f, 0.125f }, q[3] = { 0.25f, 0.625f, 0.5f };
    fac_class best[3];
    int n = 0;
    fac_tensor *t = scores_of(fac_shape(1, 3, 1, 1), p, FAC_F32);
    fac_tensor *u = scores_of(fac_shape(3), q, FAC_F32);
    assert_int_equal(fac_top(t, 0, NULL, 2, best, &n, NULL), FAC_OK);
    assert_true(n == 2 && best[0].index == 1 && best[0].probability == 0.625 &&
                best[0].score == 0.625);
    /* they do not add up to 1 */
    assert_int_equal(fac_top(u, 0, NULL, 2, best, &n, NULL), FAC_OK);
    assert_true(best[0].score == 0.625 && best[0].probability < 0.5);
    fac_tensor_free(t);
    fac_tensor_free(u);
}

static void names_of_imagenet(void **state) {
    (void)state;
    float *x = calloc(1001, sizeof *x);
    fac_class best[1];
    int n = 0;
    x[285] = 9;
    fac_tensor *t = scores_of(fac_shape(1, 1000), x, FAC_F32);
    fac_tensor *u = scores_of(fac_shape(1, 1001), x, FAC_F32);
    assert_int_equal(fac_top(t, 0, NULL, 1, best, &n, NULL), FAC_OK);
    assert_string_equal(best[0].name, fac_imagenet_name(285));
    /* a background class stands in front */
    assert_int_equal(fac_top(u, 0, NULL, 1, best, &n, NULL), FAC_OK);
    assert_string_equal(best[0].name, fac_imagenet_name(284));
    fac_tensor_free(t);
    fac_tensor_free(u);
    free(x);
}

static void what_is_no_row(void **state) {
    (void)state;
    static const float x[8];
    fac_class best[2];
    fac_error err = { 0 };
    int n = -1;
    fac_tensor *t = scores_of(fac_shape(2, 4), x, FAC_F32);
    fac_tensor *u = scores_of(fac_shape(2, 2, 2), x, FAC_F32);
    fac_tensor *whole = scores_of(fac_shape(8), x, FAC_I64);
    fac_tensor *none = scores_of(fac_shape(1, 0), x, FAC_F32);
    assert_int_equal(fac_top(t, 2, NULL, 1, best, &n, &err), FAC_E_ARGUMENT);
    assert_string_equal(err.text, "fac_top: the 1 best of row 2 of 2 rows");
    assert_int_equal(fac_top(t, -1, NULL, 1, best, &n, NULL), FAC_E_ARGUMENT);
    assert_int_equal(fac_top(t, 0, NULL, 0, best, &n, NULL), FAC_E_ARGUMENT);
    assert_int_equal(fac_top(u, 0, NULL, 1, best, &n, NULL), FAC_E_SHAPE);
    assert_int_equal(fac_top(whole, 0, NULL, 1, best, &n, NULL), FAC_E_DTYPE);
    assert_int_equal(fac_top(none, 0, NULL, 1, best, &n, NULL), FAC_E_SHAPE);
    assert_int_equal(n, -1);
    fac_tensor_free(t);
    fac_tensor_free(u);
    fac_tensor_free(whole);
    fac_tensor_free(none);
}

/* Whichever allocation fails, the call says so and leaves its results alone. */
static void without_memory(void **state) {
    (void)state;
    static const float x[4] = { 1, 2, 3, 4 };
    fac_tensor *t = scores_of(fac_shape(4), x, FAC_F16);
    fac_class best[4];
    fac_labels *l = NULL;
    int n = -1;
    long k = 0;
    for (fac_status status = FAC_E_NOMEM; status; k++) {
        allocations_left = k;
        status = fac_labels_parse("a\nb\nc\nd", 7, "names", &l, NULL);
        allocations_left = -1;
        assert_true(status == FAC_OK || status == FAC_E_NOMEM);
        assert_true(!status == (l != NULL));
    }
    assert_true(k > 3);
    k = 0;
    for (fac_status status = FAC_E_NOMEM; status; k++) {
        allocations_left = k;
        status = fac_top(t, 0, l, 4, best, &n, NULL);
        allocations_left = -1;
        assert_true(status == FAC_OK || status == FAC_E_NOMEM);
        assert_int_equal(n, status ? -1 : 4);
    }
    assert_true(k > 1);
    fac_labels_free(l);
    fac_tensor_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_classes),  cmocka_unit_test(what_is_refused),
        cmocka_unit_test(of_a_file),          cmocka_unit_test(best_of_each_row),
        cmocka_unit_test(probabilities_stay), cmocka_unit_test(names_of_imagenet),
        cmocka_unit_test(what_is_no_row),     cmocka_unit_test(without_memory)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
