/* What the cost functions of the ops share.  A size that is still a symbol counts as 0: costs of
 * unspecialized graphs are lower bounds. */
#ifndef FACULA_OPS_COST_H
#define FACULA_OPS_COST_H
#include "facula/op.h"

/* Elements of an operand as a number to multiply with. */
static inline double fac_cost_count(const fac_value *v) {
    int64_t n = v ? fac_dims_count(&v->type.dims) : 0;
    return n > 0 ? (double)n : 0;
}

/* A size as a number to multiply with. */
static inline double fac_cost_size(int64_t size) { return size > 0 ? (double)size : 0; }

static inline double fac_cost_operand(const fac_value *v) {
    size_t bytes = v && v->type.dtype != FAC_NONE ? fac_type_bytes(&v->type) : 0;
    return bytes == SIZE_MAX ? 0 : (double)bytes;
}

/* Every input is read once and every output written once, but for optional outputs that no node
 * reads. */
static inline void fac_cost_bytes(const fac_node *n, fac_cost *cost) {
    cost->read = cost->written = 0;
    for (int i = 0; i < n->nin; i++) cost->read += fac_cost_operand(n->in[i]);
    const fac_port *port = n->op->out;
    for (int i = 0; i < n->nout; i++) {
        if (!(port->is & FAC_OPTIONAL) || n->out[i]->uses)
            cost->written += fac_cost_operand(n->out[i]);
        if (port[1].name) port++;
    }
}

/* For ops without multiply-adds: `each` operations for every element of input 0. */
static inline void fac_cost_each(const fac_node *n, double each, fac_cost *cost) {
    fac_cost_bytes(n, cost);
    cost->macs = 0;
    cost->other = each * fac_cost_count(n->in[0]);
}
#endif
