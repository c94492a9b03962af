/* Convolutions as matrix products.
 *
 *   forward   y[K][pixels]  = w[K][C T R S]    patches of x         M = K/groups   N = images x
 *             pixels of y   K = C/groups x taps
 *   grad_x    dx[C][pixels] = w'[C][K T R S]   patches of dy        M = C/groups   N = images x
 *             pixels of x   K = K/groups x taps (conv_transpose is the same with other names: y =
 *             dx, x = dy)
 *   grad_w    dw[K][C T R S] = dy[K][pixels]   patches of x^T      M = K/groups   N = C/groups x
 *             taps        K = pixels of all y
 *
 * The gradient by x of a strided convolution falls apart into phases: pixels of dx whose places are
 * equal modulo the strides see the same taps, so each phase is a convolution of its own with a part
 * of the taps and stride 1 (no zeros are multiplied).  The forward pass is one phase. */
#ifndef FACULA_OPENCL_CONV_H
#define FACULA_OPENCL_CONV_H
#include "backends/gpu/conv_kind.h"
#include "backends/opencl/product/gemm.h"
#include "ops/conv.h"

typedef struct fac_cl_conv {
    fac_gpu_conv_kind kind;
    fac_conv_geom g;
    fac_gpu_product r; /* with the shape of the phase that has most to do */
    int phases;
    int64_t M, C;  /* rows of a; channels of a group that a sum runs over */
    int64_t block; /* terms are [block of channels][tap][channel]; 0: [channel][tap] */
    int64_t see[3], see_channel; /* steps of the image that patches are cut from */
    int64_t out[3];              /* steps of y, where it lies by a table */
} fac_cl_conv;

/* What a node is as a convolution; bias: the input that it is, or -1.  false: another op, or a size
 * is no number. */
bool fac_cl_conv_node(const fac_node *n, fac_gpu_conv_kind *kind, fac_conv_geom *g, int *bias);

/* A conv2d, conv3d, one of their gradients, or their transposes (which are gradients by x, with a
 * bias); asks for plain layouts where it cannot take what is there (which only an offer may do: p
 * is changed).  false: another op, empty, or not for this. Without phases grad_x is one sum for all
 * pixels of dx. */
bool fac_cl_conv_read(const fac_opencl *o, fac_problem *p, bool phases, fac_cl_conv *c);

/* One phase: its place among the strides, its pixels and its taps by dim. */
typedef struct fac_cl_phase {
    int64_t at[3], pixels[3];
    int taps[3];
} fac_cl_phase;
fac_cl_phase fac_cl_phase_of(const fac_cl_conv *c, int phase);
/* Is tap k of dim d one of the phase, and how far does it see (in the image, from the pixel's own
 * place)? */
bool fac_cl_phase_sees(const fac_cl_conv *c, const fac_cl_phase *f, int d, int64_t k, int64_t *far);
static inline int64_t fac_cl_phase_pixels(const fac_cl_phase *f) {
    return f->pixels[0] * f->pixels[1] * f->pixels[2];
}
static inline int64_t fac_cl_phase_taps(const fac_cl_phase *f) {
    return (int64_t)f->taps[0] * f->taps[1] * f->taps[2];
}

/* Terms in blocks of channels; 0: none. */
void fac_cl_conv_block(fac_cl_conv *c, int64_t block);
/* Weights and terms as a tile wants them. */
void fac_cl_conv_settle(fac_cl_conv *c, const fac_gpu_tile *t);
/* The shape of a phase's product; where its weights and tables begin in those of all phases. */
fac_gpu_shape fac_cl_phase_shape(const fac_cl_conv *c, int phase);
size_t fac_cl_conv_packed(const fac_cl_conv *c); /* elements of the weights of all phases */

/* The tables of all phases, one after the other: int4 of taps and pixels, int of places and of
 * weights (offset of each term). */
typedef struct fac_cl_tables {
    size_t taps, pixels, places, terms;
    int32_t *tap, *pixel, *place, *term;
} fac_cl_tables;
fac_status fac_cl_tables_make(const fac_cl_conv *c, fac_cl_tables *t, fac_error *err);
void fac_cl_tables_free(fac_cl_tables *t);

static inline int64_t fac_cl_padded(int64_t M) { return (M + 3) / 4 * 4; }
#endif
