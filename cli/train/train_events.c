/* facula train --tensorboard DIR: what is written there, and when.
 *   start   the graph, run.json as text and as hyperparameters, the first batch as pictures
 *   steps   step/loss, step/accuracy, step/lr, step/samples_per_s: every few steps
 *   epochs  epoch/...: all columns of the log; weights/NAME, gradients/NAME: histograms;
 *           gradient_norm/...; filters of the first convolution.  Gradients are those of the first
 *           batch of the first epoch, the same one every time. */
#include <glob.h>
#include <math.h>
#include <string.h>
#include "json.h"
#include "train_view.h"

enum { SAMPLES = 64, FILTERS = 64, SETTINGS = 64 };

struct train_events {
    fac_events *file;
    fac_tensor *x, *labels;
};

static fac_status release(train_view *v, fac_error *err) {
    train_events *e = v->events;
    fac_status status = fac_events_close(e->file, err);
    fac_tensor_free(e->x);
    fac_tensor_free(e->labels);
    free(e);
    v->events = NULL;
    return status;
}

/* ---- what is written ---- */

static fac_status add_settings(fac_events *file, const char *about, fac_error *err) {
    fac_setting settings[SETTINGS];
    int n = 0;
    cJSON *root = cJSON_Parse(about);
    if (!root) {
        *err = (fac_error){ .status = FAC_E_NOMEM, .text = "no memory for the settings" };
        return err->status;
    }
    for (const cJSON *j = root->child; j && n < SETTINGS; j = j->next) {
        if (cJSON_IsString(j))
            settings[n++] = (fac_setting){ j->string, j->valuestring, 0 };
        else if (cJSON_IsNumber(j))
            settings[n++] = (fac_setting){ j->string, NULL, j->valuedouble };
    }
    fac_status status = fac_events_start(file, n, settings, err);
    cJSON_Delete(root);
    return status;
}

/* As a block of code in Markdown: four spaces before every line. */
static fac_status add_about(fac_events *file, const char *about, fac_error *err) {
    size_t n = strlen(about), lines = 1;
    for (const char *p = about; *p; p++) lines += *p == '\n';
    char *text = malloc(n + 4 * lines + 1), *to = text;
    if (!text) {
        *err = (fac_error){ .status = FAC_E_NOMEM, .text = "no memory for a text" };
        return err->status;
    }
    for (const char *p = about; *p; p++) {
        if (p == about || p[-1] == '\n') to += sprintf(to, "    ");
        *to++ = *p;
    }
    *to = 0;
    fac_status status = fac_events_text(file, "run.json", 0, text, err);
    free(text);
    return status;
}

static fac_status add_grid(fac_events *file, const char *tag, int64_t step, const fac_tensor *t,
                           const fac_grid *how, fac_error *err) {
    fac_image image = { 0 };
    fac_status status = fac_image_grid(t, how, &image, err);
    if (!status) status = fac_events_image(file, tag, step, &image, err);
    fac_image_free(&image);
    return status;
}

/* So large that a picture is at least this many pixels wide. */
static int zoom_for(int64_t width, int64_t want) {
    return width >= want ? 1 : (int)((want + width - 1) / width);
}

static fac_status add_samples(const train_view *v, fac_error *err) {
    const fac_dataset *d = v->train;
    fac_grid how = { .most = SAMPLES };
    if (!d->bytes || d->item.n != 3) return FAC_OK;
    how.zoom = zoom_for(d->item.d[2], 48);
    for (int c = 0; c < 3; c++) {
        how.mean[c] = d->mean[c];
        how.std[c] = d->std[c] ? d->std[c] : 1;
    }
    return add_grid(v->events->file, "samples/first_batch", 0, v->events->x, &how, err);
}

/* The first parameter that looks like filters of images. */
static fac_status add_filters(const train_view *v, int64_t epoch, fac_error *err) {
    for (int i = 0; i < fac_graph_params(v->model); i++) {
        const fac_tensor *t = fac_value_tensor(fac_graph_param(v->model, i));
        fac_dims d = fac_tensor_type(t).dims;
        if (d.n != 4 || d.d[2] < 2 || d.d[3] < 2) continue;
        const fac_grid how = { .zoom = zoom_for(d.d[3], 32), .most = FILTERS };
        char tag[256];
        snprintf(tag, sizeof tag, "filters/%s", fac_value_name(fac_graph_param(v->model, i)));
        return add_grid(v->events->file, tag, epoch, t, &how, err);
    }
    return FAC_OK;
}

