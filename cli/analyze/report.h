/* What the files of `facula report` share: what is known of the model, and its sections of the page
 * in their order. */
#ifndef FACULA_CLI_REPORT_H
#define FACULA_CLI_REPORT_H
#include "files.h"
#include "html.h"
#include "inspect.h"
#include "measure/profile.h"
#include "summary.h"

/* What the roofline is drawn for.  peaks NULL: its caches are not known. */
typedef struct machine {
    const char *about;
    double flops, bytes;
    const fac_peaks *peaks;
} machine;

typedef struct report {
    const char *name; /* as the model was asked for */
    const model *m;
    const fac_analysis *a;
    fac_totals t;
    const branch *tree;
    memory_facts memory;
    machine machine;
    const profile *time; /* NULL: nothing was measured */
    const char *stamp;   /* date, or NULL */
    int left_out;        /* what was too much for a page: counted by the sections */
} report;

/* report_page.c: the frame, and the facts that stand first. */
void page_start(FILE *to, const report *r);
void page_facts(FILE *to, const report *r);
void page_end(FILE *to, const report *r);
void section_start(FILE *to, const char *id, const char *title, const char *lead);
void section_end(FILE *to);
/* A cell with a number, its unit-less value for sorting and a bar after it; share < 0: no bar. */
void cell_number(FILE *to, double value, const char *text, double share);

/* report_svg.c: elements of pictures.  anchor: "start", "middle" or "end". */
void svg_start(FILE *to, const char *id, double w, double h, const char *label, const char *more);
void svg_line(FILE *to, const char *class, double x1, double y1, double x2, double y2);
void svg_rect(FILE *to, const char *class, double x, double y, double w, double h, double radius);
void svg_text(FILE *to, const char *class, double x, double y, const char *anchor,
              const char *text);

/* A table that scrolls in its own frame; its head, of which the columns from `numbers` on are
 * numbers. */
void table_start(FILE *to, const char *class, const char *label, int n, const char *const *heads,
                 int numbers);
void table_end(FILE *to);

/* The sections; false: no memory. */
bool report_graph(FILE *to, report *r);      /* report_graph.c: the drawing */
bool report_tree(FILE *to, const report *r); /* report_tree.c: modules */
bool report_kinds(FILE *to,
                  const report *r); /* report_tables.c: operators, who counts what, the plan */
bool report_counts(FILE *to, const report *r);
bool report_plan(FILE *to, const report *r);
bool report_arena(FILE *to,
                  const report *r); /* report_arena.c: what lies where in the plan's memory */
bool report_time(FILE *to, const report *r);   /* report_time.c: what was measured */
bool report_memory(FILE *to, const report *r); /* report_memory.c: memory over time */
bool report_roofline(FILE *to, const report *r);
bool report_levels(FILE *to,
                   const report *r); /* report_levels.c: of learned levels; else nothing */

/* Which of the colours a layer has: "mac", "norm", "act", "pool", "move", "other". */
const char *layer_class(const fac_layer *l);
/* Operations and bytes of a layer, and what they cost the machine at best. */
double layer_flops(const fac_layer *l);
double layer_bytes(const fac_layer *l);
#endif
