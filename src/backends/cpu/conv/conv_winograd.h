/* conv2d by Winograd's transforms (conv_winograd.c): its plan, how the work is cut
 * (conv_winograd_schedule.c), and its weights (conv_winograd_pack.c). */
#ifndef FACULA_CPU_CONV_WINOGRAD_H
#define FACULA_CPU_CONV_WINOGRAD_H
#include "backends/cpu/conv/winograd.h"

typedef struct fac_winograd_plan {
    fac_conv_geom g, whole; /* of one group, and of all                                       */
    fac_epilogue e;
    fac_layout x, y, r, mask;
    const fac_cpu *cpu;
    const fac_winograd *w;
    bool flipped, biased; /* weights of the convolution whose gradient this is; there is a bias */
    int pool; /* pixels of the result by those of the convolution, down and across: 1 or 2 */
    fac_tiles tiles;
    int64_t chunks, blocks;   /* of output channels; of tiles */
    bool by_chunk, shared;    /* all threads make one V */
    int64_t v_point, m_point; /* floats from one point to the next in V and M */
    double seconds;
} fac_winograd_plan;

/* Floats of V and M for a block of tiles. */
static inline int64_t fac_winograd_v_floats(const fac_winograd_plan *p) {
    return fac_tiles_points(&p->tiles) * p->v_point;
}
static inline int64_t fac_winograd_m_floats(const fac_winograd_plan *p) {
    return fac_tiles_points(&p->tiles) * p->m_point;
}

/* Floats of U of a group. */
static inline int64_t fac_winograd_u_floats(const fac_winograd_plan *p) {
    return (int64_t)(fac_bias_bytes(p->g.K, p->cpu->simd->lanes) / sizeof(float)) * p->g.C *
           fac_tiles_planes(&p->tiles);
}

/* Floats from one thread's V, if it has one, and M to the next one's: a power of two, so that in
 * layers of about the same size the same thread writes the same lines, which no other core then
 * has; close to each other where they are too large for that. */
static inline int64_t fac_winograd_own_floats(const fac_winograd_plan *p) {
    const int64_t needed = (p->shared ? 0 : fac_winograd_v_floats(p)) + fac_winograd_m_floats(p);
    int64_t own = 1024;
    while (own < needed) own *= 2;
    return (size_t)own * sizeof(float) <= p->cpu->l2 ? own : needed;
}

/* Variants for tuning: both schedules, in blocks of 1, 2, 4 and 8 full tiles of the kernel. */
enum {
    FAC_WINOGRAD_SIZES = 4,
    FAC_WINOGRAD_VARIANTS = 2 * FAC_WINOGRAD_SIZES,
    FAC_WINOGRAD_VERSION = 1
};

/* All but the layouts: the schedule and the size of its blocks are the quickest by estimate, or
 * those of the variant.  false: a variant that is no other than one before it, or more pieces than
 * can be counted. */
bool fac_winograd_schedule(fac_winograd_plan *p, int variant);

/* conv_winograd_pack.c: the weights of all groups, transformed, in whole.groups times u_floats. */
void fac_winograd_pack(const fac_winograd_plan *p, const float *w, float *to);
#endif
