/* Extras of a convolution that are on their way before they are needed: see conv.h. */
#include "backends/opencl/nvidia/conv.h"
#include "tensor/tensor_internal.h"

enum { PIECE = 16 };            /* bytes that bulk copies are multiples of */

static bool in_pieces(const fac_nv_place *p, int channels, int bytes) {
    return ((p->at | p->image | p->depth | p->row | p->column | channels) * bytes & (PIECE - 1)) == 0;
}

bool fac_nv_foresee_text(const fac_nv_conv *c, fac_text *to) {
    int seen = 0;
    for (int i = 0; i < c->r.extras; i++) {
        const fac_nv_place *p = &c->ends.p[1 + i];
        const int bytes = (int)fac_dtype_get(c->r.extra_dtype[i])->block_bytes;
        if (fac_nv_run_of(p) != FAC_NV_FOURS || !in_pieces(p, c->rows, bytes)) continue;
        if (!seen++) fac_text_add(to, "INLINE void foresee_row(const ends *e, const spot *s, int c, int n EXTRA_PARAMS) {\n");
        if (p->apart > 1) fac_text_print(to, "    if (s->at[%d] >= 0)\n    ", 1 + i);
        fac_text_print(to, "    nv_bulk_ahead(e%d + e->p[%d].at + s->at[%d] + c, (uint)n * %d);\n", i, 1 + i, 1 + i, bytes);
    }
    if (seen) fac_text_add(to, "}\n");
    return seen > 0;
}
