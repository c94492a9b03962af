/* Epochs of the three larger trainings of MiniTorch (https://minitorch.github.io,
 * project/run_*.py), by fac_train as it is: batches, steps, bookkeeping.  bench/minitorch.py runs
 * this and PyTorch in turns.
 *
 *     bench_minitorch mlp|lenet|sst2 [THREADS [SECONDS]]
 *
 * Prints the medians of an epoch in ms: by the clock, and of the processors' time, which a busy
 * machine disturbs less. Samples are random, of the shapes of the courses: 50 points; 5,000 images
 * of 28 x 28; 450 sentences as 52 vectors of 50 numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "facula/facula.h"

typedef struct workload {
    const char *name;
    int64_t count, batch;
    fac_dims item;
    int classes;
    double lr;
    fac_value *(*net)(fac_value *x);
} workload;

static fac_value *mlp(fac_value *x) {
    x = fac_relu(fac_nn_linear(x, "layer1", 100));
    x = fac_relu(fac_nn_linear(x, "layer2", 100));
    return fac_nn_linear(x, "layer3", 2);
}

static fac_value *lenet(fac_value *x) {
    const fac_nn_conv_opts same = { .pad = 1 };
    x = fac_relu(fac_nn_conv2d(x, "conv1", 4, 3, &same));
    x = fac_relu(fac_nn_conv2d(x, "conv2", 8, 3, &same));
    x = fac_relu(fac_nn_linear(fac_flatten(fac_avg_pool2d(x, 4, 4, NULL), 1), "linear1", 64));
    return fac_nn_linear(fac_nn_dropout(x, 0.25), "linear2", 10);
}

static fac_value *sst2(fac_value *x) {
    fac_value *found = NULL;
    x = fac_transpose(x, fac_shape(0, 2, 1));
    for (int k = 3; k <= 5; k++) {
        char name[16];
        snprintf(name, sizeof name, "conv%d", k);
        fac_value *y =
            fac_reduce_max(fac_relu(fac_nn_conv1d(x, name, 100, k, NULL)), fac_shape(2), false);
        found = found ? fac_add(found, y) : y;
    }
    return fac_nn_dropout(fac_nn_linear(found, "linear", 2), 0.25);
}

static const workload workloads[] = {
    { "mlp", 50, 10, { 1, { 2 } }, 2, 0.05, mlp },
    { "lenet", 5000, 16, { 3, { 1, 28, 28 } }, 10, 0.01, lenet },
    { "sst2", 450, 10, { 2, { 52, 50 } }, 2, 0.01, sst2 },
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads, MOST = 100000 };

typedef struct clock_of_epochs {
    double ms[MOST], cpu_ms[MOST], last, until;
    clock_t cpu;
    int n;
} clock_of_epochs;

/* A fac_train_opts.report: notes how long each epoch took. */
static bool note(void *self, const fac_progress *p) {
    clock_of_epochs *c = self;
    if (p->step % (p->steps / p->epochs)) return true;
    const clock_t cpu = clock();
    c->ms[c->n] = 1e3 * (p->seconds - c->last);
    c->cpu_ms[c->n++] = 1e3 * (double)(cpu - c->cpu) / CLOCKS_PER_SEC;
    c->last = p->seconds;
    c->cpu = cpu;
    return c->n < MOST && (p->seconds < c->until || c->n < 2);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static fac_status train(const workload *w, fac_device *device, const fac_dataset *d,
                        clock_of_epochs *c, fac_error *err) {
    fac_graph *g = fac_graph_new();
    fac_trainer *t = NULL;
    fac_train_result r;
    if (!g) return FAC_E_NOMEM;
    fac_dims dims = { w->item.n + 1, { fac_symbol(g, "N") } };
    memcpy(dims.d + 1, w->item.d, (size_t)w->item.n * sizeof *dims.d);
    fac_output(g, "logits", w->net(fac_input(g, "x", FAC_F32, dims)));
    const fac_train_opts opts = { .epochs = MOST,
                                  .batches = { .size = w->batch, .shuffle = true },
                                  .schedule = { .lr = w->lr },
                                  .report = note,
                                  .self = c };
    fac_status status =
        fac_trainer_new(g, device, &(fac_trainer_opts){ .optimizer = "sgd" }, &t, err);
    if (!status) status = fac_train(t, d, NULL, &opts, &r, err);
    fac_trainer_free(t);
    fac_graph_free(g);
    return status;
}

int main(int argc, char **argv) {
    static clock_of_epochs c;
    fac_error err = { 0 };
    fac_device *device = NULL;
    int k = 0;
    while (argc > 1 && k < WORKLOADS && strcmp(argv[1], workloads[k].name)) k++;
    if (argc < 2 || k == WORKLOADS)
        return fprintf(stderr, "usage: bench_minitorch mlp|lenet|sst2 [THREADS [SECONDS]]\n"), 2;
    const workload *w = &workloads[k];
    const size_t size = (size_t)fac_dims_count(&w->item), n = size * (size_t)w->count;
    float *values = malloc(n * sizeof *values);
    int64_t *labels = malloc((size_t)w->count * sizeof *labels);
    if (!values || !labels) return 1;
    srand(1);
    for (size_t i = 0; i < n; i++) values[i] = (float)rand() / (float)RAND_MAX;
    for (int64_t i = 0; i < w->count; i++) labels[i] = rand() % w->classes;
    const fac_dataset d = { .count = w->count,
                            .item = w->item,
                            .classes = w->classes,
                            .values = values,
                            .labels = labels };
    c.until = argc > 3 ? strtod(argv[3], NULL) : 2;
    fac_status status = fac_device_open(
        "cpu", &(fac_device_opts){ .threads = argc > 2 ? atoi(argv[2]) : 0 }, &device, &err);
    c.cpu = clock();
    if (!status) status = train(w, device, &d, &c, &err);
    fac_device_free(device);
    free(values);
    free(labels);
    if (status) return fprintf(stderr, "bench_minitorch: %s\n", err.text), 1;
    qsort(c.ms, (size_t)c.n, sizeof *c.ms, by_size);
    qsort(c.cpu_ms, (size_t)c.n, sizeof *c.cpu_ms, by_size);
    printf("%.6g %.6g\n", c.ms[c.n / 2], c.cpu_ms[c.n / 2]);
    return 0;
}
