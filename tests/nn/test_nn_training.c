/* Trainings against PyTorch: loss, gradients and weights after steps 1, 2 and 10 of four networks
 * with three optimizers, in f64 and f32.  The numbers are of
 * tests/golden/make/golden_nn_training.py.
 *
 *   test_nn_training MODEL OPTIMIZER DTYPE STEPS FILE.safetensors [exact]
 * writes all tensors instead, for scripts/peers/check_training.py: loss.K, grad.K.NAME,
 * after.K.NAME of the step K. */
#include "nn_check.h"
#include "facula/nn/loss.h"
#include "facula/optim.h"
#include "facula/train.h"
#include "facula/nn/zoo.h"

/* ---- networks ---- */

typedef struct model {
    const char *name;
    fac_value *(*build)(fac_graph *g,
                        fac_dtype dtype); /* logits of the graph's input, "x" or "ids" */
    int64_t classes;
} model;

static fac_value *lenet(fac_graph *g, fac_dtype dtype) {
    return fac_zoo_find("lenet")->build(fac_input(g, "x", dtype, fac_shape(4, 1, 28, 28)));
}

static fac_value *conv_bn(fac_value *x, const char *conv, const char *bn, int channels, int kernel,
                          int stride) {
    x = fac_nn_conv2d(x, conv, channels, kernel,
                      &(fac_nn_conv_opts){ .stride = stride, .pad = kernel / 2, .no_bias = true });
    return fac_nn_batch_norm(x, bn, 0);
}

/* A residual block as those of ResNet-18. */
static fac_value *block(fac_value *x, const char *name, int channels, int stride) {
    fac_graph *g = fac_value_graph(x);
    fac_graph_push(g, name);
    fac_value *y = conv_bn(fac_relu(conv_bn(x, "conv1", "bn1", channels, 3, stride)), "conv2",
                           "bn2", channels, 3, 1);
    if (stride > 1) x = conv_bn(x, "downsample.0", "downsample.1", channels, 1, stride);
    fac_graph_pop(g);
    return fac_relu(fac_add(y, x));
}

static fac_value *resnet(fac_graph *g, fac_dtype dtype) {
    fac_value *x = fac_input(g, "x", dtype, fac_shape(4, 3, 12, 12));
    x = fac_relu(conv_bn(x, "conv1", "bn1", 4, 3, 1));
    x = fac_max_pool2d(x, 3, 3, &(fac_pool2d_opts){ .stride = { 2, 2 }, .pad = { 1, 1, 1, 1 } });
    x = block(block(x, "layer1.0", 4, 1), "layer2.0", 8, 2);
    return fac_nn_linear(fac_mean(x, fac_shape(2, 3), false), "fc", 5);
}

static fac_value *last_step(fac_value *h) {
    return fac_squeeze(fac_slice(h, 0, -1, INT64_MAX, 1), fac_shape(0));
}

static fac_value *lstm(fac_graph *g, fac_dtype dtype) {
    fac_value *x = fac_nn_embedding(fac_input(g, "ids", FAC_I64, fac_shape(3, 7)), "embedding", 11,
                                    5, &(fac_nn_embedding_opts){ .dtype = dtype });
    fac_nn_recurrent r =
        fac_nn_lstm(x, "lstm", 6, &(fac_nn_recurrent_opts){ .layers = 2, .batch_first = true });
    return fac_nn_linear(last_step(r.h), "fc", 4);
}

static fac_value *transformer(fac_graph *g, fac_dtype dtype) {
    const fac_nn_transformer_opts pre = { .feedforward = 12,
                                          .batch_first = true,
                                          .norm_first = true,
                                          .causal = true,
                                          .activation = fac_gelu };
    const fac_nn_transformer_opts post = { .feedforward = 12, .batch_first = true };
    fac_value *x = fac_nn_embedding(fac_input(g, "ids", FAC_I64, fac_shape(3, 6)), "embedding", 11,
                                    8, &(fac_nn_embedding_opts){ .dtype = dtype });
    x = fac_nn_transformer_encoder_layer(x, "layers.0", 2, &pre);
    x = fac_nn_transformer_encoder_layer(x, "layers.1", 4, &post);
    return fac_nn_linear(fac_mean(x, fac_shape(1), false), "fc", 4);
}

static fac_value *resnet18(fac_graph *g, fac_dtype dtype) {
    return fac_zoo_find("resnet18")->build(fac_input(g, "x", dtype, fac_shape(8, 3, 64, 64)));
}

static const model models[] = { { "lenet", lenet, 10 },
                                { "resnet", resnet, 5 },
                                { "lstm", lstm, 4 },
                                { "transformer", transformer, 4 },
                                { "resnet18", resnet18, 1000 },
                                { NULL, NULL, 0 } };

