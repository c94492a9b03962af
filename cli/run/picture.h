/* Pictures and bars for a terminal with true colour and UTF-8. */
#ifndef FACULA_CLI_PICTURE_H
#define FACULA_CLI_PICTURE_H
#include "facula/data/image.h"

/* A photo as lines of text, each `columns` cells wide and ending in the terminal's own colours, so
 * that text can follow. */
typedef struct picture {
    int columns, lines;
    char **line;
} picture;

/* As large as fits into this many columns and lines.  A cell shows two pixels, one above the other.
 */
fac_status picture_draw(const fac_image *image, int columns, int lines, picture *out,
                        fac_error *err);
void picture_free(picture *p); /* an empty one is fine */

/* A bar of `share` (0..1) of `width` cells in steps of an eighth, padded with spaces; to holds
 * BAR_BYTES(width). */
#define BAR_BYTES(width) (3 * (size_t)(width) + 1)
const char *bar(double share, int width, char *to);
#endif
