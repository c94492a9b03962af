/* A network of few bits from beginning to end:  low_bits [FILE.fac [FOLDER]]
 *
 *   1  a float network learns                                    fac_trainer
 *   2  it gets weights of 1 bit and activations of 2, and learns fac_graph_quantize
 *      again: levels are learned as in LQ-Nets
 *   3  its weights become planes of bits in a file               fac_packed_save
 *   4  the file is read and run: bits are counted, and the       fac_packed_load
 *      classes are those of the training
 *
 * FOLDER holds MNIST's files or those of its likes; without it bars in four directions are told
 * apart, which takes seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "facula/facula.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE, TRAIN = 1024, TEST = 512, BATCH = 64 };

/* ---- samples: a bar, at a random place, in noise ---- */

static uint8_t pixels[TRAIN + TEST][PIXELS];
static int64_t directions[TRAIN + TEST];

static unsigned draw(unsigned limit) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % limit;
}

static void draw_bar(int i) {
    static const int step[4][2] = { { 1, 0 }, { 0, 1 }, { 1, 1 }, { 1, -1 } };
    const int *d = step[directions[i] = i % 4];
    const int x = 10 + (int)draw(8), y = 10 + (int)draw(8), half = 4 + (int)draw(5);
    for (int k = 0; k < PIXELS; k++) pixels[i][k] = (uint8_t)draw(120);
    for (int t = -half; t <= half; t++) pixels[i][(y + t * d[1]) * SIDE + x + t * d[0]] = 255;
}

static void bars(fac_dataset *train, fac_dataset *test) {
    static const char *const names[] = { "horizontal", "vertical", "falling", "rising" };
    for (int i = 0; i < TRAIN + TEST; i++) draw_bar(i);
    *train = (fac_dataset){ .count = TRAIN,
                            .item = fac_shape(1, SIDE, SIDE),
                            .classes = 4,
                            .class_names = names,
                            .bytes = pixels[0],
                            .labels = directions };
    *test = *train;
    test->count = TEST;
    test->bytes = pixels[TRAIN];
    test->labels = directions + TRAIN;
}

/* ---- the network ---- */

static fac_value *layer(fac_value *x, const char *conv, const char *norm, int channels) {
    const fac_nn_conv2d_opts opts = { .pad = 1, .no_bias = true };
    return fac_relu(fac_nn_batch_norm(fac_nn_conv2d(x, conv, channels, 3, &opts), norm, 0));
}

static fac_graph *network(int classes) {
    fac_graph *g = fac_graph_new();
    if (!g) return NULL;
    fac_nn_seed(g, 1);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 1, SIDE, SIDE));
    x = fac_max_pool2d(layer(x, "conv1", "bn1", 32), 2, 2, NULL);
    x = fac_max_pool2d(layer(x, "conv2", "bn2", 64), 2, 2, NULL);
    x = layer(x, "conv3", "bn3", 64);
    x = fac_max_pool2d(layer(x, "conv4", "bn4", 64), 2, 2, NULL);
    fac_output(g, "logits", fac_nn_linear(fac_flatten(x, 1), "fc", classes));
    return g;
}

/* ---- the four steps ---- */

typedef struct work {
    fac_device *device;
    fac_dataset train, test;
    fac_score score;
    int64_t classes[TEST]; /* that the trained network takes the first test samples for */
    int64_t n;             /* of them */
} work;

/* The first test samples as the network takes them. */
static fac_status samples(const work *w, fac_tensor **x, fac_error *err) {
    fac_tensor *labels = NULL;
    const fac_status status =
        fac_batch(&w->test, &(fac_batches){ .size = w->n }, 0, 0, x, &labels, err);
    fac_tensor_free(labels);
    return status;
}

