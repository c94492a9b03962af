/* A page about a model: its sections, one after the other.  See facula/report/page.h. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/point.h"
#include "report/page/page_internal.h"

/* "350G" */
static bool quantity(const char *text, const char **end, double *out) {
    char *after;
    *out = strtod(text, &after);
    const char *units = "kMGT", *u = *after ? strchr(units, *after) : NULL;
    for (const char *k = units; u && k <= u; k++) *out *= 1000;
    *end = after + (u != NULL);
    return after > text && *out > 0 && *out < 1e30;
}

bool fac_page_machine(const char *text, double *flops, double *bytes) {
    fac_point point;
    const char *end;
    if (!fac_point_begin(&point)) return false;
    const bool good =
        quantity(text, &end, flops) && *end == ',' && quantity(end + 1, &end, bytes) && !*end;
    fac_point_end(&point);
    return good;
}

static bool sections(fac_text *to, const fac_page *r) {
    fac_page_start(to, r);
    fac_page_facts(to, r);
    const bool good =
        fac_section_graph(to, r) && fac_section_tree(to, r) && fac_section_kinds(to, r) &&
        fac_section_time(to, r) && fac_section_memory(to, r) && fac_section_roofline(to, r) &&
        fac_section_levels(to, r) && fac_section_counts(to, r) && fac_section_plan(to, r);
    fac_page_end(to, r);
    return good && !to->failed;
}

/* Numbers of pictures have a point, whatever the caller's locale. */
static bool written(fac_text *to, const fac_page *r) {
    fac_point point;
    if (!fac_point_begin(&point)) return false;
    const bool good = sections(to, r);
    fac_point_end(&point);
    return good;
}

static fac_page_peaks machine_of(const fac_page_opts *o) {
    if (o->flops > 0 && o->bytes > 0)
        return (fac_page_peaks){ o->machine ? o->machine : "a machine", o->flops, o->bytes,
                                 o->peaks };
    return (fac_page_peaks){ "a machine of 1,000 GFLOP/s and 100 GB/s (the option --target names "
                             "another, --peaks measures one)",
                             1e12, 1e11, NULL };
}

fac_status fac_page_write(const fac_graph *g, const fac_analysis *a, const fac_page_opts *o,
                          fac_page_put *put, void *self, fac_error *err) {
    fac_tree *tree;
    fac_text text = { 0 };
    if (!o || !o->memory)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "a page needs fac_page_opts.memory: fac_memory_facts_of fills it in");
    fac_status status = fac_analysis_tree(a, FAC_COUNT_CORE, &tree, err);
    if (status) return status;
    const fac_page r = { .name = o->name ? o->name : "model",
                         .about = o->about,
                         .graph = g,
                         .a = a,
                         .t = fac_analysis_totals(a),
                         .tree = fac_tree_root(tree),
                         .memory = o->memory,
                         .machine = machine_of(o),
                         .time = o->time,
                         .stamp = o->date };
    if (written(&text, &r))
        status = put(self, text.s, text.n, err);
    else
        status = fac_raise_memory(err, "a page");
    fac_text_free(&text);
    fac_tree_free(tree);
    return status;
}
