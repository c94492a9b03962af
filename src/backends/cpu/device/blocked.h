/* Blocked images: what solvers of convolutions and pools ask of an operand. */
#ifndef FACULA_CPU_BLOCKED_H
#define FACULA_CPU_BLOCKED_H
#include "backends/cpu/device/cpu.h"
#include "ops/window.h"

/* Leaves the layout of an N, C, H, W operand alone if it is in channel blocks of one vector with
 * pixels next to each other and at least this halo; else asks for one that is. */
static inline void fac_want_blocked(const fac_cpu *c, fac_operand *o, int64_t halo) {
    const fac_layout *l = &o->layout;
    int lanes = c->simd->lanes;
    if (l->block != lanes || l->axis != 1 || l->stride[3] != lanes || l->halo < halo)
        o->layout = fac_layout_blocked(&o->type.dims, 1, lanes, (int)halo);
}

/* The same for an output, whose layout arrives with the halo that its readers would like. */
static inline void fac_want_blocked_out(const fac_cpu *c, fac_operand *o) {
    fac_want_blocked(c, o, o->layout.halo);
}

/* Row-major, wherever it begins. */
static inline void fac_want_plain(fac_operand *o) {
    if (!fac_layout_is_plain(&o->layout, &o->type.dims))
        o->layout = fac_layout_plain(&o->type.dims);
}

/* How far outputs look beyond the input along one dim, before or after it. */
static inline int64_t fac_halo_of(const fac_window *w) {
    int64_t after = (w->out - 1) * w->stride + (w->kernel - 1) * w->dilation - w->pad - (w->in - 1);
    return after > w->pad ? after : w->pad;
}
enum { FAC_HALO_MOST = 64 }; /* more is somebody's idea of a test */
#endif
