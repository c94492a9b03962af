/* Trains LeNet on MNIST or Fashion-MNIST:  train_lenet [FOLDER [EPOCHS]]
 * The network is built here, layer by layer; fac_train does the rest. */
#include <stdio.h>
#include <stdlib.h>
#include "facula/facula.h"

static fac_graph *lenet(void) {
    fac_graph *g = fac_graph_new();
    if (!g) return NULL;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 1, 28, 28));
    x = fac_nn_conv2d(x, "conv1", 6, 5, &(fac_nn_conv2d_opts){ .pad = 2 });
    x = fac_max_pool2d(fac_relu(x), 2, 2, NULL);
    x = fac_nn_conv2d(x, "conv2", 16, 5, NULL);
    x = fac_max_pool2d(fac_relu(x), 2, 2, NULL);
    x = fac_flatten(x, 1);
    x = fac_relu(fac_nn_linear(x, "fc1", 120));
    x = fac_relu(fac_nn_linear(x, "fc2", 84));
    fac_output(g, "logits", fac_nn_linear(x, "fc3", 10));
    return g;
}

static bool report(void *self, const fac_progress *p) {
    (void)self;
    if (p->test)
        printf("epoch %lld: loss %.4f, test accuracy %.2f %%, %.0f images/s\n",
               (long long)p->epoch + 1, p->train.loss, 100 * p->test->accuracy, p->images_per_s);
    return true;
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
    fac_train_opts opts = { .epochs = argc > 2 ? atoi(argv[2]) : 3,
                            .batches = { .size = 64, .shuffle = true },
                            .schedule = { .kind = FAC_SCHEDULE_ONE_CYCLE, .lr = 3e-3 },
                            .report = report };
    fac_error err = { 0 };
    fac_device *device = NULL;
    fac_dataset train = { 0 }, test = { 0 };
    fac_graph *g = lenet();
    fac_trainer *t = NULL;
    fac_train_result r;
    fac_status status = g ? fac_device_open("cpu", NULL, &device, &err) : FAC_E_NOMEM;
    if (!status) status = fac_dataset_mnist(folder, true, &train, &err);
    if (!status) status = fac_dataset_mnist(folder, false, &test, &err);
    if (!status) status = fac_trainer_new(g, device, NULL, &t, &err);
    if (!status) status = fac_train(t, &train, &test, &opts, &r, &err);
    if (!status) status = fac_graph_save_weights(g, "lenet.safetensors", &err);
    if (status)
        fprintf(stderr, "train_lenet: %s\n", err.text[0] ? err.text : fac_status_name(status));
    else
        printf("%.1f s; weights in lenet.safetensors, for: facula run zoo:lenet --weights "
               "lenet.safetensors\n",
               r.seconds);
    fac_trainer_free(t);
    fac_graph_free(g);
    fac_dataset_free(&train);
    fac_dataset_free(&test);
    fac_device_free(device);
    return status ? 1 : 0;
}
