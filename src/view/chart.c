/* A chart: a title and panels in a grid, written by the ending of its name. */
#include <string.h>
#include "base/error.h"
#include "view/panel.h"

enum { WIDTH = 1200, HEIGHT = 800, COLUMNS = 2, MOST_PIXELS = 16384 };
enum { MARGIN = 28, TITLE = 22, SUBTITLE = 13, HEAD = 82, GAP = 34 };

/* Okabe and Ito, "Color Universal Design" (2008), darkened a little for thin lines on white. */
const uint32_t fac_palette[FAC_PALETTE] = { 0x0B65B0, 0xD95F02, 0x00856A, 0xB5509B,
                                            0xB98900, 0x2F9BD0, 0x8C3B2A, 0x4B4B4B };

static void draw(const fac_chart *c, fac_canvas *to) {
    int columns = c->columns > 0 ? c->columns : COLUMNS;
    if (columns > c->n) columns = c->n;
    int rows = c->n ? (c->n + columns - 1) / columns : 0;
    const fac_font title = { .size = TITLE, .bold = true }, subtitle = { .size = SUBTITLE };
    fac_draw_box(to, 0, 0, to->width, to->height, (fac_ink){ 0xFFFFFF, 1, 0, false });
    fac_draw_text(to, MARGIN, MARGIN + 12, c->title ? c->title : "", title, fac_text_rgb);
    if (c->subtitle) fac_draw_text(to, MARGIN, MARGIN + 34, c->subtitle, subtitle, fac_quiet_rgb);
    double w = rows ? (to->width - 2.0 * MARGIN - GAP * (columns - 1)) / columns : 0;
    double h = rows ? (to->height - HEAD - MARGIN - (double)GAP * (rows - 1)) / rows : 0;
    for (int k = 0; k < c->n; k++) {
        fac_box box = { MARGIN + k % columns * (w + GAP), HEAD + k / columns * (h + GAP), w, h };
        if (c->panels[k].confusion)
            fac_panel_confusion(to, &c->panels[k], box);
        else
            fac_panel_curves(to, &c->panels[k], box);
    }
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

fac_status fac_chart_save(const fac_chart *c, const char *path, fac_error *err) {
    fac_canvas canvas = { .width = c->width ? c->width : WIDTH,
                          .height = c->height ? c->height : HEIGHT };
    bool svg = ends_with(path, ".svg");
    if (!svg && !ends_with(path, ".png"))
        return fac_raise(err, FAC_E_ARGUMENT, "%s: charts are saved as .svg or .png", path);
    if (canvas.width < 1 || canvas.height < 1 || canvas.width > MOST_PIXELS ||
        canvas.height > MOST_PIXELS)
        return fac_raise(err, FAC_E_ARGUMENT, "%s: a chart of %d x %d pixels", path, canvas.width,
                         canvas.height);
    draw(c, &canvas);
    fac_status status = canvas.failed
                            ? fac_raise(err, FAC_E_NOMEM, "%s: no memory for the drawing", path)
                        : svg ? fac_canvas_svg(&canvas, path, err)
                              : fac_canvas_png(&canvas, path, err);
    fac_canvas_free(&canvas);
    return status;
}

bool fac_chart_draws_png(void) {
#ifdef FAC_HAVE_CAIRO
    return true;
#else
    return false;
#endif
}
