/* Tables of a report: operators with their shares, other tools' numbers and where they differ, the
 * plan. */
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include "base/memory.h"
#include "report/page/page_internal.h"

/* ---- operators ---- */

static double results_of(const fac_page *r, const char *kind) {
    double sum = 0;
    for (int i = 0; i < r->t.layers; i++)
        if (!strcmp(fac_analysis_layer(r->a, i)->kind, kind))
            sum += fac_analysis_layer(r->a, i)->written;
    return sum;
}

static int most_first(const void *x, const void *y) {
    const fac_kind_row *a = x, *b = y;
    const double p = a->count[FAC_COUNT_CORE], q = b->count[FAC_COUNT_CORE];
    return p != q                   ? (p < q) - (p > q)
           : a->layers != b->layers ? b->layers - a->layers
                                    : strcmp(a->kind, b->kind);
}

static fac_kind_row *kinds_of(const fac_page *r, int *n) {
    fac_kind_row *rows = fac_alloc(FAC_KINDS, sizeof *rows);
    *n = rows ? fac_analysis_kinds(r->a, rows, FAC_KINDS) : 0;
    return rows;
}

bool fac_section_kinds(fac_text *to, const fac_page *r) {
    static const char *const names[] = { "Kind", "Layers", "Multiply-adds", "Parameters",
                                         "Results" };
    int n;
    fac_kind_row *rows = kinds_of(r, &n);
    if (!rows) return false;
    qsort(rows, (size_t)n, sizeof *rows, most_first);
    fac_page_section_start(to, "operators", "Operators",
                           "Which kinds of layers there are, and their shares of the whole.");
    fac_page_table_start(to, "bars", "Operators", 5, names, 1);
    for (int k = 0; k < n; k++) {
        const double macs = rows[k].count[FAC_COUNT_CORE], results = results_of(r, rows[k].kind);
        char text[64], share[96];
        fac_html(to, "<tr><th scope=\"row\">%s</th><td class=\"n\">%d</td>", rows[k].kind,
                 rows[k].layers);
        snprintf(share, sizeof share, "%s \xc2\xb7 %.1f %%",
                 fac_count_text(macs, text, sizeof text), 100 * fac_page_ratio(macs, r->t.macs));
        fac_page_cell_number(to, macs, macs > 0 ? share : "", fac_page_ratio(macs, r->t.macs));
        snprintf(share, sizeof share, "%s \xc2\xb7 %.1f %%",
                 fac_count_text(rows[k].params, text, sizeof text),
                 100 * fac_page_ratio(rows[k].params, r->t.params));
        fac_page_cell_number(to, rows[k].params, rows[k].params > 0 ? share : "",
                             fac_page_ratio(rows[k].params, r->t.params));
        snprintf(share, sizeof share, "%s \xc2\xb7 %.1f %%",
                 fac_bytes_text(results, text, sizeof text),
                 100 * fac_page_ratio(results, r->t.activations));
        fac_page_cell_number(to, results, results > 0 ? share : "",
                             fac_page_ratio(results, r->t.activations));
        fac_text_add(to, "</tr>\n");
    }
    fac_page_table_end(to);
    fac_page_section_end(to);
    fac_release(rows);
    return true;
}

/* ---- who counts what ---- */

static void differences(fac_text *to, const fac_kind_row *rows, int n) {
    const char *heads[FAC_CONVENTIONS + 2] = { "Kind", "Layers" };
    for (int c = 0; c < FAC_CONVENTIONS; c++) heads[c + 2] = fac_convention_name((fac_convention)c);
    fac_text_add(to, "<h3>Where the differences come from</h3>\n");
    fac_page_table_start(to, "counts", "Counts by kind", FAC_CONVENTIONS + 2, heads, 1);
    for (int k = 0; k < n; k++) {
        bool any = false;
        for (int c = 0; c < FAC_CONVENTIONS; c++) any |= rows[k].count[c] > 0;
        if (!any) continue;
        fac_html(to, "<tr><th scope=\"row\">%s</th><td class=\"n\">%d</td>", rows[k].kind,
                 rows[k].layers);
        for (int c = 0; c < FAC_CONVENTIONS; c++) {
            char text[64];
            fac_page_cell_number(
                to, rows[k].count[c],
                rows[k].count[c] > 0 ? fac_digits_text(rows[k].count[c], text, sizeof text) : "",
                -1);
        }
        fac_text_add(to, "</tr>\n");
    }
    fac_page_table_end(to);
}

