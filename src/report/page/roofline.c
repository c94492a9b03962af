/* The roofline (S. Williams, A. Waterman, D. Patterson, 2009): what bounds each layer on a machine,
 * arithmetic or memory. Both axes are logarithmic: operations for each byte from memory, and
 * operations a second.  Without measured times a layer stands on the roof; with them each step
 * stands where it was. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include "base/memory.h"
#include "report/page/page_internal.h"

enum { DOTS = 1500, LABELS = 6 };
static const double left = 76, wide = 1000, margin = 26, high = 380, head = 16, foot = 46;

typedef struct dot {
    const char *key, *name, *kind, *class;
    double flops, bytes, seconds;
    bool labelled;
} dot;
typedef struct chart {
    const fac_page *r;
    dot *dots;
    int n;
    double x0, x1, y0, y1, total;
} chart;

static double x_of(const chart *c, double intensity) {
    return left + (wide - left - margin) * (log10(intensity) - c->x0) / (c->x1 - c->x0);
}
static double y_of(const chart *c, double rate) {
    return head + high * (1 - (log10(rate) - c->y0) / (c->y1 - c->y0));
}
static bool by_memory(const fac_page *r, double intensity) {
    return intensity * r->machine.bytes < r->machine.flops;
}
static double roof(const fac_page *r, double intensity) {
    return fmin(r->machine.flops, intensity * r->machine.bytes);
}

/* ---- dots ---- */

static int slowest_first(const void *x, const void *y) {
    const dot *a = x, *b = y;
    return a->seconds != b->seconds ? (a->seconds < b->seconds) - (a->seconds > b->seconds)
                                    : strcmp(a->key, b->key);
}

static bool dots_find(chart *c) {
    const fac_page *r = c->r;
    const int most = r->time ? (int)r->time->n : r->t.layers;
    c->dots = fac_alloc((size_t)most + 1, sizeof *c->dots);
    for (int i = 0; c->dots && i < most; i++) {
        dot d;
        if (r->time) {
            const fac_timed_step *p = &r->time->steps[i];
            d = (dot){ p->s.nodes, p->s.nodes, p->s.op,    p->s.macs > 0 ? "mac" : "other",
                       p->flops,   p->s.bytes, p->seconds, false };
        } else {
            const fac_layer *l = fac_analysis_layer(r->a, i);
            d = (dot){ l->name,
                       fac_page_layer_name(l),
                       l->kind,
                       fac_page_layer_class(l),
                       fac_page_layer_flops(l),
                       fac_page_layer_bytes(l),
                       0,
                       false };
            d.seconds = fmax(d.flops / r->machine.flops, d.bytes / r->machine.bytes);
        }
        c->total += d.seconds;
        if (d.flops > 0 && d.bytes > 0 && d.seconds > 0) c->dots[c->n++] = d;
    }
    if (c->dots) qsort(c->dots, (size_t)c->n, sizeof *c->dots, slowest_first);
    if (c->n > DOTS) c->n = DOTS;
    return c->dots != NULL;
}

/* Whole decades around the dots and the ridge. */
static void frame(chart *c) {
    const fac_page_peaks *m = &c->r->machine;
    double x0 = m->flops / m->bytes, x1 = x0, y0 = m->flops, y1 = m->flops;
    for (int i = 0; i < c->n; i++) {
        const double x = c->dots[i].flops / c->dots[i].bytes,
                     y = c->dots[i].flops / c->dots[i].seconds;
        x0 = fmin(x0, x);
        x1 = fmax(x1, x);
        y0 = fmin(y0, y);
        y1 = fmax(y1, y);
    }
    c->x0 = floor(log10(x0 / 1.5));
    c->x1 = ceil(log10(x1 * 2));
    c->y0 = floor(log10(y0 / 1.5));
    c->y1 = ceil(log10(y1 * 1.2) * 4) / 4;
}

/* ---- the picture ---- */

static void axes(fac_text *to, const chart *c) {
    char text[32];
    for (double e = c->x0; e <= c->x1 + 1e-9; e++) {
        const double x = x_of(c, pow(10, e));
        snprintf(text, sizeof text, "%g", pow(10, e));
        fac_page_svg_line(to, "grid", x, head, x, head + high);
        fac_page_svg_text(to, "tick", x, head + high + 18, "middle", text);
    }
    for (double e = ceil(c->y0); e <= c->y1 + 1e-9; e++) {
        const double y = y_of(c, pow(10, e));
        snprintf(text, sizeof text, "%g", pow(10, e - 9));
        fac_page_svg_line(to, "grid", left, y, wide - margin, y);
        fac_page_svg_text(to, "tick", left - 8, y + 4, "end", text);
    }
    fac_page_svg_text(to, "axis", (left + wide) / 2, head + high + 38, "middle",
                      "operations a byte");
    fac_html(to,
             "<text class=\"axis\" transform=\"translate(16 %.1f) rotate(-90)\" "
             "text-anchor=\"middle\">GFLOP/s</text>\n",
             head + high / 2);
}

/* From the left edge, or from where it enters from below, up a slope and along the ceiling. */
static void roof_line(fac_text *to, const chart *c, double bytes, const char *class,
                      const char *name) {
    const double flops = c->r->machine.flops, ridge = flops / bytes,
                 from = fmax(pow(10, c->x0), pow(10, c->y0) / bytes);
    char text[64];
    if (ridge <= from) return;
    fac_html(to, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", class, x_of(c, from),
             y_of(c, from * bytes), x_of(c, ridge), y_of(c, flops));
    const double at = from * pow(ridge / from, 0.82); /* where the name stands, along the line */
    const double slope =
        atan2(y_of(c, flops) - y_of(c, from * bytes), x_of(c, ridge) - x_of(c, from)) * 180 /
        acos(-1);
    fac_html(to,
             "<text class=\"mark\" transform=\"translate(%.1f %.1f) rotate(%.1f)\" "
             "text-anchor=\"middle\" dy=\"-7\">",
             x_of(c, at), y_of(c, at * bytes), slope);
    fac_html(to, "%s %s/s</text>\n", name, fac_bytes_text(bytes, text, sizeof text));
}

