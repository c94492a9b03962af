/* A layered drawing of a small graph without cycles, from top to bottom and, where it is long, in
 * several columns.
 *
 * K. Sugiyama, S. Tagawa, M. Toda: Methods for Visual Understanding of Hierarchical System
 * Structures, 1981: ranks by longest paths, as few crossings as barycenters find, then places. */
#ifndef FACULA_REPORT_DRAWING_H
#define FACULA_REPORT_DRAWING_H
#include <stdbool.h>

/* Given: the sizes of boxes, and wires from a box to a later one.  Found: where boxes are, and the
 * bends of each wire. */
typedef struct drawing_box {
    double w, h, x, y;
    int rank, column;
} drawing_box; /* x: its middle; y: its top */
typedef struct drawing_wire {
    int from, to;
    int first, count;
} drawing_wire; /* points of drawing.at, first to last */
typedef struct drawing_point {
    double x, y;
    int column;
} drawing_point;

typedef struct drawing {
    int nboxes, nwires;
    drawing_box *boxes;
    drawing_wire *wires;
    drawing_point *at; /* from the bottom of a box over bends, two for each rank that is passed,
to the top of the other */
    double *right;     /* by column: the channel on its right side, for wires to the next column */
    int columns;
    double width, height;
} drawing;

/* wide: how wide the drawing may become where columns are set beside each other.  false: no memory.
 */
bool fac_drawing_find(drawing *d, double wide);
void fac_drawing_free(drawing *d); /* boxes and wires too */
#endif
