/* Networks that read sentences.  Most of the regularization is dropout of the vectors themselves:
 * with SST-2's 6,920 sentences and 14,000 words it gains two points over dropout after the maximum
 * alone. */
#include "facula/nn/sentence.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "facula/data/data.h"
#include "nn/nn_internal.h"

enum { DIM = 64, FILTERS = 64, WORD = 64 };
static const int usual_widths[] = { 3, 4, 5 };
enum { USUAL_WIDTHS = sizeof usual_widths / sizeof *usual_widths };
static const double usual_dropout = 0.5, most_dropout = 0.95, vector_std = 0.1;

/* ---- from text ---- */

static fac_sentence_net complete(const fac_sentence_net *s) {
    fac_sentence_net full = *s;
    if (!full.dim) full.dim = DIM;
    if (!full.filters) full.filters = FILTERS;
    if (full.dropout < 0) full.dropout = usual_dropout;
    if (full.n > 0) return full;
    full.n = USUAL_WIDTHS;
    memcpy(full.width, usual_widths, sizeof usual_widths);
    return full;
}

static fac_status take_filters(fac_sentence_net *s, const char *word, fac_error *err) {
    char *end;
    const long n = strtol(word, &end, 10);
    if (end == word || *end || n < 1 || n > FAC_SENTENCE_FILTERS)
        return fac_raise(err, FAC_E_ARGUMENT, "filters are 1 to %d of each width, not \"%s\"",
                         FAC_SENTENCE_FILTERS, word);
    s->filters = (int)n;
    return FAC_OK;
}

static fac_status take_widths(fac_sentence_net *s, const char *word, fac_error *err) {
    const char *at = word;
    bool more = true;
    while (more) {
        char *end;
        const long n = strtol(at, &end, 10);
        if (end == at || (*end && *end != '-') || n < 1 || n > FAC_SENTENCE_WIDEST)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "widths of filters are 1 to %d words, such as 3-4-5, not \"%s\"",
                             FAC_SENTENCE_WIDEST, word);
        for (int k = 0; k < s->n; k++)
            if (s->width[k] == n)
                return fac_raise(err, FAC_E_ARGUMENT, "filters of %ld words are there twice", n);
        if (s->n == FAC_SENTENCE_WIDTHS)
            return fac_raise(err, FAC_E_ARGUMENT, "filters have at most %d widths",
                             FAC_SENTENCE_WIDTHS);
        s->width[s->n++] = (int)n;
        more = *end != 0;
        at = end + 1;
    }
    return FAC_OK;
}

static fac_status take_dropout(fac_sentence_net *s, const char *word, fac_error *err) {
    char *end;
    s->dropout = strtod(word, &end);
    if (end == word || *end || !(s->dropout >= 0 && s->dropout <= most_dropout))
        return fac_raise(err, FAC_E_ARGUMENT, "dropout is 0 to %g, not \"%s\"", most_dropout, word);
    return FAC_OK;
}

fac_status fac_sentence_parse(const char *text, fac_sentence_net *out, fac_error *err) {
    static fac_status (*const take[])(fac_sentence_net *, const char *,
                                      fac_error *) = { take_filters, take_widths, take_dropout };
    fac_sentence_net s = { .dropout = -1 };
    size_t k = 0;
    for (const char *at = text; *at; k++) {
        char word[WORD];
        const size_t n = strcspn(at, ",");
        if (k == sizeof take / sizeof *take || n >= sizeof word)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "a network is filters, widths and dropout, such as 100,3-4-5,0.25, "
                             "not \"%s\"",
                             text);
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        FAC_TRY(take[k](&s, word, err));
        at += n;
        if (*at && !*++at) return fac_raise(err, FAC_E_ARGUMENT, "\"%s\" ends in a comma", text);
    }
    *out = complete(&s);
    return FAC_OK;
}