static fac_status add_parameters(const train_view *v, int64_t epoch, fac_error *err) {
    fac_events *f = v->events->file;
    fac_gradients all = { 0 };
    char tag[256];
    fac_status status =
        fac_trainer_gradients(v->trainer, v->events->x, v->events->labels, &all, err);
    if (!status) status = fac_events_scalar(f, "gradient_norm/all", epoch, all.norm, err);
    for (int k = 0; k < all.n && !status; k++) {
        const fac_gradient *g = &all.of[k];
        snprintf(tag, sizeof tag, "weights/%s", g->name);
        status = fac_events_histogram(f, tag, epoch, g->parameter, err);
        snprintf(tag, sizeof tag, "gradients/%s", g->name);
        if (!status) status = fac_events_histogram(f, tag, epoch, g->gradient, err);
        snprintf(tag, sizeof tag, "gradient_norm/%s", g->name);
        if (!status) status = fac_events_scalar(f, tag, epoch, g->norm, err);
    }
    fac_gradients_free(&all);
    return status;
}

/* ---- opening ---- */

/* again: there is a file already, of the training that is resumed; TensorBoard wants one graph. */
static fac_status start(train_view *v, bool again, fac_error *err) {
    train_events *e = v->events;
    fac_status status = fac_batch(v->train, v->batches, 0, 0, &e->x, &e->labels, err);
    if (!status && !again) status = fac_events_graph(e->file, v->model, err);
    if (!status && v->about) status = add_about(e->file, v->about, err);
    if (!status && v->about) status = add_settings(e->file, v->about, err);
    if (!status) status = add_samples(v, err);
    if (!status && !again) status = add_parameters(v, 0, err);
    return status ? status : fac_events_flush(e->file, err);
}

int train_events_open(train_view *v) {
    fac_error err = { 0 };
    char pattern[4096];
    glob_t files = { 0 };
    snprintf(pattern, sizeof pattern, "%s/*tfevents*", v->tensorboard);
    bool again = !glob(pattern, 0, NULL, &files) && v->first > 0;
    globfree(&files);
    train_events *e = calloc(1, sizeof *e);
    if (!e) return fail_text("out of memory");
    if (fac_events_open(v->tensorboard, &e->file, &err)) {
        free(e);
        return fail(&err);
    }
    v->events = e;
    if (!start(v, again, &err)) return EXIT_OK;
    release(v, NULL);
    return fail(&err);
}

/* ---- while it runs ---- */

static void give_up(train_view *v, const fac_error *err) {
    if (!v->lost) v->lost = fail(err);
    release(v, NULL);
}

void train_events_step(train_view *v, const fac_progress *p) {
    if (!v->events) return;
    fac_error err = { 0 };
    fac_events *f = v->events->file;
    const log_table *s = &v->steps;
    /* a row that had no memory is not there, and that was said */
    if (!s->n || s->column[LOG_STEP][s->n - 1] != (double)p->step) return;
    if (fac_events_scalar(f, "step/loss", p->step, s->column[LOG_TRAIN_LOSS][s->n - 1], &err) ||
        fac_events_scalar(f, "step/accuracy", p->step, s->column[LOG_TRAIN_ACCURACY][s->n - 1],
                          &err) ||
        fac_events_scalar(f, "step/lr", p->step, p->lr, &err) ||
        fac_events_scalar(f, "step/samples_per_s", p->step, p->images_per_s, &err))
        give_up(v, &err);
}

void train_events_epoch(train_view *v, const double row[LOG_COLUMNS]) {
    if (!v->events) return;
    fac_error err = { 0 };
    fac_status status = FAC_OK;
    int64_t epoch = (int64_t)row[LOG_EPOCH];
    char tag[64];
    for (int k = LOG_STEP; k < LOG_COLUMNS && !status; k++) {
        if (!isfinite(row[k])) continue;
        snprintf(tag, sizeof tag, "epoch/%s", log_names[k]);
        status = fac_events_scalar(v->events->file, tag, epoch, row[k], &err);
    }
    if (!status) status = add_parameters(v, epoch, &err);
    if (!status) status = add_filters(v, epoch, &err);
    if (!status) status = fac_events_flush(v->events->file, &err);
    if (status) give_up(v, &err);
}

void train_events_close(train_view *v, bool success) {
    if (!v->events) return;
    fac_error err = { 0 };
    fac_status status = fac_events_end(v->events->file, success, &err);
    if (release(v, status ? NULL : &err) || status) v->lost = fail(&err);
}
