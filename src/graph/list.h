/* Sequences, maps and optionals while a file is read.  A program's values are tensors, so a
 * sequence stands for its elements: how many these are is known, and what is done with them is done
 * with values.  An optional that holds something is that; one that holds nothing is a list of its
 * own kind.  A list is never part of a finished graph: what is an output becomes one output for
 * each element (fac_list_output). */
#ifndef FACULA_GRAPH_LIST_H
#define FACULA_GRAPH_LIST_H
#include "facula/op.h"

extern const fac_op fac_list_op;
static inline bool fac_is_list(const fac_value *v) {
    return v && v->node && v->node->op == &fac_list_op;
}

bool fac_has_lists(const fac_graph *g);

/* A list of n values; an optional without anything. */
fac_value *fac_list_new(fac_graph *g, int n, fac_value *const items[]);
fac_value *fac_list_nothing(fac_graph *g);
bool fac_list_is_nothing(const fac_value *list);
static inline int fac_list_count(const fac_value *list) { return list->node->nin; }
static inline fac_value *fac_list_item(const fac_value *list, int k) { return list->node->in[k]; }

/* A position that is known, -1 the last one; `more`: how many beyond the last are allowed.  -1
 * after an error of the graph. */
int fac_list_position(const fac_onnx_node *n, const fac_value *list, const fac_value *at, int more);
/* The list among the inputs; NULL after an error of the graph. */
fac_value *fac_list_in(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], int k);
/* Puts the elements as outputs "name.0", "name.1"..., and notes how many there are as "list.name";
 * what holds nothing as -1. */
void fac_list_output(fac_graph *g, const char *name, const fac_value *list);
#endif
