/* A drawing as SVG 1.1 (https://www.w3.org/TR/SVG11).  Numbers are written digit by digit, for a
 * locale may have a comma. */
#include <math.h>
#include "base/error.h"
#include "base/file/file.h"
#include "base/text.h"
#include "view/axis.h"
#include "view/canvas.h"

static void number(fac_text *t, double x) {
    char text[FAC_NUMBER_TEXT];
    fac_text_add(t, fac_fixed(x, 2, text));
}

static void attribute(fac_text *t, const char *name, double x) {
    fac_text_print(t, " %s=\"", name);
    number(t, x);
    fac_text_add(t, "\"");
}

static void escaped(fac_text *t, const char *s) {
    for (; *s; s++) {
        if (*s == '<')
            fac_text_add(t, "&lt;");
        else if (*s == '>')
            fac_text_add(t, "&gt;");
        else if (*s == '&')
            fac_text_add(t, "&amp;");
        else if (*s == '"')
            fac_text_add(t, "&quot;");
        else
            fac_text_add_bytes(t, s, 1);
    }
}

static void filled(fac_text *t, fac_ink ink) {
    fac_text_print(t, " fill=\"#%06x\"", (unsigned)ink.rgb);
    if (ink.alpha < 1) attribute(t, "fill-opacity", ink.alpha);
}

static void line(fac_text *t, const fac_mark *m) {
    fac_text_print(t, "<polyline fill=\"none\" stroke=\"#%06x\" stroke-linejoin=\"round\"",
                   (unsigned)m->ink.rgb);
    attribute(t, "stroke-width", m->ink.width);
    if (m->ink.alpha < 1) attribute(t, "stroke-opacity", m->ink.alpha);
    if (m->ink.dashed) fac_text_add(t, " stroke-dasharray=\"6 4\"");
    fac_text_add(t, " points=\"");
    for (int i = 0; i < m->n; i++) {
        if (i) fac_text_add(t, " ");
        number(t, m->points[i].x);
        fac_text_add(t, ",");
        number(t, m->points[i].y);
    }
    fac_text_add(t, "\"/>\n");
}

static void text(fac_text *t, const fac_mark *m) {
    static const char *const anchors[] = { "start", "middle", "end" };
    fac_text_add(t, "<text");
    attribute(t, "x", m->at.x);
    attribute(t, "y", m->at.y);
    attribute(t, "font-size", m->font.size);
    if (m->font.bold) fac_text_add(t, " font-weight=\"bold\"");
    if (m->font.anchor != FAC_START)
        fac_text_print(t, " text-anchor=\"%s\"", anchors[m->font.anchor]);
    if (m->font.upright) {
        fac_text_add(t, " transform=\"rotate(-90 ");
        number(t, m->at.x);
        fac_text_add(t, " ");
        number(t, m->at.y);
        fac_text_add(t, ")\"");
    }
    filled(t, m->ink);
    fac_text_add(t, ">");
    escaped(t, m->text);
    fac_text_add(t, "</text>\n");
}

static void mark(fac_text *t, const fac_mark *m) {
    switch (m->kind) {
    case FAC_MARK_LINE:
        line(t, m);
        return;
    case FAC_MARK_TEXT:
        text(t, m);
        return;
    case FAC_MARK_BOX:
        fac_text_add(t, "<rect");
        attribute(t, "x", m->at.x);
        attribute(t, "y", m->at.y);
        attribute(t, "width", m->w);
        attribute(t, "height", m->h);
        break;
    case FAC_MARK_DISC:
        fac_text_add(t, "<circle");
        attribute(t, "cx", m->at.x);
        attribute(t, "cy", m->at.y);
        attribute(t, "r", m->w);
        break;
    }
    filled(t, m->ink);
    fac_text_add(t, "/>\n");
}

fac_status fac_canvas_svg(const fac_canvas *c, const char *path, fac_error *err) {
    fac_text t = { 0 };
    fac_writer *w = NULL;
    fac_text_add(
        &t,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"");
    fac_text_print(&t, " width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\"", c->width, c->height,
                   c->width, c->height);
    fac_text_add(&t, " font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\">\n");
    for (size_t i = 0; i < c->n; i++) mark(&t, &c->marks[i]);
    fac_text_add(&t, "</svg>\n");
    fac_status status = t.failed
                            ? fac_raise(err, FAC_E_NOMEM, "%s: no memory for the drawing", path)
                            : fac_writer_open(path, &w, err);
    if (!status && (status = fac_writer_put(w, t.s, t.n, err)))
        fac_writer_cancel(w);
    else if (!status)
        status = fac_writer_close(w, err);
    fac_text_free(&t);
    return status;
}
