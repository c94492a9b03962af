/* A panel of lines: axes with ticks, a legend, smooth curves through few points. */
#include <math.h>
#include "view/panel.h"

enum {
    FONT = 12,
    TITLE = 15,
    LEFT = 56,
    BOTTOM = 40,
    HEAD = 34,
    RULE = 22,
    PARTS = 12,
    SMOOTH_BELOW = 64,
    DISCS_BELOW = 33
};

/* ---- ranges ---- */

static bool is_ruled(const fac_series *s) {
    return s->stroke == FAC_STROKE_RULES || s->stroke == FAC_STROKE_DASHED_RULES;
}

static bool counts(const fac_panel *p, const fac_series *s, int i) {
    if (is_ruled(s)) return isfinite(s->x[i]);
    return isfinite(s->x[i]) && isfinite(s->y[i]) && (p->scale != FAC_SCALE_LOG || s->y[i] > 0);
}

/* Bars touch each other. */
static double bar_width(const fac_series *s) {
    if (s->stroke != FAC_STROKE_BARS) return 0;
    return s->n > 1 ? s->x[1] - s->x[0] : 1;
}

static void widen(const fac_panel *p, bool faint, fac_range *r) {
    for (int k = 0; k < p->n; k++) {
        const fac_series *s = &p->series[k];
        for (int i = 0; i < s->n; i++) {
            if (!counts(p, s, i)) continue;
            r->x0 = fmin(r->x0, s->x[i] - bar_width(s) / 2);
            r->x1 = fmax(r->x1, s->x[i] + bar_width(s) / 2);
            if (is_ruled(s)) continue;
            if ((s->stroke == FAC_STROKE_FAINT) != faint) continue;
            r->y0 = fmin(r->y0, s->stroke == FAC_STROKE_BARS ? 0 : s->y[i]);
            r->y1 = fmax(r->y1, s->y[i]);
        }
    }
}

bool fac_panel_range(const fac_panel *p, fac_range *out) {
    fac_range r = { INFINITY, -INFINITY, INFINITY, -INFINITY };
    widen(p, false, &r);
    if (!(r.y0 <= r.y1)) widen(p, true, &r);
    if (r.x0 > 0 && (r.x0 <= r.x1 / 2 || r.x0 == r.x1))
        r.x0 = 0; /* epochs are counted from the start */
    *out = r;
    return r.y0 <= r.y1;
}

fac_chart_axis fac_panel_axis(const fac_panel *p, const fac_range *r, int want) {
    double room = 0.04 * (r->y1 - r->y0), lo = r->y0, hi = r->y1;
    if (p->scale != FAC_SCALE_LOG) {
        if (!(lo >= 0 && lo < room))
            lo = lo >= 0 && lo < 0.25 * hi ? 0 : lo - room; /* 0 when it is near */
        hi = p->scale == FAC_SCALE_PERCENT && hi <= 1 ? fmin(hi + room, 1) : hi + room;
    }
    return fac_axis_fit(lo, hi, p->scale, want, true);
}

/* ---- lines ---- */

typedef struct frame {
    fac_chart_axis x, y;
    fac_box box;
} frame;

static fac_point place(const frame *f, double x, double y) {
    return (fac_point){ f->box.x + f->box.w * fac_axis_place(&f->x, x),
                        f->box.y + f->box.h * (1 - fac_axis_place(&f->y, y)) };
}

/* The slope at point i of a curve that is monotone where its points are (Steffen, Astronomy and
 * Astrophysics 239, 1990). */
static double slope(const fac_point *p, int n, int i) {
    if (i == 0 || i == n - 1) {
        const fac_point *a = &p[i ? i - 1 : 0];
        return (a[1].y - a[0].y) / (a[1].x - a[0].x);
    }
    double h0 = p[i].x - p[i - 1].x, h1 = p[i + 1].x - p[i].x;
    double s0 = (p[i].y - p[i - 1].y) / h0, s1 = (p[i + 1].y - p[i].y) / h1;
    double mean = (s0 * h1 + s1 * h0) / (h0 + h1);
    return s0 * s1 <= 0 ? 0 : copysign(fmin(fmin(fabs(s0), fabs(s1)), fabs(mean) / 2) * 2, s0);
}

