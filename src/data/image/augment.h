/* Between the files of augmentation. */
#ifndef FACULA_DATA_AUGMENT_H
#define FACULA_DATA_AUGMENT_H
#include "facula/data/data.h"

/* Random streams of an epoch. */
enum {
    FAC_STREAM_ORDER,
    FAC_STREAM_AUGMENT,
    FAC_STREAM_PARTNER,
    FAC_STREAM_MIXUP,
    FAC_STREAM_MIXUP_NORMAL,
    FAC_STREAMS
};
static inline uint64_t fac_stream(int64_t epoch, int what) {
    return (uint64_t)epoch * FAC_STREAMS + (uint64_t)what;
}

/* Noise has a stream for each sample, counted from the other end. */
static inline uint64_t fac_noise_stream(int64_t epoch) { return UINT64_MAX - (uint64_t)epoch; }

/* Every choice has a number of its own, so that leaving one kind of augmentation out changes no
 * other. */
typedef enum fac_draw {
    FAC_DRAW_DOWN,
    FAC_DRAW_RIGHT,
    FAC_DRAW_FLIP,
    FAC_DRAW_AREA,
    FAC_DRAW_SHAPE,
    FAC_DRAW_TOP,
    FAC_DRAW_LEFT,
    FAC_DRAW_ANGLE,
    FAC_DRAW_BRIGHTNESS,
    FAC_DRAW_CONTRAST,
    FAC_DRAW_SATURATION,
    FAC_DRAW_HUE,
    FAC_DRAW_CUT_Y,
    FAC_DRAW_CUT_X,
    FAC_DRAW_ERASE,
    FAC_DRAW_ERASE_AREA,
    FAC_DRAW_ERASE_SHAPE,
    FAC_DRAW_ERASE_TOP,
    FAC_DRAW_ERASE_LEFT,
    FAC_DRAW_SHIFT,
    FAC_DRAW_GAIN,
    FAC_DRAW_NOISE,
    FAC_DRAW_CUT,
    FAC_DRAWS = 32
} fac_draw;

/* One sample of one epoch; draw gives its numbers, uniform in [0, 1). */
typedef struct fac_drawn {
    uint64_t seed;
    int64_t epoch, sample;
} fac_drawn;
double fac_sample_draw(const fac_drawn *s, fac_draw what);

/* FAC_E_ARGUMENT unless every field is in its range and the data set can be changed that way. */
fac_status fac_augment_check(const fac_augment *a, const fac_dataset *d, fac_error *err);

/* A byte has 256 values, so normalizing a channel is a table of results. */
typedef struct fac_byte_tables {
    float value[3][256];
} fac_byte_tables;
void fac_augment_tables(const fac_dataset *d, fac_byte_tables *t);
/* A sample of bytes to floats: augmented, then normalized. */
void fac_augment_image(const fac_dataset *d, const fac_byte_tables *t, const fac_augment *a,
                       const fac_drawn *s, float *to);

/* Brightness, contrast, saturation and hue of an image of planes 0..255, in place. */
void fac_augment_colour(const fac_augment *a, const fac_drawn *s, int64_t channels, int64_t plane,
                        float *x);

/* A window of a recording: what lies after the end of that is 0, or it begins again. */
typedef struct fac_wave {
    const float *x;
    int64_t size, from;
    bool zeros;
} fac_wave;
static inline float fac_wave_at(const fac_wave *w, int64_t i) {
    const int64_t at = w->from + i;
    if (at < w->size) return w->x[at];
    return w->zeros ? 0 : w->x[at % w->size];
}
/* Sample s of d, a waveform; where it begins is drawn if d is cut anew.  It stays until
 * fac_wave_end, which each successful call needs. */
fac_status fac_wave_begin(const fac_dataset *d, const fac_drawn *s, int64_t n, fac_wave *out,
                          fac_error *err);
void fac_wave_end(const fac_dataset *d, const fac_drawn *s);
/* n samples of it: shifted, louder or softer, with noise. */
void fac_augment_sound(const fac_augment *a, const fac_drawn *s, int64_t n, const fac_wave *from,
                       float *to);

/* How much of a mixture is the sample itself: Beta(alpha, alpha). */
double fac_mixup_share(double alpha, const fac_drawn *s);
/* The sample that is mixed in: a random order of all, so each is used once in an epoch. */
int64_t fac_mixup_partner(const fac_dataset *d, const fac_drawn *s);
#endif
