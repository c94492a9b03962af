/* Attributes of a node by name, for passes that look at ops they do not know the struct of. */
#ifndef FACULA_PASSES_ATTR_H
#define FACULA_PASSES_ATTR_H
#include <string.h>
#include "facula/op.h"

static inline const fac_attr *fac_attr_find(const fac_op *op, const char *name) {
    for (const fac_attr *a = op->attrs; a && a->name; a++)
        if (!strcmp(a->name, name)) return a;
    return NULL;
}

static inline double fac_attr_real(const fac_node *n, const char *name, double missing) {
    const fac_attr *a = fac_attr_find(n->op, name);
    return a && a->kind == FAC_A_REAL ? *(const double *)((const char *)n->attrs + a->at) : missing;
}

static inline int64_t fac_attr_int(const fac_node *n, const char *name, int64_t missing) {
    const fac_attr *a = fac_attr_find(n->op, name);
    return a && a->kind == FAC_A_INT ? *(const int64_t *)((const char *)n->attrs + a->at) : missing;
}

static inline bool fac_attr_flag(const fac_node *n, const char *name) {
    const fac_attr *a = fac_attr_find(n->op, name);
    return a && a->kind == FAC_A_FLAG && *(const bool *)((const char *)n->attrs + a->at);
}

/* The numbers of an integer attribute; NULL when there is none. */
static inline const int64_t *fac_attr_ints(const fac_node *n, const char *name) {
    const fac_attr *a = fac_attr_find(n->op, name);
    return a && a->kind == FAC_A_INT ? (const int64_t *)(const void *)((const char *)n->attrs + a->at) : NULL;
}

static inline bool fac_node_is(const fac_node *n, const char *op) { return n && !strcmp(n->op->name, op); }
#endif
