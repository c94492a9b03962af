/* What load() may ask of the importer about the subgraphs of a node; see fac_onnx_node in
 * facula/op.h. */
#ifndef FACULA_GRAPH_ONNX_FLOW_H
#define FACULA_GRAPH_ONNX_FLOW_H
#include "facula/op.h"

/* Values of outside that subgraphs read; in the graph's memory. */
typedef struct fac_onnx_outer {
    fac_value **v;
    int n, room;
} fac_onnx_outer;

/* How many inputs the subgraph in this attribute has; -1 after an error of the graph: there is
 * none. */
int fac_onnx_body_inputs(const fac_onnx_node *n, const char *attr);
/* The subgraph as a closed graph: first one input for each of its own, of these types; then one for
 * each of outer, which grows by what this subgraph reads first.  NULL after an error of the graph.
 */
fac_graph *fac_onnx_body(const fac_onnx_node *n, const char *attr, int nin, const fac_type *in,
                         fac_onnx_outer *outer);
/* The nodes of the subgraph, which has no inputs, as if they stood where node n is; out[k]
 * becomes its output k.  Errors are the graph's. */
void fac_onnx_body_here(const fac_onnx_node *n, const char *attr, int nout, fac_value *out[]);
/* The same of a subgraph with inputs, which are these values: lists as well. */
void fac_onnx_body_with(const fac_onnx_node *n, const char *attr, int nin, fac_value *const in[],
                        int nout, fac_value *out[]);
/* How many outputs the subgraph has; -1 after an error of the graph. */
int fac_onnx_body_outputs(const fac_onnx_node *n, const char *attr);
/* Adds the inputs that a body lacks because another one read more: `formal` own ones and all of
 * outer. */
void fac_onnx_body_complete(fac_graph *body, int formal, const fac_onnx_outer *outer);
#endif
