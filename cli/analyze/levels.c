/* How the numbers lie that become few levels: bars of what is counted, levels and thresholds as
 * upright lines. */
#include "levels.h"
#include <stdlib.h>
#include "facula/view.h"

enum { MOST = 48, COLUMNS = 3, WIDE = 1400, HEAD = 110, ROW = 260 };

typedef struct drawing {
    char title[160];
    double x[FAC_QUANTIZER_CELLS], y[FAC_QUANTIZER_CELLS];
    fac_series series[3];
} drawing;

static double all_of(const fac_quantizer_counts *q) {
    double n = (double)q->zeros + (double)q->below + (double)q->above + (double)q->nan;
    for (int k = 0; k < FAC_QUANTIZER_CELLS; k++) n += (double)q->in[k];
    return n;
}

static void describe(const fac_quantizer_counts *q, char *to, size_t size) {
    const double n = all_of(q);
    char filters[32] = "", zeros[32] = "";
    if (q->filters) snprintf(filters, sizeof filters, ", %lld filters", (long long)q->filters);
    if (q->zeros) snprintf(zeros, sizeof zeros, ", %.0f %% zeros", 100 * (double)q->zeros / n);
    snprintf(to, size, "%.60s %s, %d bit%s%s%s", q->layer, q->weights ? "weights" : "inputs",
             q->bits, plural(q->bits), filters, zeros);
}

static fac_panel panel_of(const fac_quantizer_counts *q, drawing *d) {
    const double width = (q->hi - q->lo) / FAC_QUANTIZER_CELLS;
    for (int k = 0; k < FAC_QUANTIZER_CELLS; k++) {
        d->x[k] = q->lo + (k + 0.5) * width;
        d->y[k] = (double)q->in[k];
    }
    describe(q, d->title, sizeof d->title);
    d->series[0] =
        (fac_series){ NULL, FAC_QUANTIZER_CELLS, d->x, d->y, q->weights ? 0 : 2, FAC_STROKE_BARS };
    d->series[1] = (fac_series){ "levels", q->levels, q->level, NULL, 1, FAC_STROKE_RULES };
    d->series[2] =
        (fac_series){ "thresholds", q->levels - 1, q->threshold, NULL, 7, FAC_STROKE_DASHED_RULES };
    return (fac_panel){ .title = d->title,
                        .x_label = q->filters ? "parts of the largest level of a filter" : NULL,
                        .n = 3,
                        .series = d->series };
}

int levels_draw(const fac_quantizers *q, const char *title, const char *path) {
    static drawing drawings[MOST];
    fac_panel panels[MOST];
    fac_error err = { 0 };
    char subtitle[96];
    int all = 0;
    while (fac_quantizers_get(q, all)) all++;
    const int n = all < MOST ? all : MOST, rows = (n + COLUMNS - 1) / COLUMNS;
    for (int i = 0; i < n; i++) panels[i] = panel_of(fac_quantizers_get(q, i), &drawings[i]);
    snprintf(subtitle, sizeof subtitle,
             n < all ? "the first %d of %d quantizers; zeros are not drawn"
                     : "numbers before their quantizers; zeros are not drawn",
             n, all);
    const fac_chart chart = { .title = title,
                              .subtitle = subtitle,
                              .n = n,
                              .panels = panels,
                              .columns = COLUMNS,
                              .width = WIDE,
                              .height = HEAD + ROW * rows };
    return fac_chart_save(&chart, path, &err) ? fail(&err) : EXIT_OK;
}

/* ---- for machines ---- */

static void add_numbers(cJSON *to, const char *key, const double *x, int n) {
    cJSON *all = cJSON_AddArrayToObject(to, key);
    for (int k = 0; k < n; k++) cJSON_AddItemToArray(all, cJSON_CreateNumber(x[k]));
}

static void add_counts(cJSON *to, const char *key, const int64_t *x, int n) {
    cJSON *all = cJSON_AddArrayToObject(to, key);
    for (int k = 0; k < n; k++) cJSON_AddItemToArray(all, cJSON_CreateNumber((double)x[k]));
}

void levels_json(const fac_quantizers *q, cJSON *root) {
    cJSON *all = cJSON_AddArrayToObject(root, "histograms");
    const fac_quantizer_counts *row;
    for (int i = 0; (row = fac_quantizers_get(q, i)); i++) {
        cJSON *j = cJSON_CreateObject();
        cJSON_AddItemToArray(all, j);
        cJSON_AddStringToObject(j, "layer", row->layer);
        cJSON_AddStringToObject(j, "of", row->weights ? "weights" : "inputs");
        cJSON_AddNumberToObject(j, "bits", row->bits);
        cJSON_AddNumberToObject(j, "filters", (double)row->filters);
        add_numbers(j, "levels", row->level, row->levels);
        add_numbers(j, "thresholds", row->threshold, row->levels - 1);
        add_counts(j, "taken", row->taken, row->levels);
        json_number(j, "lo", row->lo, 9);
        json_number(j, "hi", row->hi, 9);
        add_counts(j, "counts", row->in, FAC_QUANTIZER_CELLS);
        cJSON_AddNumberToObject(j, "zeros", (double)row->zeros);
        cJSON_AddNumberToObject(j, "below", (double)row->below);
        cJSON_AddNumberToObject(j, "above", (double)row->above);
        cJSON_AddNumberToObject(j, "nan", (double)row->nan);
    }
}