/* Points between p[i] and p[i + 1] on the cubic with those slopes (Hermite). */
static int between(const fac_point *p, int n, int i, fac_point *to) {
    double h = p[i + 1].x - p[i].x, m0 = slope(p, n, i) * h, m1 = slope(p, n, i + 1) * h,
           d = p[i + 1].y - p[i].y;
    for (int k = 0; k < PARTS; k++) {
        double t = (double)k / PARTS;
        to[k] =
            (fac_point){ p[i].x + t * h,
                         p[i].y + t * (m0 + t * (3 * d - 2 * m0 - m1 + t * (m0 + m1 - 2 * d))) };
    }
    return PARTS;
}

static void draw_smooth(fac_canvas *c, const fac_point *p, int n, fac_ink ink) {
    fac_point all[SMOOTH_BELOW * PARTS + 1];
    int m = 0;
    for (int i = 0; i + 1 < n; i++) m += between(p, n, i, all + m);
    all[m++] = p[n - 1];
    fac_draw_line(c, m, all, ink);
}

static void draw_bars(fac_canvas *c, const fac_panel *p, const fac_series *s, const frame *f) {
    const fac_ink ink = { fac_palette[s->colour % FAC_PALETTE], 0.85, 0, false };
    double half = bar_width(s) / 2;
    for (int i = 0; i < s->n; i++) {
        if (!counts(p, s, i)) continue;
        fac_point top = place(f, s->x[i] - half, s->y[i]), bottom = place(f, s->x[i] + half, 0);
        if (s->y[i] > 0) fac_draw_box(c, top.x, top.y, bottom.x - top.x, bottom.y - top.y, ink);
    }
}

/* From the axis to the top. */
static void draw_rules(fac_canvas *c, const fac_panel *p, const fac_series *s, const frame *f) {
    const fac_ink ink = { fac_palette[s->colour % FAC_PALETTE], 1, 1.6,
                          s->stroke == FAC_STROKE_DASHED_RULES };
    const double top = f->box.y, bottom = top + f->box.h;
    for (int i = 0; i < s->n; i++) {
        if (!counts(p, s, i)) continue;
        const double x = f->box.x + f->box.w * fac_axis_place(&f->x, s->x[i]);
        fac_draw_rule(c, x, top, x, bottom, ink);
    }
}

static void draw_series(fac_canvas *c, const fac_panel *p, const fac_series *s, const frame *f) {
    fac_point *points =
        fac_arena_alloc(&c->arena, (size_t)(s->n > 0 ? s->n : 0) + 1, sizeof *points);
    bool faint = s->stroke == FAC_STROKE_FAINT;
    double width = s->n > 200 ? 1.8 : 2.2;
    if (faint) width = 1;
    fac_ink ink = { fac_palette[s->colour % FAC_PALETTE], faint ? 0.25 : 1, width,
                    s->stroke == FAC_STROKE_DASHED };
    int n = 0;
    c->failed |= !points;
    for (int i = 0; points && i < s->n; i++) {
        if (!counts(p, s, i)) continue;
        fac_point at = place(f, s->x[i], s->y[i]);
        if (n && at.x <= points[n - 1].x + 1e-6)
            n--; /* a later point at the same place replaces it */
        points[n++] = at;
    }
    if (n >= 3 && n < SMOOTH_BELOW && !faint)
        draw_smooth(c, points, n, ink);
    else if (n)
        fac_draw_line(c, n, points, ink);
    for (int i = 0; i < n && n < DISCS_BELOW && !faint; i++)
        fac_draw_disc(c, points[i].x, points[i].y, 3, (fac_ink){ ink.rgb, 1, 0, false });
}

static void draw_one(fac_canvas *c, const fac_panel *p, const fac_series *s, const frame *f) {
    if (is_ruled(s))
        draw_rules(c, p, s, f);
    else if (s->stroke == FAC_STROKE_BARS)
        draw_bars(c, p, s, f);
    else
        draw_series(c, p, s, f);
}

/* ---- around them ---- */

/* From the right to the left, in the line of the title; in lines of their own below it when they
 * are many.  Its height. */
