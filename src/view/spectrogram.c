/* A spectrogram as a picture: time to the right, frequency upwards, loudness as colour. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "view/panel.h"

enum {
    WIDTH = 1000,
    HEIGHT = 420,
    MOST_PIXELS = 16384,
    LEFT = 64,
    TOP = 56,
    RIGHT = 84,
    BOTTOM = 52,
    BAR = 14
};

/* viridis (van der Walt, Smith 2015) at nine places. */
static const uint32_t viridis[] = { 0x440154, 0x472D7B, 0x3B528B, 0x2C728E, 0x21918C,
                                    0x28AE80, 0x5EC962, 0xADDC30, 0xFDE725 };
enum { COLOURS = sizeof viridis / sizeof *viridis, STEPS = 64 };

static uint32_t mixed(uint32_t a, uint32_t b, double t) {
    uint32_t rgb = 0;
    for (int k = 0; k < 24; k += 8) {
        const double x = (a >> k & 255) * (1 - t) + (b >> k & 255) * t;
        rgb |= (uint32_t)(x + 0.5) << k;
    }
    return rgb;
}

/* Step 0 .. STEPS - 1 from soft to loud. */
static uint32_t colour_of(int step) {
    const double at = (double)step / (STEPS - 1) * (COLOURS - 1);
    const int low = at >= COLOURS - 1 ? COLOURS - 2 : (int)at;
    return mixed(viridis[low], viridis[low + 1], at - low);
}

static int step_of(float db, double low, double high) {
    const double t = high > low ? ((double)db - low) / (high - low) : 0;
    return t > 0 ? (int)fmin(t * STEPS, STEPS - 1) : 0;
}

/* The loudest number of a part of the picture: what a pixel covers. */
static float loudest(const fac_spectrogram *s, double f0, double f1, double t0, double t1) {
    const int64_t k0 = (int64_t)f0, k1 = (int64_t)ceil(f1), i0 = (int64_t)t0,
                  i1 = (int64_t)ceil(t1);
    float most = -INFINITY;
    for (int64_t k = k0; k < k1 && k < s->bins; k++)
        for (int64_t i = i0; i < i1 && i < s->frames; i++)
            most = fmaxf(most, s->db[k * s->frames + i]);
    return most;
}

/* Rows of runs of one colour. */
static void draw_cells(fac_canvas *c, const fac_spectrogram *s, fac_box box, double low,
                       double high) {
    const int rows = s->bins < (int64_t)box.h ? (int)s->bins : (int)box.h,
              columns = s->frames < (int64_t)box.w ? (int)s->frames : (int)box.w;
    const double h = box.h / rows, w = box.w / columns;
    for (int r = 0; r < rows; r++)
        for (int from = 0, to; from < columns; from = to) {
            const double f = (double)s->bins / rows, t = (double)s->frames / columns;
            const int step =
                step_of(loudest(s, r * f, (r + 1) * f, from * t, (from + 1) * t), low, high);
            for (to = from + 1; to < columns; to++)
                if (step_of(loudest(s, r * f, (r + 1) * f, to * t, (to + 1) * t), low, high) !=
                    step)
                    break;
            const fac_ink ink = { colour_of(step), 1, 0, false };
            fac_draw_box(c, box.x + from * w, box.y + box.h - (r + 1) * h, (to - from) * w + 0.5,
                         h + 0.5, ink);
        }
}

static void draw_axes(fac_canvas *c, const fac_spectrogram *s, fac_box box) {
    const fac_chart_axis x = fac_axis_fit(0, s->seconds, FAC_SCALE_LINEAR, 10, false),
                         y = fac_axis_fit(0, s->hertz / 1000, FAC_SCALE_LINEAR, 6, false);
    const fac_font below = { .size = 12, .anchor = FAC_MIDDLE },
                   beside = { .size = 12, .anchor = FAC_END };
    const fac_font up = { .size = 12, .anchor = FAC_MIDDLE, .upright = true };
    char text[FAC_NUMBER_TEXT];
    for (int k = 0; k < x.n; k++) {
        const double at = box.x + fac_axis_place(&x, x.tick[k]) * box.w;
        fac_draw_rule(c, at, box.y + box.h, at, box.y + box.h + 5,
                      (fac_ink){ fac_quiet_rgb, 1, 1, false });
        fac_draw_text(c, at, box.y + box.h + 18, fac_axis_label(&x, x.tick[k], text), below,
                      fac_text_rgb);
    }
    for (int k = 0; k < y.n; k++) {
        const double at = box.y + box.h - fac_axis_place(&y, y.tick[k]) * box.h;
        fac_draw_rule(c, box.x - 5, at, box.x, at, (fac_ink){ fac_quiet_rgb, 1, 1, false });
        fac_draw_text(c, box.x - 8, at + 4, fac_axis_label(&y, y.tick[k], text), beside,
                      fac_text_rgb);
    }
    fac_draw_text(c, box.x + box.w / 2, box.y + box.h + 38, "s", below, fac_text_rgb);
    fac_draw_text(c, box.x - 44, box.y + box.h / 2, "kHz", up, fac_text_rgb);
}

