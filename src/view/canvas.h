/* A drawing as a list of marks, later ones above earlier ones; two backends write it: svg.c needs
 * nothing, cairo.c the library. Units are pixels from the top left corner.  Sticky: after memory
 * ran out drawing is a no-op and failed is set. */
#ifndef FACULA_VIEW_CANVAS_H
#define FACULA_VIEW_CANVAS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"

typedef struct fac_point {
    double x, y;
} fac_point;
typedef struct fac_ink {
    uint32_t rgb;
    double alpha, width;
    bool dashed;
} fac_ink; /* width: of a line */
typedef enum fac_anchor { FAC_START, FAC_MIDDLE, FAC_END } fac_anchor;
typedef struct fac_font {
    double size;
    bool bold, upright;
    fac_anchor anchor;
} fac_font; /* upright: reads from below */

typedef enum fac_mark_kind {
    FAC_MARK_BOX,
    FAC_MARK_LINE,
    FAC_MARK_DISC,
    FAC_MARK_TEXT
} fac_mark_kind;
typedef struct fac_mark {
    fac_mark_kind kind;
    fac_ink ink;
    fac_point at; /* corner of a box, centre of a disc, base line of a text */
    double w, h;  /* of a box; w: radius of a disc */
    fac_font font;
    const char *text;        /* UTF-8, well-formed, without control characters */
    const fac_point *points; /* of a line */
    int n;
} fac_mark;

typedef struct fac_canvas {
    int width, height;
    fac_mark *marks;
    size_t n, room;
    fac_arena arena; /* texts and points */
    bool failed;
} fac_canvas;

void fac_canvas_free(fac_canvas *c);
void fac_draw_box(fac_canvas *c, double x, double y, double w, double h, fac_ink ink);
void fac_draw_line(fac_canvas *c, int n, const fac_point *points, fac_ink ink);
void fac_draw_rule(fac_canvas *c, double x0, double y0, double x1, double y1, fac_ink ink);
void fac_draw_disc(fac_canvas *c, double x, double y, double radius, fac_ink ink);
void fac_draw_text(fac_canvas *c, double x, double y, const char *s, fac_font font, uint32_t rgb);
/* About as wide as it is drawn: letters of sans-serif fonts are 0.56 of their size on average. */
double fac_text_width(const char *s, double size);

fac_status fac_canvas_svg(const fac_canvas *c, const char *path, fac_error *err);
fac_status fac_canvas_png(const fac_canvas *c, const char *path, fac_error *err);
#endif
