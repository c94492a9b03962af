/* Blocked images: what solvers of convolutions and pools ask of an operand. */
#ifndef FACULA_CPU_BLOCKED_H
#define FACULA_CPU_BLOCKED_H
#include "backends/cpu/cpu.h"

/* Leaves the layout of an N, C, H, W operand alone if it is in channel blocks of one vector with pixels next to each other and at
 * least this halo; else asks for one that is. */
static inline void fac_want_blocked(const fac_cpu *c, fac_operand *o, int64_t halo) {
    const fac_layout *l = &o->layout;
    int lanes = c->simd->lanes;
    if (l->block != lanes || l->axis != 1 || l->stride[3] != lanes || l->halo < halo)
        o->layout = fac_layout_blocked(&o->type.dims, 1, lanes, (int)halo);
}

/* The same for an output, whose layout arrives with the halo that its readers would like. */
static inline void fac_want_blocked_out(const fac_cpu *c, fac_operand *o) { fac_want_blocked(c, o, o->layout.halo); }

/* Row-major, wherever it begins. */
static inline void fac_want_plain(fac_operand *o) {
    if (!fac_layout_is_plain(&o->layout, &o->type.dims)) o->layout = fac_layout_plain(&o->type.dims);
}

/* Zeros that outputs look at around the input: the largest distance over the four sides. */
static inline int64_t fac_halo_of(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad, int64_t out) {
    int64_t after = (out - 1) * stride + (kernel - 1) * dilation - pad - (in - 1);
    return after > pad ? after : pad;
}
#endif
