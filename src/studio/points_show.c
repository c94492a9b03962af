/* Frames of the page of points: numbers, the boundary, neurons, weights, histograms. */
#include <math.h>
#include <string.h>
#include "base/clock.h"
#include "base/memory.h"
#include "facula/view.h"
#include "studio/points.h"

enum { OUTPUTS = 1 + 2 * FAC_MLP_LAYERS };
#define PANEL_NS INT64_C(150000000)

static void add_u16(fac_text *to, unsigned x) {
    const char bytes[] = { (char)(x & 255), (char)(x >> 8 & 255) };
    fac_text_add_bytes(to, bytes, sizeof bytes);
}

static void add_u32(fac_text *to, uint32_t x) {
    add_u16(to, x & 0xffff);
    add_u16(to, x >> 16);
}

static void add_f32(fac_text *to, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    add_u32(to, bits);
}

static unsigned char byte_of(float share) {
    return (unsigned char)(255 * fminf(fmaxf(share, 0), 1) + 0.5f);
}

/* ---- the boundary, and what it says of the points ---- */

/* Probabilities of the second class, a byte each. */
static void add_chances(fac_text *to, const fac_tensor *p) {
    const float *x = fac_tensor_data(p);
    const int64_t n = x ? fac_tensor_type(p).dims.d[0] : 0;
    char line[POINTS_GRID];
    for (int64_t i = 0; i < n; i += POINTS_GRID) {
        const int64_t some = n - i < POINTS_GRID ? n - i : POINTS_GRID;
        for (int64_t k = 0; k < some; k++) line[k] = (char)byte_of(x[2 * (i + k) + 1]);
        fac_text_add_bytes(to, line, (size_t)some);
    }
}

static void put_boundary(points *p, fac_tensor *const *grid, const fac_tensor *at_points,
                         frames *to) {
    fac_text t = { 0 };
    add_u32(&t, p->generation);
    add_u16(&t, POINTS_GRID);
    add_u16(&t, POINTS_GRID);
    for (int k = 0; k < POINTS_SLICES; k++) add_chances(&t, grid[k]);
    add_chances(&t, at_points);
    fac_frames_put(to, FRAME_BOUNDARY, &t);
}

/* ---- neurons ---- */

/* 128 is 0, 1 and 255 the largest value and its negative. */
static void add_neuron(fac_text *to, const float *x, int64_t width, int64_t k) {
    char line[POINTS_NEURON];
    float most = 0;
    for (int64_t i = 0; i < POINTS_NEURON * POINTS_NEURON; i++)
        most = fmaxf(most, fabsf(x[i * width + k]));
    const float scale = 127 / fmaxf(most, 1e-36f); /* a finite number */
    add_f32(to, most);
    for (int r = 0; r < POINTS_NEURON; r++) {
        const float *row = x + (int64_t)r * POINTS_NEURON * width + k;
        for (int c = 0; c < POINTS_NEURON; c++)
            line[c] = (char)(128 + (int)lroundf(scale * row[c * width]));
        fac_text_add_bytes(to, line, sizeof line);
    }
}

static void put_neurons(points *p, fac_tensor *const *first, frames *to) {
    fac_text t = { 0 };
    const char layers = (char)p->setup.net.n;
    add_u32(&t, p->generation);
    fac_text_add_bytes(&t, &layers, 1);
    for (int k = 0; k < p->setup.net.n; k++) {
        const int64_t width = fac_tensor_type(first[k]).dims.d[1];
        const float *x = fac_tensor_data(first[k]);
        add_u16(&t, x ? (unsigned)width : 0);
        for (int64_t i = 0; x && i < width; i++) add_neuron(&t, x, width, i);
    }
    fac_frames_put(to, FRAME_NEURONS, &t);
}

static void put_weights(points *p, frames *to) {
    fac_text t = { 0 };
    int64_t all = 0;
    add_u32(&t, p->generation);
    for (int i = 0; i < fac_graph_params(p->model); i++) {
        const fac_type type = fac_value_type(fac_graph_param(p->model, i));
        all += fac_dims_count(&type.dims);
    }
    for (int i = 0; i < fac_graph_params(p->model) && all <= POINTS_WEIGHTS; i++) {
        const fac_tensor *w = fac_value_tensor(fac_graph_param(p->model, i));
        const fac_type type = fac_tensor_type(w);
        const float *x = fac_tensor_data(w);
        for (int64_t k = 0; x && k < fac_dims_count(&type.dims); k++) add_f32(&t, x[k]);
    }
    fac_frames_put(to, FRAME_WEIGHTS, &t);
}

