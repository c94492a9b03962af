/* The page of images: data, network, programs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "facula/nn.h"
#include "facula/nn/zoo.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "studio/server/data.h"
#include "studio/images/digits.h"
#include "studio/images/images.h"

static const char clothes[] = "/usr/share/datasets/fashion-mnist";

bool fac_images_digits(const images *p) { return p->data != NULL; }

bool fac_images_foreign(const images *p) {
    return p->setup.known && (!fac_images_digits(p) || !p->test.count);
}

/* Looks for digits.  A folder with other data has none; a folder that does not exist is an
 * error. */
static void find_digits(images *p) {
    static const char *const more[] = { "mnist", NULL }, *const names[] = {
        "train-labels-idx1-ubyte", "train-labels-idx1-ubyte.gz", NULL
    };
    if (!p->data) return;
    if (fac_data_find(p->data, more, names, p->folder, sizeof p->folder))
        p->data = p->folder;
    else if (!access(p->data, X_OK))
        p->data = NULL;
}

static fac_status read_images(images *p, fac_error *err) {
    const char *from = p->data ? p->data : clothes;
    FAC_TRY(fac_dataset_mnist(from, true, &p->all, err));
    FAC_TRY(fac_dataset_mnist(from, false, &p->test, err));
    if (p->all.item.d[1] != SKETCH_SIDE || p->all.item.d[2] != SKETCH_SIDE ||
        p->all.classes > IMAGES_CLASSES)
        return fac_raise(err, FAC_E_FORMAT, "%s: expected images of 28 x 28 in 10 classes", from);
    return FAC_OK;
}

/* Without images, the page has the trained network for digits. */
fac_status fac_images_open(images *p, fac_error *err) {
    find_digits(p);
    const fac_device_opts how = { .threads = p->threads };
    const fac_status status = read_images(p, &p->lacks);
    if (status && p->data) {
        if (err) *err = p->lacks;
        return status;
    }
    if (status) {
        fac_dataset_free(&p->all);
        fac_dataset_free(&p->test);
        fac_raise_in(
            &p->lacks, status,
            "to train on images, give --data DIR, a folder with the four files of MNIST, or "
            "install Debian's dataset-fashion-mnist");
    }
    FAC_TRY(fac_device_open("cpu", &how, &p->device, err));
    return fac_tensor_new(NULL, FAC_F32, fac_shape(1, 1, SKETCH_SIDE, SKETCH_SIDE), &p->x, err);
}

static void release_net(images *p) {
    fac_loader_free(p->loader);
    fac_trainer_free(p->trainer);
    fac_program_free(p->looker);
    fac_graph_free(p->model);
    p->loader = NULL;
    p->trainer = NULL;
    p->looker = NULL;
    p->model = NULL;
}

void fac_images_release(images *p) {
    release_net(p);
    fac_tensor_free(p->x);
    fac_dataset_free(&p->all);
    fac_dataset_free(&p->test);
    fac_device_free(p->device);
}

/* The feature maps of the first layers, after their relus. */
static void add_maps(fac_graph *g) {
    fac_value *found[8];
    char name[16];
    int n = 0;
    for (fac_node *k = g->first; k && n < 8; k = k->next)
        if (FAC_IS(k, relu) && k->out[0]->type.dims.n == 4) found[n++] = k->out[0];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "map%d", i);
        fac_output(g, name, found[i]);
    }
}

/* The gradient of the largest logit with respect to the image says which pixels matter. */
static fac_status new_looker(images *p, fac_error *err) {
    fac_graph *g = fac_graph_inference(p->model);
    if (!g) return fac_raise_memory(err, "a graph");
    fac_value *x = fac_graph_input(g, 0), *logits = fac_graph_output(g, 0), *slope;
    fac_value *best = fac_sum(fac_reduce_max(logits, fac_shape(1), false), (fac_dims){ 0 }, false);
    fac_grad(best, 1, &x, &slope);
    fac_output(g, "p", fac_softmax(logits, 1));
    fac_output(g, "slope", slope);
    add_maps(g);
    fac_status status = fac_graph_check(g, err);
    if (!status) status = fac_program_new(g, p->device, NULL, &p->looker, err);
    fac_graph_free(g);
    return status;
}

static fac_status build(images *p, const images_setup *s, fac_error *err) {
    const fac_trainer_opts o = { .optimizer = "adam", .optim = { .ema_warmup = true } };
    p->setup = *s;
    p->train = p->all;
    if (s->samples < p->all.count) p->train.count = s->samples;
    FAC_TRY(s->known ? fac_studio_digits(&p->model, err)
                     : fac_zoo_new("lenet", NULL, (uint64_t)s->seed, &p->model, err));
    FAC_TRY(new_looker(p, err));
    FAC_TRY(fac_trainer_new(p->model, p->device, &o, &p->trainer, err));
    p->order = (fac_batches){ .size = s->batch, .shuffle = true, .seed = (uint64_t)s->seed };
    p->in_epoch = 1;
    if (s->known) return FAC_OK;
    p->in_epoch = fac_batches_count(&p->train, &p->order);
    return fac_trainer_continues(p->trainer, &p->train, &p->order, err);
}

fac_status fac_images_build(images *p, const images_setup *s, fac_error *err) {
    release_net(p);
    const fac_status status = build(p, s, err);
    p->generation++;
    p->done.step = 0;
    p->playing = false;
    p->fresh_setup = true;
    p->dirty = true;
    p->judged = false;
    p->judged_at = 0;
    p->done.loss = 0;
    p->done.accuracy = 0;
    p->done.seconds = 0;
    p->done.stopped = (fac_error){ 0 };
    p->unjudged = (fac_error){ 0 };
    if (status) release_net(p);
    return status;
}
