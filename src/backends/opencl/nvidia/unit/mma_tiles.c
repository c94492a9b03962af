/* What solvers on mma.sync know of the device, and the text of their tiles: see mma.h. */
#include "backends/opencl/nvidia/unit/mma.h"
#include "backends/opencl/nvidia/unit/speed.h"
#include "cl_nv_mma_tiles.h"

enum { KIB = 1024, REGISTERS = 65536, WARPS = 48 };

size_t fac_mma_local(fac_opencl *o) {
    return fac_cl_has_path(o, FAC_CL_LOCAL_163)  ? 163 * KIB
           : fac_cl_has_path(o, FAC_CL_LOCAL_99) ? 99 * KIB
                                                 : 48 * KIB;
}

double fac_mma_rate(fac_opencl *o, fac_nv_mode mode) {
    const double unit = fac_cl_has_path(o, FAC_CL_LOCAL_163) ? fac_nv_speeds.mma_unit
                                                             : fac_nv_speeds.mma_unit_small;
    double share = mode == FAC_NV_TF32 ? 1 : 2;
    if (mode == FAC_NV_3XTF32) share = 1.0 / 3;
    return o->limits.units * unit * share;
}

double fac_mma_handicap(fac_opencl *o) { return fac_cl_has_path(o, FAC_CL_WGMMA) ? 2 : 1; }

int fac_mma_room(fac_opencl *o, int items, size_t local, int registers) {
    const size_t each = (size_t)items * (size_t)((registers + 7) / 8 * 8),
                 by_local = (fac_mma_local(o) + KIB) / (local + KIB);
    const size_t by_registers = REGISTERS / each, by_warps = (size_t)(32 * WARPS / items);
    const size_t n = by_local < by_registers ? by_local : by_registers;
    return (int)(n < by_warps ? n : by_warps);
}

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
