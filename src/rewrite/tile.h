/* What the files of the tiling pass share. */
#ifndef FACULA_PASSES_TILE_H
#define FACULA_PASSES_TILE_H
#include "facula/ops.h"
#include "facula/tile.h"
#include "passes/passes.h"

struct fac_tiling {
    fac_arena memory;
    fac_tile_row *rows;
    size_t n, room;
};

/* Dims of a product, as indices. */
enum { FAC_TILE_M, FAC_TILE_N, FAC_TILE_K };

/* What tiles have to obey, from the options and the target.  granule: the unit spends whole ones.
 */
typedef struct fac_tile_unit {
    int64_t limit[3], align[3], granule[3];
    bool pad, best;
    fac_tile_sum sum;
    const fac_tile_target *target; /* never NULL */
} fac_tile_unit;

/* The tiles of one product: size of all but the last. */
typedef struct fac_tile_shape {
    int64_t step[3];
    bool pad;
    const int64_t *align;
} fac_tile_shape;

/* One dim of a product: `size` in `count` tiles of `step`; the last is smaller, or padded. */
typedef struct fac_tile_line {
    int64_t size, step, count, align;
    bool pad;
} fac_tile_line;

typedef struct fac_tiler {
    const fac_tile_opts *opts;
    fac_tile_unit unit;
    fac_tile_shape shape; /* of the layer at hand */
    fac_graph *to;
    fac_tiling *report;
    fac_error *err;
    fac_status status;
    bool found;         /* opts.only */
    const char *prefix; /* of the parameters made for the layer at hand */
} fac_tiler;

/* ---- tile_size.c: which nodes are products ---- */

enum {
    FAC_TILE_SIZES = 27
}; /* phases of a transposed convolution in three dims with different taps: at most 3^3 */
typedef struct fac_tile_size {
    int64_t d[3], count, taps;
} fac_tile_size;
/* The products that a node is; 0: none.  *why: it has to stay as it is, NULL: it can be cut. */
int fac_tile_sizes(const fac_tile_opts *o, const fac_node *n, fac_tile_size to[FAC_TILE_SIZES],
                   const char **why);

/* ---- tile_shape.c: tiles for a product ---- */

fac_status fac_tile_unit_of(const fac_tile_opts *o, fac_tile_unit *to, fac_error *err);
/* a b, or the largest number. */
int64_t fac_tile_times(int64_t a, int64_t b);
fac_tile_line fac_tile_line_of(const fac_tile_shape *s, int64_t size, int dim);
int64_t fac_tile_length(const fac_tile_line *c, int64_t i);
bool fac_tile_fits(const fac_tile_unit *u, const fac_tile_shape *s, const int64_t d[3]);
/* The tiles for products of this size and type; why not, in `memory`, or NULL. */
const char *fac_tile_choose(const fac_tile_unit *u, const int64_t d[3], fac_dtype dtype,
                            fac_tile_shape *to, fac_arena *memory);
/* Tiles, work, bytes and times of `row`, whose sizes are set. */
void fac_tile_cost(const fac_tile_unit *u, const fac_tile_shape *s, fac_tile_row *row);
/* The shape that takes the least time, whatever is asked for; false: none fits. */
bool fac_tile_best(const fac_tile_unit *u, const int64_t d[3], fac_dtype dtype, fac_tile_shape *to);

/* ---- tile_report.c ---- */

/* A new row; NULL: t->status says why. */
fac_tile_row *fac_tile_report(fac_tiler *t, const fac_node *n, const fac_tile_size *size);
void fac_tile_keep_row(fac_tile_row *row, const char *why);
/* What would use the unit better. */
const char *fac_tile_advice(fac_tiler *t, const fac_tile_row *row, const fac_tile_size *size);

/* ---- tile_matrix.c: matrices that can be taken apart ---- */

/* A matrix of `rows` x `cols`: a value of two dims, cut by slices, or a parameter, cut now.
 * transposed: it lies transposed.  Tiles come as they lie: the product transposes them. */
typedef struct fac_tile_matrix {
    fac_value *v;
    fac_tensor *weight; /* of two dims, borrowed; NULL: v is data of the run */
    const char *name;   /* of the weight */
    bool transposed;
    int64_t rows, cols;
    fac_value **tiles; /* made so far, by row and column of tiles; NULL: see fac_tile_remember */
} fac_tile_matrix;

/* The part of rows r0.. and columns c0.., both within; `height` x `width` with zeros after what
 * there is.  slot: where it is kept for the next time. */
fac_value *fac_tile_part(fac_tiler *t, const fac_tile_matrix *x, int64_t r0, int64_t height,
                         int64_t c0, int64_t width, size_t slot);