/* ---- numbers ---- */

static void write_confusion(const points *p, const fac_tensor *at_points, bool test, fac_text *to) {
    const float *x = at_points ? fac_tensor_data(at_points) : NULL;
    int64_t counts[2][2] = { { 0 } };
    const int64_t first = test ? p->all.count - p->test.count : 0,
                  end = test ? p->all.count : p->train.count;
    for (int64_t i = first; x && i < end; i++) counts[p->all.labels[i]][x[2 * i + 1] > x[2 * i]]++;
    fac_text_print(to, "[[%lld,%lld],[%lld,%lld]]", (long long)counts[0][0],
                   (long long)counts[0][1], (long long)counts[1][0], (long long)counts[1][1]);
}

/* Neurons after a relu that are 0 for all points; -1 where the activation has no such place. */
static void write_dead(const points *p, fac_tensor *const *largest, fac_text *to) {
    const bool relu = !strcmp(p->setup.net.activation, "relu");
    for (int k = 0; k < p->setup.net.n && largest[k]; k++) {
        const float *x = fac_tensor_data(largest[k]);
        const fac_type type = fac_tensor_type(largest[k]);
        int64_t dead = 0;
        for (int64_t i = 0; x && i < fac_dims_count(&type.dims); i++) dead += x[i] <= 0;
        if (!relu) dead = -1;
        fac_text_print(to, "%s%lld", k ? "," : "", (long long)dead);
    }
}

static void write_score(points *p, const fac_dataset *d, const char *loss, const char *accuracy,
                        fac_text *to) {
    fac_score score = { .loss = NAN, .accuracy = NAN };
    fac_trainer_evaluate(p->trainer, d, d->count, &score, NULL);
    fac_json_put_pair(to, loss, score.loss);
    fac_json_put_pair(to, accuracy, score.accuracy);
}

static void put_state(points *p, fac_tensor *const *at_points, frames *to) {
    fac_text t = { 0 };
    fac_text_add(&t, "{");
    fac_json_put_pair(&t, "generation", p->generation);
    fac_json_put_pair(&t, "step", (double)p->step);
    fac_json_put_pair(&t, "in_epoch", (double)p->in_epoch);
    fac_json_put_pair(&t, "epochs", (double)p->setup.epochs);
    fac_json_put_pair(&t, "lr", p->setup.lr);
    fac_json_put_pair(&t, "speed", p->speed);
    fac_json_put_pair_bool(&t, "playing", p->playing);
    fac_json_put_pair_bool(&t, "touched", p->touched);
    fac_json_put_pair(&t, "seconds", p->seconds);
    fac_json_put_pair(&t, "batch_loss", p->batch_loss);
    write_score(p, &p->train, "loss", "accuracy", &t);
    write_score(p, &p->test, "test_loss", "test_accuracy", &t);
    fac_json_put_key(&t, "confusion");
    write_confusion(p, at_points[0], false, &t);
    fac_json_put_key(&t, "test_confusion");
    write_confusion(p, at_points[0], true, &t);
    fac_json_put_key(&t, "dead");
    fac_text_add(&t, "[");
    write_dead(p, at_points + 1 + p->setup.net.n, &t);
    fac_text_add(&t, "]");
    const fac_error *why = p->stopped.status ? &p->stopped : &p->unseen;
    if (why->status) fac_json_put_pair_text(&t, "stopped", why->text);
    fac_text_add(&t, "}");
    fac_frames_put(to, FRAME_STATE, &t);
}

static void put_setup(points *p, frames *to) {
    fac_text t = { 0 };
    fac_text_add(&t, "{");
    fac_points_setup_write(p, &t);
    fac_text_add(&t, "}");
    fac_frames_put(to, FRAME_SETUP, &t);
    p->fresh_setup = false;
}

/* ---- histograms ---- */

