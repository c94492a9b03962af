/* Training: batch norms learn, forms of training lead back, checkpoints and models that do not
 * fit, losses that are not finite. */
#include "train_check.h"

static void other_checkpoints_are_refused(void **state) {
    (void)state;
    char path[128];
    fac_error e = { 0 };
    snprintf(path, sizeof path, "%s/sgd.safetensors", folder);
    training sgd = start(&(setup){ 1, "sgd", "circle", 1, 16, 0.01, 0, 0, false });
    training adam = start(&(setup){ 1, "adam", "circle", 1, 16, 0.01, 0, 0, false });
    OK(fac_trainer_save(sgd.t, path, err));
    assert_int_equal(fac_trainer_load(adam.t, path, &e), FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "exp_avg"));
    assert_int_equal(fac_trainer_load(adam.t, folder, &e), FAC_E_IO);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_not_equal(fac_trainer_load(sgd.t, path, &e), FAC_OK);
    finish(&sgd);
    finish(&adam);
}

/* The weights alone are read back by a graph of the same model. */
static void weights_are_saved(void **state) {
    (void)state;
    char path[128];
    fac_weights *w = NULL;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    fac_graph *g = mlp();
    OK(fac_graph_save_weights(g, path, err));
    OK(fac_weights_load(path, &w, err));
    assert_int_equal(fac_weights_count(w), 6);
    const fac_tensor *read = fac_weights_find(w, "fc2.weight"),
                     *had = fac_value_tensor(fac_graph_find(g, "fc2.weight"));
    assert_memory_equal(fac_tensor_data(read), fac_tensor_data(had), 32 * 32 * sizeof(float));
    fac_weights_free(w);
    fac_graph_free(g);
}

static void a_loss_that_is_not_finite_changes_nothing(void **state) {
    (void)state;
    training r = start(&(setup){ 1, "adam", "xor", 1, 50, 0.01, 0, 0, false });
    fac_tensor *x = NULL, *labels = NULL, *w = fac_value_tensor(fac_graph_find(r.g, "fc1.weight"));
    float before[64], bad[100];
    memcpy(before, fac_tensor_data(w), sizeof before);
    OK(fac_batch(&r.data, &r.opts.batches, 0, 0, &x, &labels, err));
    for (int i = 0; i < 100; i++) bad[i] = i == 7 ? NAN : 1;
    OK(fac_tensor_write(x, bad, sizeof bad, err));
    fac_error e = { 0 };
    assert_int_equal(fac_trainer_step(r.t, x, labels, 0.1, NULL, &e), FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "loss of step 0"));
    assert_memory_equal(before, fac_tensor_data(w), sizeof before);
    assert_int_equal(fac_trainer_steps(r.t), 0);
    fac_tensor_free(x);
    fac_tensor_free(labels);
    finish(&r);
}

static void set(fac_graph *g, const char *name, int n, const double *from) {
    float x[72] = { 0 };
    for (int i = 0; i < n && from; i++) x[i] = (float)from[i];
    OK(fac_tensor_write(fac_value_tensor(fac_graph_find(g, name)), x, (size_t)n * sizeof *x, err));
}

/* A batch norm in inference form learns: parameters and running statistics after three steps are
 * torch's. */
static void batch_norms_learn(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int n;
    } params[] = { { "bn.weight", 3 },      { "bn.bias", 3 },    { "bn.running_mean", 3 },
                   { "bn.running_var", 3 }, { "fc.weight", 24 }, { "fc.bias", 2 } };
    fac_device *device = NULL;
    fac_trainer *t = NULL;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, 2, 2));
    fac_output(g, "logits", fac_nn_linear(fac_flatten(fac_nn_batch_norm(x, "bn", 0), 1), "fc", 2));
    set(g, "fc.weight", 24, golden_bn_w);
    set(g, "fc.bias", 2, NULL);
    float samples[72];
    for (int i = 0; i < 72; i++) samples[i] = (float)golden_bn_x[i];
    fac_tensor *in = NULL, *labels = NULL;
    OK(fac_tensor_borrow(FAC_F32, fac_shape(6, 3, 2, 2), NULL, samples, NULL, NULL, &in, err));
    OK(fac_tensor_borrow(FAC_I64, fac_shape(6), NULL, golden_bn_labels, NULL, NULL, &labels, err));
    OK(fac_device_open("cpu", NULL, &device, err));
    OK(fac_trainer_new(g, device, &(fac_trainer_opts){ .optimizer = "sgd" }, &t, err));
    for (int i = 0; i < 3; i++) OK(fac_trainer_step(t, in, labels, 0.1, NULL, err));
    const double *want = golden_bn_after;
    for (int k = 0; k < 6; want += params[k++].n) {
        const float *got = fac_tensor_data(fac_value_tensor(fac_graph_find(g, params[k].name)));
        for (int i = 0; i < params[k].n; i++)
            if (!(fabs(got[i] - want[i]) <= 1e-5))
                fail_msg("%s %d: %.9g, torch has %.9g", params[k].name, i, got[i], want[i]);
    }
    fac_tensor_free(in);
    fac_tensor_free(labels);
    fac_trainer_free(t);
    fac_graph_free(g);
    fac_device_free(device);
}

