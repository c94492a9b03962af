/* facula train: models of our own, for any size of samples, and those of the zoo and of files. */
#include <string.h>
#include "train.h"

/* Three hidden layers. */
static fac_value *mlp(fac_value *x, int classes) {
    x = fac_flatten(x, 1);
    x = fac_relu(fac_nn_linear(x, "fc1", 100));
    x = fac_relu(fac_nn_linear(x, "fc2", 100));
    x = fac_relu(fac_nn_linear(x, "fc3", 100));
    return fac_nn_linear(x, "fc4", classes);
}

/* Three stages of two convolutions and a pool, the mean of what is left, one linear layer. */
static fac_value *cnn(fac_value *x, int classes) {
    static const int channels[3] = { 32, 64, 128 };
    const fac_nn_conv2d_opts same = { .pad = 1 };
    for (int k = 0; k < 3; k++) {
        char a[16], b[16];
        snprintf(a, sizeof a, "conv%da", k + 1);
        snprintf(b, sizeof b, "conv%db", k + 1);
        x = fac_relu(fac_nn_conv2d(x, a, channels[k], 3, &same));
        x = fac_relu(fac_nn_conv2d(x, b, channels[k], 3, &same));
        if (k < 2) x = fac_max_pool2d(x, 2, 2, NULL);
    }
    return fac_nn_linear(fac_mean(x, fac_shape(2, 3), false), "fc", classes);
}

static int build(const train_options *o, const fac_dataset *like, fac_value *(*net)(fac_value *, int), model *out) {
    fac_error err = { 0 };
    if (o->weights) return fail_text("--weights goes with zoo:NAME; continue a training with --resume");
    if (net == cnn && like->item.n != 3) return fail_text("the model cnn needs images");
    fac_graph *g = fac_graph_new();
    if (!g) return fail_text("out of memory");
    fac_dims dims = { .n = like->item.n + 1, .d = { fac_symbol(g, "N") } };
    memcpy(dims.d + 1, like->item.d, (size_t)like->item.n * sizeof *dims.d);
    fac_nn_seed(g, (uint64_t)o->seed);
    fac_output(g, "logits", net(fac_input(g, "x", FAC_F32, dims), like->classes));
    if (fac_graph_check(g, &err)) {
        fac_graph_free(g);
        return fail(&err);
    }
    out->graph = g;
    return EXIT_OK;
}

int train_model(const train_options *o, const fac_dataset *like, model *out) {
    bool is_mlp = !strcmp(o->model, "mlp"), own = is_mlp || !strcmp(o->model, "cnn");
    *out = (model){ 0 };
    if (!like) return own ? EXIT_OK : model_load(o->model, o->weights, NULL, o->seed, out);
    return own ? build(o, like, is_mlp ? mlp : cnn, out) : EXIT_OK;
}