static fac_status learn(work *w, const fac_graph *model, double lr, const char *what,
                        fac_error *err) {
    fac_trainer *t = NULL;
    fac_tensor *x = NULL, *logits = NULL;
    fac_train_result r = { 0 };
    const fac_train_opts opts = { .epochs = 2,
                                  .batches = { .size = BATCH, .shuffle = true, .seed = 1 },
                                  .schedule = { .kind = FAC_SCHEDULE_ONE_CYCLE, .lr = lr } };
    fac_status status = fac_trainer_new(model, w->device, NULL, &t, err);
    if (!status) status = fac_train(t, &w->train, &w->test, &opts, &r, err);
    if (!status) status = samples(w, &x, err);
    if (!status) status = fac_trainer_predict(t, x, &logits, err);
    if (!status) status = fac_tensor_best(logits, w->classes, err);
    w->score = r.test;
    if (!status) printf("%-28s accuracy %6.2f %%\n", what, 100 * r.test.accuracy);
    fac_tensor_free(x);
    fac_tensor_free(logits);
    fac_trainer_free(t);
    return status;
}

static fac_status train_both(work *w, const char *file, fac_error *err) {
    static const char *const schemes[] = { "lq:w1a2" };
    fac_packing p = { 0 };
    fac_graph *model = network(w->train.classes), *small = NULL;
    fac_status status = model ? learn(w, model, 3e-3, "floats", err) : FAC_E_NOMEM;
    const fac_quantizing how = { .n = 1, .schemes = schemes };
    if (!status) status = fac_graph_quantize(model, &how, &small, NULL, err);
    if (!status) status = learn(w, small, 2e-3, "weights 1 bit, inputs 2 bits", err);
    if (!status) status = fac_packed_save(small, file, &p, err);
    if (!status)
        printf("%s: weights take %.0f bytes of %.0f; those of %d layers are bits\n", file, p.bytes,
               p.bytes_before, p.layers);
    fac_graph_free(small);
    fac_graph_free(model);
    return status;
}

/* How many steps of the program counted bits. */
static int counting_steps(fac_program *p) {
    int n = 0;
    const size_t all = fac_program_steps(p, NULL, 0);
    fac_step_stat *steps = calloc(all, sizeof *steps);
    if (steps) fac_program_steps(p, steps, all);
    for (size_t i = 0; steps && i < all; i++)
        n += !strcmp(steps[i].op, "conv2d_basis") || !strcmp(steps[i].op, "conv2d_codes");
    free(steps);
    return n;
}

/* Whether the file takes every sample for the class that the trained network takes it for. */
static fac_status run_file(const work *w, const char *file, bool *same, fac_error *err) {
    fac_graph *g = NULL;
    fac_program *p = NULL;
    fac_tensor *x = NULL, *logits = NULL;
    int64_t classes[TEST], equal = 0;
    fac_status status = fac_packed_load(file, &g, err);
    if (!status) status = fac_program_new(g, w->device, NULL, &p, err);
    if (!status) status = samples(w, &x, err);
    if (!status) status = fac_program_run(p, &x, &logits, err);
    if (!status) status = fac_tensor_best(logits, classes, err);
    for (int64_t i = 0; !status && i < w->n; i++) equal += classes[i] == w->classes[i];
    *same = !status && equal == w->n;
    if (!status)
        printf("%s: %lld of %lld classes are those of the training; layers that count bits: %d\n",
               file, (long long)equal, (long long)w->n, counting_steps(p));
    fac_tensor_free(x);
    fac_tensor_free(logits);
    fac_program_free(p);
    fac_graph_free(g);
    return status;
}

int main(int argc, char **argv) {
    static work w;
    const char *file = argc > 1 ? argv[1] : "low_bits.fac";
    const char *folder = argc > 2 ? argv[2] : NULL;
    fac_error err = { 0 };
    bool same = false;
    fac_status status = fac_device_open("cpu", NULL, &w.device, &err);
    if (!status && folder) status = fac_dataset_mnist(folder, true, &w.train, &err);
    if (!status && folder) status = fac_dataset_mnist(folder, false, &w.test, &err);
    if (!folder) bars(&w.train, &w.test);
    w.n = w.test.count < TEST ? w.test.count : TEST;
    if (!status) status = train_both(&w, file, &err);
    if (!status) status = run_file(&w, file, &same, &err);
    if (status) fprintf(stderr, "low_bits: %s\n", err.text[0] ? err.text : fac_status_name(status));
    if (folder) fac_dataset_free(&w.train);
    if (folder) fac_dataset_free(&w.test);
    fac_device_free(w.device);
    return status || !same || w.score.accuracy < 0.9;
}
