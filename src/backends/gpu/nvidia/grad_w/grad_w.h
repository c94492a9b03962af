/* Gradients of convolutions by their weights on wgmma: what is multiplied, and how it is
 * cut.
 *
 *   dw[k][tap][c] = sum over pixels p of dy[p][k] x[pixel that p sees through the tap][c]
 *
 * Both operands have their channels side by side, so they run along the rows and the columns of dw,
 * not along the sum: wgmma takes that of 16-bit elements.  f32 tensors become such on their way
 * into local memory:
 *
 *   TF32     f16 of 11 digits, scaled by powers of two that follow the data
 *   3XTF32   the same in two parts, 22 digits: high high + high low + low high, promoted to further
 *            sums every 256 pixels
 *   BF16     bf16                                                       (tensors of 16 bits are
 *            multiplied as they are) */
#ifndef FACULA_GPU_NVIDIA_GRAD_W_H
#define FACULA_GPU_NVIDIA_GRAD_W_H
#include "backends/gpu/nvidia/mode.h"
#include "ops/conv.h"

enum { FAC_NV_GRAD_W_VARIANTS = 36, FAC_NV_GRAD_W_LOCAL = 230000 }; /* bytes of a group */

typedef struct fac_nv_grad_w {
    fac_conv_geom g;
    fac_dtype dtype;
    fac_nv_mode mode;
    int64_t C, K;                   /* channels of x and dy in a group */
    int64_t x[4], dy[4], x_channel; /* steps: image, row, column, depth */
    bool few;                       /* channels of x, which lie anywhere */
    int maps; /* of 16 bits, with a row for each pixel: tensor maps of this kind bring them; else 0
               */
} fac_nv_grad_w;
/* Its numbers have 16 bits. */
static inline bool fac_nv_grad_w_halves(const fac_nv_grad_w *q) { return q->dtype != FAC_F32; }

/* How the sum is cut.  taps: the kernel for 3 x 3 taps of stride 1, whose tiles are 64 x (9 taps of
 * `chunk` channels); of few channels, tiles of (64 for each of `columns` warp groups) x 64, whose
 * positions are stages of band x segment pixels; else tiles of 128 x columns, transposed when rows
 * are channels of x. */
typedef struct fac_nv_grad_w_cut {
    bool taps, few, transposed,
        joined; /* joined: the groups of a tile wait for each other and add its parts */
    int maps;   /* of q, where the cut can use them; 0: none */
    int chunk, columns, stages,
        ahead; /* ahead: chunks of 64, of taps blocks of positions, that are on their way at once */
    int fillers;              /* items that bring what the others multiply */
    int band, segment, line;  /* of few channels; line: words for one of x's in local memory */
    int64_t tiles_m, tiles_n; /* of a group */
    int64_t tall, broad, positions; /* rows and columns of an image's positions; all positions */
    int64_t each, splits;           /* positions of a part of the sum, a multiple of 64; parts */
    int64_t lead, ring;             /* of taps: blocks that x is ahead; positions in the ring */
    double seconds;
} fac_nv_grad_w_cut;

/* Elements of a kernel of one channel. */
static inline int64_t fac_nv_grad_w_taps(const fac_nv_grad_w *q) {
    return q->g.T * q->g.R * q->g.S;
}

/* The best cut by estimates, or the one of a variant; false: there is none. */
bool fac_nv_grad_w_choose(const fac_gpu_limits *l, const fac_nv_grad_w *q, int variant,
                          fac_nv_grad_w_cut *out);
/* Bytes for the parts of the sum; and after them for the maps of all groups. */
size_t fac_nv_grad_w_work(const fac_nv_grad_w *q, const fac_nv_grad_w_cut *c);
size_t fac_nv_grad_w_maps_bytes(const fac_nv_grad_w *q, const fac_nv_grad_w_cut *c);

/* Floats of a row of the parts. */
int64_t fac_nv_grad_w_pitch(const fac_nv_grad_w *q);
/* Channels that a group of the last step adds, where it is one of its own. */
int64_t fac_nv_grad_w_block(const fac_nv_grad_w_cut *c, int64_t taps);
/* Bytes of a stage. */
int fac_nv_grad_w_stage(const fac_nv_grad_w *q, const fac_nv_grad_w_cut *c);
/* Items of a group, and those of them that multiply. */
int fac_nv_grad_w_items(const fac_nv_grad_w_cut *c);
int fac_nv_grad_w_multipliers(const fac_nv_grad_w_cut *c);
#endif