typedef struct rule {
    const char *name;
    double lr;
    fac_optim_opts opts;
} rule;
static const rule rules[] = { { "sgd", 0.05, { .momentum = 0.9 } },
                              { "adam", 0.01, { .eps = 0 } },
                              { "adamw", 0.01, { .eps = 0 } },
                              { NULL, 0, { .eps = 0 } } };

/* ---- one training ---- */

enum { MOST = 512 };

typedef struct training {
    fac_graph *g;
    fac_device *device;
    fac_program *program;
    fac_tensor *in[3];     /* samples, labels, rate */
    fac_tensor *out[MOST]; /* loss, then gradients in the order of `names` */
    const char *names[MOST];
    int trained;
} training;

/* The same batch in each step: samples from -1..1 or integers from 0 on, labels. */
static fac_tensor *batch_of(fac_type type, const char *name, int64_t below) {
    if (fac_dtype_get(type.dtype)->kind == 'f') return tensor_of(type, name, plain);
    fac_tensor *t = NULL;
    const int64_t n = fac_dims_count(&type.dims);
    int64_t *x = calloc((size_t)n, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (int64_t)floor((number_of(name, i) + 1) / 2 * (double)below);
    OK(fac_tensor_new(NULL, type.dtype, type.dims, &t, &err));
    OK(fac_tensor_write(t, x, (size_t)n * sizeof *x, &err));
    free(x);
    return t;
}

static training start(const model *m, const rule *r, fac_dtype dtype, bool exact) {
    enum { WORDS = 11 };
    training t = { 0 };
    fac_graph *build = fac_graph_new();
    fac_value *wrt[MOST], *d[MOST];
    fac_nn_source(build, formula, NULL);
    fac_output(build, "logits", m->build(build, dtype));
    OK(fac_graph_check(build, &err));
    fac_graph *g = t.g = fac_graph_training(build);
    fac_graph_free(build);
    fac_value *logits = fac_graph_output(g, 0), *lr;
    g->noutputs = 0;
    logits->roots--;
    fac_value *labels = fac_input(g, "labels", FAC_I64, fac_shape(logits->type.dims.d[0]));
    fac_value *loss = fac_cross_entropy(logits, labels, NULL);
    fac_output(g, "loss", loss);
    for (int i = 0; i < fac_graph_params(g); i++)
        if (fac_value_trains(fac_graph_param(g, i))) {
            wrt[t.trained] = fac_graph_param(g, i);
            t.names[t.trained] = wrt[t.trained]->name;
            t.trained++;
        }
    fac_grad(loss, t.trained, wrt, d);
    for (int i = 0; i < t.trained; i++) {
        char name[160];
        snprintf(name, sizeof name, "grad.%s", t.names[i]);
        fac_output(g, name, d[i]);
    }
    lr = fac_input(g, "lr", FAC_F64, (fac_dims){ 0 });
    fac_optim_find(r->name)->build(loss, lr, &r->opts);
    OK(fac_graph_check(g, &err));
    const fac_value *x = fac_graph_input(g, 0);
    t.in[0] = batch_of(x->type, x->name, WORDS);
    t.in[1] = batch_of(labels->type, "labels", m->classes);
    OK(fac_tensor_new(NULL, FAC_F64, (fac_dims){ 0 }, &t.in[2], &err));
    OK(fac_tensor_write(t.in[2], &r->lr, sizeof r->lr, &err));
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &t.device, &err));
    OK(fac_program_new(
        g, t.device,
        &(fac_program_opts){ .precision = exact ? FAC_PRECISION_HIGHEST : FAC_PRECISION_DEFAULT },
        &t.program, &err));
    return t;
}

static void step(training *t) {
    if (fac_program_run(t->program, t->in, t->out, &err)) fail_msg("%s", err.text);
}

static void finish(training *t) {
    for (int k = 0; k <= t->trained; k++) fac_tensor_free(t->out[k]);
    for (int k = 0; k < 3; k++) fac_tensor_free(t->in[k]);
    fac_program_free(t->program);
    fac_device_free(t->device);
    fac_graph_free(t->g);
}

/* "loss", "grad.NAME" or "after.NAME" of the last step. */
static const fac_tensor *tensor_called(const training *t, const char *name) {
    if (!strcmp(name, "loss")) return t->out[0];
    if (!strncmp(name, "after.", 6)) {
        const fac_value *v = fac_graph_find(t->g, name + 6);
        return v ? fac_value_tensor(v) : NULL;
    }
    for (int k = 0; k < t->trained && !strncmp(name, "grad.", 5); k++)
        if (!strcmp(t->names[k], name + 5)) return t->out[k + 1];
    return NULL;
}

