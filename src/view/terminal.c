/* A panel of lines for a terminal: eight dots in a cell (Unicode's braille patterns), or one letter
 * for each line.
 *
 *   loss   ── train   ── test
 *    2.0 ┤⢣
 *    1.0 ┤ ⠑⠤⣀⡀
 *      0 ┤     ⠉⠑⠒⠒⠒
 *        └┬─────┬─────┬
 *         0     5    10   epoch */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "facula/text.h"
#include "tensor/utf.h"
#include "view/panel.h"

enum { DOTS_X = 2, DOTS_Y = 4, BRAILLE = 0x2800, LEAST = 20, MOST = 1000, NONE = 255 };

typedef struct sheet {
    const fac_panel *p;
    const fac_terminal *how;
    fac_chart_axis x, y;
    int left, columns, lines; /* letters before the curves; cells of the curves */
    uint8_t *dots, *series;   /* of each cell: which dots, and of which line the last one */
    fac_text out;
} sheet;

/* The bit of a dot in its cell: columns of dots 1 2 3 7 and 4 5 6 8 (ISO/TR 11548-1). */
static uint8_t bit_of(int x, int y) {
    static const uint8_t bits[DOTS_Y][DOTS_X] = {
        { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 }
    };
    return bits[y][x];
}

static void dot(sheet *s, int series, double x, double y) {
    int dx = s->how->unicode ? DOTS_X : 1;
    int dy = s->how->unicode ? DOTS_Y : 1;
    int cx = (int)lround(x * (s->columns * dx - 1)),
        cy = (int)lround((1 - y) * (s->lines * dy - 1));
    size_t cell = (size_t)(cy / dy) * (size_t)s->columns + (size_t)(cx / dx);
    s->dots[cell] |= s->how->unicode ? bit_of(cx % DOTS_X, cy % DOTS_Y) : 1;
    s->series[cell] = (uint8_t)series;
}

/* Dots along the line from one point to the next, close enough that none is left out. */
static void draw(sheet *s, int k) {
    const fac_series *line = &s->p->series[k];
    bool before = false;
    double x0 = 0, y0 = 0;
    for (int i = 0; i < line->n; i++) {
        if (!isfinite(line->x[i]) || !isfinite(line->y[i]) ||
            (s->p->scale == FAC_SCALE_LOG && line->y[i] <= 0))
            continue;
        double x = fac_axis_place(&s->x, line->x[i]), y = fac_axis_place(&s->y, line->y[i]);
        double way = fmax(fabs(x - x0) * s->columns * DOTS_X, fabs(y - y0) * s->lines * DOTS_Y);
        int steps = before ? (int)ceil(way) : 0;
        for (int j = 1; j < steps; j++)
            dot(s, k, x0 + (x - x0) * j / steps, y0 + (y - y0) * j / steps);
        dot(s, k, x, y);
        x0 = x;
        y0 = y;
        before = true;
    }
}

/* ---- writing ---- */

static const char *colour_of(const sheet *s, int series) {
    static const char *const codes[FAC_PALETTE] = { "\033[38;5;39m",  "\033[38;5;208m",
                                                    "\033[38;5;36m",  "\033[38;5;170m",
                                                    "\033[38;5;178m", "\033[38;5;117m",
                                                    "\033[38;5;130m", "\033[38;5;245m" };
    return s->how->colour ? codes[s->p->series[series].colour % FAC_PALETTE] : "";
}

static const char *plain(const sheet *s) { return s->how->colour ? "\033[0m" : ""; }

static char letter_of(const sheet *s, int series) {
    return "*o+x#@%&"[s->p->series[series].colour % FAC_PALETTE];
}

static void put_cell(sheet *s, size_t cell) {
    if (!s->how->unicode) {
        char c = s->dots[cell] ? letter_of(s, s->series[cell]) : ' ';
        fac_text_add_bytes(&s->out, &c, 1);
        return;
    }
    char utf[4];
    if (!s->dots[cell])
        fac_text_add(&s->out, " ");
    else
        fac_text_add_bytes(&s->out, utf,
                           (size_t)(fac_utf8_put(utf, BRAILLE + s->dots[cell]) - utf));
}

/* Names may hold anything. */
static void put_plain(sheet *s, const char *name) {
    const size_t before = s->out.n;
    fac_text_add(&s->out, name);
    if (!s->out.failed) s->out.n = before + fac_plain(s->out.s + before);
}

static void put_head(sheet *s) {
    fac_text_add(&s->out, "  ");
    put_plain(s, s->p->title);
    if (s->p->scale == FAC_SCALE_PERCENT) fac_text_add(&s->out, ", %");
    for (int k = 0; k < s->p->n; k++) {
        if (!s->p->series[k].name) continue;
        char letter[3] = { letter_of(s, k), letter_of(s, k), 0 };
        const char *line = s->how->unicode ? "\xe2\x94\x80\xe2\x94\x80" : letter;
        fac_text_print(&s->out, "   %s%s%s ", colour_of(s, k), line, plain(s));
        put_plain(s, s->p->series[k].name);
    }
    fac_text_add(&s->out, "\n");
}

