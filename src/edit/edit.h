/* What the files of this folder share.  Every edit makes a new graph; an error of the graph being
 * made becomes the caller's. */
#ifndef FACULA_EDIT_EDIT_H
#define FACULA_EDIT_EDIT_H
#include "facula/edit.h"
#include "graph/graph_internal.h"

/* The graph that was made, or its error, after which it is gone.  made NULL: no memory. */
fac_status fac_edit_give(fac_graph *made, fac_graph **out, fac_error *err);

/* ---- select.c: what a text means ---- */

/* "conv1", "logits", "%7" (as `facula show` numbers what has no name); NULL if there is none. */
fac_value *fac_edit_value(const fac_graph *g, const char *name);
/* Nodes by their name or that of a value they make, by the scope they stand in, by op ("op:relu");
 * * stands for any text. marked[id of the node] = 1.  FAC_E_ARGUMENT when there is none, or several
 * stand in a scope given without a *. */
fac_status fac_edit_nodes(const fac_graph *g, const char *pattern, unsigned char **marked, int *n,
                          fac_error *err);
/* One type, as far as anybody knows: a nameless open size may be any other. */
bool fac_edit_same(const fac_graph *g, const fac_type *a, const fac_type *b);
/* "f32[N,4]"; NULL is never returned. */
const char *fac_edit_type(const fac_graph *g, const fac_type *type, char *to, size_t size);

/* The numbers of a constant, or of a parameter that no run changes, of at most FAC_EDIT_NUMBERS
 * elements; how many, -1: unknown. */
enum { FAC_EDIT_NUMBERS = 16 };
int fac_edit_numbers(const fac_value *v, double *to);

/* ---- join.c ---- */

/* Copies b into `to`: in[k] (NULL: a new input) are its inputs, out[k] receives its outputs. Leaves
 * whose names are taken get others.  Errors are those of `to`. */
void fac_edit_graft(fac_graph *to, const fac_graph *b, fac_value *const in[], fac_value *out[]);
/* The name of a value, which is replaced, goes to what takes its place, if that has none. */
void fac_edit_rename(fac_value *old, fac_value *with);
#endif
