/* The page of points: a network with two inputs that learns to separate two classes. */
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

/* Settings of a training: the exported command line has all of them. */
typedef struct points_setup {
    char set[POINTS_NAME], optimizer[POINTS_NAME],
        device[POINTS_NAME]; /* set "own": the user's points */
    int64_t count, seed, batch, epochs, threads;
    double noise, test_part, lr, decay, momentum;
    fac_mlp net;
    int64_t n; /* points of the set "own" */
    float xy[2 * POINTS_MOST];
    int64_t label[POINTS_MOST];
} points_setup;

/* A tensor of the network, for the page. */
typedef struct points_update {
    double update, weight;
} points_update; /* norms of the last update and of the weights */

typedef struct points {
    points_setup setup;
    fac_device *device;
    fac_dataset all, train, test; /* `all` is train and test, unless both are the same points */
    fac_graph *model;
    fac_trainer *trainer;
    fac_batches order;
    fac_loader *loader;
    fac_program *boundary; /* at each pixel: bytes of the boundary, of the first neurons */
    fac_program *looker;   /* of the points: probabilities, their logarithms, maxima of neurons */
    fac_tensor *grid, *points; /* their inputs */
    uint32_t generation;       /* number of the network: the page drops frames of older ones */
    int64_t step, in_epoch;
    /* touched: changed by hand, so the command line gives other weights */
    bool playing, panels, touched;
    bool fresh_setup, dirty;    /* something new to show */
    double speed;               /* epochs per second; 0: as fast as possible */
    double owed;                /* steps due by the clock */
    int64_t last;               /* when work was last called */
    double seconds, batch_loss; /* total time in steps; loss of the last batch */
    points_update updates[2 * FAC_MLP_LAYERS + 2];
    bool measure, measured; /* the next step measures updates; a step did */
    int64_t paneled;
    fac_error stopped, unseen; /* why the training stopped, why the last frame failed */
} points;

/* points_setup.c */
void fac_points_setup_usual(points_setup *s);
fac_status fac_points_setup_read(points_setup *s, const cJSON *from, fac_error *err);
void fac_points_setup_write(const points *p, fac_text *to); /* members of an object */
bool fac_points_setup_same(const points_setup *a,
                           const points_setup *b); /* except for the learning rate and epochs */
bool fac_points_own(const points_setup *s);

/* points_build.c */
fac_status fac_points_build(points *p, const points_setup *s, bool keep, fac_error *err);
void fac_points_release(points *p);

/* points_step.c */
int64_t fac_points_work(void *self);
void fac_points_steps(points *p, int64_t n);

/* points_torch.c: a PyTorch program of the same training; an error if PyTorch does not have the
 * optimizer. */
fac_status fac_points_torch(const points *p, fac_text *to, fac_error *err);

/* points_show.c */
void fac_points_show(void *self, frames *to);

/* points_export.c */
fac_status fac_points_file(void *self, const char *name, fac_text *out, const char **type,
                           fac_error *err);
#endif
