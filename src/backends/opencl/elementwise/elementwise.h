/* Elementwise kernels, generated: one node, or a fused node of several, becomes the text of one
 * kernel that walks the elements of the result in the order in which they lie.  Operands may lie
 * anywhere: strides and sizes are arguments, so one kernel serves all shapes of a rank; whether an
 * operand has neighbours along the last dim, or is the same there, is part of the text. */
#ifndef FACULA_OPENCL_ELEMENTWISE_H
#define FACULA_OPENCL_ELEMENTWISE_H
#include "backends/gpu/elementwise/walk.h"
#include "backends/opencl/device/calls.h"
#include "base/text.h"

/* What a node, or a fused node of several, says of one element: functions, and statements that read
 * and write x0[a0], x1[a1], ... (inputs first, then outputs).  false when some node has no
 * expression, or a type is not one of the device's; or memory is gone, and then `lost` says so: an
 * offer is made all the same, as nobody knows better, and make() tells. */
typedef struct fac_cl_expression {
    fac_text functions, statements;
    bool doubles, lost;
} fac_cl_expression;
bool fac_cl_expression_of(const fac_problem *p, bool fp64, fac_cl_expression *e);
void fac_cl_expression_free(fac_cl_expression *e);

/* A launch of "elementwise": one expression on the elements of several sets of operands, all of
 * them contiguous or single elements when there is more than one set.  operand[set * walk.operands
 * + k]: which operand of the node k is, inputs first. */
typedef struct fac_cl_sets {
    int n;
    const fac_gpu_walk *const *walk;
    const int *operand;
} fac_cl_sets;
fac_status fac_cl_elementwise_add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                                  const fac_cl_expression *e, const fac_cl_sets *sets,
                                  fac_error *err);
enum { FAC_CL_SETS = 32 };
/* How many sets of operands like these one launch has room for. */
int fac_cl_sets_most(const fac_opencl *o, const fac_gpu_walk *w);

/* The ops of a closed graph as functions and statements, for kernels that end with them.  in[i] is
 * the expression of the element of input i, in the type that fac_cl_computing names; its one output
 * becomes the variable `result` of such a type. false as above. */
bool fac_cl_body_text(const fac_graph *body, const char *const *in, bool fp64, fac_text *functions,
                      fac_text *statements);
const char *fac_cl_computing(fac_dtype t); /* float, double, long or ulong */
const char *fac_cl_in_memory(
    fac_dtype t); /* "ushort" for f16; "" when the device has no such type */
#endif
