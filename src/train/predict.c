/* What a trained model says: logits of a batch, and which classes it takes for which. */
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_internal.h"
#include "train/train_internal.h"

/* The inference form with its first output alone. */
static fac_status compile(fac_look *l, fac_error *err) {
    if (l->predictor) return FAC_OK;
    fac_graph *g = fac_graph_inference(l->judged);
    if (!g) return fac_raise_memory(err, "the graph of predictions");
    for (size_t i = 1; i < g->noutputs; i++) g->outputs[i].value->roots--;
    if (g->noutputs > 1) g->noutputs = 1;
    fac_graph_sweep(g);
    const fac_program_opts how = { .precision = l->precision };
    fac_status status = fac_graph_check(g, err);
    if (!status) status = fac_program_new(g, l->device, &how, &l->predictor, err);
    fac_graph_free(g);
    return status;
}

fac_status fac_trainer_predict(fac_trainer *t, fac_tensor *x, fac_tensor **logits, fac_error *err) {
    fac_tensor *result = NULL;
    FAC_TRY(compile(t->look, err));
    FAC_TRY(fac_program_run(t->look->predictor, &x, &result, err));
    *logits = result;
    return FAC_OK;
}

fac_status fac_tensor_best(const fac_tensor *logits, int64_t *to, fac_error *err) {
    fac_dims d = fac_tensor_type(logits).dims;
    if (d.n != 2 || d.d[1] < 1)
        return fac_raise(err, FAC_E_SHAPE, "logits have two dims, samples and classes");
    fac_tensor *as;
    FAC_TRY(fac_tensor_convert(logits, FAC_F32, &as, err));
    const float *row = fac_tensor_data(as);
    for (int64_t i = 0; i < d.d[0]; i++, row += d.d[1]) {
        to[i] = 0;
        for (int64_t c = 1; c < d.d[1]; c++)
            if (row[c] > row[to[i]]) to[i] = c;
    }
    fac_tensor_free(as);
    return FAC_OK;
}

/* Outputs beyond the classes of the data set are taken for no class: such a prediction counts
 * nowhere. */
static fac_status count(const fac_tensor *logits, const fac_tensor *labels, int64_t classes,
                        int64_t *counts, fac_error *err) {
    int64_t n = fac_tensor_type(labels).dims.d[0];
    const int64_t *truth = fac_tensor_data(labels);
    int64_t *best = fac_alloc((size_t)n + 1, sizeof *best);
    fac_status status =
        best ? fac_tensor_best(logits, best, err) : fac_raise_memory(err, "predictions");
    for (int64_t i = 0; i < n && !status; i++)
        if (best[i] < classes && truth[i] >= 0 && truth[i] < classes)
            counts[truth[i] * classes + best[i]]++;
    fac_release(best);
    return status;
}

static fac_status count_batch(fac_trainer *t, const fac_dataset *data, const fac_batches *order,
                              int64_t index, int64_t *counts, fac_error *err) {
    fac_tensor *x, *labels, *logits = NULL;
    FAC_TRY(fac_batch(data, order, 0, index, &x, &labels, err));
    fac_status status = fac_trainer_predict(t, x, &logits, err);
    if (!status) status = count(logits, labels, data->classes, counts, err);
    fac_tensor_free(x);
    fac_tensor_free(labels);
    fac_tensor_free(logits);
    return status;
}

fac_status fac_trainer_confusion(fac_trainer *t, const fac_dataset *data, int64_t batch,
                                 int64_t *counts, fac_error *err) {
    const fac_batches order = { .size = batch };
    if (batch < 1)
        return fac_raise(err, FAC_E_ARGUMENT, "batches of %lld samples", (long long)batch);
    size_t cells = (size_t)data->classes * (size_t)data->classes;
    int64_t *all = fac_alloc(cells + 1, sizeof *all);
    if (!all) return fac_raise_memory(err, "%zu counts", cells);
    fac_status status = FAC_OK;
    for (int64_t i = 0; i < fac_batches_count(data, &order) && !status; i++)
        status = count_batch(t, data, &order, i, all, err);
    for (size_t i = 0; i < cells && !status; i++) counts[i] = all[i];
    fac_release(all);
    return status;
}
