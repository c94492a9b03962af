/* What was measured: by op, and the slowest steps. */
#include <stdlib.h>
#include "report.h"

static void share(FILE *to, double seconds, double total) {
    char text[32];
    snprintf(text, sizeof text, "%.1f \xc2\xb5s \xc2\xb7 %.1f %%", 1e6 * seconds,
             100 * ratio(seconds, total));
    cell_number(to, seconds, text, ratio(seconds, total));
}

static void rate(FILE *to, double work, double seconds, double part) {
    char text[48];
    snprintf(text, sizeof text, "%.1f \xc2\xb7 %.0f %%", 1e-9 * ratio(work, seconds), 100 * part);
    cell_number(to, ratio(work, seconds), work > 0 ? text : "", -1);
}

static void ops(FILE *to, const profile *p, const profile_sum *all, size_t n) {
    static const char *const heads[] = { "Operator", "Steps", "Time", "GFLOP/s \xc2\xb7 of peak",
                                         "GB/s \xc2\xb7 of memory" };
    table_start(to, "bars", "Time by operator", 5, heads, 1);
    for (size_t k = 0; k < n; k++) {
        html(to, "<tr><th scope=\"row\">%s</th><td class=\"n\">%d</td>", all[k].op, all[k].n);
        share(to, all[k].seconds, p->seconds);
        rate(to, all[k].flops, all[k].seconds, ratio(ratio(all[k].flops, all[k].seconds), p->peak));
        rate(to, all[k].bytes, all[k].seconds,
             ratio(ratio(all[k].bytes, all[k].seconds), p->peaks.memory_read));
        fputs("</tr>\n", to);
    }
    table_end(to);
}

static void slowest(FILE *to, const profile *p, const profile_row **order) {
    enum { TOP = 20 };
    static const char *const heads[] = { "Layers", "Solver", "Time", "GFLOP/s \xc2\xb7 of peak",
                                         "Of the roof" };
    fputs("<h3>The slowest steps</h3>\n", to);
    table_start(to, "bars", "The slowest steps", 5, heads, 2);
    for (size_t k = 0; k < p->n && k < TOP; k++) {
        const profile_row *r = order[k];
        char text[48];
        html(to, "<tr><th scope=\"row\">%s</th><td><code>%s</code></td>", r->s.nodes, r->s.solver);
        share(to, r->seconds, p->seconds);
        rate(to, r->flops, r->seconds, ratio(ratio(r->flops, r->seconds), p->peak));
        snprintf(text, sizeof text, "%.0f %% (%s)", 100 * ratio(r->limit, r->seconds),
                 r->by_memory ? "memory" : "arithmetic");
        cell_number(to, ratio(r->limit, r->seconds), text, -1);
        fputs("</tr>\n", to);
    }
    table_end(to);
}

bool report_time(FILE *to, const report *r) {
    const profile *p = r->time;
    size_t n;
    if (!p) return true;
    profile_sum *all = profile_sums(p, &n);
    const profile_row **order = profile_order(p, true);
    const bool good = all && order;
    if (good) {
        char lead[256];
        snprintf(lead, sizeof lead, "Mean of %d runs on %s, %.3g ms in %zu steps.", p->runs,
                 fac_device_about(p->j.device), 1e3 * p->seconds, p->n);
        section_start(to, "measured", "Measured", lead);
        ops(to, p, all, n);
        slowest(to, p, order);
        section_end(to);
    }
    free(all);
    free(order);
    return good;
}
