/* Frames of the page of points: numbers, the boundary, neurons, weights, histograms. */
#include <math.h>
#include <string.h>
#include "base/clock.h"
#include "base/memory.h"
#include "facula/view.h"
#include "studio/points/points.h"

enum { AT_P, AT_LOGS, AT_LARGEST }; /* outputs of p->looker */
enum { OUTPUTS = 2 + 2 * FAC_MLP_LAYERS };
#define PANEL_NS INT64_C(150000000)

static void add_u16(fac_text *to, unsigned x) {
    const char bytes[] = { (char)(x & 255), (char)(x >> 8 & 255) };
    fac_text_add_bytes(to, bytes, sizeof bytes);
}

static void add_u32(fac_text *to, uint32_t x) {
    add_u16(to, x & 0xffff);
    add_u16(to, x >> 16);
}

static void add_f32s(fac_text *to, const float *x, int64_t n) {
    enum { PART = 256 };
    unsigned char bytes[4 * PART];
    for (int64_t i = 0; i < n; i += PART) {
        const int64_t some = n - i < PART ? n - i : PART;
        for (int64_t k = 0; k < some; k++) {
            uint32_t bits;
            memcpy(&bits, &x[i + k], sizeof bits);
            for (int b = 0; b < 4; b++) bytes[4 * k + b] = (unsigned char)(bits >> (8 * b));
        }
        fac_text_add_bytes(to, (const char *)bytes, 4 * (size_t)some);
    }
}

/* ---- the boundary, and the probabilities of the points ---- */

/* Bytes of a contiguous tensor. */
static void add_bytes(fac_text *to, const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    const void *x = fac_tensor_data(t);
    if (x) fac_text_add_bytes(to, x, fac_type_bytes(&type));
}

static void put_boundary(points *p, const fac_tensor *grid, const fac_tensor *at_points,
                         frames *to) {
    fac_text t = { 0 };
    const float *x = fac_tensor_data(at_points);
    add_u32(&t, p->generation);
    add_u16(&t, POINTS_GRID);
    add_u16(&t, POINTS_GRID);
    add_bytes(&t, grid);
    for (int64_t i = 0; x && i < p->all.count; i++) {
        const char byte = (char)(unsigned char)(255 * fminf(fmaxf(x[2 * i + 1], 0), 1) + 0.5f);
        fac_text_add_bytes(&t, &byte, 1);
    }
    fac_frames_put(to, FRAME_BOUNDARY, &t);
}

/* ---- neurons ---- */

/* of: the largest magnitudes, then the pictures, of each layer. */
static void put_neurons(points *p, fac_tensor *const *of, frames *to) {
    enum { PIXELS = POINTS_NEURON * POINTS_NEURON };
    fac_text t = { 0 };
    const char layers = (char)p->setup.net.n;
    add_u32(&t, p->generation);
    fac_text_add_bytes(&t, &layers, 1);
    for (int k = 0; k < p->setup.net.n; k++) {
        const float *most = fac_tensor_data(of[2 * k]);
        const char *x = fac_tensor_data(of[2 * k + 1]);
        const int64_t width = most && x ? fac_tensor_type(of[2 * k + 1]).dims.d[0] : 0;
        add_u16(&t, (unsigned)width);
        for (int64_t i = 0; i < width; i++) {
            add_f32s(&t, most + i, 1);
            fac_text_add_bytes(&t, x + i * PIXELS, PIXELS);
        }
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
        if (x) add_f32s(&t, x, fac_dims_count(&type.dims));
    }
    fac_frames_put(to, FRAME_WEIGHTS, &t);
}

/* ---- numbers ---- */

/* The range of the training points, or the test points, among all. */
static void find_part(const points *p, bool test, int64_t *first, int64_t *end) {
    *first = test ? p->all.count - p->test.count : 0;
    *end = test ? p->all.count : p->train.count;
}

static void write_confusion(const points *p, const fac_tensor *at_points, bool test, fac_text *to) {
    const float *x = at_points ? fac_tensor_data(at_points) : NULL;
    int64_t counts[2][2] = { { 0 } }, first, end;
    find_part(p, test, &first, &end);
    for (int64_t i = first; x && i < end; i++) counts[p->all.labels[i]][x[2 * i + 1] > x[2 * i]]++;
    fac_text_print(to, "[[%lld,%lld],[%lld,%lld]]", (long long)counts[0][0],
                   (long long)counts[0][1], (long long)counts[1][0], (long long)counts[1][1]);
}

/* Neurons whose relu is 0 for all points; -1 if the activation is not a relu. */
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

/* Cross entropy, and how many points are right; NaN counts as the first class. */
static void write_score(const points *p, const fac_tensor *logs, bool test, fac_text *to) {
    const float *x = logs ? fac_tensor_data(logs) : NULL;
    double loss = 0, right = 0;
    int64_t first, end;
    find_part(p, test, &first, &end);
    for (int64_t i = first; x && i < end; i++) {
        loss -= (double)x[2 * i + p->all.labels[i]];
        right += (x[2 * i + 1] > x[2 * i]) == (p->all.labels[i] == 1);
    }
    const double n = x ? (double)(end - first) : NAN;
    fac_json_put_pair(to, test ? "test_loss" : "loss", loss / n);
    fac_json_put_pair(to, test ? "test_accuracy" : "accuracy", right / n);
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
    write_score(p, at_points[AT_LOGS], false, &t);
    write_score(p, at_points[AT_LOGS], true, &t);
    fac_json_put_key(&t, "confusion");
    write_confusion(p, at_points[AT_P], false, &t);
    fac_json_put_key(&t, "test_confusion");
    write_confusion(p, at_points[AT_P], true, &t);
    fac_json_put_key(&t, "dead");
    fac_text_add(&t, "[");
    write_dead(p, at_points + AT_LARGEST, &t);
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

static fac_status look(points *p, fac_tensor **boundary, fac_tensor **at) {
    p->unseen = (fac_error){ 0 };
    const fac_status status = fac_program_run(p->boundary, &p->grid, boundary, &p->unseen);
    return status ? status : fac_program_run(p->looker, &p->points, at, &p->unseen);
}

void fac_points_show(void *self, frames *to) {
    points *p = self;
    fac_tensor *boundary[OUTPUTS] = { NULL }, *at[OUTPUTS] = { NULL };
    if (!p->dirty && !p->fresh_setup) return;
    const fac_status status = look(p, boundary, at);
    p->dirty = status != FAC_OK; /* after an error, try again */
    if (p->fresh_setup) put_setup(p, to);
    put_state(p, at, to);
    if (!status) {
        put_boundary(p, boundary[0], at[AT_P], to);
        put_neurons(p, boundary + 1, to);
        put_weights(p, to);
        put_panels(p, to);
    }
    for (int k = 0; k < OUTPUTS; k++) {
        fac_tensor_free(boundary[k]);
        fac_tensor_free(at[k]);
    }
}
