/* Inverted residuals as one step: what the two ways of doing it share.
 *
 *   e[k] = clip(b1[k] + sum over c of x[c] w1[k][c])                  expansion
 *   d[k] = clip(b2[k] + sum over r, s of e[k][r][s] w2[k][r][s])      depthwise
 *   y[l] = clip(b3[l] + sum over k of d[k] w3[l][k] + residual[l])    projection, 1 x 1
 *
 * The expansion is 1 x 1, or any convolution of few planes (the first layer of a network).  The
 * depthwise part has any kernel and stride. */
#ifndef FACULA_CPU_CONV_INVERTED_H
#define FACULA_CPU_CONV_INVERTED_H
#include "backends/cpu/conv/conv_common.h"
#include "backends/cpu/device/padded.h"

/* One of the three convolutions: its operands by number of the problem's input, -1: absent. */
typedef struct fac_inverted_part {
    const fac_node *node;
    fac_conv_geom g;
    int w, b;
    float lo, hi;
} fac_inverted_part;

typedef struct fac_inverted {
    const fac_cpu *cpu;
    fac_inverted_part e, d, p;
    int residual;         /* the problem's input, or -1                    */
    bool planar;          /* e is a first layer: x is plain                */
    fac_padded padded;    /* its rows with their padding                   */
    int64_t window_plane; /* floats of those of a plane that a strip needs */
    fac_layout x, y, r;
    int64_t blocks;      /* of channels of e and d                        */
    int64_t parts;       /* of an image: bands of rows, or shares of e's channels */
    int64_t strip, ring; /* rows of outputs; of e: by bands               */
    int64_t row, plane;  /* of e, in floats                               */
    int64_t d_plane;     /* of the strip                                  */
    size_t per_thread;   /* floats of work                                */
} fac_inverted;

/* w, b: packed operands of e, d, p; r: the residual or NULL. */
typedef struct fac_inverted_job {
    const fac_inverted *p;
    const float *x, *r, *w[3], *b[3];
    float *y, *work;
} fac_inverted_job;

/* All pixels of a row, `width` of them from t's places on, in tiles of nearly the same size; kind:
 * FAC_TILE_NEAR or _PLANAR; n: vectors of outputs, 3: two of which the second is half full at most.
 */
void fac_inverted_row(const fac_simd *s, int kind, fac_conv_tile t, int64_t width, int n);
int fac_inverted_outputs(const fac_inverted *p, int64_t chunk); /* that n of a chunk of y */
/* One chunk of output channels of e (k 0) or p (k 2), without places. */
fac_conv_tile fac_inverted_tile(const fac_inverted_job *j, int k, const fac_inverted_part *c,
                                int64_t chunk);
/* A block of channels of d, without places. */
fac_depthwise fac_inverted_depthwise(const fac_inverted_job *j, int64_t block);

bool fac_inverted_rows_plan(fac_inverted *p,
                            size_t *work); /* all but the layouts; false: the sizes do not fit */
void fac_inverted_rows(const fac_inverted_job *j);
bool fac_inverted_channels_plan(fac_inverted *p, size_t *work);
void fac_inverted_channels(const fac_inverted_job *j);
#endif