bool fac_section_counts(fac_text *to, const fac_page *r) {
    static const char *const names[] = { "Convention", "What it counts", "Total", "Above core" };
    int n;
    fac_kind_row *rows = kinds_of(r, &n);
    if (!rows) return false;
    fac_page_section_start(
        to, "counts", "Counts",
        "Multiply-adds as other tools count them: each means something else by the word.");
    fac_page_table_start(to, "counts", "Counts", 4, names, 2);
    for (int c = 0; c < FAC_CONVENTIONS; c++) {
        const double total = fac_analysis_count(r->a, (fac_convention)c),
                     more = total - fac_analysis_count(r->a, FAC_COUNT_CORE);
        char text[64], sign[72];
        fac_html(to, "<tr><th scope=\"row\">%s</th><td>%s</td>",
                 fac_convention_name((fac_convention)c), fac_convention_about((fac_convention)c));
        fac_page_cell_number(to, total, fac_digits_text(total, text, sizeof text), -1);
        snprintf(sign, sizeof sign, "%s%s", more > 0 ? "+" : "",
                 fac_digits_text(more, text, sizeof text));
        fac_page_cell_number(to, more, c && (more > 0 || more < 0) ? sign : "", -1);
        fac_text_add(to, "</tr>\n");
    }
    fac_page_table_end(to);
    differences(to, rows, n);
    fac_page_section_end(to);
    fac_release(rows);
    return true;
}

/* ---- the plan ---- */

static void line(fac_text *to, const char *name, double bytes, double most, const char *about) {
    char text[32];
    fac_html(to, "<tr><th scope=\"row\">%s</th>", name);
    fac_page_cell_number(to, bytes, fac_bytes_text(bytes, text, sizeof text),
                         fac_page_ratio(bytes, most));
    fac_html(to, "<td>%s</td></tr>\n", about);
}

bool fac_section_plan(fac_text *to, const fac_page *r) {
    const fac_memory_facts *f = r->memory;
    const double most =
        f->planned && (double)f->plan.arena > r->t.peak ? (double)f->plan.arena : r->t.peak;
    static const char *const names[] = { "Memory of results", "Bytes", "What it is" };
    char text[256];
    fac_page_section_start(
        to, "plan", "Plan",
        "Memory as any engine would need it, and as facula lays it out on the cpu of the machine "
        "that made this page.");
    fac_page_table_start(to, "bars", "Memory of the plan", 3, names, 3);
    line(to, "lower bound", r->t.bound, most,
         "the inputs and outputs of one layer; no order needs less");
    line(to, "best order found", f->order_peak, most,
         f->order_exact ? "the least of all orders of the layers"
                        : "by search; "
                          "there may be a better one");
    line(to, "this order", r->t.peak, most, "an ideal allocator that writes nothing in place");
    if (f->planned) {
        line(to, "bound of the plan", (double)f->plan.bound, most,
             "after fusing and writing in place: the most that is alive "
             "at any step");
        snprintf(text, sizeof text,
                 "one block for all results; fragmentation %.1f %% above the bound",
                 f->plan.bound ? 100.0 * ((double)f->plan.arena - (double)f->plan.bound) /
                                     (double)f->plan.bound
                               : 0);
        line(to, "arena", (double)f->plan.arena, most, text);
    }
    fac_page_table_end(to);
    if (f->planned)
        fac_html(to,
                 "<p>%d steps for %d layers; values of %s share the arena; packed weights take "
                 "%s.</p>\n",
                 f->plan.steps, r->t.layers, fac_bytes_text((double)f->plan.values, text, 32),
                 fac_bytes_text((double)f->plan.packed, text + 64, 32));
    else
        fac_html(to, "<p class=\"note\">There is no plan: %s</p>\n", f->why_not);
    const bool drawn = fac_section_arena(to, r);
    fac_page_section_end(to);
    return drawn;
}
