/* Draws a photo with half blocks: the upper half of a cell is its foreground, the lower half its
 * background. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli.h"
#include "picture.h"

#define UPPER_HALF "\xe2\x96\x80" /* U+2580 */
#define RESET "\x1b[0m"

/* "\x1b[38;2;255;255;255;48;2;255;255;255m" and a block, for every cell, and the end */
enum { CELL_BYTES = 44 };

/* Escapes are written only where a colour changes. */
static char *draw_line(const fac_image *image, int line) {
    size_t row = 3 * (size_t)image->width;
    const uint8_t *upper = image->rgb + 2 * (size_t)line * row, *lower = upper + row, *last = NULL;
    char *text = malloc((size_t)image->width * CELL_BYTES + sizeof RESET), *to = text;
    if (!text) return NULL;
    for (int x = 0; x < image->width; x++, upper += 3, lower += 3) {
        bool same = last && memcmp(upper, last, 3) == 0 && memcmp(lower, last + row, 3) == 0;
        if (!same)
            to += sprintf(to, "\x1b[38;2;%d;%d;%d;48;2;%d;%d;%dm", upper[0], upper[1], upper[2],
                          lower[0], lower[1], lower[2]);
        last = upper;
        to += sprintf(to, UPPER_HALF);
    }
    strcpy(to, RESET);
    return text;
}

fac_status picture_draw(const fac_image *image, int columns, int lines, picture *out,
                        fac_error *err) {
    /* pixels are square: a cell is about twice as high as wide */
    double scale = (double)columns / image->width, fit = 2.0 * lines / image->height;
    if (fit < scale) scale = fit;
    int width = (int)(image->width * scale + 0.5), half = (int)(image->height * scale / 2 + 0.5);
    if (width < 1) width = 1;
    if (half < 1) half = 1;

    fac_image small = { 0 };
    fac_status status = fac_image_resize(image, width, 2 * half, FAC_BICUBIC, &small, err);
    if (status) return status;
    picture p = { width, half, calloc((size_t)half, sizeof *p.line) };
    for (int i = 0; p.line && !status && i < half; i++)
        if (!(p.line[i] = draw_line(&small, i))) status = out_of_memory(err);
    if (!p.line) status = out_of_memory(err);
    fac_image_free(&small);
    if (status)
        picture_free(&p);
    else
        *out = p;
    return status;
}

void picture_free(picture *p) {
    for (int i = 0; p->line && i < p->lines; i++) free(p->line[i]);
    free(p->line);
    *p = (picture){ 0 };
}

const char *bar(double share, int width, char *to) {
    double inside = fmin(fmax(share, 0), 1); /* NaN is an empty bar */
    int eighths = (int)(inside * width * 8 + 0.5);
    char *end = to;
    for (int i = 0; i < width; i++, eighths -= 8) {
        int filled = eighths < 8 ? eighths : 8;
        if (filled > 0)
            end += sprintf(end, "\xe2\x96%c",
                           0x90 - filled); /* U+258F is one eighth, U+2588 all of the cell */
        else
            *end++ = ' ';
    }
    *end = 0;
    return to;
}