static void roofs(fac_text *to, const chart *c) {
    const fac_page_peaks *m = &c->r->machine;
    const double ridge = m->flops / m->bytes;
    static const char *const caches[FAC_CACHES] = { "L1", "L2", "L3" };
    char text[64];
    for (int k = FAC_CACHES - 1; m->peaks && k >= 0; k--)
        if (m->peaks->cache_read[k] > m->bytes)
            roof_line(to, c, m->peaks->cache_read[k], "cacheroof", caches[k]);
    roof_line(to, c, m->bytes, "roof", "memory");
    fac_html(to, "<path class=\"roof\" d=\"M%.1f %.1fH%.1f\"/>\n", x_of(c, ridge),
             y_of(c, m->flops), wide - margin);
    snprintf(text, sizeof text, "arithmetic %.4g GFLOP/s", 1e-9 * m->flops);
    fac_page_svg_text(to, "mark", wide - margin - 4, y_of(c, m->flops) - 7, "end", text);
    snprintf(text, sizeof text, "ridge %.3g", ridge);
    fac_page_svg_line(to, "bound", x_of(c, ridge), y_of(c, m->flops), x_of(c, ridge), head + high);
    fac_page_svg_text(to, "mark", x_of(c, ridge) + 5, head + high - 6, "start", text);
}

static double radius(const chart *c, const dot *d) {
    return 3 + 16 * sqrt(fac_page_ratio(d->seconds, c->total));
}

static void dots(fac_text *to, chart *c) {
    double at[LABELS][2];
    int labels = 0;
    for (int i = c->n - 1; i >= 0;
         i--) { /* the largest last, but small ones stay visible: they are translucent */
        const dot *d = &c->dots[i];
        const double x = d->flops / d->bytes, y = d->flops / d->seconds;
        fac_html(to, "<circle class=\"dot %s\" data-key=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\">",
                 d->class, d->key, x_of(c, x), y_of(c, y), radius(c, d));
        fac_html(to, "<title>%s (%s)\n%.3g operations a byte, %s%.3g GFLOP/s\n", d->name, d->kind,
                 x, c->r->time ? "" : "at most ", 1e-9 * y);
        fac_html(to, "%.2f %% of the time, %s bound</title></circle>\n",
                 100 * fac_page_ratio(d->seconds, c->total),
                 by_memory(c->r, x) ? "memory" : "arithmetic");
    }
    for (int i = 0; i < c->n && labels < LABELS; i++) {
        const dot *d = &c->dots[i];
        const double x = x_of(c, d->flops / d->bytes), y = y_of(c, d->flops / d->seconds),
                     r = radius(c, d);
        bool free_place = true;
        for (int k = 0; k < labels; k++)
            free_place &= fabs(at[k][0] - x) > 150 || fabs(at[k][1] - y) > 26;
        if (!free_place) continue;
        at[labels][0] = x;
        at[labels++][1] = y;
        if (x > wide - 180)
            fac_page_svg_text(to, "name", x + r, y + r + 14, "end", d->name);
        else
            fac_page_svg_text(to, "name", x, y + r + 14, "middle", d->name);
    }
}

/* ---- what it says in words ---- */

static void words(fac_text *to, const chart *c) {
    double memory = 0, arithmetic = 0, limit = 0;
    for (int i = 0; i < c->n; i++) {
        const double x = c->dots[i].flops / c->dots[i].bytes;
        *(by_memory(c->r, x) ? &memory : &arithmetic) += c->dots[i].seconds;
        limit += c->dots[i].flops / roof(c->r, x);
    }
    if (c->r->time)
        fac_html(to,
                 "<p>Of the time of a run, %.1f %% goes to steps that memory bounds and %.1f %% to "
                 "those that arithmetic "
                 "bounds; at best they would take %.3g ms.</p>\n",
                 100 * fac_page_ratio(memory, c->total), 100 * fac_page_ratio(arithmetic, c->total),
                 1e3 * limit);
    else
        fac_html(
            to,
            "<p>One layer after the other, nothing fused and everything read from memory, this "
            "machine needs at least "
            "%.3g ms: memory bounds %.1f %% of it, arithmetic %.1f %%.</p>\n",
            1e3 * c->total, 100 * (1 - fac_page_ratio(arithmetic, c->total)),
            100 * fac_page_ratio(arithmetic, c->total));
}

bool fac_section_roofline(fac_text *to, const fac_page *r) {
    chart c = { .r = r };
    char lead[512];
    if (!dots_find(&c)) return false;
    snprintf(lead, sizeof lead,
             "What bounds each %s on %s.  The larger a dot, the more of the time it takes.",
             r->time ? "step" : "layer", r->machine.about);
    fac_page_section_start(to, "roofline", "Roofline", lead);
    if (c.n) {
        frame(&c);
        fac_page_svg_start(to, "roof", wide, head + high + foot,
                           "Roofline: operations a byte against operations a second", "");
        axes(to, &c);
        roofs(to, &c);
        dots(to, &c);
        fac_text_add(to, "</svg></figure>\n");
        words(to, &c);
    } else {
        fac_text_add(to,
                     "<p class=\"note\">No layer does any arithmetic whose size is known.</p>\n");
    }
    fac_page_section_end(to);
    fac_release(c.dots);
    return true;
}