/* The last two dims (the last one, of a vector) from..to, by one slice at most. */
fac_value *fac_tile_box(fac_value *v, const int64_t from[2], const int64_t to[2]);
static inline fac_tile_matrix fac_tile_data(fac_value *v, bool transposed) {
    const int64_t *d = v->type.dims.d;
    return (fac_tile_matrix){
        .v = v, .transposed = transposed, .rows = d[transposed], .cols = d[!transposed]
    };
}
/* A parameter or constant is cut now, anything else in the run. */
fac_tile_matrix fac_tile_operand(fac_value *v, bool transposed);
/* Is this a tensor whose contents can be cut now? */
static inline bool fac_tile_is_weight(const fac_value *v) {
    return (v->leaf == FAC_PARAM || v->leaf == FAC_CONST) && v->tensor;
}

/* ---- tile_product.c ---- */

/* alpha (sum over `parts` of a[s] b[s]) + beta c, cut.  c NULL, or anything that broadcasts to M,N;
 * its dims are cut where they are not 1.  All parts have the same sizes. */
typedef struct fac_tile_product {
    fac_tile_matrix *a, *b;
    int64_t parts;
    fac_value *c;
    double alpha, beta;
} fac_tile_product;
fac_value *fac_tile_cut(fac_tiler *t, const fac_tile_product *product);
/* Gives an operand of several products memory for its tiles, so that they are made once. */
bool fac_tile_remember(fac_tiler *t, fac_tile_matrix *x, int64_t row_tiles, int64_t col_tiles);

/* A product with the tiles of its dims; parts: room for the partial products of a tile. */
typedef struct fac_tile_job {
    fac_tiler *t;
    const fac_tile_product *p;
    fac_tile_line m, n, k;
    fac_value **parts;
    fac_value **c; /* parts of c made so far, by tile of the result; NULL: none are kept */
} fac_tile_job;
/* Tile s along K of row i of a, of column l of b: s counts through the parts. */
fac_value *fac_tile_of_a(const fac_tile_job *j, int64_t i, int64_t s);
fac_value *fac_tile_of_b(const fac_tile_job *j, int64_t l, int64_t s);
fac_value *fac_tile_part_of_c(const fac_tile_job *j, int64_t i, int64_t l);
/* Tile i, l of the result. */
fac_value *fac_tile_one(const fac_tile_job *j, int64_t i, int64_t l);
/* tile_function.c: the same as a call. */
fac_value *fac_tile_called(const fac_tile_job *j, int64_t i, int64_t l);
/* tile_loop.c: all of them, as loops over equal ones. */
fac_value *fac_tile_looped(const fac_tile_job *j);

/* ---- tile_conv.c, tile_conv_transpose.c ---- */

/* What the taps of a convolution see along one dim: tap k begins at first + k step and takes `out`
 * elements with a stride. */
typedef struct fac_tile_window {
    int64_t taps, first, step, stride, out;
} fac_tile_window;
/* Which weights belong to these taps: weight_first + k weight_step. */
typedef struct fac_tile_taps {
    fac_tile_window seen;
    int64_t weight_first, weight_step;
} fac_tile_taps;
/* A convolution of x, which holds its padding: weights [rows of all groups, C/groups, ...],
 * transposed: [C of all groups, rows, ...]. y N,rows,positions. */
typedef struct fac_tile_sweep {
    int rank;
    int64_t images, groups, rows, depth; /* rows and depth (channels) of a group */
    bool transposed;
    const fac_tile_taps *taps; /* `rank` of them */
    fac_value *x, *w, *b;
} fac_tile_sweep;
fac_value *fac_tile_swept(fac_tiler *t, const fac_tile_sweep *c);
/* x with zeros around its spatial dims. */
fac_value *fac_tile_padded(fac_value *x, int rank, const int64_t *before, const int64_t *after);

/* y of a convolution with these inputs. */
fac_value *fac_tile_conv_node(fac_tiler *t, const fac_node *n, fac_value *const in[]);
fac_value *fac_tile_conv_transpose_node(fac_tiler *t, const fac_node *n, fac_value *const in[]);

/* One dim of a transposed convolution taken by its phases, y at stride j + phase: in each, a
 * convolution at stride 1. */
typedef struct fac_tile_phases {
    int64_t stride, dilation, pad, kernel, in, out, positions;
} fac_tile_phases;
fac_tile_phases fac_tile_phases_of(const fac_node *n, int dim, int *rank);
fac_tile_taps fac_tile_phase(const fac_tile_phases *p,
                             int64_t phase); /* seen.taps 0: no weight meets it */
#endif
