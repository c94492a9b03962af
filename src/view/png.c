/* A drawing as PNG, through cairo (https://www.cairographics.org/manual). */
#include "base/error.h"
#include "view/canvas.h"

#ifndef FAC_HAVE_CAIRO

fac_status fac_canvas_png(const fac_canvas *c, const char *path, fac_error *err) {
    (void)c;
    return fac_raise(
        err, FAC_E_UNSUPPORTED,
        "%s: this build draws no PNG: install libcairo2-dev and build again, or ask for .svg",
        path);
}

#else

#include <cairo.h>
#include <math.h>
#include "base/file/file.h"

static void ink(cairo_t *to, fac_ink i) {
    cairo_set_source_rgba(to, (i.rgb >> 16 & 255) / 255.0, (i.rgb >> 8 & 255) / 255.0,
                          (i.rgb & 255) / 255.0, i.alpha);
}

static void line(cairo_t *to, const fac_mark *m) {
    static const double dashes[] = { 6, 4 };
    cairo_set_line_width(to, m->ink.width);
    cairo_set_line_join(to, CAIRO_LINE_JOIN_ROUND);
    cairo_set_dash(to, dashes, m->ink.dashed ? 2 : 0, 0);
    cairo_move_to(to, m->points[0].x, m->points[0].y);
    for (int i = 1; i < m->n; i++) cairo_line_to(to, m->points[i].x, m->points[i].y);
    cairo_stroke(to);
}

static void text(cairo_t *to, const fac_mark *m) {
    static const double share[] = { 0, 0.5, 1 };
    cairo_text_extents_t size;
    cairo_select_font_face(to, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                           m->font.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(to, m->font.size);
    cairo_text_extents(to, m->text, &size);
    cairo_save(to);
    cairo_translate(to, m->at.x, m->at.y);
    if (m->font.upright) cairo_rotate(to, -acos(0));
    cairo_move_to(to, -size.x_advance * share[m->font.anchor], 0);
    cairo_show_text(to, m->text);
    cairo_restore(to);
}

static void mark(cairo_t *to, const fac_mark *m) {
    ink(to, m->ink);
    switch (m->kind) {
    case FAC_MARK_LINE:
        line(to, m);
        break;
    case FAC_MARK_TEXT:
        text(to, m);
        break;
    case FAC_MARK_BOX:
        cairo_rectangle(to, m->at.x, m->at.y, m->w, m->h);
        cairo_fill(to);
        break;
    case FAC_MARK_DISC:
        cairo_arc(to, m->at.x, m->at.y, m->w, 0, 4 * acos(0));
        cairo_fill(to);
        break;
    }
    cairo_new_path(to);
}

typedef struct sink {
    fac_writer *w;
    fac_error *err;
    fac_status status;
} sink;

static cairo_status_t put(void *self, const unsigned char *data, unsigned n) {
    sink *s = self;
    s->status = fac_writer_put(s->w, data, n, s->err);
    return s->status ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

static fac_status save(cairo_surface_t *surface, const char *path, fac_error *err) {
    sink s = { .err = err };
    FAC_TRY(fac_writer_open(path, &s.w, err));
    cairo_status_t wrong = cairo_surface_write_to_png_stream(surface, put, &s);
    if (!wrong) return fac_writer_close(s.w, err);
    fac_writer_cancel(s.w);
    return s.status
               ? s.status
               : fac_raise(err, FAC_E_NOMEM, "%s: cairo: %s", path, cairo_status_to_string(wrong));
}

fac_status fac_canvas_png(const fac_canvas *c, const char *path, fac_error *err) {
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, c->width, c->height);
    cairo_t *to = cairo_create(surface);
    for (size_t i = 0; i < c->n; i++) mark(to, &c->marks[i]);
    cairo_status_t wrong = cairo_status(to);
    cairo_destroy(to);
    fac_status status = wrong == CAIRO_STATUS_NO_MEMORY ? FAC_E_NOMEM : FAC_E_INTERNAL;
    if (wrong)
        status = fac_raise(err, status, "%s: cairo: %s", path, cairo_status_to_string(wrong));
    else
        status = save(surface, path, err);
    cairo_surface_destroy(surface);
    return status;
}

#endif
