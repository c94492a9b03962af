/* The rows of a table of modules: see modules.c. */
#ifndef FACULA_REPORT_MODULES_H
#define FACULA_REPORT_MODULES_H
#include "report/cost/report.h"

enum { FAC_MODULE_DEPTH = 32 };

/* One call of a module. */
typedef struct fac_module_row {
    const char *path, *name, *class; /* class NULL: nobody says it */
    int depth, index;                /* from 1; index counts the calls of this depth */
    bool leaf, again;                /* it holds no modules; it had a row before */
    fac_type out;                    /* of its last layer; dtype FAC_NONE: unknown */
    double params, left;             /* elements: of all inside; left: of what is no module */
} fac_module_row;

typedef struct fac_module_rows {
    fac_arena memory;
    fac_module_row *at;
    size_t n, room;
    double left; /* parameters of layers that are no modules */
} fac_module_rows;

fac_status fac_module_rows_find(const fac_analysis *a, fac_module_rows *to, fac_error *err);
void fac_module_rows_free(fac_module_rows *r);
#endif
