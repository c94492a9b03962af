/* Which elements of a tensor are folded into which results, and how the work is shared out: for
 * kernels on teams (device/team.cl). */
#ifndef FACULA_OPENCL_FOLD_H
#define FACULA_OPENCL_FOLD_H
#include "backends/opencl/device/calls.h"

typedef struct fac_cl_axis {
    int64_t d, in, out;
} fac_cl_axis; /* strides in elements; out 0: reduced */
typedef struct fac_cl_axes {
    int n;
    fac_cl_axis a[FAC_DIMS + 1];
} fac_cl_axes;

typedef struct fac_cl_fold {
    fac_cl_axes kept, reduced; /* at least one each; the last reduced one is the inner loop */
    int near;             /* how many neighbours come in one access on a GPU; fac_cl_near() says */
    bool columns, unit;   /* neighbours in memory: are of different lines; are of one line */
    int64_t lines, count; /* results; elements of each */
    int width, team, beside, across; /* V, G, C; how many of a team work on one row */
    int64_t units, parts, groups;    /* groups: 0: as many as units need */
} fac_cl_fold;

/* How many neighbours of these operands (absent ones do not count) a work item of a GPU reads and
 * writes in one access: as many as 16 bytes of the largest elements have, where everything else
 * than neighbours begins at multiples of that; else 1. Spans begin at multiples of 16 bytes
 * (run/loan.c). */
int fac_cl_near(const fac_opencl *o, const fac_operand *const *x, int n);
/* Of all operands of a problem with as many elements as the first. */
int fac_cl_near_all(const fac_opencl *o, const fac_problem *p);

/* The type that folds of elements of this one run in. */
fac_dtype fac_cl_folding(fac_dtype t);

/* Settles what the two lists of axes say, which need not be in any order. */
void fac_cl_fold_settle(const fac_opencl *o, fac_cl_fold *f, fac_dtype computing);
void fac_cl_fold_options(const fac_cl_fold *f,
                         fac_text *options); /* V, ALIGNED, G, C, KEPT, REDUCED, COLUMNS, UNIT */
/* sizes and strides, as the kernels have them after their own numbers */
void fac_cl_fold_numbers(const fac_cl_fold *f, fac_cl_call *c);
void fac_cl_fold_items(const fac_cl_fold *f, fac_cl_call *c);
/* In how many accesses of each item a GPU's team has a whole line, where its registers can hold it;
 * else 0.  Teams grow, to as many items as a group may have, until an item has no more than `few`
 * elements, or as few as there can be. */
enum { FAC_CL_FEW = 16 };
int fac_cl_fold_held(const fac_opencl *o, fac_cl_fold *f, int few);
/* Of lines that are held: HELD; FULL, where the accesses are exactly the line; STORED, for lines so
 * long that a group has a compute unit for itself, and so many that it does several: in local
 * memory, the next being on its way.  Then f->groups are all. stores: the kernel can. */
void fac_cl_fold_held_options(fac_opencl *o, fac_cl_fold *f, int held, bool stores,
                              fac_text *options);
static inline void fac_cl_axes_put(fac_cl_axes *to, int64_t d, int64_t in, int64_t out) {
    to->a[to->n++] = (fac_cl_axis){ d, in, out };
}
#endif
