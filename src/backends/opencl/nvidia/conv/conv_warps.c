/* The letters of nv_conv_warps.cl: see conv_warps.h. */
#include "backends/opencl/nvidia/conv/conv_warps.h"

void fac_nv_warps_text(const fac_nv_conv *c, const fac_nv_tile *t, fac_text *to) {
    static const char *const names[] = { "tf32", "tf32", "bf16", "f16" };
    fac_text_print(to, "#define WARPS %d\n#define DEPTH %d\n#define MMA nv_mma_%s\n", t->warps,
                   t->depth, names[c->mode]);
}
