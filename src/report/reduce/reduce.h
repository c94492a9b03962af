/* What the files of fac_reduce share: steps, and the graphs that they make. */
#ifndef FACULA_REPORT_REDUCE_H
#define FACULA_REPORT_REDUCE_H
#include "facula/report/reduce.h"
#include "report/cost/report.h"

typedef enum fac_step_kind {
    FAC_LESS_OUTPUTS,
    FAC_LESS_NODES,
    FAC_LESS_BYPASS,
    FAC_LESS_SIZES,
    FAC_LESS_OPTIONAL,
    FAC_LESS_ATTRS,
    FAC_LESS_ZEROS,
    FAC_LESS_ONES,
    FAC_LESS_RANDOM,
    FAC_LESS_KINDS
} fac_step_kind;

/* The least thing that may change: an output, a node, an input of a node, an attribute, a
 * parameter; a size to be another one. */
typedef struct fac_atom {
    uint32_t id;
    int at;
    int64_t from, to;
} fac_atom;

/* What may change in g in this way, in the order of the graph.  The caller frees *out with
 * fac_release. */
fac_status fac_reduce_atoms(const fac_graph *g, fac_step_kind kind, fac_atom **out, size_t *n,
                            fac_error *err);

/* g with these changed.  NULL: there is no such graph, or no memory.  dangling: what fed the nodes
 * that left becomes outputs. */
fac_graph *fac_reduce_apply(const fac_graph *g, fac_step_kind kind, const fac_atom *atoms, size_t n,
                            bool dangling, uint64_t seed);
#endif
