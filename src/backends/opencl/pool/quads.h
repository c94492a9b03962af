/* Kernels on images with channels last whose items take four neighbouring channels of a tile of
 * pixels (quads.cl): depthwise convolutions, pools, their gradients.  What they need of
 * layouts, how their items are shared out, how they end. */
#ifndef FACULA_OPENCL_QUADS_H
#define FACULA_OPENCL_QUADS_H
#include "backends/opencl/device/calls.h"
#include "ops/window.h"

/* Floats of a kind that such kernels read and write. */
bool fac_cl_quad_type(fac_dtype t);
/* Four neighbouring channels of each pixel lie side by side and can be read at once, in one place
 * of an image of x's dims. */
bool fac_cl_quad_image(const fac_operand *x);
/* Lays x so, unless it does. */
void fac_cl_quad_lay(fac_operand *x);

/* What an element goes through at the end: a bias, then the body of the node. */
enum { FAC_CL_TAILS = 6 };
typedef struct fac_cl_tail {
    const fac_graph *body; /* or NULL */
    fac_dtype from, result, dtype[FAC_CL_TAILS];
    bool biased, along[FAC_CL_TAILS]; /* extra 0 is the bias; along: four channels differ */
    int extras, input[FAC_CL_TAILS];
    int64_t step[FAC_CL_TAILS][3]; /* image, row, column; in elements */
} fac_cl_tail;
/* The first extra of the body is input nports of the node; bias: an input, or -1.  May change
 * layouts of p to plain ones where it cannot read what is there.  false: a type or body not for
 * kernels. */
bool fac_cl_tail_read(const fac_opencl *o, fac_problem *p, int bias, fac_cl_tail *t);
/* Definitions in front of a kernel: EXTRA_PLACES, EXTRA_STEPS, EXTRA_PARAMS, EXTRA_ONCE, FINISH. */
bool fac_cl_tail_text(const fac_cl_tail *t, bool fp64, fac_text *to);
/* Buffers after those of the kernel itself; numbers at its end. */
void fac_cl_tail_buffers(const fac_cl_tail *t, const fac_problem *p, fac_cl_call *c);
void fac_cl_tail_numbers(const fac_cl_tail *t, fac_cl_call *c);

/* Windows that slide, and how they are cut: rows and columns of a tile, items of a group.  grad_x:
 * see quads.cl. */
typedef struct fac_cl_tiling {
    fac_window h, w;
    bool grad_x;
    int64_t N, C;
    int rows, columns, group; /* of the result's pixels; items */
    int lanes, across, down;  /* fours of channels, tiles */
    bool ptx;                 /* inline PTX works */
    int favourite;            /* the variant for work that fills the device */
    int most;                 /* lanes, where not the usual number */
    bool goes;                /* there is a kernel whose items go down a column, `rows` at a turn */
    int64_t down_rows;        /* of such an item in all; 0: items of single tiles */
} fac_cl_tiling;
/* Fills in how it is cut.  variant: 0 by the size of the work, else from 1 to FAC_CL_QUAD_VARIANTS;
 * false: no such one here. */
enum { FAC_CL_QUAD_VARIANTS = 19 };
bool fac_cl_tiling_cut(const fac_opencl *o, int variant, fac_cl_tiling *q);
void fac_cl_tiling_text(const fac_cl_tiling *q, fac_dtype in, fac_dtype out, fac_text *to);
/* `quads` of the kernel, and the range. */
void fac_cl_tiling_numbers(const fac_cl_tiling *q, const fac_operand *in, const fac_operand *out,
                           fac_cl_call *c);
void fac_cl_tiling_range(const fac_cl_tiling *q, fac_cl_call *c);

/* Seconds of work that is bound by memory: the bytes of all operands, once. */
double fac_cl_streaming(const fac_opencl *o, const fac_problem *p, int launches);
#endif
