/* What a unit can do by mma.sync: see mma.h. */
#include "backends/gpu/nvidia/mma.h"

enum { KIB = 1024, REGISTERS = 65536, WARPS = 48 };

double fac_mma_rate(const fac_mma_unit *u, fac_nv_mode mode) {
    const double times = mode == FAC_NV_TF32 ? 1 : 2;
    return u->units * u->rate * (mode == FAC_NV_3XTF32 ? 1.0 / 3 : times);
}

int fac_mma_room(const fac_mma_unit *u, int items, size_t local, int registers) {
    const size_t each = (size_t)items * (size_t)((registers + 7) / 8 * 8),
                 by_local = (u->local + KIB) / (local + KIB);
    const size_t by_registers = REGISTERS / each, by_warps = (size_t)(32 * WARPS / items);
    const size_t n = by_local < by_registers ? by_local : by_registers;
    return (int)(n < by_warps ? n : by_warps);
}
