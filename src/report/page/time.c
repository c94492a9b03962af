/* What was measured: by op, and the slowest steps. */
#include <stdio.h>
#include "report/page/page_internal.h"

static void share(fac_text *to, double seconds, double total) {
    char text[32];
    snprintf(text, sizeof text, "%.1f \xc2\xb5s \xc2\xb7 %.1f %%", 1e6 * seconds,
             100 * fac_page_ratio(seconds, total));
    fac_page_cell_number(to, seconds, text, fac_page_ratio(seconds, total));
}

static void rate(fac_text *to, double work, double seconds, double part) {
    char text[48];
    snprintf(text, sizeof text, "%.1f \xc2\xb7 %.0f %%", 1e-9 * fac_page_ratio(work, seconds),
             100 * part);
    fac_page_cell_number(to, fac_page_ratio(work, seconds), work > 0 ? text : "", -1);
}

static void ops(fac_text *to, const fac_timing *p, const fac_timed_sum *all, size_t n) {
    static const char *const heads[] = { "Operator", "Steps", "Time", "GFLOP/s \xc2\xb7 of peak",
                                         "GB/s \xc2\xb7 of memory" };
    fac_page_table_start(to, "bars", "Time by operator", 5, heads, 1);
    for (size_t k = 0; k < n; k++) {
        fac_html(to, "<tr><th scope=\"row\">%s</th><td class=\"n\">%d</td>", all[k].op, all[k].n);
        share(to, all[k].seconds, p->seconds);
        rate(to, all[k].flops, all[k].seconds,
             fac_page_ratio(fac_page_ratio(all[k].flops, all[k].seconds), p->products));
        rate(to, all[k].bytes, all[k].seconds,
             fac_page_ratio(fac_page_ratio(all[k].bytes, all[k].seconds), p->peaks.memory_read));
        fac_text_add(to, "</tr>\n");
    }
    fac_page_table_end(to);
}

static void slowest(fac_text *to, const fac_timing *p, const fac_timed_step **order) {
    enum { TOP = 20 };
    static const char *const heads[] = { "Layers", "Solver", "Time", "GFLOP/s \xc2\xb7 of peak",
                                         "Of the roof" };
    fac_text_add(to, "<h3>The slowest steps</h3>\n");
    fac_page_table_start(to, "bars", "The slowest steps", 5, heads, 2);
    for (size_t k = 0; k < p->n && k < TOP; k++) {
        const fac_timed_step *r = order[k];
        char text[48];
        fac_html(to, "<tr><th scope=\"row\">%s</th><td><code>%s</code></td>", r->s.nodes,
                 r->s.solver);
        share(to, r->seconds, p->seconds);
        rate(to, r->flops, r->seconds,
             fac_page_ratio(fac_page_ratio(r->flops, r->seconds), p->products));
        snprintf(text, sizeof text, "%.0f %% (%s)", 100 * fac_page_ratio(r->limit, r->seconds),
                 r->by_memory ? "memory" : "arithmetic");
        fac_page_cell_number(to, fac_page_ratio(r->limit, r->seconds), text, -1);
        fac_text_add(to, "</tr>\n");
    }
    fac_page_table_end(to);
}

bool fac_section_time(fac_text *to, const fac_page *r) {
    const fac_timing *p = r->time;
    size_t n;
    if (!p) return true;
    fac_timed_sum *all = fac_timing_sums(p, &n);
    const fac_timed_step **order = fac_timing_order(p, true);
    const bool good = all && order;
    if (good) {
        char lead[256];
        snprintf(lead, sizeof lead, "Mean of %d runs on %s, %.3g ms in %zu steps.", p->runs,
                 p->device ? p->device : "this machine", 1e3 * p->seconds, p->n);
        fac_page_section_start(to, "measured", "Measured", lead);
        ops(to, p, all, n);
        slowest(to, p, order);
        fac_page_section_end(to);
    }
    fac_timing_drop(all);
    fac_timing_drop(order);
    return good;
}
