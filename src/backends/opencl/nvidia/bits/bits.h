/* conv2d_basis/mma, conv2d_codes/mma: convolutions of few bits as products of bits on NVIDIA's
 * matrix units; see nv_bits.cl.  What the solver's files share. */
#ifndef FACULA_OPENCL_NVIDIA_BITS_H
#define FACULA_OPENCL_NVIDIA_BITS_H
#include "backends/opencl/conv/conv_bits.h"
#include "backends/opencl/device/probe.h"

/* How a problem is cut; the letters of nv_bits.cl. */
typedef struct fac_nv_bits_tile {
    int ms, ns, warps_m, warps_n, stages, copied; /* copied: words at once, G */
} fac_nv_bits_tile;

/* Blocks of a team and teams, along rows and columns; of several planes fewer or more. */
typedef struct fac_nv_bits_cut {
    int m, n, warps_m, warps_n;
} fac_nv_bits_cut;

struct fac_nv_bits;

/* What multiplies: a solver's `how`. */
typedef struct fac_nv_bits_unit {
    fac_cl_path path; /* that it needs; FAC_CL_PATHS: none */
    int rows, team;   /* ROWS_M, TEAM */
    int most;         /* pairs of blocks whose sums a team has registers for */
    int lag;          /* k-tiles whose products run while the next one is waited for */
    const fac_nv_bits_cut *cuts;
    int ncuts;
    double rate; /* operations of a bit by a bit a second, of a compute unit */
    void (*write)(const struct fac_nv_bits *s, fac_text *to);
} fac_nv_bits_unit;
extern const fac_nv_bits_unit fac_nv_bits_mma, fac_nv_bits_wgmma;

typedef struct fac_nv_bits {
    fac_cl_bits c;
    const fac_nv_bits_unit *unit;
    fac_nv_bits_tile t;
    int y_planes, times[FAC_BASIS_BITS];
    bool limits, y; /* codes by whole numbers; numbers are results */
    int64_t pixels, k_tiles, group_tiles, row_tiles;
    size_t inside, packed; /* bytes of tiles of weights, and of what follows them as well */
} fac_nv_bits;

enum { FAC_NV_BITS_ROW = 64, FAC_NV_BITS_WORDS = FAC_NV_BITS_ROW / 4 }; /* of a tile: ROW */

static inline int fac_nv_bits_rows(const fac_nv_bits *s) {
    return s->t.ms * s->unit->rows * s->t.warps_m;
}
static inline int fac_nv_bits_columns(const fac_nv_bits *s) { return s->t.ns * 8 * s->t.warps_n; }
static inline int fac_nv_bits_items(const fac_nv_bits *s) {
    return s->unit->team * s->t.warps_m * s->t.warps_n;
}

/* ---- bits_tiles.c ---- */

/* Reads a problem and cuts it; variant 0: as is done soonest. */
bool fac_nv_bits_choose(fac_opencl *o, fac_problem *p, const fac_nv_bits_unit *unit,
                        fac_nv_bits *s);
double fac_nv_bits_seconds(const fac_opencl *o, const fac_nv_bits *s);

/* ---- bits_text.c ---- */

/* The text of kernel "product", its first line the options; of kernels "tiles" and "inside". */
void fac_nv_bits_text(const fac_problem *p, const fac_nv_bits *s, fac_text *to);
void fac_nv_bits_pack_text(const fac_nv_bits *s, fac_text *to);
void fac_nv_bits_mma_text(const fac_nv_bits *s, fac_text *to);
void fac_nv_bits_wgmma_text(const fac_nv_bits *s, fac_text *to);

/* The probe of wgmma; that of mma.sync is nv_bits_probe.cl itself. */
void fac_nv_bits_probe_text(fac_text *to);

/* ---- bits_solver.c ---- */

/* The numbers after places, and the range, of kernel "product". */
void fac_nv_bits_numbers(const fac_nv_bits *s, fac_cl_call *c);

/* ---- bits_probe.c ---- */

int fac_nv_bits_probe(int item); /* what an item of either probe must find */
#endif
