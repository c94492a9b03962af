/* The settings of the page of points: read from JSON, checked, written back. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "facula/optim.h"
#include "studio/points/points.h"

static const char *const sets[] = { "simple", "diag",   "split", "xor",
                                    "circle", "spiral", "own",   NULL };
static const char *const devices[] = { "cpu", "opencl", NULL };

void fac_points_setup_usual(points_setup *s) {
    *s = (points_setup){ .set = "xor",
                         .optimizer = "adam",
                         .device = "cpu",
                         .count = 50,
                         .batch = 10,
                         .epochs = 500,
                         .threads = 1,
                         .lr = 0.01,
                         .net = { .n = 2, .width = { 16, 16 }, .activation = "relu" } };
}

bool fac_points_own(const points_setup *s) { return !strcmp(s->set, "own"); }

static bool among(const char *word, const char *const *list) {
    while (*list && strcmp(*list, word)) list++;
    return *list != NULL;
}

static fac_status read_word(const cJSON *from, const char *key, const char *const *list, char *to,
                            fac_error *err) {
    const char *word = fac_json_string_of(from, key);
    if (!cJSON_HasObjectItem(from, key)) return FAC_OK;
    if (!word || !among(word, list))
        return fac_raise(err, FAC_E_ARGUMENT, "%s has an unknown value", key);
    snprintf(to, POINTS_NAME, "%s", word);
    return FAC_OK;
}

static fac_status read_optimizer(points_setup *s, const cJSON *from, fac_error *err) {
    const char *word = fac_json_string_of(from, "optimizer");
    if (!cJSON_HasObjectItem(from, "optimizer")) return FAC_OK;
    if (!word || strlen(word) >= POINTS_NAME || !fac_optim_find(word))
        return fac_raise(err, FAC_E_ARGUMENT, "unknown optimizer");
    snprintf(s->optimizer, POINTS_NAME, "%s", word);
    return FAC_OK;
}

/* [[x, y, label], ...] */
static fac_status read_points(points_setup *s, const cJSON *from, fac_error *err) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(from, "points"), *one;
    int64_t n = 0;
    if (!list) return FAC_OK;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > POINTS_MOST)
        return fac_raise(err, FAC_E_ARGUMENT, "points must be a list of at most %d points",
                         POINTS_MOST);
    cJSON_ArrayForEach(one, list) {
        const cJSON *x = cJSON_GetArrayItem(one, 0), *y = cJSON_GetArrayItem(one, 1);
        const cJSON *label = cJSON_GetArrayItem(one, 2);
        if (!cJSON_IsNumber(x) || !cJSON_IsNumber(y) || !cJSON_IsNumber(label) ||
            label->valuedouble < 0 || label->valuedouble > 1 ||
            !(x->valuedouble > -10 && x->valuedouble < 10) ||
            !(y->valuedouble > -10 && y->valuedouble < 10))
            return fac_raise(err, FAC_E_ARGUMENT,
                             "a point must be [x, y, label], with a label of 0 or 1");
        s->xy[2 * n] = (float)x->valuedouble;
        s->xy[2 * n + 1] = (float)y->valuedouble;
        s->label[n++] = label->valuedouble > 0.5;
    }
    s->n = n;
    return FAC_OK;
}

static fac_status read_net(points_setup *s, const cJSON *from, fac_error *err) {
    const char *text = fac_json_string_of(from, "net");
    if (!cJSON_HasObjectItem(from, "net")) return FAC_OK;
    if (!text) return fac_raise(err, FAC_E_ARGUMENT, "net is a text such as \"16,16,tanh\"");
    return fac_mlp_parse(text, &s->net, err);
}

static fac_status read_numbers(points_setup *s, const cJSON *from, fac_error *err) {
    FAC_TRY(fac_json_int(from, "count", 1, POINTS_MOST, &s->count, err));
    FAC_TRY(fac_json_int(from, "seed", 0, INT32_MAX, &s->seed, err));
    FAC_TRY(fac_json_int(from, "batch", 1, POINTS_MOST, &s->batch, err));
    FAC_TRY(fac_json_int(from, "epochs", 1, 1000000, &s->epochs, err));
    FAC_TRY(fac_json_int(from, "threads", 0, 256, &s->threads, err));
    FAC_TRY(fac_json_real(from, "noise", 0, 1, &s->noise, err));
    FAC_TRY(fac_json_real(from, "test_part", 0, 0.9, &s->test_part, err));
    FAC_TRY(fac_json_real(from, "lr", 1e-8, 1000, &s->lr, err));
    FAC_TRY(fac_json_real(from, "decay", 0, 10, &s->decay, err));
    return fac_json_real(from, "momentum", 0, 0.999, &s->momentum, err);
}