static fac_tensor *outputs_of(const fac_graph *g, fac_device *device, fac_tensor *in) {
    fac_program *p = NULL;
    fac_tensor *y = NULL;
    OK(fac_program_new(g, device, NULL, &p, err));
    OK(fac_program_run(p, &in, &y, err));
    fac_program_free(p);
    return y;
}

/* The inference form of a training form is the model again: its batch norms use the running
 * statistics. */
static void training_forms_lead_back(void **state) {
    (void)state;
    fac_device *device = NULL;
    fac_graph *g = fac_graph_new();
    const double mean[3] = { 0.5, -1, 2 }, var[3] = { 2, 0.25, 1 }, weight[3] = { 1, 2, -1 };
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, 2, 2));
    fac_output(g, "y", fac_nn_dropout(fac_relu(fac_nn_batch_norm(x, "bn", 0)), 0.5));
    set(g, "bn.running_mean", 3, mean);
    set(g, "bn.running_var", 3, var);
    set(g, "bn.weight", 3, weight);
    float samples[72];
    for (int i = 0; i < 72; i++) samples[i] = (float)golden_bn_x[i];
    fac_tensor *in = NULL;
    OK(fac_tensor_borrow(FAC_F32, fac_shape(6, 3, 2, 2), NULL, samples, NULL, NULL, &in, err));
    OK(fac_device_open("cpu", NULL, &device, err));
    fac_graph *form = fac_graph_training(g), *back = fac_graph_inference(form),
              *plain = fac_graph_inference(g);
    fac_tensor *want = outputs_of(plain, device, in), *got = outputs_of(back, device, in);
    const float *a = fac_tensor_data(want), *b = fac_tensor_data(got);
    for (int c = 0; c < 3; c++)
        for (int n = 0; n < 6; n++)
            for (int i = 0; i < 4; i++) {
                const int at = n * 12 + c * 4 + i;
                double y = (samples[at] - mean[c]) / sqrt(var[c] + 1e-5) * weight[c];
                assert_true(fabs(a[at] - (y > 0 ? y : 0)) < 1e-5 && a[at] == b[at]);
            }
    fac_tensor *batch = outputs_of(form, device, in);
    assert_true(
        memcmp(fac_tensor_data(batch), a, sizeof samples)); /* that one takes those of the batch */
    fac_tensor *moved = fac_value_tensor(fac_graph_find(g, "bn.running_mean"));
    assert_true(((const float *)fac_tensor_data(moved))[0] != 0.5f);
    fac_tensor_free(want);
    fac_tensor_free(got);
    fac_tensor_free(batch);
    fac_tensor_free(in);
    fac_graph_free(form);
    fac_graph_free(back);
    fac_graph_free(plain);
    fac_graph_free(g);
    fac_device_free(device);
}

static void wrong_models_are_refused(void **state) {
    (void)state;
    fac_error e = { 0 };
    fac_trainer *t = NULL;
    fac_device *device = NULL;
    fac_graph *g = mlp();
    OK(fac_device_open("cpu", NULL, &device, err));
    assert_int_equal(
        fac_trainer_new(g, device, &(fac_trainer_opts){ .optimizer = "adamant" }, &t, &e),
        FAC_E_ARGUMENT);
    fac_input(g, "second", FAC_F32, fac_shape(1));
    assert_int_equal(fac_trainer_new(g, device, NULL, &t, &e), FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "one input"));
    assert_null(t);
    fac_graph_free(g);
    fac_device_free(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_checkpoints_are_refused),
        cmocka_unit_test(weights_are_saved),
        cmocka_unit_test(a_loss_that_is_not_finite_changes_nothing),
        cmocka_unit_test(batch_norms_learn),
        cmocka_unit_test(training_forms_lead_back),
        cmocka_unit_test(wrong_models_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
