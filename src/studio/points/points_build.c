/* The page of points: data, a network and its programs, made from the settings. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/nn.h"
#include "studio/points/points.h"

static void release_net(points *p) {
    fac_loader_free(p->loader);
    fac_trainer_free(p->trainer);
    fac_program_free(p->boundary);
    fac_program_free(p->looker);
    fac_graph_free(p->model);
    p->loader = NULL;
    p->trainer = NULL;
    p->boundary = NULL;
    p->looker = NULL;
    p->model = NULL;
}

void fac_points_release(points *p) {
    release_net(p);
    fac_tensor_free(p->grid);
    fac_tensor_free(p->points);
    fac_dataset_free(&p->all);
    fac_dataset_free(&p->train);
    fac_dataset_free(&p->test);
    fac_device_free(p->device);
}

/* ---- data ---- */

static fac_status read_set(const points_setup *s, fac_dataset *out, fac_error *err) {
    const fac_points_opts o = { .count = s->count, .seed = (uint64_t)s->seed, .noise = s->noise };
    if (fac_points_own(s)) return fac_dataset_points_of(s->n, s->xy, s->label, out, err);
    return fac_dataset_points(s->set, &o, out, err);
}

/* The training points, then the test points, as one set for drawing. */
static fac_status join(const fac_dataset *a, const fac_dataset *b, fac_dataset *out,
                       fac_error *err) {
    float xy[2 * POINTS_MOST];
    int64_t label[POINTS_MOST];
    const fac_dataset *of[] = { a, b };
    int64_t n = 0;
    for (int k = 0; k < 2; k++) {
        memcpy(xy + 2 * n, of[k]->values, (size_t)of[k]->count * 2 * sizeof *xy);
        memcpy(label + n, of[k]->labels, (size_t)of[k]->count * sizeof *label);
        n += of[k]->count;
    }
    return fac_dataset_points_of(n, xy, label, out, err);
}

/* As in `facula train`: without a test part, the training points are also the test points. */
static fac_status load(points *p, const points_setup *s, fac_error *err) {
    fac_dataset set;
    if (s->test_part == 0) {
        FAC_TRY(read_set(s, &p->all, err));
        FAC_TRY(read_set(s, &p->train, err));
        return read_set(s, &p->test, err);
    }
    FAC_TRY(read_set(s, &set, err));
    fac_status status =
        fac_dataset_split(&set, s->test_part, (uint64_t)s->seed, &p->train, &p->test, err);
    fac_dataset_free(&set);
    return status ? status : join(&p->train, &p->test, &p->all, err);
}

static fac_status tensor_of(fac_dtype dtype, fac_dims dims, const void *data, fac_tensor **out,
                            fac_error *err) {
    fac_tensor *t;
    const fac_type type = { dtype, dims };
    FAC_TRY(fac_tensor_new(NULL, dtype, dims, &t, err));
    const fac_status status = fac_tensor_write(t, data, fac_type_bytes(&type), err);
    if (status)
        fac_tensor_free(t);
    else
        *out = t;
    return status;
}

/* Centres of the pixels of the unit square, from the top row. */
static fac_status new_grid(fac_tensor **out, fac_error *err) {
    float *xy = fac_alloc(2 * (size_t)POINTS_PIXELS, sizeof *xy);
    if (!xy) return fac_raise_memory(err, "a grid");
    for (int i = 0; i < POINTS_PIXELS; i++) {
        xy[2 * i] = ((float)(i % POINTS_GRID) + 0.5f) / POINTS_GRID;
        xy[2 * i + 1] = 1 - ((float)(i / POINTS_GRID) + 0.5f) / POINTS_GRID;
    }
    const fac_status status = tensor_of(FAC_F32, fac_shape(POINTS_PIXELS, 2), xy, out, err);
    fac_release(xy);
    return status;
}

/* ---- the network ---- */

static fac_status new_model(const points_setup *s, fac_graph **out, fac_error *err) {
    fac_graph *g = fac_graph_new();
    if (!g) return fac_raise_memory(err, "a graph");
    fac_nn_seed(g, (uint64_t)s->seed);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 2));
    fac_output(g, "logits", fac_nn_mlp(x, &s->net, 2, NULL));
    const fac_status status = fac_graph_check(g, err);
    if (status)
        fac_graph_free(g);
    else
        *out = g;
    return status;
}

/* Keeps the contents of parameters of the same name and shape. */
static fac_status keep_weights(const fac_graph *old, fac_graph *new, fac_error *err) {
    for (int i = 0; i < fac_graph_params(new); i++) {
        const fac_value *to = fac_graph_param(new, i);
        const fac_type type = fac_value_type(to);
        for (int k = 0; k < fac_graph_params(old); k++) {
            const fac_value *from = fac_graph_param(old, k);
            const fac_dims d = fac_value_type(from).dims;
            if (strcmp(fac_value_name(from), fac_value_name(to)) || !fac_dims_equal(&d, &type.dims))
                continue;
            const void *data = fac_tensor_data(fac_value_tensor(from));
            if (!data) return fac_raise(err, FAC_E_DEVICE, "cannot read the weights");
            FAC_TRY(fac_tensor_write(fac_value_tensor(to), data, fac_type_bytes(&type), err));
        }
    }
    return FAC_OK;
}

static fac_tensor *shared(void *self, const char *name, fac_type type, fac_error *err) {
    fac_value *v = fac_graph_find(self, name);
    (void)type;
    if (!v || !fac_value_tensor(v)) {
        fac_raise(err, FAC_E_INTERNAL, "the network has no parameter %s", name);
        return NULL;
    }
    return fac_tensor_retain(fac_value_tensor(v));
}

