/* Elementwise kernels, generated: one node, or a fused node of several, becomes the text of one kernel that walks the elements of
 * the result.  Operands may lie anywhere: strides and sizes are arguments, so one kernel serves all shapes of a rank. */
#ifndef FACULA_OPENCL_ELEMENTWISE_H
#define FACULA_OPENCL_ELEMENTWISE_H
#include "backends/opencl/opencl.h"
#include "base/text.h"

enum { FAC_CL_OPERANDS = 24 };

/* The shape of the walk: common dims, merged where all operands allow, and each operand's strides in elements along them. */
typedef struct fac_cl_walk {
    int      dims, operands;                    /* dims: at least one; inputs first, then outputs */
    uint64_t count, size[FAC_DIMS];
    int64_t  stride[FAC_CL_OPERANDS][FAC_DIMS], offset[FAC_CL_OPERANDS];
} fac_cl_walk;

/* false: an operand is blocked, or they are too many for a kernel's arguments. */
bool fac_cl_walk_of(const fac_problem *p, fac_cl_walk *w);

/* Strides of one are part of the text, all others are arguments. */
static inline bool fac_cl_walk_unit(const fac_cl_walk *w, int operand, int dim) { return w->stride[operand][dim] == 1; }
/* The walk as the argument that the text declares: that many words. */
static inline int fac_cl_walk_words(const fac_cl_walk *w) { return 1 + w->dims + w->operands * w->dims + w->operands; }

/* The kernel "elementwise" for a problem and a walk of it; false when some node has no expression, or a type is not one of
 * the device's.  doubles: whether f64 occurs. */
bool fac_cl_elementwise_text(const fac_problem *p, const fac_cl_walk *w, bool fp64, fac_text *to, bool *doubles);

/* The ops of a closed graph as functions and statements, for kernels that end with them.  in[i] is the expression of the element
 * of input i, in the type that fac_cl_computing names; its one output becomes the variable `result` of such a type.
 * false as above. */
bool        fac_cl_body_text(const fac_graph *body, const char *const *in, bool fp64, fac_text *functions, fac_text *statements);
const char *fac_cl_computing(fac_dtype t);      /* float, double, long or ulong */
const char *fac_cl_in_memory(fac_dtype t);      /* "ushort" for f16; "" when the device has no such type */
#endif
