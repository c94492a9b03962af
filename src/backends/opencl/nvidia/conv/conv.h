/* Convolutions on NVIDIA's matrix units: how problems are read for them, and how their weights are
 * packed.
 *
 * Forward and gradient by x (also of strided ones, and transposes) are sums of one form, one for
 * each phase (conv.h of the folder above): pixel o of an axis sees the taps 0 <= t < taps of the
 * weights at first + each t, on
 *
 *     x[origin + stride o + far t]     and is     y[place + step o]
 *
 * so  forward: origin = -pad, stride = the convolution's, far = dilation, place = 0, step = 1,
 * first = 0, each = 1; grad_x: stride = 1, step = the convolution's stride, place = the phase, and
 * only taps that meet pixels of dy are counted. Channels of x lie side by side (channels last),
 * only a first layer's one to four may lie anywhere. */
#ifndef FACULA_OPENCL_NVIDIA_CONV_H
#define FACULA_OPENCL_NVIDIA_CONV_H
#include <math.h>
#include "backends/opencl/conv/conv.h"
#include "backends/opencl/nvidia/unit/epilogue.h"
#include "backends/opencl/nvidia/unit/nvidia.h"

/* wgmma truncates when it adds: the error of a sum grows with its terms, 3.3e-6 of the largest
 * result at 500 (3XTF32). */
enum { FAC_NV_FEW = 4, FAC_NV_PROMOTE_TERMS = 128 };

typedef struct fac_nv_axis {
    int32_t in, out, origin, stride, far, taps, place, step, first, each;
} fac_nv_axis;
typedef struct fac_nv_phase {
    fac_nv_axis axis[3]; /* depth, row, column */
    int64_t pixels;      /* of all images; < 2^31 */
    int taps;            /* in all; 0: the sums are empty */
} fac_nv_phase;

/* conv2d_grad_x_norm: which extras of the product its operands are (-1: none), and its attributes.
 */
typedef struct fac_nv_norm {
    int add, y, mask, x, mean, var, scale, bias;
    int64_t apart;
    double epsilon, lo, hi;
} fac_nv_norm;

typedef struct fac_nv_conv {
    fac_cl_conv_kind kind; /* forward or grad_x */
    fac_conv_geom g;
    fac_cl_product r; /* types, bias, extras and body; its shape is not filled in */
    fac_nv_mode mode;
    int32_t groups, rows, channels; /* of a group: of y, and of x that its sums run over */
    int promote_from; /* 3XTF32: terms from which sums move on every FAC_NV_PROMOTE_TERMS */
    bool pooled;      /* conv2d_max_pool of 2 x 2: g is the convolution, the result is pooled */
    bool moments;     /* outputs 1 and 2 are what parts of each channel make: conv2d_moments, or */
    bool sums;        /* conv2d_grad_x_norm */
    fac_nv_norm norm;
    bool few; /* 1 to 4 channels of one group, read by their steps wherever they lie */
    int phases;
    fac_nv_place x;   /* steps of in[0] */
    fac_nv_ends ends; /* of the result and the extras, whole (phases: fac_nv_phase_ends) */
} fac_nv_conv;

/* How long two things take that go on at once: the longer one, and more the more alike they are and
 * the less the power is (INFINITY: no more). */
static inline double fac_nv_both(double a, double b, double power) {
    const double longer = fmax(a, b), other = fmin(a, b);
    return longer > 0 ? longer * pow(1 + pow(other / longer, power), 1 / power) : 0;
}

/* A conv1d..3d, one of their gradients by x, or a transpose, whose channels are multiples of 4 (8
 * for 16-bit types) and rows multiples of 4.  Asks for channels last where they are not there (only
 * an offer may: p is changed).  false: not for this. */
bool fac_nv_conv_read(const fac_opencl *o, fac_problem *p, fac_nv_conv *c);
fac_nv_phase fac_nv_phase_of(const fac_nv_conv *c, int phase);
fac_nv_ends fac_nv_phase_ends(const fac_nv_conv *c, const fac_nv_phase *f);
/* ---- conv_moments.c: mean and variance of what a convolution makes, or the sums of
 * conv2d_grad_x_norm ----
 *
 * Kernels leave those of 64 rows each, nv_moments.cl, as [part][mean, m2 or the
 * sums][channels] and after them [part] counts; one more launch joins them. */
enum {
    FAC_NV_PART_ROWS = 64,
    FAC_NV_NORM_VAR = 5
}; /* and which input of conv2d_grad_x_norm its variance is */
typedef struct fac_nv_moments {
    int64_t parts, channels;
} fac_nv_moments;
size_t fac_nv_moments_bytes(const fac_nv_moments *m);
fac_status fac_nv_moments_make(fac_opencl *o, const fac_nv_conv *c, const fac_nv_moments *m,
                               fac_cl_kernel *out, fac_error *err);
