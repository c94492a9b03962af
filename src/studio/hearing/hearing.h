/* The page of sounds: a file or a microphone as a spectrogram that scrolls, and what a model hears
 * in it. */
#ifndef FACULA_STUDIO_HEARING_H
#define FACULA_STUDIO_HEARING_H
#include "facula/data/classes.h"
#include "facula/program.h"
#include "studio/server/session.h"

enum {
    HEARING_BINS = 256,    /* rows of the picture at most: finer ones are joined by their largest */
    HEARING_COLUMNS = 512, /* that are kept until they are shown */
    HEARING_AT_ONCE = 4,   /* columns of one run */
    HEARING_BEST = 8,      /* classes that are told */
    HEARING_OUTPUTS = 16,  /* of a model at most */
    HEARING_LEAST_RATE = 1000,
    HEARING_MOST_RATE = 384000
};

typedef struct hearing_setup {
    int64_t length; /* samples of a frame, a power of two */
    int64_t part;   /* frames begin so many times in a length */
    int64_t mels;   /* 0: frequencies as they are */
    double speed;   /* of a file; 0: as fast as it goes */
} hearing_setup;

/* A model that takes waveforms [N,samples]. */
typedef struct hearing_model {
    fac_graph *graph;
    fac_program *program;
    fac_labels *labels;
    int rate;
    int64_t window; /* samples at its rate */
    fac_dims dims;  /* of its input */
} hearing_model;

typedef struct hearing {
    hearing_setup setup;
    hearing_model model;
    fac_error deaf; /* there is no model that hears, and why */
    fac_device *device;
    /* the sound: a file has all of its samples, a microphone the last ones */
    enum { HEARING_NOTHING, HEARING_FILE, HEARING_MICROPHONE } source;
    float *x;
    int64_t n, room, first; /* first: the number of x[0] in the sound */
    int64_t at;             /* samples that were heard */
    int rate;
    bool playing;
    int64_t last; /* when a file was played on */
    double owed;  /* samples that the clock has earned */
    /* the picture */
    fac_program *spectrum;
    fac_tensor *block;
    int64_t hop, bins;
    int64_t origin, next;   /* the samples with which column 0 and the next one begin */
    int64_t columns, shown; /* that were made, and that were shown */
    uint8_t kept[HEARING_COLUMNS][HEARING_BINS];
    uint32_t generation; /* of the picture */
    /* what was heard */
    int64_t asked, looked; /* the sample, and the time in ns */
    fac_class best[HEARING_BEST];
    int nbest;
    double heard; /* seconds, where the window ended */
    double runs, run_seconds;
    bool fresh_setup, dirty;
    fac_error unseen, unheard; /* why there is no next column, no answer to the last window */
} hearing;

/* hearing_build.c */
void fac_hearing_model(hearing *p, const char *path); /* p->deaf says why there is none */
/* The program of a picture of p->rate, and the picture from a bit before p->at on. */
fac_status fac_hearing_build(hearing *p, const hearing_setup *s, fac_error *err);
void fac_hearing_release(hearing *p);
/* hearing_sound.c: WAV, and blocks of f32 of a microphone. */
fac_status fac_hearing_file(hearing *p, const void *bytes, size_t n, fac_error *err);
fac_status fac_hearing_microphone(hearing *p, int64_t rate, fac_error *err);
fac_status fac_hearing_block(hearing *p, const void *bytes, size_t n, fac_error *err);
/* hearing_work.c */
int64_t fac_hearing_work(void *self);
/* hearing_show.c */
void fac_hearing_show(void *self, frames *to);
#endif
