/* The reference driver: runs one node, or a whole graph, on contiguous host arrays.  It does
 * element types, broadcasting and wrapping once for all ops, so an op file holds nothing but its
 * formula.  Slow and exact: floats are computed in f64, integers in i64 (u64 where that differs),
 * and rounded once when they are stored. */
#ifndef FACULA_REF_REF_H
#define FACULA_REF_REF_H
#include "facula/backend.h"
#include "facula/op.h"
#include "graph/graph_internal.h"

/* Contiguous and row-major.  data NULL: an absent input, an unused output, or (FAC_HOST) only
 * `known`. */
typedef struct fac_host {
    fac_type type; /* concrete; FAC_NONE when absent */
    void *data;    /* inputs are not written         */
    const fac_contents *known;
} fac_host;

/* Whether the driver can run it: map, move or ref, or a body of such nodes.  What has only an
 * expansion must be expanded first. */
bool fac_ref_able(const fac_node *n);

/* Scratch bytes that fac_ref_node will use for operands of these types; SIZE_MAX when it does not
 * fit in memory. */
size_t fac_ref_scratch(const fac_node *n, const fac_host *in, const fac_host *out);

/* out[k].data receives the results.  scratch: fac_ref_scratch bytes, 64-byte aligned, or NULL to
 * allocate. */
fac_status fac_ref_node(const fac_node *n, const fac_host *in, const fac_host *out, void *scratch,
                        fac_error *err);

/* One node on tensors of the host: how passes fold constants.  out[k] are new.  FAC_E_UNSUPPORTED:
 * it has only an expansion. */
fac_status fac_ref_evaluate(const fac_node *n, fac_tensor *const in[], fac_tensor *out[],
                            fac_error *err);

/* All of a concrete graph (no symbols); in[] and out[] as its inputs and outputs.  Updates are not
 * done. */
fac_status fac_ref_graph(const fac_graph *g, const fac_host *in, const fac_host *out,
                         fac_error *err);

/* ref_solver.c: the driver as the last solver of a device. */
extern const fac_solver fac_solver_ref;
#endif
