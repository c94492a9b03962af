/* What the files of the tiling pass share. */
#ifndef FACULA_PASSES_TILE_H
#define FACULA_PASSES_TILE_H
#include "facula/ops.h"
#include "facula/tile.h"
#include "passes/passes.h"

struct fac_tiling {
    fac_arena     memory;
    fac_tile_row *rows;
    size_t        n, room;
};

typedef struct fac_tiler {
    const fac_tile_opts *opts;
    fac_graph   *to;
    fac_tiling  *report;
    fac_error   *err;
    fac_status   status;
    bool         found;             /* opts.only */
    const char  *prefix;            /* of the parameters made for the layer at hand */
} fac_tiler;

/* A matrix of `rows` x `cols` that can be taken apart: a value of two dims, cut by slices, or a parameter, cut now.  turned: it
 * lies transposed.  Tiles come as they lie: the product is told to turn them. */
typedef struct fac_tile_matrix {
    fac_value  *v;
    fac_tensor *weight;             /* of two dims, borrowed; NULL: v is data of the run */
    const char *name;               /* of the weight */
    bool        turned;
    int64_t     rows, cols;
    fac_value **tiles;              /* made so far, by row and column of tiles; NULL: see fac_tile_keep */
} fac_tile_matrix;

/* tile_matrix.c: the part of rows r0.. and columns c0.., both within; `height` x `width` with zeros behind what there is.  slot:
 * where it is kept for the next time. */
fac_value *fac_tile_part(fac_tiler *t, const fac_tile_matrix *x, int64_t r0, int64_t height, int64_t c0, int64_t width, size_t slot);

/* tile_product.c: alpha a b + beta c, cut.  c NULL, or anything that broadcasts to M,N; its dims are cut where they are not 1. */
typedef struct fac_tile_product { fac_tile_matrix a, b; fac_value *c; double alpha, beta; } fac_tile_product;
fac_value *fac_tile_cut(fac_tiler *t, fac_tile_product *product);
/* Gives an operand of several products memory for its tiles, so that they are made once; without it each product makes its own. */
bool       fac_tile_keep(fac_tiler *t, fac_tile_matrix *x, int64_t row_limit, int64_t col_limit);
/* How many tiles such a product has, and the share of their size that is used. */
int64_t    fac_tile_count(const fac_tile_opts *o, int64_t m, int64_t n, int64_t k, double *utilisation);
bool       fac_tile_fits(const fac_tile_opts *o, int64_t m, int64_t n, int64_t k);

/* tile_conv.c: y of a conv1d, conv2d node with these inputs. */
fac_value *fac_tile_conv(fac_tiler *t, const fac_node *n, fac_value *const in[]);

static inline fac_tile_matrix fac_tile_data(fac_value *v, bool turned) {
    const int64_t *d = v->type.dims.d;
    return (fac_tile_matrix){ .v = v, .turned = turned, .rows = d[turned], .cols = d[!turned] };
}
/* A parameter or constant is cut now, anything else in the run. */
fac_tile_matrix fac_tile_operand(fac_value *v, bool turned);
#endif
