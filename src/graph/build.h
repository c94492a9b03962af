/* Between the files of src/graph: how nodes and leaves come into a graph. */
#ifndef FACULA_GRAPH_BUILD_H
#define FACULA_GRAPH_BUILD_H
#include "graph/graph_internal.h"

/* What fac_emit_body was asked for.  like (may be NULL): a node of a graph with the same symbols
 * whose inputs have the same types and known contents, so that its output types can be taken over
 * instead of inferred. */
typedef struct fac_emission {
    const fac_op *op;
    const void *attrs;
    int n, nports;
    fac_value *const *in;
    fac_graph *body[2];
    const fac_node *like;
} fac_emission;

/* A node with all its types that is not yet part of the graph.  It has taken over the bodies; NULL
 * after an error, and then they are still the caller's. */
fac_node *fac_node_build(fac_graph *g, const fac_emission *e);
/* Appends it, enters it into the use lists, and makes it the owner of its bodies. */
void fac_node_link(fac_node *n);
/* The entries for the use lists of its inputs lie after the node. */
static inline fac_use *fac_node_uses(fac_node *n) { return (fac_use *)(n + 1); }
/* Puts n, which reads nothing that stands later, right after another node of its graph. */
void fac_node_move(fac_node *n, fac_node *after);
/* Between neighbours: room for what fac_replace moves there. */
#define FAC_ORDER_STEP ((uint64_t)1 << 32)

/* The defaults of zero attributes, and their ranges; texts move to the graph's arena.  false after
 * fac_fail. */
bool fac_attrs_fill(fac_node *n, void *attrs);

/* Same element type and rank, and no dim that is known to differ. */
bool fac_type_fits(const fac_type *a, const fac_type *b);
/* Any number of elements of this type can be counted, and every symbol is one of g. */
bool fac_dims_valid(const fac_graph *g, const fac_dims *dims);

/* A value that no node makes, under a name that must be free (NULL: none).  Takes a reference on t.
 * NULL after an error. */
fac_value *fac_leaf_new(fac_graph *g, fac_leaf leaf, const char *name, fac_type type,
                        fac_tensor *t);
/* A constant i64[n] whose contents are symbols as well as numbers. */
fac_value *fac_symbols_const(fac_graph *g, const fac_contents *c);

/* Frees g, whose memory serves the next graph that is made of `heir`. */
void fac_graph_retire(fac_graph *g, fac_graph *heir);

/* v and everything made from it is computed at `time` at the earliest. */
void fac_time_raise(fac_value *v, fac_time time);

/* note.c: what is said of a graph stays with its copies. */
void fac_notes_copy(fac_graph *to, const fac_graph *from);
void fac_modules_copy(fac_graph *to, const fac_graph *from);

/* Copies the names of from's symbols, so that they keep their numbers; `to` must have none.  false:
 * poisoned. */
bool fac_symbols_copy(fac_graph *to, const fac_graph *from);
#endif
