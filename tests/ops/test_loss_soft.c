/* Cross entropy of labels that are probabilities, and its gradient, against torch. */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "facula/facula.h"
#include "golden/soft.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

static fac_value *constant(fac_graph *g, fac_dims dims, const double *from) {
    fac_tensor *t = NULL;
    OK(fac_tensor_borrow(FAC_F64, dims, NULL, from, NULL, NULL, &t, err));
    fac_value *v = fac_const(g, t);
    fac_tensor_free(t);
    return v;
}

static void compare(fac_value *v, size_t row, const char *what, int n, const double *want) {
    fac_device *device = NULL;
    fac_tensor *t = NULL;
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &device, err));
    OK(fac_eval(v, device, &t, err));
    for (int i = 0; i < n; i++) {
        const double got = ((const double *)fac_tensor_data(t))[i];
        if (!(fabs(got - want[i]) <= 1e-10))
            fail_msg("row %zu, %s %d: %.12g, torch has %.12g", row, what, i, got, want[i]);
    }
    fac_tensor_free(t);
    fac_device_free(device);
}

static void soft_labels_are_torchs(void **state) {
    (void)state;
    static const double weights[] = { 1, 2, 3, 4 };
    for (size_t k = 0; k < sizeof golden_soft / sizeof *golden_soft; k++) {
        fac_graph *g = fac_graph_new();
        fac_value *x = constant(g, fac_shape(4, 5), golden_x),
                  *t = constant(g, fac_shape(4, 5), golden_t), *dx;
        const fac_cross_entropy_opts o = { .reduction = golden_soft[k].reduction,
                                           .label_smoothing = golden_soft[k].smoothing };
        fac_value *y = fac_cross_entropy(x, t, &o), *loss = y;
        if (golden_soft[k].n > 1)
            loss = fac_sum(fac_mul(y, constant(g, fac_shape(4), weights)), (fac_dims){ 0 }, false);
        fac_grad(loss, 1, &x, &dx);
        OK(fac_graph_check(g, err));
        compare(y, k, "value", golden_soft[k].n, golden_soft[k].value);
        compare(dx, k, "gradient", 20, golden_soft[k].dx);
        fac_graph_free(g);
    }
}

static void wrong_soft_labels_are_refused(void **state) {
    (void)state;
    const fac_dims shapes[] = { fac_shape(4), fac_shape(4, 4), fac_shape(4, 5, 1) };
    for (int k = 0; k < 3; k++) {
        fac_error e = { 0 };
        fac_graph *g = fac_graph_new();
        fac_cross_entropy(fac_input(g, "x", FAC_F32, fac_shape(4, 5)),
                          fac_input(g, "t", FAC_F32, shapes[k]), NULL);
        assert_int_equal(fac_graph_check(g, &e), FAC_E_SHAPE);
        assert_non_null(strstr(e.text, "probabilities"));
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(soft_labels_are_torchs),
                                        cmocka_unit_test(wrong_soft_labels_are_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
