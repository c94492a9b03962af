/* Tiles of matrix products on mma.sync (nv_mma_matmul.cl): see matmul.h. */
#include "backends/gpu/nvidia/product/matmul.h"

/* Bytes of a step of each row; registers of an item, about. */
typedef struct mma_cut {
    fac_nv_cut c;
    int warp_rows, warp_columns, row, registers;
} mma_cut;

static const mma_cut single[] = {
    { { 128, 128, 3, 0, 0.71 }, 64, 64, 64, 220 },  { { 128, 128, 3, 0, 0.64 }, 64, 32, 64, 128 },
    { { 128, 64, 4, 0, 0.66 }, 64, 32, 64, 128 },   { { 64, 64, 4, 0, 0.52 }, 32, 32, 64, 96 },
    { { 128, 128, 3, 0, 0.95 }, 64, 64, 128, 220 }, { { 256, 128, 3, 0, 0.62 }, 64, 64, 64, 220 }
};
static const mma_cut split[] = { { { 128, 128, 3, 0, 0.73 }, 64, 32, 64, 170 },
                                 { { 128, 64, 4, 0, 0.75 }, 64, 32, 64, 168 },
                                 { { 64, 64, 4, 0, 0.70 }, 32, 32, 64, 130 },
                                 { { 64, 128, 3, 0, 0.80 }, 32, 64, 64, 168 } };
static const mma_cut short_side[] = { { { 128, 16, 4, 0, 0.2 }, 32, 16, 64, 96 },
                                      { { 128, 32, 4, 0, 0.35 }, 32, 32, 64, 128 },
                                      { { 128, 64, 4, 0, 0.5 }, 32, 64, 64, 168 } };

bool fac_mma_matmul_cut(const fac_mma_unit *u, int k, fac_nv_matmul *m) {
    const bool three = m->mode == FAC_NV_3XTF32;
    const mma_cut *all = single;
    size_t count = sizeof single / sizeof *single;
    if (m->swap) {
        all = short_side;
        count = sizeof short_side / sizeof *short_side;
    } else if (three) {
        all = split;
        count = sizeof split / sizeof *split;
    }
    if ((size_t)k >= count) return false;
    const mma_cut *c = &all[k];
    const size_t each = (size_t)(c->c.rows + c->c.columns) * (size_t)c->row, most = u->local / each;
    m->cut = c->c;
    m->warp_rows = c->warp_rows;
    m->warp_columns = c->warp_columns;
    m->row_bytes = c->row;
    if (most < (size_t)m->cut.stages) m->cut.stages = (int)most;
    const int items = fac_mma_matmul_items(m);
    m->cut.groups =
        m->cut.stages < 2 ? 0 : fac_mma_room(u, items, (size_t)m->cut.stages * each, c->registers);
    /* a unit with few warps waits for them */
    if (m->cut.groups * items < 256) m->cut.share *= 0.7;
    return true;
}
