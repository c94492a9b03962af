/* What emit.c asks rankless.c for. */
#ifndef FACULA_GRAPH_RANKLESS_H
#define FACULA_GRAPH_RANKLESS_H
#include "graph/graph_internal.h"

/* The least certain of a node's inputs. */
fac_guess fac_guess_of_inputs(const fac_node *n);
/* The outputs of a node that reads values without a rank; false: see the graph's error. */
bool fac_infer_rankless(fac_node *n);
/* Outputs are no more certain than `most`, and than what the node's bodies make. */
void fac_guess_pass_on(fac_node *n, fac_guess most);
#endif
