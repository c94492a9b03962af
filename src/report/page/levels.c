/* Layers of few bits as pictures: how their weights lie beside levels and thresholds, and which
 * levels their inputs have.  What inputs are follows from samples, which a report has none of:
 * `facula evaluate --histograms` draws those, too. */
#include <math.h>
#include "facula/quantize.h"
#include <stdio.h>
#include "report/page/page_internal.h"

enum { MOST = 48, COLUMNS = 3 };
static const double wide = 1000, gap = 24, high = 120, head = 26, foot = 34;

typedef struct place {
    double x, y, w; /* left, top and width of the drawing */
    const fac_quantizer_counts *q;
} place;

static double x_of(const place *p, double x) {
    return p->x + p->w * (x - p->q->lo) / (p->q->hi - p->q->lo);
}

static void bars(fac_text *to, const place *p) {
    double most = 0;
    for (int k = 0; k < FAC_QUANTIZER_CELLS; k++) most = fmax(most, (double)p->q->in[k]);
    if (!(most > 0)) return;
    fac_html(to, "<path class=\"area\" d=\"M%.1f %.1f", p->x, p->y + high);
    for (int k = 0; k < FAC_QUANTIZER_CELLS; k++)
        fac_html(to, "V%.1fH%.1f", p->y + high * (1 - (double)p->q->in[k] / most),
                 p->x + p->w * (k + 1) / FAC_QUANTIZER_CELLS);
    fac_html(to, "V%.1fZ\"/>\n", p->y + high);
}

static void panel(fac_text *to, const place *p) {
    char text[128];
    const fac_quantizer_counts *q = p->q;
    const double base = p->y + high;
    snprintf(text, sizeof text, "%.40s %s, %d bit%s", q->layer, q->weights ? "weights" : "inputs",
             q->bits, q->bits == 1 ? "" : "s");
    fac_page_svg_text(to, "mark", p->x, p->y - 8, "start", text);
    bars(to, p);
    fac_page_svg_line(to, "grid", p->x, base, p->x + p->w, base);
    if (!(q->hi > q->lo)) return; /* its basis is computed from samples */
    for (int k = 0; k + 1 < q->levels; k++)
        fac_page_svg_line(to, "bound", x_of(p, q->threshold[k]), p->y, x_of(p, q->threshold[k]),
                          base);
    for (int k = 0; k < q->levels; k++)
        fac_page_svg_line(to, "level", x_of(p, q->level[k]), p->y, x_of(p, q->level[k]), base);
    snprintf(text, sizeof text, "%.3g", q->lo);
    fac_page_svg_text(to, "tick", p->x, base + 16, "start", text);
    snprintf(text, sizeof text, "%.3g", q->hi);
    fac_page_svg_text(to, "tick", p->x + p->w, base + 16, "end", text);
}

static void draw(fac_text *to, const fac_quantizers *q, int all) {
    const int n = all < MOST ? all : MOST, rows = (n + COLUMNS - 1) / COLUMNS;
    const double each = head + high + foot, w = (wide - gap * (COLUMNS - 1)) / COLUMNS;
    fac_page_section_start(
        to, "levels", "Levels",
        "Numbers of few bits: bars are weights before they are quantized, upright lines "
        "levels, dashed ones thresholds. Weights with levels for each filter are parts "
        "of the largest level of their filter, and lines are means over filters.");
    fac_page_svg_start(to, "histograms", wide, each * rows, "Weights, levels and thresholds", "");
    for (int i = 0; i < n; i++) {
        const double x = i % COLUMNS * (w + gap), y = i / COLUMNS * each + head;
        panel(to, &(place){ x, y, w, fac_quantizers_get(q, i) });
    }
    fac_text_add(to, "</svg></figure>\n");
    if (n < all) fac_html(to, "<p class=\"note\">and %d more</p>\n", all - n);
    fac_page_section_end(to);
}

bool fac_section_levels(fac_text *to, const fac_page *r) {
    fac_error err = { 0 };
    fac_quantizers *q;
    int all = 0;
    const fac_status status = fac_quantizers_new(r->graph, NULL, &q, &err);
    if (status) return status != FAC_E_NOMEM;
    while (fac_quantizers_get(q, all)) all++;
    draw(to, q, all);
    fac_quantizers_free(q);
    return true;
}
