/* The page of sounds: a file or a microphone as a scrolling spectrogram, and the classes that a
 * model finds in it. */
#ifndef FACULA_STUDIO_HEARING_H
#define FACULA_STUDIO_HEARING_H
#include "facula/data/classes.h"
#include "facula/program.h"
#include "studio/server/session.h"

enum {
    HEARING_BINS = 256, /* most rows of the picture: finer ones are joined, their largest counts */
    HEARING_COLUMNS = 512, /* columns kept until they are shown */
    HEARING_AT_ONCE = 4,   /* columns computed by one run */
    HEARING_BEST = 8,      /* classes shown */
    HEARING_OUTPUTS = 16,  /* most outputs of a model */
    HEARING_LEAST_RATE = 1000,
    HEARING_MOST_RATE = 384000
};

typedef struct hearing_setup {
    int64_t length; /* samples of a frame, a power of two */
    int64_t part;   /* frames per length: 4 means that one begins each quarter */
    int64_t mels;   /* 0: plain frequencies */
    double speed;   /* of playing a file; 0: as fast as possible */
} hearing_setup;

/* A model that takes waveforms [N,samples]. */
typedef struct hearing_model {
    fac_graph *graph;
    fac_program *program;
    fac_labels *labels;
    int rate;
    int64_t window; /* samples, at its rate */
    fac_dims dims;  /* of its input */
} hearing_model;

typedef struct hearing {
    hearing_setup setup;
    hearing_model model;
    fac_error deaf; /* why there is no model for sounds */
    fac_device *device;
    /* the sound: all samples of a file, the last ones of a microphone */
    enum { HEARING_NOTHING, HEARING_FILE, HEARING_MICROPHONE } source;
    float *x;
    int64_t n, room, first; /* first: index of x[0] in the sound */
    int64_t at;             /* samples processed so far */
    int rate;
    bool playing;
    int64_t last; /* when the file last advanced */
    double owed;  /* samples due by the clock */
    /* the picture */
    fac_program *spectrum;
    fac_tensor *block;
    int64_t hop, bins;
    int64_t origin, next;   /* the samples at which column 0 and the next one begin */
    int64_t columns, shown; /* computed, and shown */
    uint8_t kept[HEARING_COLUMNS][HEARING_BINS];
    uint32_t generation; /* of the picture */
    /* results of the model */
    int64_t asked, looked; /* the sample, and the time in ns */
    fac_class best[HEARING_BEST];
    int nbest;
    double heard; /* end of the window, in seconds */
    double runs, run_seconds;
    bool fresh_setup, dirty;
    fac_error unseen, unheard; /* why the next column, or the result of the last window, failed */
} hearing;

/* hearing_build.c */
void fac_hearing_model(hearing *p, const char *path); /* p->deaf says why there is no model */
/* The program of a picture at p->rate, and the picture from a little before p->at. */
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
