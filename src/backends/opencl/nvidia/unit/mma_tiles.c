/* What solvers on mma.sync know of the device, and the text of their tiles: see mma.h. */
#include "backends/opencl/nvidia/unit/mma.h"
#include "backends/gpu/nvidia/speed.h"
#include "cl_nv_mma_tiles.h"

enum { KIB = 1024 };

fac_mma_unit fac_mma_unit_of(fac_opencl *o) {
    const bool large = fac_cl_has_path(o, FAC_CL_LOCAL_163);
    fac_mma_unit u = { 163 * KIB, fac_nv_speeds.mma_unit, o->limits.units };
    if (large) return u;
    u.local = fac_cl_has_path(o, FAC_CL_LOCAL_99) ? 99 * KIB : 48 * KIB;
    u.rate = fac_nv_speeds.mma_unit_small;
    return u;
}

double fac_mma_handicap(fac_opencl *o) { return fac_cl_has_path(o, FAC_CL_WGMMA) ? 2 : 1; }

void fac_mma_tiles_text(const fac_mma_tile *t, fac_text *to) {
    int kind = 0;
    if (t->mode == FAC_NV_BF16) kind = 1;
    if (t->mode == FAC_NV_F16) kind = 2;
    fac_text_print(to,
                   "#define WM %d\n#define WN %d\n#define WARPS_M %d\n#define A_ROW %d\n#define "
                   "B_ROW %d\n#define KIND %d\n",
                   t->warp_rows, t->warp_columns, t->rows / t->warp_rows, t->a_row, t->b_row, kind);
    if (t->mode == FAC_NV_3XTF32)
        fac_text_print(to, "#define SPLIT3\n#define B_LOW %d\n", t->b_low);
    if (t->a_floats) fac_text_add(to, "#define A_FLOATS\n");
    if (t->round_a) fac_text_add(to, "#define ROUND_A\n");
    if (t->round_b) fac_text_add(to, "#define ROUND_B\n");
    fac_text_add(to, fac_kernel_nv_mma_tiles);
}
