/* Points of the plane: noise moves them and leaves their labels, tables are read or refused, layers
 * by a line of text. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "facula/facula.h"

static void noise_moves_points_and_keeps_labels(void **state) {
    (void)state;
    fac_dataset plain, noisy;
    fac_error err;
    const fac_points_opts none = { .count = 400, .seed = 3 };
    const fac_points_opts some = { .count = 400, .seed = 3, .noise = 0.1 };
    assert_int_equal(fac_dataset_points("circle", &none, &plain, &err), FAC_OK);
    assert_int_equal(fac_dataset_points("circle", &some, &noisy, &err), FAC_OK);
    double sum = 0, squares = 0;
    for (int i = 0; i < 800; i++) {
        const double d = (double)noisy.values[i] - (double)plain.values[i];
        sum += d;
        squares += d * d;
        assert_int_equal(plain.labels[i / 2], noisy.labels[i / 2]);
    }
    assert_true(fabs(sum / 800) < 5 * 0.1 / sqrt(800));
    assert_true(fabs(sqrt(squares / 800) - 0.1) < 0.015);
    fac_dataset_free(&plain);
    fac_dataset_free(&noisy);
}

static fac_status read_table(const char *text, fac_dataset *d, fac_error *err) {
    char path[] = "/tmp/facula-points-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    const fac_status status = fac_dataset_points_csv(path, d, err);
    unlink(path);
    return status;
}

static void tables_are_read_or_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",        "x,y,label\n", "1,2\n",     "1,2,3\n", "0,0,-1\n",
        "a,b,1\n", "1,2,1,4\n",   "nan,0,1\n", "1;2;1\n", "0.5,0.5,1\nx,y,label\n"
    };
    fac_dataset d;
    fac_error err;
    assert_int_equal(read_table("x,y,label\r\n0.25,-1e-1,1\r\n\n 3,4,0", &d, &err), FAC_OK);
    assert_int_equal(d.count, 2);
    assert_true(d.values[0] == 0.25f && d.values[1] == -0.1f && d.values[2] == 3 &&
                d.values[3] == 4);
    assert_int_equal(d.labels[0] * 10 + d.labels[1], 10);
    fac_dataset_free(&d);
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        assert_int_not_equal(read_table(wrong[k], &d, &err), FAC_OK);
        assert_non_null(strstr(err.text, "/tmp/facula-points-"));
    }
}

static void layers_by_a_line_of_text(void **state) {
    (void)state;
    static const char *const right[] = { "16,16,tanh", "relu", "1,512,gelu",
                                         "8,8,8,8,8,8,8,8,linear", "7,sigmoid" };
    static const char *const wrong[] = { "tanh,16",  "16,",
                                         ",",        "0,relu",
                                         "513,relu", "-4",
                                         "16 16",    "1,1,1,1,1,1,1,1,1",
                                         "16,tan",   "sigmoidsigmoidsigmoid" };
    fac_mlp m;
    fac_error err;
    char text[128];
    for (size_t k = 0; k < sizeof right / sizeof *right; k++) {
        assert_int_equal(fac_mlp_parse(right[k], &m, &err), FAC_OK);
        fac_mlp_text(&m, text, sizeof text);
        assert_string_equal(text, right[k]);
    }
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_int_equal(fac_mlp_parse(wrong[k], &m, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_mlp_parse("5,3", &m, &err), FAC_OK);
    fac_value *hidden[2];
    fac_graph *g = fac_graph_new();
    fac_nn_mlp(fac_input(g, "x", FAC_F32, fac_shape(4, 2)), &m, 2, hidden);
    assert_int_equal(fac_graph_check(g, &err), FAC_OK);
    assert_int_equal(fac_value_type(hidden[1]).dims.d[1], 3);
    assert_int_equal(fac_value_type(fac_graph_find(g, "fc3.weight")).dims.d[0], 2);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(noise_moves_points_and_keeps_labels),
                                        cmocka_unit_test(tables_are_read_or_refused),
                                        cmocka_unit_test(layers_by_a_line_of_text) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
