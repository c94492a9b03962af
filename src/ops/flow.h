/* What the ops with bodies of their own share: call, if, loop and scan.  Input i of a body is made
 * from input i of the node: the same value, an iteration's number, a carried value or a slice.
 * Bodies are closed: they have no parameters, and what they read from outside is an input. */
#ifndef FACULA_OPS_FLOW_H
#define FACULA_OPS_FLOW_H
#include "facula/op.h"
#include "graph/graph_internal.h"

/* What an input of a body gets.  A size may be FAC_FLOW_OPEN: another one in each iteration. */
typedef struct fac_flow_feed {
    fac_type type;
    const fac_contents *known;
    fac_guess guess;
} fac_flow_feed;
#define FAC_FLOW_OPEN INT64_MIN

/* One body of a node while its types are inferred. */
typedef struct fac_flow {
    fac_node *n;
    int k;
    const fac_graph *body; /* with the types of the feeds */
    fac_graph *own;        /* that body when it is not the one that was given */
    int64_t *bound;        /* by symbol of the body: its size outside         */
    size_t nbound;
} fac_flow;

/* Gives body k the types of `count` feeds.  false after fac_fail; fac_flow_close in any case, kept:
 * the node has that body. */
bool fac_flow_open(fac_flow *f, fac_node *n, int k, int count, const fac_flow_feed *feed);
void fac_flow_close(fac_flow *f, bool keep);
/* The type of output j of the body as the node's graph says it. */
fac_type fac_flow_type(fac_flow *f, size_t j);
/* The feed that is an input of the node as it stands. */
static inline fac_flow_feed fac_flow_same(const fac_value *v) {
    return (fac_flow_feed){ v->type, v->known, v->guess };
}

/* Puts the nodes of a body into the graph of n, with in[] for its inputs; out[] receives its
 * outputs.  What is made stands in the scope of the node; part (may be NULL) is one more scope
 * inside.  Does nothing once the graph has an error. */
void fac_flow_inline(const fac_node *n, const fac_graph *body, const char *part,
                     fac_value *const in[], fac_value *out[]);
/* How many nodes that makes when the bodies inside are expanded too, where they can; about
 * FAC_FLOW_MOST if it is more. */
int64_t fac_flow_nodes(const fac_graph *body);
/* Adds `times` the cost of a body. */
void fac_flow_cost(const fac_graph *body, double times, fac_cost *cost);
/* A value that is true, or false, in any run: through identities. */
bool fac_flow_always(const fac_value *v, bool *is);
/* Out-parameters of a builder: every output of the node that made y, or poison. */
void fac_flow_outputs(fac_value *y, int n, fac_value *out[]);

enum { FAC_FLOW_MOST = 1 << 20 }; /* nodes that an expansion may make */
#endif
