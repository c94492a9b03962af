/* facula/edit.h: models out of models.  Every call reads one graph and returns a new one; parameter tensors are shared where they
 * stay as they are.  Values are named as fac_graph_find knows them: inputs, outputs, parameters, and what a file has named. */
#ifndef FACULA_EDIT_H
#define FACULA_EDIT_H

#include "facula/device.h"
#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* The part between values: `inputs` become inputs of their types, `outputs` the outputs; what else the outputs need comes along.
 * ninputs 0: the inputs stay.  FAC_E_ARGUMENT names what is not there, and inputs that no output needs. */
fac_status fac_graph_extract(const fac_graph *g, int ninputs, const char *const inputs[], int noutputs, const char *const outputs[],
                             fac_graph **out, fac_error *err);

/* Open sizes bound: batch (0: 1) to the first dim of the first input, 1 to all others; nodes whose contents are known become
 * constants, those that change nothing disappear, equal ones become one. */
fac_status fac_graph_simplified(const fac_graph *g, fac_graph **out, fac_error *err);
fac_status fac_graph_sized(const fac_graph *g, int64_t batch, fac_graph **out, fac_error *err);

/* Floats of another type: parameters, constants, inputs, outputs, and casts to the type that was there.  FAC_E_DTYPE unless
 * `to` is a float. */
fac_status fac_graph_floats(const fac_graph *g, fac_dtype to, fac_graph **out, fac_error *err);

/* A leaf, an output or a value by another name. */
fac_status fac_graph_rename(const fac_graph *g, const char *old, const char *name, fac_graph **out, fac_error *err);

/* The nodes in the order with the lowest peak of memory that fac_analysis_order finds; the order of a written file is that of
 * its nodes. */
fac_status fac_graph_reordered(const fac_graph *g, int64_t batch, fac_graph **out, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
