/* Convolutions on NVIDIA's matrix units: the sums that they are, and the sizes of their packed
 * weights.
 *
 * Forward and gradient by x (also of strided ones, and transposes) are sums of one form, one for
 * each phase (opencl/conv/conv.h): pixel o of an axis sees the taps 0 <= t < taps of the
 * weights at first + each t, on
 *
 *     x[origin + stride o + far t]     and is     y[place + step o]
 *
 * so  forward: origin = -pad, stride = the convolution's, far = dilation, place = 0, step = 1,
 * first = 0, each = 1; grad_x: stride = 1, step = the convolution's stride, place = the phase, and
 * only taps that meet pixels of dy are counted. Channels of x lie side by side (channels last),
 * only a first layer's one to four may lie anywhere. */
#ifndef FACULA_GPU_NVIDIA_CONV_H
#define FACULA_GPU_NVIDIA_CONV_H
#include <math.h>
#include "backends/gpu/conv_kind.h"
#include "backends/gpu/nvidia/mode.h"
#include "backends/gpu/nvidia/places.h"
#include "ops/conv.h"

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
    fac_gpu_conv_kind kind; /* forward or grad_x */
    fac_conv_geom g;
    fac_gpu_product r; /* types, bias, extras and body; its shape is not filled in */
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

/* ---- phases.c ---- */

fac_nv_phase fac_nv_phase_of(const fac_nv_conv *c, int phase);
fac_nv_ends fac_nv_phase_ends(const fac_nv_conv *c, const fac_nv_phase *f);
/* Bytes that are moved at least. */
double fac_nv_conv_bytes(const fac_problem *p);

/* Moments are left for 64 rows each, nv_moments.cl; and which input of conv2d_grad_x_norm its
 * variance is. */
enum { FAC_NV_PART_ROWS = 64, FAC_NV_NORM_VAR = 5 };

/* ---- packing.c: sizes of packed weights, see opencl/nvidia/conv/conv.h ---- */

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

int fac_nv_element_bytes(const fac_nv_packing *k);
int fac_nv_tile_bytes(const fac_nv_packing *k); /* of one k-tile: what one bulk copy brings */
int fac_nv_k_tiles(const fac_nv_conv *c, const fac_nv_packing *k, const fac_nv_phase *f);
int fac_nv_row_tiles(const fac_nv_conv *c, const fac_nv_packing *k);       /* of one group */
size_t fac_nv_packed_bytes(const fac_nv_conv *c, const fac_nv_packing *k); /* of all phases */
size_t fac_nv_packed_at(const fac_nv_conv *c, const fac_nv_packing *k,
                        int phase); /* where a phase's begin, bytes */
uint64_t fac_nv_pack_key(const fac_nv_conv *c, const fac_nv_packing *k, int input);
#endif
