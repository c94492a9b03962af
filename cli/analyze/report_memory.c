/* Memory over time as a picture: layers from left to right, bytes upwards.  Each column says what
 * is alive in its title; the script shows the same from the data below at the pointer's place. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "report.h"

enum { COLUMNS = 480, TOP = 5 };
static const double left = 76, wide = 1000, high = 260, foot = 34, head = 28;

static double x_of(const report *r, double layer) {
    return left + (wide - left - 8) * layer / r->t.layers;
}
static double y_of(const report *r, double bytes) {
    return head + high * (1 - ratio(bytes, r->t.peak));
}

/* 1, 2 or 5 times a power of ten: about four lines up to the highest. */
static double raster(double most) {
    const double power = pow(10, floor(log10(most / 4))), x = most / 4 / power;
    return power * (x < 1.5 ? 1 : x < 3.5 ? 2 : x < 7.5 ? 5 : 10);
}

static void axes(FILE *to, const report *r) {
    char text[32];
    for (double b = 0, step = raster(r->t.peak); b <= r->t.peak * 1.0001; b += step) {
        svg_line(to, "grid", left, y_of(r, b), wide - 8, y_of(r, b));
        svg_text(to, "tick", left - 8, y_of(r, b) + 4, "end", bytes_text(b, text, sizeof text));
    }
    snprintf(text, sizeof text, "%d", r->t.layers - 1);
    svg_text(to, "tick", left, head + high + 22, "start", "layer 0");
    svg_text(to, "tick", wide - 8, head + high + 22, "end", text);
}

/* The highest of the layers that share a column is what the column shows. */
static int highest(const report *r, int from, int to) {
    int best = from;
    for (int i = from + 1; i < to; i++)
        if (fac_analysis_layer(r->a, i)->alive > fac_analysis_layer(r->a, best)->alive) best = i;
    return best;
}

static void outline(FILE *to, const report *r, int columns, const int *layer) {
    html(to, "<path class=\"area\" d=\"M%.1f %.1f", left, head + high);
    for (int c = 0; c < columns; c++) {
        const double y = y_of(r, fac_analysis_layer(r->a, layer[c])->alive);
        html(to, "V%.1fH%.1f", y, x_of(r, (double)(c + 1) * r->t.layers / columns));
    }
    html(to, "V%.1fZ\"/>\n", head + high);
}

static const char *alive_name(const report *r, const fac_alive *a) {
    return a->layer >= 0 ? layer_name(fac_analysis_layer(r->a, a->layer))
           : a->name     ? a->name
                         : "input";
}

static void titles(FILE *to, const report *r, int columns, const int *layer) {
    char text[32];
    fac_alive alive[TOP];
    for (int c = 0; c < columns; c++) {
        const int i = layer[c], n = fac_analysis_alive(r->a, i, alive, TOP);
        const double x = x_of(r, (double)c * r->t.layers / columns),
                     next = x_of(r, (double)(c + 1) * r->t.layers / columns);
        const fac_layer *l = fac_analysis_layer(r->a, i);
        html(to,
             "<rect class=\"hit\" data-layer=\"%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" "
             "height=\"%.1f\"><title>%d %s: %s",
             i, x, head, next - x, high, i, layer_name(l), bytes_text(l->alive, text, sizeof text));
        for (int k = 0; k < n && k < TOP; k++)
            html(to, "\n%s %s", bytes_text(alive[k].bytes, text, sizeof text),
                 alive_name(r, &alive[k]));
        if (n > TOP) html(to, "\nand %d more", n - TOP);
        fputs("</title></rect>\n", to);
    }
}

