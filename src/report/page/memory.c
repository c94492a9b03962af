/* Memory over time as a picture: layers from left to right, bytes upwards.  Each column says what
 * is alive in its title; the script shows the same from the data below at the pointer's place. */
#include <math.h>
#include <string.h>
#include <stdio.h>
#include "base/memory.h"
#include "report/page/page_internal.h"

enum { COLUMNS = 480, TOP = 5 };
static const double left = 76, wide = 1000, high = 260, foot = 34, head = 28;

static double x_of(const fac_page *r, double layer) {
    return left + (wide - left - 8) * layer / r->t.layers;
}
static double y_of(const fac_page *r, double bytes) {
    return head + high * (1 - fac_page_ratio(bytes, r->t.peak));
}

/* 1, 2 or 5 times a power of ten: about four lines up to the highest. */
static double raster(double most) {
    const double power = pow(10, floor(log10(most / 4))), x = most / 4 / power;
    if (x < 1.5) return power;
    if (x < 3.5) return 2 * power;
    return power * (x < 7.5 ? 5 : 10);
}

static void axes(fac_text *to, const fac_page *r) {
    char text[32];
    for (double b = 0, step = raster(r->t.peak); b <= r->t.peak * 1.0001; b += step) {
        fac_page_svg_line(to, "grid", left, y_of(r, b), wide - 8, y_of(r, b));
        fac_page_svg_text(to, "tick", left - 8, y_of(r, b) + 4, "end",
                          fac_bytes_text(b, text, sizeof text));
    }
    snprintf(text, sizeof text, "%d", r->t.layers - 1);
    fac_page_svg_text(to, "tick", left, head + high + 22, "start", "layer 0");
    fac_page_svg_text(to, "tick", wide - 8, head + high + 22, "end", text);
}

/* The highest of the layers that share a column is what the column shows. */
static int highest(const fac_page *r, int from, int to) {
    int best = from;
    for (int i = from + 1; i < to; i++)
        if (fac_analysis_layer(r->a, i)->alive > fac_analysis_layer(r->a, best)->alive) best = i;
    return best;
}

static void outline(fac_text *to, const fac_page *r, int columns, const int *layer) {
    fac_html(to, "<path class=\"area\" d=\"M%.1f %.1f", left, head + high);
    for (int c = 0; c < columns; c++) {
        const double y = y_of(r, fac_analysis_layer(r->a, layer[c])->alive);
        fac_html(to, "V%.1fH%.1f", y, x_of(r, (double)(c + 1) * r->t.layers / columns));
    }
    fac_html(to, "V%.1fZ\"/>\n", head + high);
}

static const char *alive_name(const fac_page *r, const fac_alive *a) {
    return a->layer >= 0 ? fac_page_layer_name(fac_analysis_layer(r->a, a->layer))
           : a->name     ? a->name
                         : "input";
}

static void titles(fac_text *to, const fac_page *r, int columns, const int *layer) {
    char text[32];
    fac_alive alive[TOP];
    for (int c = 0; c < columns; c++) {
        const int i = layer[c], n = fac_analysis_alive(r->a, i, alive, TOP);
        const double x = x_of(r, (double)c * r->t.layers / columns),
                     next = x_of(r, (double)(c + 1) * r->t.layers / columns);
        const fac_layer *l = fac_analysis_layer(r->a, i);
        fac_html(to,
                 "<rect class=\"hit\" data-layer=\"%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" "
                 "height=\"%.1f\"><title>%d %s: %s",
                 i, x, head, next - x, high, i, fac_page_layer_name(l),
                 fac_bytes_text(l->alive, text, sizeof text));
        for (int k = 0; k < n && k < TOP; k++)
            fac_html(to, "\n%s %s", fac_bytes_text(alive[k].bytes, text, sizeof text),
                     alive_name(r, &alive[k]));
        if (n > TOP) fac_html(to, "\nand %d more", n - TOP);
        fac_text_add(to, "</title></rect>\n");
    }
}

static void at_peak(fac_text *to, const fac_page *r) {
    enum { MOST = 12 };
    static const char *const heads[] = { "Result of", "Bytes", "Share" };
    fac_alive alive[MOST];
    char text[32], share[32];
    const int n = fac_analysis_alive(r->a, r->t.peak_layer, alive, MOST);
    fac_html(to, "<h3>Alive at the peak, in %s</h3>\n",
             fac_page_layer_name(fac_analysis_layer(r->a, r->t.peak_layer)));
    fac_page_table_start(to, "bars", "Alive at the peak", 3, heads, 1);
    for (int k = 0; k < n && k < MOST; k++) {
        fac_html(to, "<tr><th scope=\"row\">%s</th>", alive_name(r, &alive[k]));
        fac_page_cell_number(to, alive[k].bytes, fac_bytes_text(alive[k].bytes, text, sizeof text),
                             -1);
        snprintf(share, sizeof share, "%.1f %%", 100 * fac_page_ratio(alive[k].bytes, r->t.peak));
        fac_page_cell_number(to, alive[k].bytes, share, fac_page_ratio(alive[k].bytes, r->t.peak));
        fac_text_add(to, "</tr>\n");
    }
    fac_page_table_end(to);
    if (n > MOST) fac_html(to, "<p class=\"note\">and %d more</p>\n", n - MOST);
}

