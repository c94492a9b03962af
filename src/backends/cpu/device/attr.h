/* Attributes of a node by name, for solvers: the structs belong to the op files. */
#ifndef FACULA_CPU_ATTR_H
#define FACULA_CPU_ATTR_H
#include <string.h>
#include "facula/op.h"

/* Where the field lies; NULL: the op has none of that name and kind. */
static inline const void *fac_attr_at(const fac_node *n, const char *name, fac_attr_kind kind) {
    for (const fac_attr *a = n->op->attrs; a && a->name; a++)
        if (a->kind == kind && !strcmp(a->name, name)) return (const char *)n->attrs + a->at;
    return NULL;
}
static inline bool fac_attr_int(const fac_node *n, const char *name, int64_t *to) {
    const int64_t *at = fac_attr_at(n, name, FAC_A_INT);
    if (at) *to = *at;
    return at;
}
static inline bool fac_attr_real(const fac_node *n, const char *name, double *to) {
    const double *at = fac_attr_at(n, name, FAC_A_REAL);
    if (at) *to = *at;
    return at;
}
static inline bool fac_attr_flag(const fac_node *n, const char *name) {
    const bool *at = fac_attr_at(n, name, FAC_A_FLAG);
    return at && *at;
}
/* The word of an enum. */
static inline const char *fac_attr_choice(const fac_node *n, const char *name) {
    for (const fac_attr *a = n->op->attrs; a && a->name; a++)
        if (a->kind == FAC_A_ENUM && !strcmp(a->name, name)) return a->choices[*(const int *)((const char *)n->attrs + a->at)];
    return NULL;
}
#endif
