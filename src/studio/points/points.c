/* The page of points: its commands. */
#include "studio/points/points.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"

static void close_page(void *self) {
    fac_points_release(self);
    fac_release(self);
}

static fac_status begin_on(points_setup *s, const char *device, fac_error *err) {
    const int n = device ? snprintf(s->device, sizeof s->device, "%s", device) : 0;
    if (n < (int)sizeof s->device) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT, "unknown device \"%s\"", device);
}

static fac_status open_page(const studio_means *with, const cJSON *how, void **self,
                            fac_error *err) {
    points *p = fac_alloc(1, sizeof *p);
    points_setup s;
    if (!p) return fac_raise_memory(err, "a page");
    fac_points_setup_usual(&s);
    if (with->opts.threads) s.threads = with->opts.threads;
    p->speed = 10;
    fac_status status = begin_on(&s, with->opts.device, err);
    if (!status) status = fac_points_setup_read(&s, how, err);
    if (!status) status = fac_points_build(p, &s, false, err);
    if (status)
        fac_release(p);
    else
        *self = p;
    return status;
}

/* Settings.  With "keep" the network keeps the weights that still fit; a change of the learning
 * rate alone keeps everything. */
static fac_status set_up(points *p, const cJSON *what, fac_error *err) {
    points_setup s = p->setup;
    bool keep = false;
    FAC_TRY(fac_json_bool(what, "keep", &keep, err));
    FAC_TRY(fac_points_setup_read(&s, what, err));
    if (!fac_points_setup_same(&s, &p->setup)) return fac_points_build(p, &s, keep, err);
    p->touched |= p->step > 0 && s.lr != p->setup.lr;
    p->setup = s;
    p->fresh_setup = true;
    return FAC_OK;
}

static fac_status play(points *p, const cJSON *what, fac_error *err) {
    (void)what, (void)err;
    if (p->step >= p->setup.epochs * p->in_epoch) p->setup.epochs += p->step / p->in_epoch;
    p->stopped = (fac_error){ 0 };
    p->playing = true;
    return FAC_OK;
}

static fac_status halt(points *p, const cJSON *what, fac_error *err) {
    (void)what, (void)err;
    p->playing = false;
    return FAC_OK;
}

static fac_status do_steps(points *p, const cJSON *what, fac_error *err) {
    int64_t n = 1;
    FAC_TRY(fac_json_int(what, "n", 1, 1000, &n, err));
    fac_points_steps(p, n);
    return FAC_OK;
}

static fac_status do_epoch(points *p, const cJSON *what, fac_error *err) {
    (void)what, (void)err;
    fac_points_steps(p, p->in_epoch - p->step % p->in_epoch);
    return FAC_OK;
}

static fac_status reset(points *p, const cJSON *what, fac_error *err) {
    points_setup s = p->setup;
    FAC_TRY(fac_points_setup_read(&s, what, err));
    return fac_points_build(p, &s, false, err);
}

static fac_status set_speed(points *p, const cJSON *what, fac_error *err) {
    FAC_TRY(fac_json_real(what, "epochs_per_s", 0, 1e6, &p->speed, err));
    p->owed = 0;
    return FAC_OK;
}

static fac_status set_panels(points *p, const cJSON *what, fac_error *err) {
    p->paneled = 0;
    return fac_json_bool(what, "on", &p->panels, err);
}

static fac_tensor *find_param(const points *p, const char *name) {
    for (int i = 0; name && i < fac_graph_params(p->model); i++)
        if (!strcmp(fac_value_name(fac_graph_param(p->model, i)), name))
            return fac_value_tensor(fac_graph_param(p->model, i));
    return NULL;
}

/* Sets one element of one parameter by hand. */
static fac_status set_weight(points *p, const cJSON *what, fac_error *err) {
    fac_tensor *t = find_param(p, fac_json_string_of(what, "param"));
    double value = NAN;
    int64_t index = 0;
    if (!t) return fac_raise(err, FAC_E_ARGUMENT, "param must name a parameter of the network");
    const fac_type type = fac_tensor_type(t);
    const size_t bytes = fac_type_bytes(&type);
    FAC_TRY(fac_json_int(what, "index", 0, fac_dims_count(&type.dims) - 1, &index, err));
    FAC_TRY(fac_json_real(what, "value", -1e6, 1e6, &value, err));
    if (isnan(value)) return fac_raise(err, FAC_E_ARGUMENT, "value must be a number");
    float *all = fac_alloc(1, bytes);
    if (!all) return fac_raise_memory(err, "a copy of %zu bytes", bytes);
    fac_status status = fac_tensor_read(t, all, bytes, err);
    all[index] = (float)value;
    if (!status) status = fac_tensor_write(t, all, bytes, err);
    fac_release(all);
    p->touched = true;
    return status;
}

static const struct {
    const char *name;
    fac_status (*run)(points *p, const cJSON *what, fac_error *err);
} commands[] = { { "setup", set_up },    { "reset", reset },       { "play", play },
                 { "pause", halt },      { "step", do_steps },     { "epoch", do_epoch },
                 { "speed", set_speed }, { "panels", set_panels }, { "weight", set_weight } };

static fac_status command(void *self, const cJSON *what, fac_text *answer, fac_error *err) {
    points *p = self;
    const char *name = fac_json_string_of(what, "do");
    for (size_t k = 0; name && k < sizeof commands / sizeof *commands; k++) {
        if (strcmp(commands[k].name, name)) continue;
        FAC_TRY(commands[k].run(p, what, err));
        p->dirty = true;
        fac_json_put_pair(answer, "generation", p->generation);
        fac_json_put_pair(answer, "step", (double)p->step);
        return FAC_OK;
    }
    return fac_raise(err, FAC_E_ARGUMENT, "unknown command");
}

const page fac_page_points = { .name = "points",
                               .open = open_page,
                               .close = close_page,
                               .command = command,
                               .work = fac_points_work,
                               .show = fac_points_show,
                               .file = fac_points_file };
