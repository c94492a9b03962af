/* facula train: texts.  The network is that of Kim, "Convolutional Neural Networks for Sentence
 * Classification" (EMNLP 2014): vectors of words, convolutions of several widths over time, the
 * maximum over time, dropout, a linear layer.  The vectors begin random, or as --glove says, and
 * are trained.  Most of the regularization is dropout of the vectors themselves: with 6,920
 * sentences and 14,000 words it gains two points over dropout after the maximum alone. */
#include <string.h>
#include "train.h"

enum { DIM = 64, FILTERS = 64, HIDDEN = 64, LONGEST = 256 };
static const int widths[] = { 3, 4, 5 };
enum { WIDTHS = sizeof widths / sizeof *widths, WIDEST = 5 };
static const double vector_dropout = 0.5, dropout = 0.5, vector_std = 0.1;

/* ---- data ---- */

/* The length of the longest, but no more than pays: texts are cut there. */
static int64_t length_of(const fac_texts *t, const fac_vocab *v) {
    int64_t longest = 1;
    for (int64_t i = 0; i < t->count && longest < LONGEST; i++) {
        const int64_t n = fac_vocab_encode(v, t->text[i], NULL, 0);
        if (n > longest) longest = n;
    }
    return longest < LONGEST ? longest : LONGEST;
}

int text_data(train_options *o, fac_dataset *train, fac_dataset *test) {
    fac_error err = { 0 };
    fac_texts a = { 0 }, b = { 0 };
    fac_status status = fac_texts_sst2(o->data, "train", &a, &err);
    if (!status) status = fac_texts_sst2(o->data, "dev", &b, &err);
    if (!status) status = fac_vocab_new(&a, NULL, &o->vocab, &err);
    if (!status) status = fac_dataset_texts(&a, o->vocab, length_of(&a, o->vocab), train, &err);
    if (!status) status = fac_dataset_texts(&b, o->vocab, train->item.d[0], test, &err);
    fac_texts_free(&a);
    fac_texts_free(&b);
    return status ? fail(&err) : EXIT_OK;
}

/* ---- models: tokens N,L -> logits N,classes ---- */

static fac_value *vectors(fac_value *tokens, int64_t words, int dim) {
    const fac_nn_embedding_opts o = { .padding = true,
                                      .padding_idx = FAC_PAD,
                                      .weight = { FAC_INIT_NORMAL, .std = vector_std } };
    return fac_nn_dropout(fac_nn_embedding(tokens, "embedding", words, dim, &o), vector_dropout);
}

/* How many words each sentence has, N; <pad> is none. */
static fac_value *word_count(fac_value *tokens) {
    fac_value *padding = fac_number(fac_value_graph(tokens), FAC_I64, FAC_PAD);
    return fac_sum(fac_cast(fac_not(fac_equal(tokens, padding)), FAC_I64), fac_shape(1), false);
}

/* The sum of a sentence's vectors over the root of their number: what its words say whatever their
 * order. */
static fac_value *bag(fac_value *x, fac_value *tokens) {
    fac_value *n = fac_max(word_count(tokens), fac_number(fac_value_graph(tokens), FAC_I64, 1));
    return fac_div(fac_sum(x, fac_shape(1), false),
                   fac_unsqueeze(fac_sqrt(fac_cast(n, FAC_F32)), fac_shape(1)));
}

/* The padding is as wide as the widest kernel, so there always is a window of nothing but zeros:
 * the maximum, and so the answer, does not depend on how much <pad> is after a sentence. */
