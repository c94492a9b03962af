/* facula/nn/sentence.h: networks that read a sentence, by a line of text, "100,3-4-5,0.25". */
#ifndef FACULA_SENTENCE_H
#define FACULA_SENTENCE_H

#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

enum { FAC_SENTENCE_WIDTHS = 8, FAC_SENTENCE_FILTERS = 512, FAC_SENTENCE_WIDEST = 16 };

/* The network of Kim, "Convolutional Neural Networks for Sentence Classification" (EMNLP 2014).
 * What the text does not say is 0 filters, no widths, a dropout below 0: the usual, which is 64 of
 * 3, 4 and 5 words, and a half. */
typedef struct fac_sentence_net {
    int filters, n, width[FAC_SENTENCE_WIDTHS]; /* so many filters of each width in words */
    double dropout; /* of the vectors of words, and of what the filters found */
    int dim;        /* of the vectors; 0: 64 */
} fac_sentence_net;

/* Filters of each width (1 to 512), widths joined by "-" (at most 8 of 1 to 16), dropout (0 to
 * 0.95), parted by commas; what is left out at the end is the usual, and all of it for "".
 * FAC_E_ARGUMENT says which word is wrong. */
fac_status fac_sentence_parse(const char *text, fac_sentence_net *out, fac_error *err);
/* The same text again, whole, of at most 127 bytes; cut where size is less. */
void fac_sentence_text(const fac_sentence_net *s, char *to, size_t size);

/* tokens i64 [N,L], FAC_PAD after the end of a sentence -> [N,outputs], also for any L: vectors
 * of `words` words ("embedding"), convolutions of each width over time ("conv3" ...), the maximum
 * over time and a bag of the words, dropout, a linear layer ("fc"). */
fac_value *fac_nn_sentence_cnn(fac_value *tokens, int64_t words, const fac_sentence_net *s,
                               int outputs);
/* An LSTM in both directions ("lstm") in place of the convolutions; widths count for nothing,
 * filters are its hidden size. */
fac_value *fac_nn_sentence_lstm(fac_value *tokens, int64_t words, const fac_sentence_net *s,
                                int outputs);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
