/* facula quantize --sweep: each layer alone, and all of them, at 1 to 4 bits: the accuracy that is
 * lost, or without labels the signal to error of the last layer. */
#include "quantize_sweep.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "facula/view.h"
#include "cli.h"
#include "json.h"

enum { BITS = 4 };

/* ---- samples ---- */

fac_status sweep_keep(sweep_samples *s, fac_tensor *const in[], fac_error *err) {
    if (s->n == s->room) {
        const int room = s->room ? 2 * s->room : 16;
        fac_tensor **more =
            realloc(s->at, (size_t)room * (size_t)(s->inputs + 1) * sizeof(fac_tensor *));
        if (!more) return out_of_memory(err);
        s->at = more;
        s->room = room;
    }
    for (int i = 0; i < s->inputs; i++)
        s->at[s->n * s->inputs + i] = in[i] ? fac_tensor_retain(in[i]) : NULL;
    s->n++;
    return FAC_OK;
}

void sweep_free(sweep_samples *s) {
    for (int i = 0; i < s->n * s->inputs; i++) fac_tensor_free(s->at[i]);
    free(s->at);
    *s = (sweep_samples){ 0 };
}

/* ---- variants of the model ---- */

typedef struct sweep {
    const sweep_what *w;
    int n;        /* layers; after them a row for all */
    char **names; /* [n] */
    const char **keep;
    double *result[BITS]; /* [n + 1]: a part of 1, or dB */
    double before, tested;
} sweep;

static bool is_weights_alone(const sweep *s) {
    const size_t n = strlen(s->w->scheme);
    return n > 3 && !strcmp(s->w->scheme + n - 3, "a32");
}

static void scheme_of(const sweep *s, int bits, char to[16]) {
    snprintf(to, 16, "lq:w%da%d", bits, is_weights_alone(s) ? 32 : bits);
}

/* All layers but this one stay floats; layer n: none does. */
static int kept_but(const sweep *s, int layer) {
    int count = 0;
    for (int i = 0; i < s->w->keep->n; i++) s->keep[count++] = s->w->keep->at[i];
    for (int i = 0; i < s->n && layer < s->n; i++)
        if (i != layer) s->keep[count++] = s->names[i];
    return count;
}

static fac_status begin(const sweep *s, int layer, int bits, fac_calibrator **c, fac_error *err) {
    char scheme[16];
    scheme_of(s, bits, scheme);
    const fac_integers how = { .scheme = scheme, .nkeep = kept_but(s, layer), .keep = s->keep };
    return fac_calibrator_new(s->w->model, s->w->device, &how, c, err);
}

static fac_status accuracy(const sweep *s, fac_graph *g, double *right, double *tested,
                           fac_error *err) {
    train_job job = *s->w->labelled;
    scores got = { 0 };
    if (g) job.m.graph = g;
    const fac_status status = evaluate_scores(&job, NULL, &got, err);
    recordings_free(&got.heard);
    *right = got.samples > 0 ? got.right / got.samples : 0;
    *tested = got.samples;
    return status;
}

static double last_decibels(const fac_calibrator *c) {
    double x = NAN;
    const fac_integer_layer *l;
    for (int i = 0; (l = fac_calibrator_layer(c, i)); i++) x = l->output_sqnr;
    return x;
}

static fac_status try_variant(sweep *s, int layer, int bits, fac_error *err) {
    const sweep_samples *x = s->w->samples;
    fac_calibrator *c = NULL;
    fac_graph *g = NULL;
    double *to = &s->result[bits - 1][layer], tested;
    fac_status status = begin(s, layer, bits, &c, err);
    for (int i = 0; i < x->n && !status; i++)
        status = fac_calibrator_add(c, x->at + i * x->inputs, err);
    if (!status) status = fac_calibrator_finish(c, &g, err);
    if (!status && s->w->labelled)
        status = accuracy(s, g, to, &tested, err);
    else if (!status)
        *to = last_decibels(c);
    fac_graph_free(g);
    fac_calibrator_free(c);
    return status;
}

static bool take_names(sweep *s, const fac_calibrator *c) {
    const fac_integer_layer *l;
    int all = 0;
    while (fac_calibrator_layer(c, all)) all++;
    s->names = calloc((size_t)all + 1, sizeof *s->names);
    s->keep = calloc((size_t)(all + s->w->keep->n) + 1, sizeof *s->keep);
    for (int b = 0; b < BITS; b++) s->result[b] = calloc((size_t)all + 1, sizeof *s->result[b]);
    if (!s->names || !s->keep) return false;
    for (int i = 0; (l = fac_calibrator_layer(c, i)); i++) {
        if (l->kept) continue;
        if (!(s->names[s->n] = strdup(l->name))) return false;
        s->n++;
    }
    return s->result[0] && s->result[1] && s->result[2] && s->result[3];
}

static fac_status find_layers(sweep *s, fac_error *err) {
    fac_calibrator *c;
    const fac_integers how = { .scheme = s->w->scheme,
                               .nkeep = s->w->keep->n,
                               .keep = s->w->keep->at };
    const fac_status status = fac_calibrator_new(s->w->model, s->w->device, &how, &c, err);
    if (status) return status;
    const bool good = take_names(s, c);
    fac_calibrator_free(c);
    return good ? FAC_OK : out_of_memory(err);
}

