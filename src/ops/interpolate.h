/* Resizing: which elements of x along an axis an element of y is made of, and with which weights.
 * See interpolate.c. */
#ifndef FACULA_OPS_INTERPOLATE_H
#define FACULA_OPS_INTERPOLATE_H
#include "facula/op.h"
#include "facula/ops.h"

extern const fac_attr fac_interpolate_table[];
extern const fac_port fac_interpolate_in[];

/* Which of the choices a text attribute is; false, and the graph fails: none. */
bool fac_interpolate_choice(const fac_onnx_node *n, fac_graph *g, const char *attr,
                            const char *missing, const char *const *choices, int *to);
extern const char *const fac_interpolate_modes[], *const fac_interpolate_places[],
                                                      *const fac_interpolate_roundings[],
                                                          *const fac_interpolate_aspects[];
extern const fac_onnx fac_interpolate_onnx[];

/* The axes that a node resizes; how many, or -1 after fac_fail. */
int fac_interpolate_axes(fac_node *n, int *axes);
bool fac_interpolate_by_scales(fac_node *n, const fac_reals *scales, const int *axes, int count,
                               fac_dims *y);
bool fac_interpolate_by_sizes(fac_node *n, const fac_value *sizes, const int *axes, int count,
                              fac_dims *y);
/* Whether no axis without elements is to give some; false after fac_fail. */
bool fac_interpolate_makes(fac_node *n, const int *axes, int count, const fac_dims *y);
/* The numbers of a constant list of floats, none of an absent one; false: it is computed, or too
 * long. */
bool fac_interpolate_reals(const fac_value *v, fac_reals *to);
bool fac_interpolate_infer(fac_node *n);
bool fac_interpolate_save(const fac_onnx_writer *w, const fac_node *n);
void fac_interpolate_cost(const fac_node *n, fac_cost *cost);

/* One axis.  scale: of y to x as coordinates see it, which is not out / in where scales or an
 * aspect were asked for. */
typedef struct fac_interpolate_axis {
    int64_t in, out;
    double scale, start, end; /* start, end: the part of x that FAC_INTERPOLATE_CROP takes */
    bool same;                /* y is x along this axis */
} fac_interpolate_axis;

/* x and y: dims without symbols.  sizes: contents of the second operand, NULL when scales were
 * asked for. */
fac_interpolate_axis fac_interpolate_axis_of(const fac_interpolate_opts *o, const fac_dims *x,
                                             const fac_dims *y, const int64_t *sizes, int axis);
/* Elements of x that one of y is made of: the room that `at` and `weight` need below. */
int fac_interpolate_taps(const fac_interpolate_opts *o, const fac_interpolate_axis *a);
/* Element i of y is the sum of weight[k] x[at[k]]; false: it lies outside of x, and y is the
 * extrapolation value. */
bool fac_interpolate_tap(const fac_interpolate_opts *o, const fac_interpolate_axis *a, int64_t i,
                         int64_t *at, double *weight);
#endif
