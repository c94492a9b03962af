/* Extras of a convolution that are on their way before they are needed: see conv.h. */
#include "backends/opencl/nvidia/conv/conv.h"
#include "tensor/tensor_internal.h"

enum { PIECE = 16 }; /* bytes that bulk copies are multiples of */
#define HEAD "INLINE void foresee_row(const ends *e, const spot *s, int c, int n EXTRA_PARAMS) {\n"

static bool in_pieces(const fac_nv_place *p, int channels, int bytes) {
    return ((p->at | p->image | p->depth | p->row | p->column | channels) * bytes & (PIECE - 1)) ==
           0;
}

/* The pieces of a pixel's bits that hold those of its channels c .. c + n - 1; false: a piece may
 * reach out of them. */
static bool add_bits(const fac_nv_place *p, int i, int channels, bool seen, fac_text *to) {
    if (p->channel != 1 || channels % 4 || !in_pieces(p, channels / 4, 1)) return false;
    if (!seen) fac_text_add(to, HEAD);
    fac_text_print(to,
                   "    nv_bulk_ahead(e%d + e->p[%d].at + s->at[%d] + ((c >> 6) << 4), "
                   "(uint)(((c + n + 63) >> 6) - (c >> 6)) * 16);\n",
                   i, 1 + i, 1 + i);
    return true;
}

bool fac_nv_foresee_text(const fac_nv_conv *c, fac_text *to) {
    int seen = 0;
    for (int i = 0; i < c->r.extras; i++) {
        const fac_nv_place *p = &c->ends.p[1 + i];
        const int bytes = (int)fac_dtype_get(c->r.extra_dtype[i])->block_bytes;
        if (i == c->norm.mask && c->sums) {
            seen += add_bits(p, i, c->rows, seen > 0, to);
            continue;
        }
        if (fac_nv_run_of(p) != FAC_NV_FOURS || !in_pieces(p, c->rows, bytes)) continue;
        if (!seen++) fac_text_add(to, HEAD);
        if (p->apart > 1) fac_text_print(to, "    if (s->at[%d] >= 0)\n    ", 1 + i);
        fac_text_print(to, "    nv_bulk_ahead(e%d + e->p[%d].at + s->at[%d] + c, (uint)n * %d);\n",
                       i, 1 + i, 1 + i, bytes);
    }
    if (seen) fac_text_add(to, "}\n");
    return seen > 0;
}