void fac_sentence_text(const fac_sentence_net *s, char *to, size_t size) {
    const fac_sentence_net full = complete(s);
    size_t at = (size_t)snprintf(to, size, "%d,", full.filters);
    for (int k = 0; k < full.n && at < size; k++)
        at += (size_t)snprintf(to + at, size - at, k ? "-%d" : "%d", full.width[k]);
    if (at < size) snprintf(to + at, size - at, ",%.9g", full.dropout);
}

/* ---- networks ---- */

/* Whoever fills the struct by hand may have gone beyond what the text allows. */
static bool in_bounds(const fac_sentence_net *s) {
    bool good = s->n <= FAC_SENTENCE_WIDTHS && s->filters >= 1 &&
                s->filters <= FAC_SENTENCE_FILTERS && s->dim >= 1 && s->dropout <= 0.95;
    for (int k = 0; good && k < s->n; k++)
        good = s->width[k] >= 1 && s->width[k] <= FAC_SENTENCE_WIDEST;
    return good;
}

static fac_value *out_of_bounds(fac_value *tokens) {
    return fac_fail_graph(fac_value_graph(tokens), FAC_E_ARGUMENT,
                          "a network for sentences has 1 to %d filters of at most %d widths from 1 "
                          "to %d words, vectors of 1 number or more, a dropout of at most 0.95",
                          FAC_SENTENCE_FILTERS, FAC_SENTENCE_WIDTHS, FAC_SENTENCE_WIDEST);
}

static fac_value *vectors(fac_value *tokens, int64_t words, const fac_sentence_net *s) {
    const fac_nn_embedding_opts o = { .padding = true,
                                      .padding_idx = FAC_PAD,
                                      .weight = { FAC_INIT_NORMAL, .std = vector_std } };
    return fac_nn_dropout(fac_nn_embedding(tokens, "embedding", words, s->dim, &o), s->dropout);
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

static int widest(const fac_sentence_net *s) {
    int most = 0;
    for (int k = 0; k < s->n; k++) most = s->width[k] > most ? s->width[k] : most;
    return most;
}

/* The padding is as wide as the widest kernel, so there always is a window of nothing but zeros:
 * the maximum, and so the answer, does not depend on how much <pad> is after a sentence. */
fac_value *fac_nn_sentence_cnn(fac_value *tokens, int64_t words, const fac_sentence_net *net,
                               int outputs) {
    const fac_sentence_net s = complete(net);
    if (!in_bounds(&s)) return out_of_bounds(tokens);
    fac_graph *g = fac_value_graph(tokens);
    const int64_t most = widest(&s);
    fac_value *x = vectors(tokens, words, &s), *found[FAC_SENTENCE_WIDTHS + 1];
    fac_value *around = fac_ints(g, fac_shape(most, most)), *time = fac_ints(g, fac_shape(1));
    fac_value *padded =
        fac_transpose(fac_pad(x, around, NULL, time, FAC_PAD_CONSTANT), fac_shape(0, 2, 1));
    for (int k = 0; k < s.n; k++) {
        char name[16];
        snprintf(name, sizeof name, "conv%d", s.width[k]);
        fac_value *y = fac_nn_conv1d(padded, name, s.filters, s.width[k], NULL);
        found[k] = fac_relu(fac_reduce_max(y, fac_shape(2), false));
    }
    found[s.n] = bag(x, tokens);
    return fac_nn_linear(fac_nn_dropout(fac_concat(found, s.n + 1, 1), s.dropout), "fc", outputs);
}

/* Each sentence ends where its padding begins. */
fac_value *fac_nn_sentence_lstm(fac_value *tokens, int64_t words, const fac_sentence_net *net,
                                int outputs) {
    const fac_sentence_net s = complete(net);
    if (!in_bounds(&s)) return out_of_bounds(tokens);
    const fac_nn_recurrent_opts o = { .bidirectional = true,
                                      .batch_first = true,
                                      .lengths = word_count(tokens) };
    fac_value *y = fac_nn_lstm(vectors(tokens, words, &s), "lstm", s.filters, &o).y;
    fac_value *found = fac_relu(fac_reduce_max(y, fac_shape(1), false));
    return fac_nn_linear(fac_nn_dropout(found, s.dropout), "fc", outputs);
}
