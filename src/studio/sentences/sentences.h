/* The page of texts: a network learns to tell good reviews from bad ones, and says which words made
 * it think so. */
#ifndef FACULA_STUDIO_SENTENCES_H
#define FACULA_STUDIO_SENTENCES_H
#include "facula/nn/sentence.h"
#include "facula/train.h"
#include "studio/server/session.h"
#include "studio/server/training.h"

enum {
    SENTENCES_LENGTH = 256, /* tokens; longer ones are cut there, as by facula train */
    SENTENCES_TEXT = 2000,  /* bytes of one that somebody types */
    SENTENCES_ROWS = 40,
    SENTENCES_NEAR = 12,
    SENTENCES_FOLDER = 4096
};

typedef struct sentences_setup {
    int64_t samples, batch, epochs, seed;
    double lr;
    fac_sentence_net net;
} sentences_setup;

typedef enum sentences_order { SENTENCES_WRONG, SENTENCES_SURE, SENTENCES_FILE } sentences_order;

typedef struct sentences {
    sentences_setup setup;
    char folder[SENTENCES_FOLDER];
    fac_error lacks; /* there are no sentences, and why */
    fac_texts texts; /* those for testing */
    fac_vocab *vocab;
    fac_dataset all, test; /* as they were read */
    fac_dataset train;     /* the first samples of all, whose memory it shares */
    fac_device *device;
    int threads;
    fac_graph *model;
    fac_trainer *trainer;
    fac_batches order;
    fac_loader *loader;
    fac_program *looker; /* of one sentence: probabilities, margin, share of each word */
    uint32_t generation;
    studio_progress done;
    int64_t in_epoch;
    bool playing, dirty, fresh_setup;
    double *chance;    /* of "positive", of each sentence for testing */
    int64_t judging;   /* batch of these that is next; negative: all are judged */
    int64_t judged_at; /* when a round began; 0: one is wanted */
    double test_loss, test_accuracy;
    bool judged, fresh_table; /* a round is over; its rows were not shown yet */
    sentences_order rows;
    char text[SENTENCES_TEXT + 1];
    fac_error unjudged, unseen; /* why the last round, look came to nothing */
} sentences;

/* sentences_build.c */
void fac_sentences_open(sentences *p, const char *data); /* p->lacks says what is not there */
fac_status fac_sentences_build(sentences *p, const sentences_setup *s, fac_error *err);
void fac_sentences_release(sentences *p);
/* sentences_look.c */
fac_status fac_sentences_looker(sentences *p, fac_error *err); /* of p->model */
/* Members of an object: probability and words of one sentence with what each adds to the margin. */
fac_status fac_sentences_look(sentences *p, const char *text, fac_text *to, fac_error *err);
/* Words whose vectors point where this one's does, by the cosine. */
fac_status fac_sentences_near(sentences *p, const char *word, fac_text *to, fac_error *err);
/* sentences_show.c */
void fac_sentences_show(void *self, frames *to);
#endif