/* in: the problem's inputs; to: its outputs */
fac_status fac_nv_moments_run(fac_opencl *o, const fac_nv_conv *c, const fac_nv_moments *m,
                              const fac_cl_kernel *k, fac_span from, const fac_span *in,
                              const fac_span *to, fac_error *err);
/* norm4(v, along, m): what is done to four sums after finish4, and what is summed beside them. */
void fac_nv_norm_text(const fac_nv_conv *c, fac_text *to);

/* ---- conv_foresee.c ----
 *
 * Adds  foresee_row(&e, &p, c, n EXTRA_ARGS)  which asks the second cache for channels c .. c + n -
 * 1 of a pixel, of all extras that differ between pixels and have whole rows of 16 bytes.  false:
 * there are none. */
bool fac_nv_foresee_text(const fac_nv_conv *c, fac_text *to);

/* Bytes that are moved at least. */
double fac_nv_conv_bytes(const fac_problem *p);

/* ---- conv_pack.c: weights as tiles, each the very bytes of local memory that wgmma reads ----
 *
 *   [phase][group][rows of a tile][k-tile][part][row][terms of a k-tile]
 *
 * k-tile: block of channels outer, tap inner (few: terms are [tap][4 channels] without blocks);
 * part: high and low of 3xTF32; rows of 64 or 128 bytes, 16-byte chunks swizzled as the descriptors
 * of nv_common.cl say.  Rows of each 16 are permuted so that a lane's sums are four neighbours:
 * position 8 j + 2 t + h <-> row 16 (j / 2) + 4 t + 2 (j % 2) + h.  Rows, channels and taps that
 * fill a tile up are zeros.
 *
 * The units truncate towards zero where f32 would round, and sums and layers add the losses up.  So
 * weights are packed a little larger, by the mean loss, which was measured as the slope of results
 * over exact ones on an H200. */
/* Mean relative loss when the unit truncates an f32 of local memory to TF32 (FAC_NV_IN_ORDER,
 * TF32): 2^-11 / (2 ln 2).  The error of VGG16's logits is 1.6e-3 of the largest with it, 5.2e-3
 * without. */
#define FAC_NV_CUT 0.000352
/* Mean relative loss per accumulated term in 3xTF32. */
#define FAC_NV_LOST 6.3e-9
typedef enum fac_nv_order {
    FAC_NV_IN_ORDER, /* terms as they are: x comes from local memory */
    FAC_NV_BY_FOURS, /* lane t of a row holds channels 4 t ..  of each 16, in registers */
    FAC_NV_BY_EIGHTS /* lane t of a row holds channels 8 t ..  of each 32 (16-bit types) */
} fac_nv_order;

typedef struct fac_nv_packing {
    int rows;  /* of a tile, a multiple of 16 */
    int terms; /* channels of a k-tile: a row has 64 or 128 bytes */
    fac_nv_mode mode;
    fac_nv_order order;
    bool few;
    int points; /* 36: weights of 3 x 3 transformed for F(4 x 4, 3 x 3); 0: as they are */
    int run;    /* 3XTF32: terms that the units add up before the sum moves on */
    bool whole; /* f32 as it is, which the kernel splits: mode is TF32 then */
} fac_nv_packing;

int fac_nv_tile_bytes(const fac_nv_packing *k); /* of one k-tile: what one bulk copy brings */
int fac_nv_k_tiles(const fac_nv_conv *c, const fac_nv_packing *k, const fac_nv_phase *f);
int fac_nv_row_tiles(const fac_nv_conv *c, const fac_nv_packing *k);       /* of one group */
size_t fac_nv_packed_bytes(const fac_nv_conv *c, const fac_nv_packing *k); /* of all phases */
size_t fac_nv_packed_at(const fac_nv_conv *c, const fac_nv_packing *k,
                        int phase); /* where a phase's begin, bytes */
uint64_t fac_nv_pack_key(const fac_nv_conv *c, const fac_nv_packing *k, int input);
bool fac_nv_pack_text(const fac_nv_conv *c, const fac_nv_packing *k, fac_text *to);
fac_status fac_nv_pack_make(fac_opencl *o, const fac_nv_conv *c, const fac_nv_packing *k,
                            fac_cl_kernel *out, fac_error *err);
/* from: the weights as the problem has them, plain. */
fac_status fac_nv_pack_run(fac_opencl *o, const fac_nv_conv *c, const fac_nv_packing *k,
                           const fac_cl_kernel *kernel, fac_span from, fac_span to, fac_error *err);
/* The same for k->points: c is the convolution, m the product, whose groups are points x groups. */
fac_status fac_nv_pack_points(fac_opencl *o, const fac_nv_conv *c, const fac_nv_conv *m,
                              const fac_nv_packing *k, const fac_cl_kernel *kernel, fac_span from,
                              fac_span to, fac_error *err);
#endif
