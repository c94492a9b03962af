/* Data sets for language models: windows of one long text, and rows whose tokens have labels of
 * their own. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "data/sets/dataset_internal.h"

static fac_status check_ids(const int32_t *ids, int64_t n, int classes, fac_error *err) {
    for (int64_t k = 0; k < n; k++)
        if (ids[k] < 0 || ids[k] >= classes)
            return fac_raise(err, FAC_E_ARGUMENT, "token %lld is %d: there are %d classes",
                             (long long)k, ids[k], classes);
    return FAC_OK;
}

static fac_status check_labels(const int64_t *labels, int64_t n, int classes, fac_error *err) {
    for (int64_t k = 0; k < n; k++)
        if (labels[k] != FAC_NO_LABEL && (labels[k] < 0 || labels[k] >= classes))
            return fac_raise(err, FAC_E_ARGUMENT, "label %lld is %lld: there are %d classes",
                             (long long)k, (long long)labels[k], classes);
    return FAC_OK;
}

/* Room for so many tokens and labels. */
static fac_status make(int64_t tokens, int64_t labels, fac_dataset *out, fac_error *err) {
    out->memory = fac_alloc(1, sizeof *out->memory);
    if (!out->memory) return fac_raise_memory(err, "a data set");
    out->memory->samples = fac_alloc((size_t)tokens, sizeof(int32_t));
    if (labels) out->memory->labels = fac_alloc((size_t)labels, sizeof(int64_t));
    if (!out->memory->samples || (labels && !out->memory->labels))
        return fac_raise_memory(err, "%lld tokens", (long long)tokens);
    out->tokens = out->memory->samples;
    out->labels = out->memory->labels;
    return FAC_OK;
}

/* What was made of it is freed after an error. */
static fac_status give(fac_status status, fac_dataset *made, fac_dataset *out) {
    if (status)
        fac_dataset_free(made);
    else
        *out = *made;
    return status;
}

fac_status fac_dataset_stream(const int32_t *ids, int64_t n, int64_t length, int64_t count,
                              int classes, fac_dataset *out, fac_error *err) {
    if (length < 1 || count < 1 || classes < 1 || n < 0)
        return fac_raise(err, FAC_E_ARGUMENT, "%lld windows of %lld tokens of %d classes",
                         (long long)count, (long long)length, classes);
    if (n < length + 1)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "a text of %lld tokens: a context of %lld needs %lld at least",
                         (long long)n, (long long)length, (long long)length + 1);
    FAC_TRY(check_ids(ids, n, classes, err));
    fac_dataset d = { .count = count,
                      .item = fac_shape(length),
                      .classes = classes,
                      .sequences = true,
                      .stream = n };
    const fac_status status = make(n, 0, &d, err);
    if (!status) memcpy(d.memory->samples, ids, (size_t)n * sizeof *ids);
    return give(status, &d, out);
}

fac_status fac_dataset_sequences(const int32_t *tokens, const int64_t *labels, int64_t count,
                                 int64_t length, int classes, fac_dataset *out, fac_error *err) {
    if (length < 1 || count < 1 || classes < 1 || count > INT64_MAX / length)
        return fac_raise(err, FAC_E_ARGUMENT, "%lld rows of %lld tokens of %d classes",
                         (long long)count, (long long)length, classes);
    const int64_t all = count * length;
    FAC_TRY(check_ids(tokens, all, classes, err));
    FAC_TRY(check_labels(labels, all, classes, err));
    fac_dataset d = {
        .count = count, .item = fac_shape(length), .classes = classes, .sequences = true
    };
    const fac_status status = make(all, all, &d, err);
    if (!status) memcpy(d.memory->samples, tokens, (size_t)all * sizeof *tokens);
    if (!status) memcpy(d.memory->labels, labels, (size_t)all * sizeof *labels);
    return give(status, &d, out);
}
