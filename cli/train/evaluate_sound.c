/* facula evaluate: recordings are judged by the average of their windows. */
#include <math.h>
#include <stdlib.h>
#include "evaluate_sound.h"

bool recordings_open(recordings *r, const fac_dataset *d) {
    if (!d->cuts || r->d) return false;
    r->d = d;
    for (int64_t i = 0; i < d->count; i++)
        if (d->cuts[i].source >= r->n) r->n = d->cuts[i].source + 1;
    r->p = calloc((size_t)(r->n * d->classes) + 1, sizeof *r->p);
    r->label = calloc((size_t)r->n + 1, sizeof *r->label);
    return !r->p || !r->label;
}

void recordings_add(recordings *r, const float *row, int64_t sample) {
    if (!r->d) return;
    const int n = r->d->classes;
    double *p = r->p + r->d->cuts[sample].source * n, most = row[0], sum = 0;
    r->label[r->d->cuts[sample].source] = r->d->labels[sample];
    for (int c = 0; c < n; c++) most = fmax(most, row[c]);
    for (int c = 0; c < n; c++) sum += exp(row[c] - most);
    for (int c = 0; c < n; c++) p[c] += exp(row[c] - most) / sum;
}

static int64_t right_of(const recordings *r) {
    const int n = r->d->classes;
    int64_t right = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const double *p = r->p + i * n;
        int best = 0;
        for (int c = 1; c < n; c++)
            if (p[c] > p[best]) best = c;
        right += best == r->label[i];
    }
    return right;
}

void recordings_json(const recordings *r, cJSON *root) {
    if (!r->d) return;
    cJSON_AddNumberToObject(root, "recordings", (double)r->n);
    json_number(root, "recording_accuracy", (double)right_of(r) / (double)r->n, 9);
}

void recordings_print(const recordings *r) {
    if (!r->d) return;
    const int64_t right = right_of(r);
    printf("recordings %.2f %% (%lld of %lld), windows averaged\n",
           100 * (double)right / (double)r->n, (long long)right, (long long)r->n);
}

void recordings_free(recordings *r) {
    free(r->p);
    free(r->label);
    *r = (recordings){ 0 };
}
