/* A small training: its network, its data, its start and its end. */
#ifndef FACULA_TRAIN_CHECK_H
#define FACULA_TRAIN_CHECK_H
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "facula/facula.h"
#include "plan/plan.h"
#include "run/program_internal.h"
#include "train/train_internal.h"
#include "golden/batch_norm.h"
#include "folder.h"

static fac_graph *mlp(void) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 1);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 2));
    x = fac_relu(fac_nn_linear(x, "fc1", 32));
    x = fac_relu(fac_nn_linear(x, "fc2", 32));
    fac_output(g, "logits", fac_nn_linear(x, "fc3", 2));
    OK(fac_graph_check(g, err));
    return g;
}

typedef struct setup {
    int threads;
    const char *optimizer, *toy;
    int64_t epochs, batch;
    double lr;
    int accumulate;
    double ema;
    bool plateau;
} setup;

/* A trainer of a fresh network on a toy. */
typedef struct training {
    fac_device *device;
    fac_graph *g;
    fac_trainer *t;
    fac_dataset data;
    fac_train_opts opts;
} training;

static training start(const setup *s) {
    training r = { 0 };
    fac_trainer_opts o = {
        .optimizer = s->optimizer,
        .optim = { .momentum = 0.9, .accumulate = s->accumulate, .ema = s->ema, .ema_warmup = true }
    };
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = s->threads }, &r.device, err));
    OK(fac_dataset_toy(s->toy, 50, 3, &r.data, err));
    r.g = mlp();
    OK(fac_trainer_new(r.g, r.device, &o, &r.t, err));
    r.opts = (fac_train_opts){ .epochs = s->epochs,
                               .batches = { .size = s->batch, .shuffle = true, .seed = 4 },
                               .schedule = { .kind = FAC_SCHEDULE_COSINE, .lr = s->lr } };
    if (s->plateau)
        r.opts.schedule = (fac_schedule){ .kind = FAC_SCHEDULE_PLATEAU,
                                          .lr = s->lr,
                                          .gamma = 0.5,
                                          .patience = -1,
                                          .threshold = 0.2 };
    return r;
}

static void finish(training *r) {
    fac_trainer_free(r->t);
    fac_graph_free(r->g);
    fac_dataset_free(&r->data);
    fac_device_free(r->device);
}
#endif
