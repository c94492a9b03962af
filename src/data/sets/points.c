/* Points of the plane in two classes: with noise, one's own, from a table. */
#include "facula/data/points.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/sets/dataset_internal.h"
#include "facula/read.h"

enum { USUAL = 50, LONGEST = 1000000, NOISE_STREAM = 7 };

fac_status fac_dataset_points(const char *name, const fac_points_opts *o, fac_dataset *out,
                              fac_error *err) {
    const int64_t count = o->count ? o->count : USUAL;
    fac_dataset d;
    if (!(o->noise >= 0 && o->noise <= 10))
        return fac_raise(err, FAC_E_ARGUMENT,
                         "noise is 0 to 10 times the side of the square, not %g", o->noise);
    FAC_TRY(fac_dataset_toy(name, count, o->seed, &d, err));
    float *p = fac_dataset_values(&d);
    for (int64_t i = 0; i < 2 * count && o->noise > 0; i++)
        p[i] += (float)(o->noise * fac_random_normal(o->seed, NOISE_STREAM, (uint64_t)i));
    *out = d;
    return FAC_OK;
}

fac_status fac_dataset_points_of(int64_t n, const float *xy, const int64_t *labels,
                                 fac_dataset *out, fac_error *err) {
    fac_dataset d = { 0 };
    if (n < 1) return fac_raise(err, FAC_E_ARGUMENT, "a data set needs a point at least");
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(xy[2 * i]) || !isfinite(xy[2 * i + 1]) || labels[i] < 0 || labels[i] > 1)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "point %lld: coordinates are numbers, labels 0 or 1",
                             (long long)i + 1);
    const fac_status status = fac_dataset_new(&d, n, fac_shape(2), true, "points", err);
    if (status) {
        fac_dataset_free(&d);
        return status;
    }
    memcpy(fac_dataset_values(&d), xy, (size_t)n * 2 * sizeof *xy);
    memcpy(fac_dataset_labels(&d), labels, (size_t)n * sizeof *labels);
    d.classes = 2;
    *out = d;
    return FAC_OK;
}

typedef struct table {
    float *xy;
    int64_t *labels;
    int64_t n;
} table;

/* One line; false: it is none of x,y,label. */
static bool take(table *t, const char *line) {
    char *end;
    const float x = strtof(line, &end);
    if (end == line || *end != ',') return false;
    const char *at = end + 1;
    const float y = strtof(at, &end);
    if (end == at || *end != ',') return false;
    at = end + 1;
    const long label = strtol(at, &end, 10);
    if (end == at || end[strspn(end, " \t\r")]) return false;
    t->xy[2 * t->n] = x;
    t->xy[2 * t->n + 1] = y;
    t->labels[t->n++] = label;
    return true;
}

static fac_status parse(char *text, const char *path, table *t, fac_error *err) {
    int64_t number = 0;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        number++;
        if (!line[strspn(line, " \t\r")] || take(t, line)) continue;
        if (number > 1 || strpbrk(line, "0123456789"))
            return fac_raise(err, FAC_E_FORMAT,
                             "%s: line %lld is not x,y,label with a label of 0 or 1", path,
                             (long long)number);
    }
    return FAC_OK;
}

fac_status fac_dataset_points_csv(const char *path, fac_dataset *out, fac_error *err) {
    char *text;
    size_t bytes;
    FAC_TRY(fac_read_text(path, LONGEST, FAC_READ_FILE, &text, &bytes, err));
    size_t lines = 1;
    for (const char *p = text; *p; p++) lines += *p == '\n';
    table t = { fac_alloc(2 * lines, sizeof *t.xy), fac_alloc(lines, sizeof *t.labels), 0 };
    fac_status status =
        t.xy && t.labels ? FAC_OK : fac_raise(err, FAC_E_NOMEM, "%s: no memory", path);
    if (!status && strlen(text) != bytes)
        status = fac_raise(err, FAC_E_FORMAT, "%s: is no text", path);
    if (!status) status = parse(text, path, &t, err);
    if (!status && fac_dataset_points_of(t.n, t.xy, t.labels, out, err))
        status = fac_raise_in(err, err ? err->status : FAC_E_FORMAT, "%s", path);
    fac_release(t.xy);
    fac_release(t.labels);
    fac_read_free(text);
    return status;
}