static fac_value *cnn(fac_value *tokens, int64_t words, int dim, int classes) {
    fac_graph *g = fac_value_graph(tokens);
    fac_value *x = vectors(tokens, words, dim), *found[WIDTHS + 1];
    fac_value *around = fac_ints(g, fac_shape(WIDEST, WIDEST)), *time = fac_ints(g, fac_shape(1));
    fac_value *padded =
        fac_transpose(fac_pad(x, around, NULL, time, FAC_PAD_CONSTANT), fac_shape(0, 2, 1));
    for (int k = 0; k < WIDTHS; k++) {
        char name[16];
        snprintf(name, sizeof name, "conv%d", widths[k]);
        fac_value *y = fac_nn_conv1d(padded, name, FILTERS, widths[k], NULL);
        found[k] = fac_relu(fac_reduce_max(y, fac_shape(2), false));
    }
    found[WIDTHS] = bag(x, tokens);
    return fac_nn_linear(fac_nn_dropout(fac_concat(found, WIDTHS + 1, 1), dropout), "fc", classes);
}

/* Two directions; each sentence ends where its padding begins. */
static fac_value *lstm(fac_value *tokens, int64_t words, int dim, int classes) {
    const fac_nn_recurrent_opts o = { .bidirectional = true,
                                      .batch_first = true,
                                      .lengths = word_count(tokens) };
    fac_value *y = fac_nn_lstm(vectors(tokens, words, dim), "lstm", HIDDEN, &o).y;
    fac_value *found = fac_relu(fac_reduce_max(y, fac_shape(1), false));
    return fac_nn_linear(fac_nn_dropout(found, dropout), "fc", classes);
}

static const struct {
    const char *name;
    bool any_length;
    fac_value *(*build)(fac_value *, int64_t, int, int);
} nets[] = {
    { "text-cnn", true, cnn },
    { "text-lstm", false, lstm },
};
enum { NETS = sizeof nets / sizeof *nets };

static int find(const char *name) {
    int k = 0;
    while (k < NETS && strcmp(nets[k].name, name)) k++;
    return k;
}

bool text_is_model(const char *name) { return find(name) < NETS; }
bool text_any_length(const char *name) { return find(name) < NETS && nets[find(name)].any_length; }

/* Vectors from a file become the table; its dims are those of the model. */
static int pretrained(const train_options *o, fac_tensor **out) {
    fac_error err = { 0 };
    int64_t found;
    *out = NULL;
    if (!o->glove) return EXIT_OK;
    if (fac_vocab_vectors(o->vocab, o->glove, (uint64_t)o->seed, out, &found, &err))
        return fail(&err);
    fprintf(stderr, "facula: %s has vectors of %d dims for %lld of %lld words\n", o->glove,
            (int)fac_tensor_type(*out).dims.d[1], (long long)found,
            (long long)fac_vocab_count(o->vocab) - 2);
    return EXIT_OK;
}

static fac_status take_vectors(fac_graph *g, const fac_tensor *from, fac_error *err) {
    const fac_type type = fac_tensor_type(from);
    fac_tensor *to = fac_value_tensor(fac_graph_find(g, "embedding.weight"));
    return fac_tensor_write(to, fac_tensor_data(from), fac_type_bytes(&type), err);
}

int text_model(const train_options *o, const fac_dataset *like, int dim, model *out) {
    fac_error err = { 0 };
    fac_tensor *table = NULL;
    const int net = find(o->model);
    if (!like->tokens && like->count) return fail_text("the model %s needs texts", o->model);
    int code = pretrained(o, &table);
    fac_graph *g = code ? NULL : fac_graph_new();
    if (!g) return code ? code : fail_text("out of memory");
    if (table) dim = (int)fac_tensor_type(table).dims.d[1];
    fac_nn_seed(g, (uint64_t)o->seed);
    const fac_dims dims =
        fac_shape(fac_symbol(g, "N"), nets[net].any_length ? fac_symbol(g, "L") : like->item.d[0]);
    fac_value *x = fac_input(g, "tokens", FAC_I64, dims);
    fac_output(g, "logits",
               nets[net].build(x, fac_vocab_count(o->vocab), dim ? dim : DIM, like->classes));
    fac_status status = fac_graph_check(g, &err);
    if (!status && table) status = take_vectors(g, table, &err);
    fac_tensor_free(table);
    if (status) {
        fac_graph_free(g);
        return fail(&err);
    }
    out->graph = g;
    return EXIT_OK;
}