/* The scale of colours, in dB. */
static void draw_scale(fac_canvas *c, fac_box box, double low, double high) {
    const fac_chart_axis a = fac_axis_fit(low, high, FAC_SCALE_LINEAR, 6, false);
    const double x = box.x + box.w + 16;
    char text[FAC_NUMBER_TEXT];
    for (int k = 0; k < STEPS; k++)
        fac_draw_box(c, x, box.y + box.h * (STEPS - 1 - k) / STEPS, BAR, box.h / STEPS + 0.5,
                     (fac_ink){ colour_of(k), 1, 0, false });
    for (int k = 0; k < a.n; k++) {
        const double at = box.y + box.h - fac_axis_place(&a, a.tick[k]) * box.h;
        fac_draw_text(c, x + BAR + 5, at + 4, fac_axis_label(&a, a.tick[k], text),
                      (fac_font){ .size = 12 }, fac_text_rgb);
    }
    fac_draw_text(c, x, box.y - 8, "dB", (fac_font){ .size = 12 }, fac_text_rgb);
}

static void range_of(const fac_spectrogram *s, double *low, double *high) {
    double most = -INFINITY;
    for (int64_t k = 0; k < s->bins * s->frames; k++)
        if (s->db[k] > most) most = s->db[k]; /* with fmax gcc 12 for aarch64 gives up */
    *high = isfinite(most) ? most : 0;
    *low = *high - 80;
}

static void draw(fac_canvas *c, const fac_spectrogram *s) {
    const fac_box box = { LEFT, TOP, c->width - LEFT - RIGHT, c->height - TOP - BOTTOM };
    double low, high;
    range_of(s, &low, &high);
    fac_draw_box(c, 0, 0, c->width, c->height, (fac_ink){ 0xFFFFFF, 1, 0, false });
    fac_draw_text(c, LEFT, 30, s->title ? s->title : "", (fac_font){ .size = 18, .bold = true },
                  fac_text_rgb);
    draw_cells(c, s, box, low, high);
    draw_axes(c, s, box);
    draw_scale(c, box, low, high);
}

static bool ends_with(const char *s, const char *end) {
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

fac_status fac_spectrogram_save(const fac_spectrogram *s, const char *path, fac_error *err) {
    fac_canvas c = { .width = s->width ? s->width : WIDTH,
                     .height = s->height ? s->height : HEIGHT };
    const bool svg = ends_with(path, ".svg");
    if (!svg && !ends_with(path, ".png"))
        return fac_raise(err, FAC_E_ARGUMENT, "%s: pictures are saved as .svg or .png", path);
    if (c.width < 200 || c.height < 200 || c.width > MOST_PIXELS || c.height > MOST_PIXELS ||
        s->bins < 1 || s->frames < 1)
        return fac_raise(err, FAC_E_ARGUMENT, "%s: %lld x %lld numbers on %d x %d pixels", path,
                         (long long)s->frames, (long long)s->bins, c.width, c.height);
    draw(&c, s);
    fac_status status =
        c.failed ? fac_raise(err, FAC_E_NOMEM, "%s: no memory for the drawing", path) : FAC_OK;
    if (!status) status = svg ? fac_canvas_svg(&c, path, err) : fac_canvas_png(&c, path, err);
    fac_canvas_free(&c);
    return status;
}

/* ---- in a terminal: two rows of the picture a line, as halves of a block ---- */

fac_status fac_spectrogram_write(const fac_spectrogram *s, const fac_terminal *how, FILE *to,
                                 fac_error *err) {
    static const char shades[] = " .:-=+*#%@";
    const int columns = how->columns > 20 ? how->columns - 8 : 12,
              lines = how->lines > 0 ? how->lines : 16;
    double low, high;
    if (s->bins < 1 || s->frames < 1)
        return fac_raise(err, FAC_E_ARGUMENT, "a spectrogram without numbers");
    range_of(s, &low, &high);
    for (int r = lines - 1; r >= 0; r--) {
        const double f = (double)s->bins / lines, t = (double)s->frames / columns;
        fprintf(to, "%6.2f ", s->hertz / 1000 * (r + 1) / lines);
        for (int i = 0; i < columns; i++) {
            const int step = step_of(loudest(s, r * f, (r + 1) * f, i * t, (i + 1) * t), low, high);
            const uint32_t rgb = colour_of(step);
            if (how->colour)
                fprintf(to, "\033[48;2;%u;%u;%um ", rgb >> 16 & 255, rgb >> 8 & 255, rgb & 255);
            else
                fputc(shades[step * 10 / STEPS], to);
        }
        fputs(how->colour ? "\033[0m\n" : "\n", to);
    }
    fprintf(to, "   kHz 0%*.2f s\n", columns - 3, s->seconds);
    return ferror(to) ? fac_raise(err, FAC_E_IO, "the picture cannot be written") : FAC_OK;
}
