/* facula train: models of our own, for any size of samples, and those of the zoo and of files. */
#include <string.h>
#include "files.h"
#include "train.h"

/* Three hidden layers. */
static fac_value *mlp(fac_value *x, int classes) {
    x = fac_flatten(x, 1);
    x = fac_relu(fac_nn_linear(x, "fc1", 100));
    x = fac_relu(fac_nn_linear(x, "fc2", 100));
    x = fac_relu(fac_nn_linear(x, "fc3", 100));
    return fac_nn_linear(x, "fc4", classes);
}

/* A convolution without a bias, for the batch norm after it has one. */
static fac_value *conv_norm(fac_value *x, const char *name, int channels, int kernel, int stride) {
    char bn[64];
    snprintf(bn, sizeof bn, "%s.bn", name);
    const fac_nn_conv2d_opts o = { .stride = stride, .pad = kernel / 2, .no_bias = true };
    return fac_nn_batch_norm(fac_nn_conv2d(x, name, channels, kernel, &o), bn, 0);
}
static fac_value *conv_bn(fac_value *x, const char *name, int channels, int kernel, int stride) {
    return fac_relu(conv_norm(x, name, channels, kernel, stride));
}

/* Of few places all are told apart, of many only the mean is taken. */
static fac_value *head(fac_value *x, int classes) {
    const fac_dims d = fac_value_type(x).dims;
    x = d.d[2] * d.d[3] <= 64 ? fac_flatten(x, 1) : fac_mean(x, fac_shape(2, 3), false);
    return fac_nn_linear(x, "fc", classes);
}

/* Three convolutions, cheap ones: the first sees every second pixel. */
static fac_value *cnn(fac_value *x, int classes) {
    x = conv_bn(x, "conv1", 16, 5, 2);
    x = fac_max_pool2d(conv_bn(x, "conv2", 32, 3, 1), 2, 2, NULL);
    return head(conv_bn(x, "conv3", 64, 3, 1), classes);
}

/* x + relu(bn(conv(x))): half of a basic block of He et al. 2015. */
static fac_value *residual(fac_value *x, const char *name, int channels) {
    return fac_add(x, conv_bn(x, name, channels, 3, 1));
}

/* Four resolutions; each has twice the channels of the one before. */
static fac_value *resnet(fac_value *x, int classes) {
    x = fac_max_pool2d(conv_bn(x, "conv1", 16, 3, 1), 2, 2, NULL);
    x = fac_max_pool2d(residual(conv_bn(x, "conv2", 32, 3, 1), "res2", 32), 2, 2, NULL);
    x = fac_max_pool2d(residual(conv_bn(x, "conv3", 64, 3, 1), "res3", 64), 2, 2, NULL);
    return head(conv_bn(x, "conv4", 128, 3, 1), classes);
}

/* Half as high and as wide, with twice the channels, which are 0: a shortcut without parameters. */
static fac_value *smaller(fac_value *x, int more) {
    fac_value *half = fac_slice(fac_slice(x, 2, 0, INT64_MAX, 2), 3, 0, INT64_MAX, 2);
    fac_value *pads = fac_ints(fac_value_graph(x), fac_shape(0, more));
    fac_value *channels = fac_ints(fac_value_graph(x), fac_shape(1));
    return fac_pad(half, pads, NULL, channels, FAC_PAD_CONSTANT);
}

/* relu(x + bn(conv(relu(bn(conv(x)))))): a basic block of He et al. 2015. */
static fac_value *basic_block(fac_value *x, int stage, int block, int channels, int stride) {
    char part[48];
    snprintf(part, sizeof part, "stage%d.%d.conv1", stage, block);
    fac_value *y = conv_bn(x, part, channels, 3, stride);
    snprintf(part, sizeof part, "stage%d.%d.conv2", stage, block);
    y = conv_norm(y, part, channels, 3, 1);
    return fac_relu(fac_add(stride == 1 ? x : smaller(x, channels / 2), y));
}

/* ResNet-20 of He et al. 2015, section 4.2: three stages of three blocks. */
static fac_value *resnet20(fac_value *x, int classes) {
    x = conv_bn(x, "conv1", 16, 3, 1);
    for (int stage = 0; stage < 3; stage++)
        for (int block = 0; block < 3; block++)
            x = basic_block(x, stage + 1, block, 16 << stage, stage && !block ? 2 : 1);
    return fac_nn_linear(fac_mean(x, fac_shape(2, 3), false), "fc", classes);
}

