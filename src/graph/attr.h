/* Attributes of a node by name, for what looks at ops whose struct it does not know. */
#ifndef FACULA_GRAPH_ATTR_H
#define FACULA_GRAPH_ATTR_H
#include <string.h>
#include "facula/op.h"

static inline const fac_attr *fac_attr_find(const fac_op *op, const char *name) {
    for (const fac_attr *a = op->attrs; a && a->name; a++)
        if (!strcmp(a->name, name)) return a;
    return NULL;
}

/* Where the field is; NULL: the op has none of that name and kind. */
static inline const void *fac_attr_of(const fac_op *op, const void *attrs, const char *name,
                                      fac_attr_kind kind) {
    const fac_attr *a = fac_attr_find(op, name);
    return a && a->kind == kind ? (const char *)attrs + a->at : NULL;
}

static inline const void *fac_attr_at(const fac_node *n, const char *name, fac_attr_kind kind) {
    return fac_attr_of(n->op, n->attrs, name, kind);
}

static inline double fac_attr_real(const fac_node *n, const char *name, double missing) {
    const double *at = fac_attr_at(n, name, FAC_A_REAL);
    return at ? *at : missing;
}

static inline int64_t fac_attr_int(const fac_node *n, const char *name, int64_t missing) {
    const int64_t *at = fac_attr_at(n, name, FAC_A_INT);
    return at ? *at : missing;
}

static inline bool fac_attr_flag(const fac_node *n, const char *name) {
    const bool *at = fac_attr_at(n, name, FAC_A_FLAG);
    return at && *at;
}

/* The numbers of an integer attribute; NULL when there is none. */
static inline const int64_t *fac_attr_ints(const fac_node *n, const char *name) {
    return fac_attr_at(n, name, FAC_A_INT);
}

/* The word of an enum; NULL when there is none. */
static inline const char *fac_attr_choice(const fac_node *n, const char *name) {
    const fac_attr *a = fac_attr_find(n->op, name);
    return a && a->kind == FAC_A_ENUM ? a->choices[*(const int *)((const char *)n->attrs + a->at)]
                                      : NULL;
}

/* A text; "" when there is none. */
static inline const char *fac_attr_text(const fac_node *n, const char *name) {
    const char *const *at = fac_attr_at(n, name, FAC_A_TEXT);
    return at && *at ? *at : "";
}

/* Into *to when the op has it; else false, and *to stays as it was. */
static inline bool fac_attr_get_int(const fac_node *n, const char *name, int64_t *to) {
    const int64_t *at = fac_attr_at(n, name, FAC_A_INT);
    if (at) *to = *at;
    return at;
}

static inline bool fac_attr_get_real(const fac_node *n, const char *name, double *to) {
    const double *at = fac_attr_at(n, name, FAC_A_REAL);
    if (at) *to = *at;
    return at;
}
#endif
