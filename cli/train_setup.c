/* facula train: data sets, models and defaults by name. */
#include <stdlib.h>
#include <string.h>
#include "train.h"

const train_set train_sets[] = {
    { "mnist", "handwritten digits, 60,000 + 10,000 of 28 x 28; --data is the folder of the four files", NULL, "zoo:lenet",
      "one-cycle", 10, 64, 3e-3 },
    { "fashion-mnist", "clothes, 60,000 + 10,000 of 28 x 28; Debian's dataset-fashion-mnist", "/usr/share/datasets/fashion-mnist",
      "zoo:lenet", "one-cycle", 10, 64, 3e-3 },
    { "cifar10", "ten kinds of things, 50,000 + 10,000 of 32 x 32 in colour; the binary version", NULL, "cnn",
      "one-cycle", 15, 64, 2e-3 },
    { "image-folder", "a folder of photos for each class; a tenth is for testing", NULL, "cnn", "one-cycle", 20, 32, 1e-3 },
    { "toy:NAME", "50 points: simple, diag, split, xor, circle, spiral", NULL, "mlp", "cosine", 500, 10, 5e-3 },
    { .name = NULL },
};

static bool is_toy(const char *set) { return !strncmp(set, "toy:", 4); }

static const train_set *find(const char *name) {
    for (const train_set *s = train_sets; s->name; s++)
        if (!strcmp(s->name, name) || (is_toy(s->name) && is_toy(name))) return s;
    return NULL;
}

int train_defaults(train_options *o) {
    const train_set *s = find(o->set);
    if (!s) return usage_error(verb_find("train"), "there is no data set \"%s\"", o->set);
    if (!o->data) o->data = s->folder;
    if (!o->data && !is_toy(o->set)) return usage_error(verb_find("train"), "%s needs --data DIR", o->set);
    if (!o->model) o->model = s->model;
    if (!o->optimizer) o->optimizer = "adam";
    const fac_optim *optim = fac_optim_find(o->optimizer);
    if (!optim) return usage_error(verb_find("train"), "there is no optimizer \"%s\"", o->optimizer);
    if (!o->lr) o->lr = strcmp(o->optimizer, "adam") ? optim->lr : s->lr;
    if (!o->schedule) o->schedule = s->schedule;
    if (!o->epochs) o->epochs = s->epochs;
    if (!o->batch) o->batch = s->batch;
    return EXIT_OK;
}

/* ---- data ---- */

static fac_status load(const train_options *o, int height, int width, fac_dataset *train, fac_dataset *test, fac_error *err) {
    fac_dataset all = { 0 };
    fac_status status;
    if (is_toy(o->set)) {               /* as in MiniTorch the points of the test are those of the training */
        status = fac_dataset_toy(o->set + 4, 50, (uint64_t)o->seed, train, err);
        return status ? status : fac_dataset_toy(o->set + 4, 50, (uint64_t)o->seed, test, err);
    }
    if (!strcmp(o->set, "image-folder")) {
        status = fac_dataset_images(o->data, height, width, &all, err);
        if (!status) status = fac_dataset_split(&all, 0.1, (uint64_t)o->seed, train, test, err);
        fac_dataset_free(&all);
        return status;
    }
    bool cifar = !strcmp(o->set, "cifar10");
    fac_status (*read)(const char *, bool, fac_dataset *, fac_error *) = cifar ? fac_dataset_cifar10 : fac_dataset_mnist;
    status = read(o->data, true, train, err);
    return status ? status : read(o->data, false, test, err);
}

int train_data(const train_options *o, fac_dims want, fac_dataset *train, fac_dataset *test) {
    fac_error err = { 0 };
    int height = want.n == 4 && want.d[2] > 0 ? (int)want.d[2] : 64, width = want.n == 4 && want.d[3] > 0 ? (int)want.d[3] : 64;
    fac_dims size;
    if (o->size) {
        const int64_t most = 16384;
        if (!dims_parse(o->size, &size) || size.n != 2 || size.d[0] < 1 || size.d[1] < 1 || size.d[0] > most || size.d[1] > most)
            return usage_error(verb_find("train"), "--size needs HEIGHTxWIDTH, not \"%s\"", o->size);
        height = (int)size.d[0];
        width = (int)size.d[1];
    }
    if (load(o, height, width, train, test, &err)) {
        if (!strcmp(o->set, "fashion-mnist") && err.status == FAC_E_IO)
            fprintf(stderr, "facula: is the package installed?  apt-get install dataset-fashion-mnist\n");
        return fail(&err);
    }
    return EXIT_OK;
}

/* ---- models of our own, for any size of samples ---- */

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
