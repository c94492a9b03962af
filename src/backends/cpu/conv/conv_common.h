/* What the solvers of conv2d share. */
#ifndef FACULA_CPU_CONV_COMMON_H
#define FACULA_CPU_CONV_COMMON_H
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/elementwise/epilogue.h"
#include "op_list.h"
#include "ops/conv.h"

/* The geometry and body of a convolution of f32 without empty dims; false when it is not one or its
 * body is unknown. The gradient of a convolution by its input is, for stride 1, such a convolution
 * too: of dy with the kernel rotated by half a turn and its channels exchanged,
 *   dx[n,c,i,j] = sum over k,r,s of dy[n,k, i + pad - r dilation, ...] w[k,c,r,s]
 * with the padding dilation - pad, which must not be negative. A conv2d_max_pool with windows
 * of 2 x 2 side by side is the convolution of its outputs that lie in such a window. */
bool fac_cpu_conv_masked(const fac_device *d, const fac_problem *p, fac_conv_geom *g,
                         fac_epilogue *e);
/* The same for those that know no masks. */
bool fac_cpu_conv(const fac_device *d, const fac_problem *p, fac_conv_geom *g, fac_epilogue *e);
static inline bool fac_conv_flipped(const fac_problem *p) { return FAC_IS(p->node, conv2d_grad_x); }
static inline bool fac_conv_pooled(const fac_problem *p) {
    return FAC_IS(p->node, conv2d_max_pool);
}
static inline bool fac_conv_biased(const fac_problem *p) {
    return !fac_conv_flipped(p) && p->in[2].type.dtype != FAC_NONE;
}

/* The geometry of the convolution that a conv2d_grad_x or conv2d_grad_w belongs to; false when it
 * is not one of f32 without body and empty dims. */
bool fac_cpu_conv_grad(const fac_problem *p, fac_conv_geom *g);

/* How much longer sums of few terms take than their steps: the way in and out of the registers is
 * worth four. */
static inline double fac_conv_short(const fac_conv_geom *g) {
    return 1 + 4 / (double)(g->C * g->R * g->S);
}

/* The zeros that it needs around the planes of x. */
int64_t fac_conv_halo(const fac_conv_geom *g);

/* Output channels of a group in chunks of two vectors, the last of one if their number is odd. */
static inline int64_t fac_chunks(int64_t channels, int lanes) {
    return (channels + 2 * lanes - 1) / (2 * lanes);
}
static inline int fac_chunk_vectors(int64_t channels, int lanes, int64_t chunk) {
    return channels - chunk * 2 * lanes > lanes ? 2 : 1;
}

/* Where the weight of channels k, c and the first tap lies, and the step from tap to tap: weights
 * of a convolution, or those of the convolution whose gradient it is. */
typedef struct fac_conv_weights {
    const float *w;
    int64_t k, c, tap;
} fac_conv_weights;
fac_conv_weights fac_conv_weights_of(const fac_conv_geom *g, bool flipped, const float *w,
                                     int64_t group);

/* Seconds that packing takes in every run: a parameter that the program changes.  floats: of the
 * packed form. */
double fac_conv_pack_seconds(const fac_cpu *c, const fac_problem *p, double floats);

/* Weights K, C/groups, R, S -> [group][chunk][block of `block` channels][R][S][channel in
 * block][vectors x lanes], zeros after the last output channel, no gaps after the last input
 * channel: what fac_conv_tile.w reads.  block 1 is for planar input. */
size_t fac_conv_packed(const fac_conv_geom *g, int lanes); /* floats; 0 when that does not fit */
/* Where a chunk begins. */
static inline const float *fac_conv_chunk(const fac_conv_geom *g, int lanes, const float *w,
                                          int64_t group, int64_t chunk) {
    int64_t K = g->K / g->groups, depth = g->C / g->groups * g->R * g->S,
            vectors = (K + lanes - 1) / lanes;
    return w + (group * vectors + 2 * chunk) * lanes * depth;
}
/* Packs input 1 (weights, as above) or 2 (the bias, zeros after its last channel) of a solver; and
 * their key, to which the device adds the contents with their shape. */
void fac_conv_pack_input(const fac_cpu *c, const fac_conv_geom *g, int block, bool flipped,
                         int input, const float *from, float *to);
uint64_t fac_conv_pack_key(const fac_cpu *c, int64_t groups, int block, bool flipped, int input);
void fac_pack_bias(const float *b, int64_t n, int lanes, float *to);
static inline size_t fac_bias_bytes(int64_t n, int lanes) {
    return (size_t)((n + lanes - 1) / lanes * lanes) * sizeof(float);
}

/* Weights K, group, R, S of small groups, as many outputs as inputs -> [block][R][channel in
 * group][S][lane], zeros after the last channel: what fac_depthwise.w reads. */
void fac_conv_pack_depthwise(const fac_conv_geom *g, int lanes, bool flipped, const float *from,
                             float *to);
static inline size_t fac_conv_depthwise_bytes(const fac_conv_geom *g, int lanes) {
    return fac_bias_bytes(g->K, lanes) * (size_t)(g->R * g->S * (g->C / g->groups));
}
#endif