/* The label of the tick in this line, or none. */
static void put_tick(sheet *s, int line) {
    char text[FAC_NUMBER_TEXT];
    for (int k = 0; k < s->y.n; k++)
        if ((int)lround((1 - fac_axis_place(&s->y, s->y.tick[k])) * (s->lines - 1)) == line) {
            fac_text_print(&s->out, "%*s %s", s->left - 2,
                           fac_axis_label(&s->y, s->y.tick[k], text),
                           s->how->unicode ? "\xe2\x94\xa4" : "+");
            return;
        }
    fac_text_print(&s->out, "%*s%s", s->left - 1, "", s->how->unicode ? "\xe2\x94\x82" : "|");
}

/* Blanks at the end of a line are left out. */
static void put_line(sheet *s, int line) {
    int used = s->columns, last = -1;
    const size_t first = (size_t)line * (size_t)s->columns;
    while (used && !s->dots[first + (size_t)used - 1]) used--;
    put_tick(s, line);
    for (int k = 0; k < used; k++) {
        size_t cell = first + (size_t)k;
        int now = s->dots[cell] ? s->series[cell] : -1;
        if (now != last) fac_text_add(&s->out, now < 0 ? plain(s) : colour_of(s, now));
        last = now;
        put_cell(s, cell);
    }
    if (last >= 0) fac_text_add(&s->out, plain(s));
    fac_text_add(&s->out, "\n");
}

static int column_of(const sheet *s, double x) {
    return (int)lround(fac_axis_place(&s->x, x) * (s->columns - 1));
}

static bool ticked(const sheet *s, int column) {
    for (int k = 0; k < s->x.n; k++)
        if (column_of(s, s->x.tick[k]) == column) return true;
    return false;
}

static void put_foot(sheet *s) {
    fac_text_print(&s->out, "%*s%s", s->left - 1, "", s->how->unicode ? "\xe2\x94\x94" : "+");
    const char *tick = s->how->unicode ? "\xe2\x94\xac" : "+";
    const char *line = s->how->unicode ? "\xe2\x94\x80" : "-";
    for (int k = 0; k < s->columns; k++) fac_text_add(&s->out, ticked(s, k) ? tick : line);
    fac_text_add(&s->out, "\n");
    int at = 0;
    char text[FAC_NUMBER_TEXT];
    for (int k = 0; k < s->x.n;
         k++) { /* centred below its tick, where it does not touch the one before */
        int length = (int)strlen(fac_axis_label(&s->x, s->x.tick[k], text));
        int to = s->left + column_of(s, s->x.tick[k]) - (length - 1) / 2;
        if (k && to <= at) continue;
        fac_text_print(&s->out, "%*s%s", to - at, "", text);
        at = to + length;
    }
    fac_text_add(&s->out, "   ");
    put_plain(s, s->p->x_label ? s->p->x_label : "");
    fac_text_add(&s->out, "\n");
}

static int widest_label(const fac_chart_axis *a) {
    int most = 0;
    char text[FAC_NUMBER_TEXT];
    for (int k = 0; k < a->n; k++) {
        int n = (int)strlen(fac_axis_label(a, a->tick[k], text));
        if (n > most) most = n;
    }
    return most;
}

static fac_status put_all(sheet *s, FILE *to, fac_error *err) {
    size_t cells = (size_t)s->columns * (size_t)s->lines;
    s->dots = fac_alloc(cells, 1);
    s->series = fac_alloc(cells, 1);
    if (!s->dots || !s->series) return fac_raise_memory(err, "a chart");
    for (int k = 0; k < s->p->n && k < NONE; k++)
        if (s->p->series[k].stroke < FAC_STROKE_RULES && s->p->series[k].stroke != FAC_STROKE_FAINT)
            draw(s, k); /* there is no faint in a terminal */
    put_head(s);
    for (int k = 0; k < s->lines; k++) put_line(s, k);
    put_foot(s);
    if (s->out.failed) return fac_raise_memory(err, "a chart");
    return fwrite(s->out.s, 1, s->out.n, to) == s->out.n
               ? FAC_OK
               : fac_raise(err, FAC_E_IO, "a chart cannot be written");
}

fac_status fac_panel_write(const fac_panel *p, const fac_terminal *how, FILE *to, fac_error *err) {
    fac_range r;
    if (how->columns < LEAST || how->columns > MOST || how->lines < 2 || how->lines > MOST)
        return fac_raise(err, FAC_E_ARGUMENT, "a chart of %d columns and %d lines", how->columns,
                         how->lines);
    if (!fac_panel_range(p, &r))
        return fac_raise(err, FAC_E_ARGUMENT, "%s: there is nothing to draw", p->title);
    sheet s = { .p = p,
                .how = how,
                .y = fac_panel_axis(p, &r, how->lines / 3 > 3 ? how->lines / 3 : 3),
                .lines = how->lines };
    s.left = 3 + widest_label(&s.y);
    s.columns = how->columns - s.left - 4;
    s.x =
        fac_axis_fit(r.x0, r.x1, FAC_SCALE_LINEAR, s.columns / 12 > 1 ? s.columns / 12 : 1, false);
    fac_status status = put_all(&s, to, err);
    fac_release(s.dots);
    fac_release(s.series);
    fac_text_free(&s.out);
    return status;
}
