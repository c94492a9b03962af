/* Perplexity: how surprised a model is by a text. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "lm/lm.h"
#include "tensor/mirror.h"
#include "tensor/tensor_internal.h"

typedef struct sums {
    double x, xx;
    int64_t n;
} sums;

static void add(sums *s, double x) {
    s->x += x;
    s->xx += x * x;
    s->n++;
}

static double surprise(const float *logits, int64_t n, int32_t id) {
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++) most = (double)logits[k] > most ? (double)logits[k] : most;
    for (int64_t k = 0; k < n; k++) sum += exp((double)logits[k] - most);
    return most + log(sum) - (double)logits[id];
}

/* One window; tokens from `from` on count. */
static fac_status window_of(fac_program *p, const int32_t *ids, int64_t n, int64_t from,
                            int64_t vocabulary, sums *to, fac_error *err) {
    fac_tensor *in, *out = NULL;
    void *data;
    FAC_TRY(fac_tensor_new(NULL, FAC_I64, fac_shape(1, n), &in, err));
    fac_status status = fac_tensor_begin_write(in, &data, err);
    for (int64_t k = 0; k < n && !status; k++) ((int64_t *)data)[k] = ids[k];
    if (!status) status = fac_program_run(p, &in, &out, err);
    if (!status) status = fac_storage_home(out->storage, err);
    const float *y = status ? NULL : fac_tensor_data(out);
    for (int64_t k = from; k < n && y; k++)
        add(to, surprise(y + (k - 1) * vocabulary, vocabulary, ids[k]));
    fac_tensor_free(in);
    fac_tensor_free(out);
    return status;
}

static fac_status all_windows(fac_program *p, const fac_lm *m, const int32_t *ids, int64_t n,
                              int64_t window, sums *to, fac_error *err) {
    for (int64_t at = 0; at < n; at += window / 2) {
        const int64_t left = n - at < window ? n - at : window;
        const int64_t from = at ? window / 2 : 1;
        if (left > from) FAC_TRY(window_of(p, ids + at, left, from, m->c.vocabulary, to, err));
        if (at + left == n) break;
    }
    return FAC_OK;
}

fac_status fac_lm_perplexity(fac_lm *m, const int32_t *ids, int64_t n, int64_t window,
                             fac_perplexity *out, fac_error *err) {
    fac_graph *g;
    fac_program *p;
    sums s = { 0 };
    const fac_program_opts o = { .precision = m->opts.precision };
    if (!window) window = m->context;
    if (window < 2 || window > m->context)
        return fac_raise(err, FAC_E_ARGUMENT, "a window of %lld tokens: 2 to %lld",
                         (long long)window, (long long)m->context);
    if (m->c.is & FAC_LM_ENCODER)
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s gives embeddings, and writes no text",
                         m->c.family);
    if (n < 2)
        return fac_raise(err, FAC_E_ARGUMENT, "a text of %lld tokens: at least 2", (long long)n);
    for (int64_t k = 0; k < n; k++)
        if (ids[k] < 0 || ids[k] >= m->c.vocabulary)
            return fac_raise(err, FAC_E_ARGUMENT, "token %d of %lld", ids[k],
                             (long long)m->c.vocabulary);
    FAC_TRY(fac_lm_build(m, 1, m->context, NULL, &g, err));
    fac_graph *quiet = fac_graph_inference(g); /* it may be one that is trained, and drops */
    fac_graph_free(g);
    if (!quiet) return fac_raise_memory(err, "a graph");
    fac_status status = fac_program_new(quiet, m->device, &o, &p, err);
    fac_graph_free(quiet);
    if (status) return status;
    status = all_windows(p, m, ids, n, window, &s, err);
    fac_program_free(p);
    if (status) return status;
    if (isnan(s.x))
        return fac_raise(err, FAC_E_FORMAT,
                         "logits are no numbers: a weight is none, or numbers outgrow their type");
    const double mean = s.x / (double)s.n, variance = s.xx / (double)s.n - mean * mean;
    *out =
        (fac_perplexity){ mean, sqrt((variance > 0 ? variance : 0) / (double)s.n), exp(mean), s.n };
    return FAC_OK;
}
