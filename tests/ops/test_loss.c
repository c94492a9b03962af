/* Losses and their gradients against torch. */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "facula/facula.h"
#include "golden/optim.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

static fac_value *constant(fac_graph *g, fac_dtype dtype, fac_dims dims, const void *from) {
    fac_tensor *t = NULL;
    fac_type type = { dtype, dims };
    OK(fac_tensor_new(NULL, dtype, dims, &t, err));
    OK(fac_tensor_write(t, from, fac_type_bytes(&type), err));
    fac_value *v = fac_const(g, t);
    fac_tensor_free(t);
    return v;
}

static fac_value *loss_of(const char *name, fac_reduction reduction, fac_value *x) {
    fac_graph *g = fac_value_graph(x);
    fac_value *t = constant(g, FAC_F64, fac_shape(4, 5), golden_t),
              *labels = constant(g, FAC_I64, fac_shape(4), golden_labels);
    fac_value *ignored = constant(g, FAC_I64, fac_shape(4), golden_ignored);
    if (!strcmp(name, "cross_entropy"))
        return fac_cross_entropy(x, labels, &(fac_cross_entropy_opts){ .reduction = reduction });
    if (!strcmp(name, "cross_entropy_smooth"))
        return fac_cross_entropy(
            x, ignored,
            &(fac_cross_entropy_opts){ .reduction = reduction, .label_smoothing = 0.1 });
    if (!strcmp(name, "cross_entropy_ignore"))
        return fac_cross_entropy(
            x, labels,
            &(fac_cross_entropy_opts){ .reduction = reduction, .ignore = true, .ignore_index = 4 });
    if (!strcmp(name, "nll"))
        return fac_nll_loss(x, labels, &(fac_cross_entropy_opts){ .reduction = reduction });
    if (!strcmp(name, "mse")) return fac_mse_loss(x, t, reduction);
    if (!strcmp(name, "l1")) return fac_l1_loss(x, t, reduction);
    if (!strcmp(name, "smooth_l1")) return fac_smooth_l1_loss(x, t, 0.7, reduction);
    if (!strcmp(name, "bce")) return fac_bce_with_logits(x, t, reduction);
    if (!strcmp(name, "kl_div")) return fac_kl_div(x, t, reduction);
    fail_msg("no loss %s", name);
    return NULL;
}

static void compare(fac_value *v, const char *name, const char *what, int n, const double *want) {
    fac_device *device = NULL;
    fac_tensor *t = NULL;
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &device, err));
    OK(fac_eval(v, device, &t, err));
    fac_type type = fac_tensor_type(t);
    assert_int_equal(fac_dims_count(&type.dims), n);
    for (int i = 0; i < n; i++) {
        double got = ((const double *)fac_tensor_data(t))[i];
        if (!(fabs(got - want[i]) <= 1e-10))
            fail_msg("%s, %s %d: %.12g, torch has %.12g", name, what, i, got, want[i]);
    }
    fac_tensor_free(t);
    fac_device_free(device);
}

static void losses_are_torchs(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof golden_losses / sizeof *golden_losses; k++) {
        fac_graph *g = fac_graph_new();
        fac_value *x = constant(g, FAC_F64, fac_shape(4, 5), golden_x);
        fac_value *y = loss_of(golden_losses[k].name, golden_losses[k].reduction, x), *sum = y, *dx;
        compare(y, golden_losses[k].name, "value", golden_losses[k].n, golden_losses[k].value);
        if (golden_losses[k].reduction == FAC_REDUCE_NONE) {
            double weights[20];
            for (int i = 0; i < 20; i++) weights[i] = i + 1;
            sum = fac_sum(fac_mul(y, constant(g, FAC_F64, fac_value_type(y).dims, weights)),
                          (fac_dims){ 0 }, false);
        }
        fac_grad(sum, 1, &x, &dx);
        OK(fac_graph_check(g, err));
        compare(dx, golden_losses[k].name, "gradient", 20, golden_losses[k].dx);
        fac_graph_free(g);
    }
}

/* Of equal scores the first is the best one; a label beyond all classes is no hit, one that is
 * ignored may be. */
static void labels_are_counted(void **state) {
    (void)state;
    static const double x[] = { 1, 3, 3, 1, 3, 3, 5, 4, 4, 0, 0, 1, 2, 1, 0 };
    static const int64_t labels[] = { 1, 2, 0, -1, 7 };
    const double count[] = { 4 }, hits[] = { 2 };
    fac_graph *g = fac_graph_new();
    fac_value *loss = fac_cross_entropy(
        constant(g, FAC_F64, fac_shape(5, 3), x), constant(g, FAC_I64, fac_shape(5), labels),
        &(fac_cross_entropy_opts){ .ignore = true, .ignore_index = -1 });
    compare(fac_value_other(loss, 1), "cross_entropy", "count", 1, count);
    compare(fac_cast(fac_value_other(loss, 2), FAC_F64), "cross_entropy", "hits", 1, hits);
    fac_graph_free(g);
}

static void wrong_labels_are_refused(void **state) {
    (void)state;
    fac_error e = { 0 };
    fac_graph *g = fac_graph_new();
    fac_value *x = constant(g, FAC_F64, fac_shape(4, 5), golden_x),
              *labels = constant(g, FAC_F64, fac_shape(4), golden_t);
    fac_cross_entropy(x, labels, NULL);
    assert_int_equal(fac_graph_check(g, &e), FAC_E_SHAPE);
    assert_non_null(strstr(e.text, "i64"));
    fac_graph_free(g);
    g = fac_graph_new();
    x = constant(g, FAC_F64, fac_shape(4, 5), golden_x);
    fac_smooth_l1_loss(x, constant(g, FAC_F64, fac_shape(4, 5), golden_t), 0, FAC_REDUCE_MEAN);
    assert_int_equal(fac_graph_check(g, &e), FAC_E_ARGUMENT);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(losses_are_torchs),
                                        cmocka_unit_test(labels_are_counted),
                                        cmocka_unit_test(wrong_labels_are_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