static void name_output(fac_graph *g, const char *what, int layer, fac_value *v) {
    char name[24];
    snprintf(name, sizeof name, "%s%d", what, layer);
    fac_output(g, name, v);
}

static fac_value *scaled(fac_value *x, double by, double more) {
    fac_graph *g = fac_value_graph(x);
    return fac_add(fac_mul(x, fac_number(g, FAC_F32, by)), fac_number(g, FAC_F32, more));
}

/* Outputs of the first neurons of a layer at every second pixel: [50 x 50, n] of the [100 x 100,
 * n]. */
static fac_value *every_second(fac_value *x) {
    enum { STEP = POINTS_GRID / POINTS_NEURON, SIDE = POINTS_NEURON };
    const int64_t n = fac_value_type(x).dims.d[1];
    x = fac_reshape(x, fac_shape(SIDE, STEP, SIDE, STEP, n));
    x = fac_slice(fac_slice(x, 1, 0, 1, 1), 3, 0, 1, 1);
    return fac_reshape(x, fac_shape(SIDE * SIDE, n));
}

/* Bytes for the page: probabilities of the second class, where 255 means 1.  For each layer, the
 * largest magnitudes of the first neurons, [1,16], and their pictures, [16,50 x 50], where 128
 * means 0, and 1 and 255 mean minus and plus that magnitude. */
static void add_pictures(const points *p, fac_graph *g, fac_value *logits, fac_value **hidden) {
    fac_value *margin = fac_sub(fac_slice(logits, 1, 1, 2, 1), fac_slice(logits, 1, 0, 1, 1));
    fac_output(g, "boundary", fac_cast(scaled(fac_sigmoid(margin), 255, 0.5), FAC_U8));
    for (int k = 0; k < p->setup.net.n; k++) {
        fac_value *x = every_second(fac_slice(hidden[k], 1, 0, POINTS_NEURONS, 1));
        fac_value *most = fac_reduce_max(fac_abs(x), fac_shape(0), true);
        fac_value *share = fac_div(x, fac_max(most, fac_number(g, FAC_F32, 1e-36)));
        name_output(g, "most", k, most);
        name_output(g, "neurons", k,
                    fac_cast(fac_transpose(scaled(share, 127, 128.5), fac_shape(1, 0)), FAC_U8));
    }
}

/* Probabilities [N,2], their logarithms, and the maximum of each neuron of each layer. */
static void add_numbers(const points *p, fac_graph *g, fac_value *logits, fac_value **hidden) {
    fac_output(g, "p", fac_softmax(logits, 1));
    fac_output(g, "log p", fac_log_softmax(logits, 1));
    for (int k = 0; k < p->setup.net.n; k++)
        name_output(g, "largest", k, fac_reduce_max(hidden[k], fac_shape(0), false));
}

/* A program for n points that shares the parameters of the model. */
static fac_status new_program(points *p, int64_t n,
                              void (*add)(const points *p, fac_graph *g, fac_value *logits,
                                          fac_value **hidden),
                              fac_program **out, fac_error *err) {
    fac_value *hidden[FAC_MLP_LAYERS];
    fac_graph *g = fac_graph_new();
    if (!g) return fac_raise_memory(err, "a graph");
    fac_nn_source(g, shared, p->model);
    fac_value *logits =
        fac_nn_mlp(fac_input(g, "x", FAC_F32, fac_shape(n, 2)), &p->setup.net, 2, hidden);
    add(p, g, logits, hidden);
    fac_status status = fac_graph_check(g, err);
    if (!status) status = fac_program_new(g, p->device, NULL, out, err);
    fac_graph_free(g);
    return status;
}

static fac_status new_trainer(points *p, fac_error *err) {
    const points_setup *s = &p->setup;
    const fac_trainer_opts o = { .optimizer = s->optimizer,
                                 .optim = { .momentum = s->momentum,
                                            .weight_decay = s->decay > 0 ? s->decay : -1,
                                            .ema_warmup = true } };
    FAC_TRY(fac_trainer_new(p->model, p->device, &o, &p->trainer, err));
    p->order = (fac_batches){ .size = s->batch, .shuffle = true, .seed = (uint64_t)s->seed };
    p->in_epoch = fac_batches_count(&p->train, &p->order);
    return fac_trainer_continues(p->trainer, &p->train, &p->order, err);
}

static fac_status build(points *p, fac_error *err) {
    const points_setup *s = &p->setup;
    const fac_device_opts how = { .threads = strcmp(s->device, "cpu") ? 0 : (int)s->threads };
    FAC_TRY(fac_device_open(s->device, &how, &p->device, err));
    FAC_TRY(load(p, s, err));
    FAC_TRY(new_grid(&p->grid, err));
    FAC_TRY(tensor_of(FAC_F32, fac_shape(p->all.count, 2), p->all.values, &p->points, err));
    return new_model(s, &p->model, err);
}

fac_status fac_points_build(points *p, const points_setup *s, bool keep, fac_error *err) {
    points new = { .setup = *s,
                   .generation = p->generation + 1,
                   .speed = p->speed,
                   .panels = p->panels,
                   .touched = keep && p->step > 0,
                   .fresh_setup = true,
                   .playing = p->playing && keep };
    fac_status status = build(&new, err);
    if (!status && keep && p->model) status = keep_weights(p->model, new.model, err);
    if (!status) status = new_program(&new, POINTS_PIXELS, add_pictures, &new.boundary, err);
    if (!status) status = new_program(&new, new.all.count, add_numbers, &new.looker, err);
    if (!status) status = new_trainer(&new, err);
    points *out = status ? &new : p;
    fac_points_release(out);
    if (!status) *p = new;
    return status;
}
