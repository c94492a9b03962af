/* A model as parts inside of parts, each a stretch of layers in their order, for drawings of a size
 * that one can look at. */
#ifndef FACULA_REPORT_PARTS_H
#define FACULA_REPORT_PARTS_H
#include "facula/report/analyze.h"

enum { PARTS_MOST = 36 }; /* in one part: more become parts of parts */

/* A layer (children 0), a module, or a stretch of a part that has too many.  A module whose layers
 * do not stand together is several parts: so wires never lead backwards. */
typedef struct part {
    char *name;      /* the path of the module, the name of the layer, or "layers 24-47" */
    int first, last; /* layers */
    int children;
    struct part *child;
    double macs, params;
    int id; /* of its own drawing, from 1; 0: none */
} part;

bool fac_page_parts_find(const fac_analysis *a, part *root); /* false: no memory */
void fac_page_parts_free(part *p);

/* Who reads whom: of layer i the sources at[from[i]] .. at[from[i + 1]], -1 for an input; and the
 * readers in the same way. */
typedef struct flow {
    int *from, *at, *to, *reader;
} flow;
bool fac_page_flow_find(const fac_analysis *a, flow *f); /* false: no memory */
void fac_page_flow_free(flow *f);

/* By layer: the graph gives its result back.  Of fac_alloc; NULL: no memory. */
bool *fac_page_results(const fac_analysis *a);
#endif
