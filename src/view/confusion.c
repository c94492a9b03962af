/* A confusion matrix as a heat map: rows are what it was, columns what it was taken for.  The
 * diagonal is blue, mistakes are orange, each as dark as its share of the row; mistakes are shown
 * on a scale of their own, for they are to be seen. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "view/panel.h"

enum { FONT = 11, TITLE = 15, NUMBERS_BELOW = 21, NAMES_BELOW = 41, LETTERS = 12, HEAD = 30 };

typedef struct matrix {
    const fac_confusion *m;
    double left, top, cell_w, cell_h, worst;
} matrix;

static double total(const fac_confusion *m, int row) {
    double sum = 0;
    for (int c = 0; c < m->n; c++) sum += (double)m->counts[(size_t)row * (size_t)m->n + (size_t)c];
    return sum;
}

static double share(const fac_confusion *m, int row, int column) {
    double all = total(m, row);
    return all > 0 ? (double)m->counts[(size_t)row * (size_t)m->n + (size_t)column] / all : 0;
}

/* From white to rgb. */
static uint32_t shade(uint32_t rgb, double amount) {
    uint32_t out = 0;
    for (int k = 0; k < 24; k += 8)
        out |= (uint32_t)lround(255 + amount * ((double)(rgb >> k & 255) - 255)) << k;
    return out;
}

static void cell(fac_canvas *c, const matrix *m, int row, int column) {
    double part = share(m->m, row, column), amount = row == column  ? part
                                                     : m->worst > 0 ? 0.85 * sqrt(part / m->worst)
                                                                    : 0;
    double x = m->left + column * m->cell_w, y = m->top + row * m->cell_h,
           gap = fmin(1, 0.1 * fmin(m->cell_w, m->cell_h));
    uint32_t rgb = shade(row == column ? fac_palette[0] : fac_palette[1], amount);
    fac_draw_box(c, x + gap / 2, y + gap / 2, m->cell_w - gap, m->cell_h - gap,
                 (fac_ink){ rgb, 1, 0, false });
    int64_t count = m->m->counts[(size_t)row * (size_t)m->m->n + (size_t)column];
    if (m->m->n >= NUMBERS_BELOW || !count) return;
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)count);
    double size = fmin(13, fmin(m->cell_h * 0.62, m->cell_w * 1.5 / (double)strlen(text)));
    fac_draw_text(c, x + m->cell_w / 2, y + m->cell_h / 2 + size * 0.36, text,
                  (fac_font){ .size = size, .anchor = FAC_MIDDLE },
                  amount > 0.55 ? 0xFFFFFF : fac_text_rgb);
}

/* Cut after LETTERS letters. */
static const char *cut(const char *name, char to[4 * LETTERS + 8]) {
    int letters = 0;
    size_t n = 0;
    for (; name[n] && n < 4 * LETTERS; n++) {
        if (((unsigned char)name[n] & 0xC0) == 0x80) continue;
        if (++letters > LETTERS) break;
    }
    snprintf(to, 4 * LETTERS + 8, "%.*s%s", (int)n, name, name[n] ? "\xe2\x80\xa6" : "");
    return to;
}

static const char *label(const fac_confusion *m, int k, char to[4 * LETTERS + 8]) {
    char number[16];
    snprintf(number, sizeof number, "%d", k);
    return cut(m->names ? m->names[k] : number, to);
}

static double widest(const fac_confusion *m) {
    double most = 0;
    char text[4 * LETTERS + 8];
    for (int k = 0; k < m->n; k++) most = fmax(most, fac_text_width(label(m, k, text), FONT));
    return most;
}

static void names(fac_canvas *c, const matrix *m, bool upright) {
    char text[4 * LETTERS + 8];
    for (int k = 0; k < m->m->n; k++) {
        double x = m->left + (k + 0.5) * m->cell_w, y = m->top + (k + 0.5) * m->cell_h,
               bottom = m->top + m->m->n * m->cell_h;
        label(m->m, k, text);
        fac_draw_text(c, m->left - 6, y + 4, text, (fac_font){ .size = FONT, .anchor = FAC_END },
                      fac_quiet_rgb);
        fac_font font = { .size = FONT,
                          .upright = upright,
                          .anchor = upright ? FAC_END : FAC_MIDDLE };
        if (upright)
            fac_draw_text(c, x + 4, bottom + 7, text, font, fac_quiet_rgb);
        else
            fac_draw_text(c, x, bottom + 16, text, font, fac_quiet_rgb);
    }
}

void fac_panel_confusion(fac_canvas *c, const fac_panel *p, fac_box box) {
    const fac_confusion *m = p->confusion;
    fac_draw_text(c, box.x, box.y + 14, p->title, (fac_font){ .size = TITLE, .bold = true },
                  fac_text_rgb);
    if (m->n < 1) return;
    bool named = m->n < NAMES_BELOW;
    double wide = named ? widest(m) : 0, left = 30 + wide;
    bool upright = wide > (box.w - left - 8) / m->n - 4;
    double below = 6 + 18;
    if (named) below = (upright ? wide + 12 : 22) + 18;
    matrix all = {
        m, box.x + left, box.y + HEAD, (box.w - left - 10) / m->n, (box.h - HEAD - below) / m->n, 0
    };
    if (all.cell_w < 1 || all.cell_h < 1) return;
    for (int r = 0; r < m->n; r++)
        for (int k = 0; k < m->n; k++)
            if (r != k) all.worst = fmax(all.worst, share(m, r, k));
    const double right = all.left + m->n * all.cell_w, bottom = all.top + m->n * all.cell_h;
    fac_draw_line(c, 5,
                  (fac_point[]){ { all.left, all.top },
                                 { right, all.top },
                                 { right, bottom },
                                 { all.left, bottom },
                                 { all.left, all.top } },
                  (fac_ink){ fac_grid_rgb, 1, 1, false });
    for (int r = 0; r < m->n; r++)
        for (int k = 0; k < m->n; k++) cell(c, &all, r, k);
    if (named) names(c, &all, upright);
    fac_font font = { .size = FONT + 1, .upright = true, .anchor = FAC_MIDDLE };
    fac_draw_text(c, box.x + 12, all.top + m->n * all.cell_h / 2, "true", font, fac_quiet_rgb);
    font.upright = false;
    fac_draw_text(c, all.left + m->n * all.cell_w / 2, box.y + box.h, "predicted", font,
                  fac_quiet_rgb);
}