#define MLP "mlp:"

/* Models that fit themselves to the samples of a data set. */
static const struct {
    const char *name;
    bool images;
    fac_value *(*build)(fac_value *x, int classes);
} nets[] = {
    { "mlp", false, mlp },          { "cnn", true, cnn }, { "resnet", true, resnet },
    { "resnet20", true, resnet20 }, { MLP, false, NULL },
};
enum { NETS = sizeof nets / sizeof *nets };

/* "mlp:16,16,tanh": the layers follow the name. */
static const char *layers_of(const char *name) {
    return strncmp(name, MLP, strlen(MLP)) ? NULL : name + strlen(MLP);
}

static int find(const char *name) {
    int k = 0;
    if (layers_of(name)) return NETS - 1;
    while (k < NETS && strcmp(nets[k].name, name)) k++;
    return k;
}

static fac_value *add_net(const char *name, int net, fac_value *x, int classes, fac_error *err) {
    fac_mlp m;
    if (nets[net].build) return nets[net].build(x, classes);
    if (fac_mlp_parse(layers_of(name), &m, err)) return NULL;
    return fac_nn_mlp(x, &m, classes, NULL);
}

bool train_model_ours(const char *name) { return find(name) < NETS; }

int train_weights_file(const char *path, char *to, size_t size) {
    if (is_folder(path)) return path_join(to, size, path, "model.safetensors", "");
    const int n = snprintf(to, size, "%s", path);
    return (size_t)n < size ? EXIT_OK : fail_text("%s: a path that is too long", path);
}

/* Does the file know of quantizers that the network does not have yet? */
static bool has_more(const fac_weights *w, fac_graph *g) {
    for (int i = 0; i < fac_weights_count(w); i++)
        if (!fac_graph_find(g, fac_weights_name(w, i))) return true;
    return false;
}

int train_begin_with(const train_options *o, fac_graph *g, bool quantized, bool *later) {
    fac_error err = { 0 };
    fac_weights *w;
    char file[4096];
    int code = train_weights_file(o->weights, file, sizeof file);
    if (code) return code;
    if (fac_weights_load(file, &w, &err)) return fail(&err);
    *later = !quantized && o->quantize.n && has_more(w, g);
    const fac_status status = *later ? FAC_OK : fac_graph_load_weights(g, w, NULL, NULL, &err);
    fac_weights_free(w);
    return status ? fail(&err) : EXIT_OK;
}

static int build(const train_options *o, const fac_dataset *like, int net, model *out) {
    fac_error err = { 0 };
    if (nets[net].images && like->item.n != 3)
        return fail_text("the model %s needs images", nets[net].name);
    fac_graph *g = fac_graph_new();
    if (!g) return fail_text("out of memory");
    fac_dims dims = { .n = like->item.n + 1, .d = { fac_symbol(g, "N") } };
    memcpy(dims.d + 1, like->item.d, (size_t)like->item.n * sizeof *dims.d);
    fac_nn_seed(g, (uint64_t)o->seed);
    fac_value *logits =
        add_net(o->model, net, fac_input(g, "x", FAC_F32, dims), like->classes, &err);
    if (logits) fac_output(g, "logits", logits);
    if (!logits || fac_graph_check(g, &err)) {
        fac_graph_free(g);
        return fail(&err);
    }
    out->graph = g;
    return EXIT_OK;
}

int train_model(const train_options *o, const fac_dataset *like, model *out) {
    const int net = find(o->model);
    *out = (model){ 0 };
    if (sound_is_set(o->set) && sound_is_own(o->model))
        return like ? sound_model(o, like, out) : EXIT_OK;
    if (!like && net < NETS) return EXIT_OK;
    if (!like) {
        char file[4096];
        const int code = o->weights ? train_weights_file(o->weights, file, sizeof file) : EXIT_OK;
        const char *weights = o->weights ? file : NULL;
        return code ? code : model_load(o->model, weights, NULL, o->seed, out);
    }
    return net < NETS ? build(o, like, net, out) : EXIT_OK;
}
