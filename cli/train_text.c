/* facula train: texts.  The model is that of Kim, "Convolutional Neural Networks for Sentence Classification" (EMNLP 2014):
 * embedding, convolutions of several widths over time, the maximum over time, dropout, a linear layer.  Its vectors begin
 * random or as --glove says, and are trained. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "train.h"

enum { DIM = 100, FILTERS = 100, MIN_COUNT = 1 };
static const int widths[] = { 3, 4, 5 };
enum { WIDTHS = sizeof widths / sizeof *widths };
static const double word_dropout = 0.3, dropout = 0.5, embedding_range = 0.17;

/* ---- data ---- */

int text_data(train_options *o, fac_dataset *train, fac_dataset *test) {
    fac_error err = { 0 };
    fac_texts a = { 0 }, b = { 0 };
    const fac_vocab_opts how = { .min_count = MIN_COUNT };
    fac_status status = fac_texts_sst2(o->data, "train", &a, &err);
    if (!status) status = fac_texts_sst2(o->data, "dev", &b, &err);
    if (!status) status = fac_vocab_new(&a, &how, &o->vocab, &err);
    if (!status) status = fac_dataset_texts(&a, o->vocab, 0, train, &err);
    if (!status) status = fac_dataset_texts(&b, o->vocab, train->item.d[0], test, &err);
    fac_texts_free(&a);
    fac_texts_free(&b);
    return status ? fail(&err) : EXIT_OK;
}

/* ---- model ---- */

static fac_value *fresh(fac_graph *g, const train_options *o, const char *name, fac_dims dims, double range) {
    fac_error err = { 0 };
    fac_tensor *t = NULL;
    uint64_t stream = 0;
    for (const char *p = name; *p; p++) stream = 31 * stream + (unsigned char)*p;
    if (tensor_random((fac_type){ FAC_F32, dims }, (uint64_t)o->seed, stream, &t, &err)) return NULL;
    int64_t n = fac_dims_count(&dims);
    float *x = malloc((size_t)n * sizeof *x);
    fac_tensor_read(t, x, (size_t)n * 4, NULL);
    for (int64_t i = 0; i < n; i++) x[i] *= (float)range;
    fac_tensor_write(t, x, (size_t)n * 4, NULL);
    free(x);
    return fac_param(g, name, t);
}

static fac_value *cnn(fac_value *tokens, const train_options *o, int64_t words, int classes) {
    fac_graph *g = fac_value_graph(tokens);
    fac_value *one = fac_number(g, FAC_I64, 1), *counter;
    fac_tensor *seed;
    fac_tensor_new(NULL, FAC_I64, (fac_dims){ 0 }, &seed, NULL);
    fac_tensor_write(seed, &(int64_t){ o->seed }, 8, NULL);
    counter = fac_state(g, "dropout.counter", seed);
    fac_update(counter, fac_add(counter, one));
    fac_value *mask = fac_cast(fac_greater(tokens, fac_number(g, FAC_I64, FAC_PAD)), FAC_F32);
    mask = fac_dropout_train(fac_unsqueeze(mask, fac_shape(2)), word_dropout, counter);
    fac_value *x = fac_mul(fac_gather(fresh(g, o, "embedding.weight", fac_shape(words, DIM), embedding_range), tokens, 0), mask);
    fac_value *found[WIDTHS];
    x = fac_transpose(x, fac_shape(0, 2, 1));
    for (int k = 0; k < WIDTHS; k++) {
        char name[32], bias[32];
        snprintf(name, sizeof name, "conv%d.weight", widths[k]);
        snprintf(bias, sizeof bias, "conv%d.bias", widths[k]);
        double range = 1 / sqrt(DIM * widths[k]);
        fac_value *w = fresh(g, o, name, fac_shape(FILTERS, DIM, widths[k]), range);
        fac_value *b = fresh(g, o, bias, fac_shape(FILTERS), range);
        fac_value *y = fac_conv1d(x, w, NULL, &(fac_conv1d_opts){ .pad = { widths[k] - 1, widths[k] } });
        found[k] = fac_relu(fac_add(fac_reduce_max(y, fac_shape(2), false), b));
    }
    return fac_nn_linear(fac_dropout_train(fac_concat(found, WIDTHS, 1), dropout, counter), "fc", classes);
}

bool text_is_model(const char *name) { return !strcmp(name, "text-cnn"); }

int text_model(const train_options *o, const fac_dataset *like, model *out) {
    fac_error err = { 0 };
    if (!like->tokens) return fail_text("the model %s needs texts", o->model);
    fac_graph *g = fac_graph_new();
    if (!g) return fail_text("out of memory");
    fac_nn_seed(g, (uint64_t)o->seed);
    fac_value *x = fac_input(g, "tokens", FAC_I64, fac_shape(fac_symbol(g, "N"), fac_symbol(g, "L")));
    fac_output(g, "logits", cnn(x, o, fac_vocab_count(o->vocab), like->classes));
    if (fac_graph_check(g, &err)) {
        fac_graph_free(g);
        return fail(&err);
    }
    out->graph = g;
    return EXIT_OK;
}
