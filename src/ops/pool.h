/* Pooling with everything resolved: what the pool ops, their references and the solvers of the
 * backends agree on. */
#ifndef FACULA_OPS_POOL_H
#define FACULA_OPS_POOL_H
#include "ops/window.h"

/* The attributes of max_pool and avg_pool. */
typedef struct fac_pool1d_attrs {
    int64_t kernel;
    fac_pool1d_opts o;
    bool column_major;
} fac_pool1d_attrs;
typedef struct fac_pool2d_attrs {
    int64_t kernel[2];
    fac_pool2d_opts o;
    bool column_major;
} fac_pool2d_attrs;
typedef struct fac_pool3d_attrs {
    int64_t kernel[3];
    fac_pool3d_opts o;
    bool column_major;
} fac_pool3d_attrs;

/* x N,C,D,H,W -> y N,C,O,P,Q, each plane for itself.  One and two dimensional pooling has windows
 * of one in front, so window[2] runs along memory. */
typedef struct fac_pool_geom {
    int rank;
    int64_t N, C;
    fac_window window[3];   /* depth, height, width */
    bool count_include_pad; /* average: divide by all taps but those after the padding, not only by
                               those in the input */
    bool column_major;      /* max: indices count depth fastest, then height */
} fac_pool_geom;

/* Taps of output i along a dim that the mean divides by, 1 where there are none. */
static inline float fac_pool_divisor(const fac_pool_geom *g, int dim, int64_t i) {
    int64_t first, last, all = fac_window_taps(&g->window[dim], i, &first, &last),
                         n = g->count_include_pad ? all : last - first;
    return n > 0 ? (float)n : 1;
}

/* Of a max_pool or avg_pool node whose sizes are all numbers; false when it is another op or a
 * symbol is left. */
bool fac_pool_geometry(const fac_node *n, fac_pool_geom *g);

/* Shared by the ops themselves. */
bool fac_pool_infer(fac_node *n);
void fac_pool_cost(const fac_node *n, fac_cost *cost);
bool fac_pool_of_ref(const fac_ref *r, int rank, fac_pool_geom *g);
/* The same from the attributes of a pooling with `rank` spatial dims and the dims of x. */
bool fac_pool_geometry_of(int rank, const void *attrs, const fac_dims *x, fac_pool_geom *g);
/* Offset in its plane (x: the first element of the plane is number `plane`) of the largest element
 * that the window of output (o, p, q) sees, -1 if it sees none. */
int64_t fac_pool_largest(const fac_pool_geom *g, const fac_array *x, int64_t plane, int64_t o,
                         int64_t p, int64_t q);
fac_status fac_max_pool2d_ref(const fac_ref *r, fac_error *err);
fac_status fac_max_pool3d_ref(const fac_ref *r, fac_error *err);
fac_status fac_avg_pool2d_ref(const fac_ref *r, fac_error *err);
fac_status fac_avg_pool3d_ref(const fac_ref *r, fac_error *err);
/* fac_op.define of both: a convolution with ones, divided by how many numbers each window sees. */
void fac_avg_pool_define(const fac_node *n, fac_value *out[]);
/* ONNX MaxPool and AveragePool of any rank. */
void fac_pool_load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]);
bool fac_pool_save(const fac_onnx_writer *w, const fac_node *n);
extern const fac_attr fac_pool1d_table[], fac_pool2d_table[], fac_pool3d_table[];
extern const fac_port fac_max_pool_in[], fac_max_pool_out[];
extern const fac_onnx_attr fac_pool_spellings[];
#endif
