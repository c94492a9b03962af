/* facula activations --json. */
#include <math.h>
#include "activations.h"

static cJSON *quantiles(const fac_tally *t) {
    static const struct {
        const char *name;
        double q;
    } at[] = { { "0.001", 0.001 }, { "0.01", 0.01 }, { "0.05", 0.05 },
               { "0.25", 0.25 },   { "0.5", 0.5 },   { "0.75", 0.75 },
               { "0.95", 0.95 },   { "0.99", 0.99 }, { "0.999", 0.999 } };
    cJSON *j = cJSON_CreateObject();
    for (size_t k = 0; k < sizeof at / sizeof *at; k++)
        json_number(j, at[k].name, fac_tally_quantile(t, at[k].q), 7);
    return j;
}

static cJSON *histogram(const fac_tally *t, const fac_stats *s) {
    enum { PARTS = 32 };
    double counts[PARTS];
    cJSON *j = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(j, "counts");
    json_number(j, "from", s->min, 9);
    json_number(j, "to", s->max, 9);
    fac_tally_histogram(t, s->min, s->max, PARTS, counts);
    for (int k = 0; k < PARTS; k++) cJSON_AddItemToArray(all, cJSON_CreateNumber(round(counts[k])));
    return j;
}

static cJSON *dead_channels(const fac_tally *t, const fac_stats *s) {
    cJSON *j = cJSON_CreateArray();
    fac_channel c;
    for (int64_t k = 0; fac_tally_channel(t, k, &c); k++)
        if (c.zeros * s->channels == s->count)
            cJSON_AddItemToArray(j, cJSON_CreateNumber((double)k));
    return j;
}

/* At the largest magnitude, at the 99.9th percentile, and where the error is least. */
static cJSON *quantization(const fac_tally *t, int bits) {
    static const char *const names[] = { "whole", "percentile_99.9", "least_error" };
    const double clips[] = { fac_tally_magnitude(t, 1), fac_tally_magnitude(t, 0.999), 0 };
    cJSON *j = cJSON_CreateObject();
    cJSON_AddNumberToObject(j, "bits", bits);
    cJSON_AddBoolToObject(j, "signed", fac_tally_stats(t).min < 0);
    for (int k = 0; k < 3; k++) {
        const fac_quantization q = fac_tally_quantize(t, bits, clips[k]);
        cJSON *one = cJSON_AddObjectToObject(j, names[k]);
        json_number(one, "clip", q.clip, 9);
        json_number(one, "scale", q.scale, 9);
        if (isfinite(q.sqnr)) json_number(one, "sqnr_db", q.sqnr, 5);
    }
    return j;
}

static cJSON *row(const fac_activation *a, long bits) {
    const fac_stats s = fac_tally_stats(a->tally);
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "name", a->name);
    cJSON_AddStringToObject(j, "op", a->op);
    cJSON_AddStringToObject(j, "dtype", fac_dtype_get(a->type.dtype)->name);
    cJSON_AddItemToObject(j, "shape", json_dims(&a->type.dims));
    if (a->channels >= 0) cJSON_AddNumberToObject(j, "channel_axis", a->channels);
    const struct {
        const char *name;
        int64_t n;
    } counts[] = { { "count", s.count },       { "zeros", s.zeros },
                   { "negative", s.negative }, { "nan", s.nan },
                   { "infinite", s.infinite }, { "denormals", s.denormals },
                   { "channels", s.channels } };
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        cJSON_AddNumberToObject(j, counts[k].name, (double)counts[k].n);
    const struct {
        const char *name;
        double x;
    } numbers[] = {
        { "min", s.min },           { "max", s.max },
        { "mean", s.mean },         { "std", s.std },
        { "abs_mean", s.abs_mean }, { "sparsity", s.count ? (double)s.zeros / (double)s.count : 0 }
    };
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        json_number(j, numbers[k].name, numbers[k].x, 9);
    cJSON_AddItemToObject(j, "dead_channels", dead_channels(a->tally, &s));
    cJSON_AddItemToObject(j, "quantiles", quantiles(a->tally));
    cJSON_AddItemToObject(j, "histogram", histogram(a->tally, &s));
    if (bits) cJSON_AddItemToObject(j, "quantization", quantization(a->tally, (int)bits));
    return j;
}

int activations_json(const char *path, const keeper *k, const fac_activation *const *rows, int n,
                     long bits) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema_version", 1);
    cJSON_AddStringToObject(root, "model", path);
    cJSON_AddNumberToObject(root, "runs", k->runs);
    photo_plan_json(&k->plan, root);
    cJSON *all = cJSON_AddArrayToObject(root, "tensors");
    for (int i = 0; i < n; i++) cJSON_AddItemToArray(all, row(rows[i], bits));
    return json_print(root);
}
