/* What the files of a page share: what is known of the model, and its sections in their order. */
#ifndef FACULA_REPORT_PAGE_H
#define FACULA_REPORT_PAGE_H
#include "facula/report/page.h"
#include "facula/text.h"
#include "report/page/html.h"

/* What the roofline is drawn for.  peaks NULL: its caches are not known. */
typedef struct fac_page_peaks {
    const char *about;
    double flops, bytes;
    const fac_peaks *peaks;
} fac_page_peaks;

typedef struct fac_page {
    const char *name, *about; /* as the model was asked for; a line about it, or NULL */
    const fac_graph *graph;   /* as it was given */
    const fac_analysis *a;
    fac_totals t;
    const fac_branch *tree;
    const fac_memory_facts *memory;
    fac_page_peaks machine;
    const fac_timing *time; /* NULL: nothing was measured */
    const char *stamp;      /* date, or NULL */
} fac_page;

/* frame.c: the frame, and the facts that stand first. */
void fac_page_start(fac_text *to, const fac_page *r);
void fac_page_facts(fac_text *to, const fac_page *r);
void fac_page_end(fac_text *to, const fac_page *r);
void fac_page_section_start(fac_text *to, const char *id, const char *title, const char *lead);
void fac_page_section_end(fac_text *to);
/* A cell with a number, its unit-less value for sorting and a bar after it; share < 0: no bar. */
void fac_page_cell_number(fac_text *to, double value, const char *text, double share);

/* svg_parts.c: elements of pictures.  anchor: "start", "middle" or "end". */
void fac_page_svg_start(fac_text *to, const char *id, double w, double h, const char *label,
                        const char *more);
void fac_page_svg_line(fac_text *to, const char *class, double x1, double y1, double x2, double y2);
void fac_page_svg_rect(fac_text *to, const char *class, double x, double y, double w, double h,
                       double radius);
void fac_page_svg_text(fac_text *to, const char *class, double x, double y, const char *anchor,
                       const char *text);

/* A table that scrolls in its own frame; its head, of which the columns from `numbers` on are
 * numbers. */
void fac_page_table_start(fac_text *to, const char *class, const char *label, int n,
                          const char *const *heads, int numbers);
void fac_page_table_end(fac_text *to);

/* The sections, each in its file; false: no memory. */
bool fac_section_graph(fac_text *to, const fac_page *r);  /* the drawing */
bool fac_section_tree(fac_text *to, const fac_page *r);   /* modules */
bool fac_section_kinds(fac_text *to, const fac_page *r);  /* tables.c: operators */
bool fac_section_counts(fac_text *to, const fac_page *r); /* tables.c: who counts what */
bool fac_section_plan(fac_text *to, const fac_page *r);   /* tables.c */
bool fac_section_arena(fac_text *to, const fac_page *r);  /* what lies where in the plan's memory */
bool fac_section_time(fac_text *to, const fac_page *r);   /* what was measured */
bool fac_section_memory(fac_text *to, const fac_page *r); /* memory over time */
bool fac_section_roofline(fac_text *to, const fac_page *r);
bool fac_section_levels(fac_text *to, const fac_page *r); /* of learned levels; else nothing */

/* Which of the colours a layer has: "mac", "norm", "act", "pool", "move", "other". */
const char *fac_page_layer_class(const fac_layer *l);
/* Operations and bytes of a layer, and what they cost the machine at best. */
double fac_page_layer_flops(const fac_layer *l);
double fac_page_layer_bytes(const fac_layer *l);

/* As fac_dims_text; "unknown" where the type is. */
const char *fac_page_dims(const fac_graph *g, const fac_type *t, char *to, size_t size);

/* What people call a layer: its module, where that holds nothing else. */
static inline const char *fac_page_layer_name(const fac_layer *l) {
    return l->is_module ? l->module : l->name;
}
static inline double fac_page_ratio(double a, double b) { return b > 0 ? a / b : 0; }
#endif