static void write_histogram(const fac_tensor *of, fac_text *to) {
    fac_histogram h;
    if (fac_histogram_of(of, &h, NULL)) h = (fac_histogram){ 0 };
    fac_text_add(to, "{");
    fac_json_put_pair(to, "min", h.min);
    fac_json_put_pair(to, "max", h.max);
    fac_json_put_key(to, "counts");
    for (int k = 0; k < h.buckets; k++)
        fac_text_print(to, "%s%lld", k ? "," : "[", (long long)h.in[k]);
    fac_text_add(to, h.buckets ? "]}" : "[]}");
}

static void write_panel(const points *p, int i, const fac_gradients *g, fac_text *to) {
    const fac_value *v = fac_graph_param(p->model, i);
    fac_text_add(to, i ? ",{" : "{");
    fac_json_put_pair_text(to, "name", fac_value_name(v));
    fac_json_put_key(to, "weights");
    write_histogram(fac_value_tensor(v), to);
    for (int k = 0; k < g->n; k++) {
        if (strcmp(g->of[k].name, fac_value_name(v))) continue;
        fac_json_put_pair(to, "gradient_norm", g->of[k].norm);
        fac_json_put_key(to, "gradients");
        write_histogram(g->of[k].gradient, to);
    }
    if (p->measured) fac_json_put_pair(to, "update", p->updates[i].update);
    if (p->measured) fac_json_put_pair(to, "weight", p->updates[i].weight);
    fac_text_add(to, "}");
}

static fac_status gradients(points *p, fac_gradients *g) {
    fac_tensor *x, *labels;
    const fac_batches whole = { .size = p->train.count };
    if (fac_batch(&p->train, &whole, 0, 0, &x, &labels, NULL)) return FAC_E_NOMEM;
    const fac_status status = fac_trainer_gradients(p->trainer, x, labels, g, NULL);
    fac_tensor_free(x);
    fac_tensor_free(labels);
    return status;
}

static void put_panels(points *p, frames *to) {
    fac_text t = { 0 };
    fac_gradients g = { 0 };
    if (!p->panels || fac_now_ns() - p->paneled < PANEL_NS || gradients(p, &g)) return;
    fac_text_add(&t, "{");
    fac_json_put_pair(&t, "generation", p->generation);
    fac_json_put_key(&t, "tensors");
    fac_text_add(&t, "[");
    for (int i = 0; i < fac_graph_params(p->model); i++) write_panel(p, i, &g, &t);
    fac_text_add(&t, "]}");
    fac_frames_put(to, FRAME_PANELS, &t);
    fac_gradients_free(&g);
    p->measure = true;
    p->paneled = fac_now_ns();
}

static fac_status look(points *p, fac_tensor **boundary, fac_tensor **coarse, fac_tensor **at) {
    fac_status status = FAC_OK;
    p->unseen = (fac_error){ 0 };
    for (int k = 0; k < POINTS_SLICES && !status; k++)
        status = fac_program_run(p->boundary, &p->grid[k], &boundary[k], &p->unseen);
    if (!status) status = fac_program_run(p->looker, &p->coarse, coarse, &p->unseen);
    return status ? status : fac_program_run(p->looker, &p->points, at, &p->unseen);
}

void fac_points_show(void *self, frames *to) {
    points *p = self;
    fac_tensor *boundary[POINTS_SLICES] = { NULL };
    fac_tensor *coarse[OUTPUTS] = { NULL }, *at[OUTPUTS] = { NULL };
    if (!p->dirty && !p->fresh_setup) return;
    const fac_status status = look(p, boundary, coarse, at);
    p->dirty = status != FAC_OK; /* then again, until it is seen */
    if (p->fresh_setup) put_setup(p, to);
    put_state(p, at, to);
    if (!status) {
        put_boundary(p, boundary, at[0], to);
        put_neurons(p, coarse + 1, to);
        put_weights(p, to);
        put_panels(p, to);
    }
    for (int k = 0; k < POINTS_SLICES; k++) fac_tensor_free(boundary[k]);
    for (int k = 0; k < OUTPUTS; k++) {
        fac_tensor_free(coarse[k]);
        fac_tensor_free(at[k]);
    }
}
