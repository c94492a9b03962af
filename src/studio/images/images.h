/* The page of images: LeNet learns digits (or clothes) while you look inside it. */
#ifndef FACULA_STUDIO_IMAGES_H
#define FACULA_STUDIO_IMAGES_H
#include "facula/train.h"
#include "studio/server/session.h"
#include "studio/images/sketch.h"
#include "studio/server/training.h"

enum {
    IMAGES_PIXELS = SKETCH_SIDE * SKETCH_SIDE,
    IMAGES_CLASSES = 10,
    IMAGES_JUDGED = 500,
    IMAGES_WRONG = 24
};

typedef struct images_setup {
    int64_t samples, batch, epochs, seed;
    double lr;
    bool known; /* the network that comes with the source; it is not trained */
} images_setup;

typedef struct images {
    images_setup setup;
    const char *data;      /* its folder; NULL: Fashion-MNIST */
    char folder[4096];     /* where data points to */
    fac_error lacks;       /* why there are no images */
    fac_dataset all, test; /* as read from the files */
    fac_dataset train;     /* the first samples of `all`, sharing its memory */
    fac_device *device;
    int threads;
    fac_graph *model;
    fac_trainer *trainer;
    fac_batches order;
    fac_loader *loader;
    fac_program *looker; /* for one image: logits, probabilities, saliency, feature maps */
    fac_tensor *x;
    uint32_t generation;
    studio_progress done;
    int64_t in_epoch, index; /* index of the test image that is shown */
    bool drawn;              /* ... or the drawing */
    uint8_t pixels[IMAGES_PIXELS];
    bool playing, dirty, fresh_setup, judged;
    double test_accuracy;
    int64_t judged_at; /* when */
    int nwrong;
    int64_t wrong[IMAGES_WRONG];
    uint8_t taken_for[IMAGES_WRONG];
    fac_error unjudged, unseen; /* why the last evaluation, or the last frame, failed */
} images;

/* images_build.c */
fac_status fac_images_open(images *p, fac_error *err); /* data and device; p->data is set before */
fac_status fac_images_build(images *p, const images_setup *s, fac_error *err);
void fac_images_release(images *p);
bool fac_images_digits(const images *p); /* the images are digits */
bool fac_images_foreign(
    const images *p); /* the images are not digits, but the network is for digits */
/* images_show.c */
void fac_images_show(void *self, frames *to);
#endif
