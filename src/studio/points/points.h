/* The page of points: a network of two inputs that learns to tell two classes apart. */
#ifndef FACULA_STUDIO_POINTS_H
#define FACULA_STUDIO_POINTS_H
#include "facula/nn/mlp.h"
#include "facula/data/points.h"
#include "facula/train.h"
#include "studio/server/session.h"

enum {
    POINTS_MOST = 500,
    POINTS_GRID = 100,
    POINTS_PIXELS = POINTS_GRID * POINTS_GRID,
    POINTS_NEURON = 50, /* every second pixel */
    POINTS_NEURONS = 16,
    POINTS_WEIGHTS = 20000,
    POINTS_NAME = 16
};

/* What a training is: all of it stands in the command line that does the same. */
typedef struct points_setup {
    char set[POINTS_NAME], optimizer[POINTS_NAME],
        device[POINTS_NAME]; /* set "own": points of the user's own */
    int64_t count, seed, batch, epochs, threads;
    double noise, test_part, lr, decay, momentum;
    fac_mlp net;
    int64_t n; /* own points */
    float xy[2 * POINTS_MOST];
    int64_t label[POINTS_MOST];
} points_setup;

/* One tensor of the network as the page draws it. */
typedef struct points_update {
    double update, weight;
} points_update; /* norms of one step and of what it changed */

typedef struct points {
    points_setup setup;
    fac_device *device;
    fac_dataset all, train, test; /* all is train and test, unless the test is the training */
    fac_graph *model;
    fac_trainer *trainer;
    fac_batches order;
    fac_loader *loader;
    fac_program *boundary; /* of a point a pixel: bytes of the boundary, of the first neurons */
    fac_program *looker;   /* of the points: probabilities, their logarithms, largest of each neuron
                            */
    fac_tensor *grid, *points; /* inputs of these */
    uint32_t generation;       /* of the network: frames of older ones are dropped by the page */
    int64_t step, in_epoch;
    bool playing, panels, touched; /* touched: the command line alone does not give these weights */
    bool fresh_setup, dirty;       /* there is something new to show */
    double speed;                  /* epochs a second; 0: as fast as it goes */
    double owed;                   /* steps that the clock has earned */
    int64_t last;                  /* when work was called */
    double seconds, batch_loss;    /* in steps, since the beginning; of the last batch */
    points_update updates[2 * FAC_MLP_LAYERS + 2];
    bool measure, measured; /* the next step measures updates; one did */
    int64_t paneled;
    fac_error stopped, unseen; /* why a training could not go on, why nothing could be shown */
} points;

/* points_setup.c */
void fac_points_setup_usual(points_setup *s);
fac_status fac_points_setup_read(points_setup *s, const cJSON *from, fac_error *err);
void fac_points_setup_write(const points *p, fac_text *to); /* members of an object */
bool fac_points_setup_same(const points_setup *a,
                           const points_setup *b); /* but for the learning rate and epochs */
bool fac_points_own(const points_setup *s);

/* points_build.c */
fac_status fac_points_build(points *p, const points_setup *s, bool keep, fac_error *err);
void fac_points_release(points *p);

/* points_step.c */
int64_t fac_points_work(void *self);
void fac_points_steps(points *p, int64_t n);

/* points_torch.c: a program for PyTorch that does the same training; an error where PyTorch has not
 * the optimizer. */
fac_status fac_points_torch(const points *p, fac_text *to, fac_error *err);

/* points_show.c */
void fac_points_show(void *self, frames *to);

/* points_export.c */
fac_status fac_points_file(void *self, const char *name, fac_text *out, const char **type,
                           fac_error *err);
#endif