fac_status fac_points_setup_read(points_setup *s, const cJSON *from, fac_error *err) {
    points_setup new = *s;
    FAC_TRY(read_word(from, "set", sets, new.set, err));
    FAC_TRY(read_word(from, "device", devices, new.device, err));
    FAC_TRY(read_optimizer(&new, from, err));
    FAC_TRY(read_numbers(&new, from, err));
    FAC_TRY(read_net(&new, from, err));
    FAC_TRY(read_points(&new, from, err));
    if (fac_points_own(&new) && !new.n)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "you have not added any points yet: click into the picture");
    *s = new;
    return FAC_OK;
}

static void write_params(const points *p, fac_text *to) {
    fac_json_put_key(to, "params");
    fac_text_add(to, "[");
    for (int i = 0; i < fac_graph_params(p->model); i++) {
        const fac_value *v = fac_graph_param(p->model, i);
        const fac_dims d = fac_value_type(v).dims;
        fac_text_add(to, i ? ",{" : "{");
        fac_json_put_pair_text(to, "name", fac_value_name(v));
        fac_json_put_key(to, "shape");
        for (int k = 0; k < d.n; k++)
            fac_text_print(to, "%s%lld", k ? "," : "[", (long long)d.d[k]);
        fac_text_add(to, "]}");
    }
    fac_text_add(to, "]");
}

static void write_points(const points *p, fac_text *to) {
    const fac_dataset *d = &p->all;
    fac_json_put_key(to, "points");
    fac_text_add(to, "[");
    for (int64_t i = 0; i < d->count; i++) {
        fac_text_add(to, i ? ",[" : "[");
        fac_json_put_number(to, (double)d->values[2 * i]);
        fac_text_add(to, ",");
        fac_json_put_number(to, (double)d->values[2 * i + 1]);
        fac_text_print(to, ",%d,%d]", (int)d->labels[i], i >= p->train.count);
    }
    fac_text_add(to, "]");
}

void fac_points_setup_write(const points *p, fac_text *to) {
    const points_setup *s = &p->setup;
    char net[128];
    fac_mlp_text(&s->net, net, sizeof net);
    fac_json_put_pair(to, "generation", p->generation);
    fac_json_put_pair_text(to, "set", s->set);
    fac_json_put_pair_text(to, "optimizer", s->optimizer);
    fac_json_put_pair_text(to, "device", s->device);
    fac_json_put_pair_text(to, "device_about", fac_device_about(p->device));
    fac_json_put_pair_text(to, "net", net);
    fac_json_put_pair(to, "count", (double)s->count);
    fac_json_put_pair(to, "seed", (double)s->seed);
    fac_json_put_pair(to, "batch", (double)s->batch);
    fac_json_put_pair(to, "epochs", (double)s->epochs);
    fac_json_put_pair(to, "threads", (double)s->threads);
    fac_json_put_pair(to, "noise", s->noise);
    fac_json_put_pair(to, "test_part", s->test_part);
    fac_json_put_pair(to, "lr", s->lr);
    fac_json_put_pair(to, "decay", s->decay);
    fac_json_put_pair(to, "momentum", s->momentum);
    write_params(p, to);
    write_points(p, to);
}

static bool same_points(const points_setup *a, const points_setup *b) {
    if (!fac_points_own(a)) return a->count == b->count && a->noise == b->noise;
    return a->n == b->n && !memcmp(a->xy, b->xy, 2 * (size_t)a->n * sizeof *a->xy) &&
           !memcmp(a->label, b->label, (size_t)a->n * sizeof *a->label);
}

static bool same_net(const fac_mlp *a, const fac_mlp *b) {
    bool same = a->n == b->n && a->activation == b->activation;
    for (int k = 0; same && k < a->n; k++) same = a->width[k] == b->width[k];
    return same;
}

bool fac_points_setup_same(const points_setup *a, const points_setup *b) {
    return !strcmp(a->set, b->set) && same_points(a, b) && same_net(&a->net, &b->net) &&
           !strcmp(a->optimizer, b->optimizer) && !strcmp(a->device, b->device) &&
           a->threads == b->threads && a->seed == b->seed && a->batch == b->batch &&
           a->test_part == b->test_part && a->decay == b->decay && a->momentum == b->momentum;
}