static void at_peak(FILE *to, const report *r) {
    enum { MOST = 12 };
    static const char *const heads[] = { "Result of", "Bytes", "Share" };
    fac_alive alive[MOST];
    char text[32], share[32];
    const int n = fac_analysis_alive(r->a, r->t.peak_layer, alive, MOST);
    html(to, "<h3>Alive at the peak, in %s</h3>\n",
         layer_name(fac_analysis_layer(r->a, r->t.peak_layer)));
    table_start(to, "bars", "Alive at the peak", 3, heads, 1);
    for (int k = 0; k < n && k < MOST; k++) {
        html(to, "<tr><th scope=\"row\">%s</th>", alive_name(r, &alive[k]));
        cell_number(to, alive[k].bytes, bytes_text(alive[k].bytes, text, sizeof text), -1);
        snprintf(share, sizeof share, "%.1f %%", 100 * ratio(alive[k].bytes, r->t.peak));
        cell_number(to, alive[k].bytes, share, ratio(alive[k].bytes, r->t.peak));
        fputs("</tr>\n", to);
    }
    table_end(to);
    if (n > MOST) html(to, "<p class=\"note\">and %d more</p>\n", n - MOST);
}

/* Who made what layer i reads: ",[3,4]", -1 for an input of the model.  false: no memory. */
static bool reads(FILE *to, const report *r, int i) {
    const int n = fac_analysis_reads(r->a, i, NULL, 0);
    fac_alive *from = calloc((size_t)n + 1, sizeof *from);
    if (!from) return false;
    fac_analysis_reads(r->a, i, from, n);
    fputs(",[", to);
    for (int k = 0; k < n; k++) fprintf(to, "%s%d", k ? "," : "", from[k].layer);
    fputc(']', to);
    free(from);
    return true;
}

/* For the script: [name, bytes alive, layers it reads, key in the page if that is another text] of
 * each layer, and lives: [first, last, bytes], of inputs with their name. */
static bool data(FILE *to, const report *r) {
    fac_lifetime l;
    fputs("<script type=\"application/json\" id=\"data\">{\"layers\":[", to);
    for (int i = 0; i < r->t.layers; i++) {
        fputs(i ? ",\n[" : "[", to);
        html_json(to, layer_name(fac_analysis_layer(r->a, i)));
        fprintf(to, ",%.17g", fac_analysis_layer(r->a, i)->alive);
        if (!reads(to, r, i)) return false;
        const fac_layer *layer = fac_analysis_layer(r->a, i);
        if (strcmp(layer->name, layer_name(layer))) {
            fputc(',', to);
            html_json(to, layer->name);
        }
        fputc(']', to);
    }
    fputs("],\"lives\":[", to);
    for (int k = 0; fac_analysis_life(r->a, k, &l); k++) {
        fprintf(to, "%s[%d,%d,%.17g", k ? "," : "", l.first, l.last, l.bytes);
        if (l.first < 0) {
            fputc(',', to);
            html_json(to, l.name ? l.name : "input");
        }
        fputc(']', to);
    }
    fputs("]}</script>\n", to);
    return true;
}

bool report_memory(FILE *to, const report *r) {
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
             bytes_text(r->t.peak, peak, sizeof peak), bytes_text(r->t.bound, bound, sizeof bound));
    section_start(to, "memory", "Memory", lead);
    if (columns > 0 && r->t.peak > 0) {
        const double x = x_of(r, r->t.peak_layer + 0.5), y = y_of(r, r->t.bound);
        snprintf(label, sizeof label, "Memory of results by layer: at most %s in layer %d", peak,
                 r->t.peak_layer);
        snprintf(more, sizeof more, " data-left=\"%.1f\" data-right=\"%.1f\"", left, wide - 8);
        svg_start(to, "timeline", wide, head + high + foot, label, more);
        axes(to, r);
        outline(to, r, columns, layer);
        svg_line(to, "bound", left, y, wide - 8, y);
        svg_text(to, "mark", x > wide / 2 ? left + 90 : wide - 12, y - 6, "end", "lower bound");
        snprintf(label, sizeof label, "peak %s", peak);
        svg_text(to, "mark strong", x, head - 10,
                 x > wide - 120  ? "end"
                 : x < left + 90 ? "start"
                                 : "middle",
                 label);
        html(to, "<circle class=\"peak\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", x, head);
        titles(to, r, columns, layer);
        fputs("<line class=\"cursor\" id=\"cursor\" y1=\"28\" y2=\"288\" "
              "visibility=\"hidden\"/>\n</svg></figure>\n",
              to);
        at_peak(to, r);
    }
    const bool good = data(to, r);
    section_end(to);
    return good;
}