/* ---- the test ---- */

static const model *model_called(const char *name) {
    const model *m = models;
    while (m->name && strcmp(m->name, name)) m++;
    return m->name ? m : NULL;
}

static const rule *rule_called(const char *name) {
    const rule *r = rules;
    while (r->name && strcmp(r->name, name)) r++;
    return r->name ? r : NULL;
}

/* A case is "MODEL/OPTIMIZER/STEP"; those of one training follow each other. */
static void all_trainings(fac_dtype dtype) {
    FILE *golden = golden_open("nn_training.txt");
    char name[128], tensor[128], running[128] = "";
    training t = { 0 };
    int cases = 0, at = 0, noise = 0, compared = 0;
    for (; golden_case(golden, name); cases++) {
        char network[32], optimizer[32];
        int number = 0;
        digest want;
        assert_int_equal(sscanf(name, "%31[^/]/%31[^/]/%d", network, optimizer, &number), 3);
        char *slash = strrchr(name, '/');
        if (strncmp(running, name, (size_t)(slash - name) + 1)) {
            if (*running) finish(&t);
            snprintf(running, sizeof running, "%.*s", (int)(slash - name) + 1, name);
            assert_non_null(model_called(network));
            assert_non_null(rule_called(optimizer));
            t = start(model_called(network), rule_called(optimizer), dtype, false);
            at = 0;
        }
        for (; at < number; at++) step(&t);
        int seen = 0;
        for (; golden_next(golden, tensor, &want); seen++) {
            const fac_tensor *have = tensor_called(&t, tensor);
            if (!have) fail_msg("%s: there is no %s", name, tensor);
            noise += want.noise;
            if (dtype == FAC_F64)
                same_digest(name, tensor, digest_of(have), want, want.noise ? 1e-8 : 1e-10);
            else if (!want.noise)
                same_digest(name, tensor, digest_of(have), want, 1e-5);
            compared++;
        }
        assert_true(seen > 2 * t.trained);
    }
    if (*running) finish(&t);
    assert_int_equal(cases, 4 * 3 * 3);
    assert_true(noise * 50 < compared);
    fclose(golden);
}

static void trainings_are_torchs_in_f64(void **state) {
    (void)state;
    all_trainings(FAC_F64);
}
static void trainings_are_torchs_in_f32(void **state) {
    (void)state;
    all_trainings(FAC_F32);
}

/* ---- all tensors to a file ---- */

typedef struct dump {
    char *names[8 * MOST];
    fac_tensor *tensors[8 * MOST];
    int n;
} dump;

/* A copy: the next step writes over it. */
static void keep(dump *to, const char *name, int number, const char *of, const fac_tensor *t) {
    char text[256];
    assert_true(to->n < 8 * MOST);
    snprintf(text, sizeof text, "%s.%d%s%s", name, number, *of ? "." : "", of);
    to->names[to->n] = strdup(text);
    OK(fac_tensor_convert(t, fac_tensor_type(t).dtype, &to->tensors[to->n++], &err));
}

static int write_all(char **args, bool exact) {
    const model *m = model_called(args[0]);
    const rule *r = rule_called(args[1]);
    const fac_dtype dtype = fac_dtype_find(args[2]);
    const int steps = atoi(args[3]);
    static dump all;
    if (!m || !r || dtype == FAC_NONE || steps < 1) return 2;
    training t = start(m, r, dtype, exact);
    for (int k = 1; k <= steps; k++) {
        step(&t);
        if (k != 1 && k != 2 && k != steps) continue;
        keep(&all, "loss", k, "", t.out[0]);
        for (int i = 0; i < t.trained; i++) keep(&all, "grad", k, t.names[i], t.out[i + 1]);
        for (int i = 0; i < fac_graph_params(t.g); i++) {
            const fac_value *p = fac_graph_param(t.g, i);
            keep(&all, "after", k, p->name, p->tensor);
        }
    }
    OK(fac_safetensors_save(args[4], all.n, (const char *const *)all.names, all.tensors, &err));
    for (int k = 0; k < all.n; k++) {
        free(all.names[k]);
        fac_tensor_free(all.tensors[k]);
    }
    finish(&t);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest all[] = { cmocka_unit_test(trainings_are_torchs_in_f64),
                                      cmocka_unit_test(trainings_are_torchs_in_f32) };
    if (argc >= 6) return write_all(argv + 1, argc > 6);
    return cmocka_run_group_tests_name("nn_training", all, NULL, NULL);
}