static double legend(fac_canvas *c, const fac_panel *p, fac_box box) {
    double total = 0, x, y = box.y;
    for (int k = 0; k < p->n; k++)
        if (p->series[k].name) total += fac_text_width(p->series[k].name, FONT) + RULE + 22;
    bool beside = total + fac_text_width(p->title, TITLE) * 1.1 < box.w;
    x = beside ? box.x + box.w - total + 16 : box.x;
    if (!beside) y += 22;
    for (int k = 0; k < p->n; k++) {
        const fac_series *s = &p->series[k];
        if (!s->name) continue;
        double w = fac_text_width(s->name, FONT) + RULE + 22;
        if (!beside && x > box.x && x + w > box.x + box.w) {
            x = box.x;
            y += 18;
        }
        fac_ink ink = { fac_palette[s->colour % FAC_PALETTE], 1, 2.5,
                        s->stroke == FAC_STROKE_DASHED || s->stroke == FAC_STROKE_DASHED_RULES };
        fac_draw_rule(c, x, y + 8, x + RULE, y + 8, ink);
        fac_draw_text(c, x + RULE + 6, y + 12, s->name, (fac_font){ .size = FONT }, fac_text_rgb);
        x += w;
    }
    return y - box.y;
}

static void grid(fac_canvas *c, const frame *f, const char *x_label) {
    const fac_box *b = &f->box;
    const fac_ink thin = { fac_grid_rgb, 1, 1, false }, axis = { 0x9CA3AF, 1, 1, false };
    const fac_font left = { .size = FONT, .anchor = FAC_END },
                   centred = { .size = FONT, .anchor = FAC_MIDDLE };
    char text[FAC_NUMBER_TEXT];
    for (int k = 0; k < f->y.n; k++) {
        double y = floor(b->y + b->h * (1 - fac_axis_place(&f->y, f->y.tick[k]))) +
                   0.5; /* in the middle of pixels */
        fac_draw_rule(c, b->x, y, b->x + b->w, y, thin);
        fac_axis_label(&f->y, f->y.tick[k], text);
        fac_draw_text(c, b->x - 8, y + 4, text, left, fac_quiet_rgb);
    }
    double bottom = floor(b->y + b->h) + 0.5;
    fac_draw_rule(c, b->x, bottom, b->x + b->w, bottom, axis);
    for (int k = 0; k < f->x.n; k++) {
        double x = floor(b->x + b->w * fac_axis_place(&f->x, f->x.tick[k])) + 0.5;
        fac_draw_rule(c, x, bottom, x, bottom + 5, axis);
        fac_axis_label(&f->x, f->x.tick[k], text);
        fac_draw_text(c, x, bottom + 19, text, centred, fac_quiet_rgb);
    }
    if (x_label) fac_draw_text(c, b->x + b->w / 2, bottom + 36, x_label, centred, fac_quiet_rgb);
}

void fac_panel_curves(fac_canvas *c, const fac_panel *p, fac_box box) {
    fac_range r;
    const fac_font font = { .size = TITLE, .bold = true }, plain = { .size = FONT };
    const fac_font centred = { .size = FONT, .anchor = FAC_MIDDLE };
    fac_draw_text(c, box.x, box.y + 14, p->title, font, fac_text_rgb);
    if (p->scale == FAC_SCALE_PERCENT)
        fac_draw_text(c, box.x + 1.16 * fac_text_width(p->title, TITLE), box.y + 14, " %", plain,
                      fac_quiet_rgb);
    double head = HEAD + legend(c, p, box);
    fac_box inside = { box.x + LEFT, box.y + head, box.w - LEFT - 10, box.h - head - BOTTOM };
    if (inside.w < 20 || inside.h < 20) return;
    if (!fac_panel_range(p, &r)) {
        fac_draw_text(c, box.x + box.w / 2, box.y + box.h / 2, "no data", centred, fac_quiet_rgb);
        return;
    }
    int want = inside.h / 36 < 2 ? 2 : (int)(inside.h / 36);
    frame f = { fac_axis_fit(r.x0, r.x1, FAC_SCALE_LINEAR,
                             inside.w / 70 < 3 ? 3 : (int)(inside.w / 70), false),
                fac_panel_axis(p, &r, want), inside };
    grid(c, &f, p->x_label);
    for (int faint = 1; faint >= 0; faint--) /* the faint ones after the others */
        for (int k = 0; k < p->n; k++)
            if ((p->series[k].stroke == FAC_STROKE_FAINT) == faint)
                draw_one(c, p, &p->series[k], &f);
}