/* Who made what layer i reads: ",[3,4]", -1 for an input of the model.  false: no memory. */
static bool reads(fac_text *to, const fac_page *r, int i) {
    const int n = fac_analysis_reads(r->a, i, NULL, 0);
    fac_alive *from = fac_alloc((size_t)n + 1, sizeof *from);
    if (!from) return false;
    fac_analysis_reads(r->a, i, from, n);
    fac_text_add(to, ",[");
    for (int k = 0; k < n; k++) fac_text_print(to, "%s%d", k ? "," : "", from[k].layer);
    fac_text_add(to, "]");
    fac_release(from);
    return true;
}

/* For the script: [name, bytes alive, layers it reads, key in the page if that is another text] of
 * each layer, and lives: [first, last, bytes], of inputs with their name. */
static bool data(fac_text *to, const fac_page *r) {
    fac_lifetime l;
    fac_text_add(to, "<script type=\"application/json\" id=\"data\">{\"layers\":[");
    for (int i = 0; i < r->t.layers; i++) {
        fac_text_add(to, i ? ",\n[" : "[");
        fac_html_json(to, fac_page_layer_name(fac_analysis_layer(r->a, i)));
        fac_text_print(to, ",%.17g", fac_analysis_layer(r->a, i)->alive);
        if (!reads(to, r, i)) return false;
        const fac_layer *layer = fac_analysis_layer(r->a, i);
        if (strcmp(layer->name, fac_page_layer_name(layer))) {
            fac_text_add(to, ",");
            fac_html_json(to, layer->name);
        }
        fac_text_add(to, "]");
    }
    fac_text_add(to, "],\"lives\":[");
    for (int k = 0; fac_analysis_life(r->a, k, &l); k++) {
        fac_text_print(to, "%s[%d,%d,%.17g", k ? "," : "", l.first, l.last, l.bytes);
        if (l.first < 0) {
            fac_text_add(to, ",");
            fac_html_json(to, l.name ? l.name : "input");
        }
        fac_text_add(to, "]");
    }
    fac_text_add(to, "]}</script>\n");
    return true;
}

bool fac_section_memory(fac_text *to, const fac_page *r) {
    char peak[32], bound[32], label[128], more[64], lead[512];
    const int columns = r->t.layers < COLUMNS ? r->t.layers : COLUMNS;
    int layer[COLUMNS];
    for (int c = 0; c < columns; c++)
        layer[c] = highest(r, (int)((double)c * r->t.layers / columns),
                           (int)((double)(c + 1) * r->t.layers / columns));
    snprintf(lead, sizeof lead,
             "Results that are alive while each layer runs: at most %s, and never less than %s in "
             "any order. "
             " Point at a layer to "
             "see what is alive.",
             fac_bytes_text(r->t.peak, peak, sizeof peak),
             fac_bytes_text(r->t.bound, bound, sizeof bound));
    fac_page_section_start(to, "memory", "Memory", lead);
    if (columns > 0 && r->t.peak > 0) {
        const double x = x_of(r, r->t.peak_layer + 0.5), y = y_of(r, r->t.bound);
        snprintf(label, sizeof label, "Memory of results by layer: at most %s in layer %d", peak,
                 r->t.peak_layer);
        snprintf(more, sizeof more, " data-left=\"%.1f\" data-right=\"%.1f\"", left, wide - 8);
        fac_page_svg_start(to, "timeline", wide, head + high + foot, label, more);
        axes(to, r);
        outline(to, r, columns, layer);
        fac_page_svg_line(to, "bound", left, y, wide - 8, y);
        fac_page_svg_text(to, "mark", x > wide / 2 ? left + 90 : wide - 12, y - 6, "end",
                          "lower bound");
        snprintf(label, sizeof label, "peak %s", peak);
        fac_page_svg_text(to, "mark strong", x, head - 10,
                          x > wide - 120  ? "end"
                          : x < left + 90 ? "start"
                                          : "middle",
                          label);
        fac_html(to, "<circle class=\"peak\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", x, head);
        titles(to, r, columns, layer);
        fac_text_add(to, "<line class=\"cursor\" id=\"cursor\" y1=\"28\" y2=\"288\" "
                         "visibility=\"hidden\"/>\n</svg></figure>\n");
        at_peak(to, r);
    }
    const bool good = data(to, r);
    fac_page_section_end(to);
    return good;
}