static fac_status measure(sweep *s, fac_error *err) {
    fac_status status = find_layers(s, err);
    if (!status && s->w->labelled) status = accuracy(s, NULL, &s->before, &s->tested, err);
    for (int layer = 0; layer <= s->n && !status; layer++)
        for (int bits = 1; bits <= BITS && !status; bits++)
            status = try_variant(s, layer, bits, err);
    return status;
}

/* ---- what it says ---- */

static const char *name_of(const sweep *s, int layer) {
    return layer < s->n ? s->names[layer] : "all of them";
}

/* Points of accuracy that are lost, or dB. */
static double value_of(const sweep *s, int layer, int bits) {
    const double x = s->result[bits - 1][layer];
    return s->w->labelled ? 100 * (s->before - x) : x;
}

static void print(const sweep *s) {
    enum { LEAST = 12, MOST = 44 };
    char scheme[16];
    int width = LEAST;
    for (int i = 0; i < s->n; i++)
        if ((int)strlen(s->names[i]) > width) width = (int)strlen(s->names[i]);
    if (width > MOST) width = MOST;
    printf("%-*s", width, "layer");
    for (int bits = 1; bits <= BITS; bits++) {
        scheme_of(s, bits, scheme);
        printf("  %9s", scheme);
    }
    putchar('\n');
    for (int layer = 0; layer <= s->n; layer++) {
        printf("%-*s", width, end_of(name_of(s, layer), width));
        for (int bits = 1; bits <= BITS; bits++) printf("  %9.2f", value_of(s, layer, bits));
        putchar('\n');
    }
    if (s->w->labelled)
        printf("\npoints of accuracy that a layer alone loses; floats %.2f %% of %.0f\n",
               100 * s->before, s->tested);
    else
        printf("\nsignal to error of the last layer in dB when a layer alone has few bits\n");
}

static int print_json(const sweep *s) {
    cJSON *root = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(root, "sweep");
    cJSON_AddStringToObject(root, "scheme", s->w->scheme);
    if (s->w->out) cJSON_AddStringToObject(root, "chart", s->w->out);
    cJSON_AddNumberToObject(root, "samples", s->w->samples->n);
    if (s->w->labelled) {
        json_number(root, "accuracy_before", s->before, 9);
        cJSON_AddNumberToObject(root, "tested", s->tested);
    }
    for (int layer = 0; layer <= s->n; layer++)
        for (int bits = 1; bits <= BITS; bits++) {
            cJSON *j = cJSON_CreateObject();
            if (layer < s->n)
                cJSON_AddStringToObject(j, "layer", s->names[layer]);
            else
                cJSON_AddNullToObject(j, "layer");
            cJSON_AddNumberToObject(j, "bits", bits);
            const double x = s->result[bits - 1][layer];
            const char *key = s->w->labelled ? "accuracy" : "result_sqnr";
            if (isfinite(x))
                json_number(j, key, x, 9);
            else
                cJSON_AddNullToObject(j, key);
            cJSON_AddItemToArray(all, j);
        }
    return json_print(root);
}

static fac_status draw(const sweep *s, fac_error *err) {
    static char names[BITS][16];
    fac_series lines[BITS];
    double *x = calloc((size_t)(s->n + 1) * (1 + BITS), sizeof *x);
    if (!x) return out_of_memory(err);
    for (int b = 0; b < BITS; b++) {
        double *y = x + (s->n + 1) * (b + 1);
        for (int i = 0; i <= s->n; i++) {
            x[i] = i + 1;
            y[i] = value_of(s, i, b + 1);
        }
        scheme_of(s, b + 1, names[b]);
        lines[b] = (fac_series){ names[b], s->n + 1, x, y, b, FAC_STROKE_SOLID };
    }
    const fac_panel panel = { .title = s->w->labelled ? "points of accuracy that are lost"
                                                      : "signal to error of the result, dB",
                              .x_label = "layer; the last one: all of them",
                              .n = BITS,
                              .series = lines };
    const fac_chart chart = { .title = "one layer in few bits",
                              .columns = 1,
                              .n = 1,
                              .panels = &panel,
                              .width = 900,
                              .height = 520 };
    const fac_status status = fac_chart_save(&chart, s->w->out, err);
    free(x);
    return status;
}

static void end(sweep *s) {
    for (int i = 0; i < s->n; i++) free(s->names[i]);
    for (int b = 0; b < BITS; b++) free(s->result[b]);
    free(s->names);
    free(s->keep);
}

int quantize_sweep(const sweep_what *w) {
    sweep s = { .w = w };
    fac_error err = { 0 };
    fac_status status = measure(&s, &err);
    if (!status && w->out) status = draw(&s, &err);
    int code = status ? fail(&err) : EXIT_OK;
    if (!code && w->json)
        code = print_json(&s);
    else if (!code)
        print(&s);
    if (!code && w->out && !w->json) printf("%s\n", w->out);
    end(&s);
    return code;
}
