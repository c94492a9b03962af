/* The page of texts: a network learns to distinguish good and bad reviews, and shows the
 * contribution of each word. */
#ifndef FACULA_STUDIO_SENTENCES_H
#define FACULA_STUDIO_SENTENCES_H
#include "facula/nn/sentence.h"
#include "facula/train.h"
#include "studio/server/session.h"
#include "studio/server/training.h"

enum {
    SENTENCES_LENGTH = 256, /* tokens; longer sentences are cut, as in facula train */
    SENTENCES_TEXT = 2000,  /* bytes of a typed sentence */
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
    fac_error lacks; /* why there are no sentences */
    fac_texts texts; /* test sentences */
    fac_vocab *vocab;
    fac_dataset all, test; /* as read from the files */
    fac_dataset train;     /* the first samples of `all`, sharing its memory */
    fac_device *device;
    int threads;
    fac_graph *model;
    fac_trainer *trainer;
    fac_batches order;
    fac_loader *loader;
    fac_program *looker; /* for one sentence: probabilities, margin, contribution of each word */
    uint32_t generation;
    studio_progress done;
    int64_t in_epoch;
    bool playing, dirty, fresh_setup;
    double *chance;    /* probability of "positive", for each test sentence */
    int64_t judging;   /* next batch of these; negative: all are evaluated */
    int64_t judged_at; /* when a round began; 0: start one */
    double test_loss, test_accuracy;
    bool judged, fresh_table; /* a round has ended whose rows were not shown yet */
    sentences_order rows;
    char text[SENTENCES_TEXT + 1];
    fac_error unjudged, unseen; /* why the last round, or the last frame, failed */
} sentences;

/* sentences_build.c */
void fac_sentences_open(sentences *p, const char *data); /* p->lacks says what is missing */
fac_status fac_sentences_build(sentences *p, const sentences_setup *s, fac_error *err);
void fac_sentences_release(sentences *p);
/* sentences_look.c */
fac_status fac_sentences_looker(sentences *p, fac_error *err); /* of p->model */
/* Members of an object: probability and words of one sentence, with the contribution of each to the
 * margin. */
fac_status fac_sentences_look(sentences *p, const char *text, fac_text *to, fac_error *err);
/* Words whose vectors are nearest to that of this word, by cosine similarity. */
fac_status fac_sentences_near(sentences *p, const char *word, fac_text *to, fac_error *err);
/* sentences_show.c */
void fac_sentences_show(void *self, frames *to);
#endif
