/* facula/view.h: looking at a training: event files for TensorBoard, histograms, pictures of
 * tensors, charts.
 *
 * Nothing here knows of trainers: numbers, tensors, images and graphs go in, files and text come
 * out. */
#ifndef FACULA_VIEW_H
#define FACULA_VIEW_H

#include <stdio.h>
#include "facula/graph.h"
#include "facula/data/image.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- TensorBoard ---- */

/* An event file, appended to.  Tags are names such as "loss/train": what stands before '/' groups
 * the cards of the page. Not thread safe. */
typedef struct fac_events fac_events;

/* A new file in this folder, which is made when it is missing; a training that is resumed opens
 * another one there. */
fac_status fac_events_open(const char *folder, fac_events **out, fac_error *err);
fac_status fac_events_flush(fac_events *e,
                            fac_error *err); /* so that a page that is open sees it */
fac_status fac_events_close(fac_events *e,
                            fac_error *err); /* flushes; frees in any case; NULL is fine */
/* The file that is written; the text lives as long as e. */
const char *fac_events_path(const fac_events *e);

/* One point of a curve. */
fac_status fac_events_scalar(fac_events *e, const char *tag, int64_t step, double x,
                             fac_error *err);
/* All numbers of a tensor as a histogram. */
fac_status fac_events_histogram(fac_events *e, const char *tag, int64_t step, const fac_tensor *t,
                                fac_error *err);
/* A picture, as PNG. */
fac_status fac_events_image(fac_events *e, const char *tag, int64_t step, const fac_image *image,
                            fac_error *err);
/* A text in Markdown. */
fac_status fac_events_text(fac_events *e, const char *tag, int64_t step, const char *markdown,
                           fac_error *err);
fac_status fac_events_graph(fac_events *e, const fac_graph *g,
                            fac_error *err); /* dotted names become nested boxes */

/* What a training was started with, for the page that compares trainings; text NULL: a number. */
typedef struct fac_setting {
    const char *name, *text;
    double number;
} fac_setting;
fac_status fac_events_start(fac_events *e, int n, const fac_setting *settings, fac_error *err);
/* How the training that fac_events_start began ended. */
fac_status fac_events_end(fac_events *e, bool success, fac_error *err);

/* ---- tensors ---- */

/* Bucket k counts what lies in [limit[k-1], limit[k]), the last one its right edge too; the first
 * begins at min.  Equal widths; one bucket when all numbers are equal, none when there is none. NaN
 * and infinities are only in `others`. */
enum { FAC_BUCKETS = 30 };
typedef struct fac_histogram {
    double min, max, sum, sum_squares;
    int64_t count, others;
    int buckets;
    double limit[FAC_BUCKETS];
    int64_t in[FAC_BUCKETS];
} fac_histogram;
fac_status fac_histogram_of(const fac_tensor *t, fac_histogram *out, fac_error *err);

/* How pictures lie in a grid; 0 and NULL mean the usual. */
typedef struct fac_grid {
    int columns, zoom; /* as many as make a square; 1 */
    int64_t most;      /* no more pictures than this */
    double mean[3],
        std[3]; /* colour = x std + mean, 0..1; std[0] 0: least black, largest white, over all */
} fac_grid;
/* [count, channels, height, width]: colour when there are three channels, else each channel is a
 * grey picture. */
fac_status fac_image_grid(const fac_tensor *t, const fac_grid *how, fac_image *out, fac_error *err);

/* The channels of one sample of [samples, channels, height, width], each a picture with its number,
 * on one scale of colours: black for 0, over red to yellow for what is positive, blue for what is
 * negative.  The number of a channel that is nothing but zeros is red.  [samples, rows, columns] is
 * one picture without a number. */
typedef struct fac_mosaic {
    int columns, zoom; /* 0: as many as make a square; so that pictures are about 96 pixels wide */
    int64_t sample, most; /* no more channels than this; 0: 256 */
    double limit;         /* the magnitude that has the full colour; 0: the largest */
} fac_mosaic;
fac_status fac_image_mosaic(const fac_tensor *t, const fac_mosaic *how, fac_image *out,
                            fac_error *err);

/* ---- charts ---- */

typedef enum fac_scale {
    FAC_SCALE_LINEAR,
    FAC_SCALE_LOG,
    FAC_SCALE_PERCENT
} fac_scale; /* percent: 0..1 shown as 0..100 % */
typedef enum fac_stroke {
    FAC_STROKE_SOLID,
    FAC_STROKE_DASHED,
    FAC_STROKE_FAINT,
    FAC_STROKE_BARS,
    FAC_STROKE_RULES,
    FAC_STROKE_DASHED_RULES
} fac_stroke;

/* One line.  Points that are not finite are left out; x ascends. */
typedef struct fac_series {
    const char *name; /* in the legend; NULL: not there */
    int n;
    const double *x, *y;
    int colour;        /* 0.. of a palette that the colour-blind can tell apart */
    fac_stroke stroke; /* faint lines do not decide how far the axis goes; bars stand around their
                          x, on 0; rules are upright lines at each x, whose y are not read and may
                          be NULL; a terminal shows none */
} fac_series;

/* How often a class (row) was taken for another (column): counts[row * n + column]. */
typedef struct fac_confusion {
    int n;
    const char *const *names;
    const int64_t *counts;
} fac_confusion;

typedef struct fac_panel {
    const char *title, *x_label;
    fac_scale scale; /* of y */
    int n;
    const fac_series *series;
    const fac_confusion *confusion; /* instead of series, or NULL */
} fac_panel;

typedef struct fac_chart {
    const char *title, *subtitle; /* subtitle may be NULL */
    int width, height, columns;   /* pixels; panels side by side; 0: 1200, 800, 2 */
    int n;
    const fac_panel *panels;
} fac_chart;

/* .svg by ourselves, .png through cairo: FAC_E_UNSUPPORTED in a build without it. */
fac_status fac_chart_save(const fac_chart *c, const char *path, fac_error *err);
/* Whether this build has cairo. */
bool fac_chart_draws_png(void);

/* A panel of series for a terminal, this many columns wide, with so many lines for the curves. */
typedef struct fac_terminal {
    int columns, lines;
    bool unicode, colour;
} fac_terminal;
fac_status fac_panel_write(const fac_panel *p, const fac_terminal *how, FILE *to, fac_error *err);

/* Loudness of a sound over time and frequency, in dB: db[bin, frame], the lowest frequency first.
 * Colours span 80 dB from the loudest. */
typedef struct fac_spectrogram {
    const float *db;
    int64_t bins, frames;
    double seconds, hertz; /* of the whole; the highest frequency */
    const char *title;     /* may be NULL */
    int width, height;     /* pixels; 0: 1000, 420 */
} fac_spectrogram;
/* .svg or .png, as fac_chart_save. */
fac_status fac_spectrogram_save(const fac_spectrogram *s, const char *path, fac_error *err);
/* For a terminal: in colours, or in letters. */
fac_status fac_spectrogram_write(const fac_spectrogram *s, const fac_terminal *how, FILE *to,
                                 fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
