#include "show_photo.h"
#include <stdlib.h>
#include <string.h>
#include "picture.h"

enum { BAR = 20, NAME = 22 };

/* One class: a bar, its share, its name cut to fit. */
static void print_class(const fac_class *c, bool in_colour) {
    char room[64], blocks[BAR_BYTES(BAR)];
    printf("%s%s%s %5.1f %%  %.*s", in_colour ? "\033[38;5;214m" : "",
           bar(c->probability, BAR, blocks), in_colour ? "\033[0m" : "",
           100 * c->probability, 3 * NAME, label_of(c, room, sizeof room));
}

int show_photo(const char *path, const fac_class *top, int n) {
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    fac_image image = { 0 };
    picture p = { 0 };
    fac_error err = { 0 };
    bool draw = colour();
    int wide = columns() - BAR - NAME - 14;
    if (wide > 46) wide = 46;
    draw &= wide >= 12;
    if (draw && (fac_image_load(path, &image, &err) || picture_draw(&image, wide, 17, &p, &err))) {
        fac_image_free(&image);
        return fail(&err);
    }
    fac_image_free(&image);
    int first = draw ? (p.lines - n - 2) / 2 : 0, lines = draw && p.lines > n + 2 ? p.lines : n + 2;
    if (first < 0) first = 0;
    for (int i = 0; i < lines; i++) {
        bool row = draw && i < p.lines;
        if (row) fputs(p.line[i], stdout);
        if (draw) printf("%*s", wide + 2 - (row ? p.columns : 0), "");      /* one column of classes for all photos */
        int k = i - first - 2;
        if (i == first) printf("%s%s%s", draw ? "\033[1m" : "", file, draw ? "\033[0m" : "");
        if (k >= 0 && k < n) print_class(&top[k], draw);
        if (draw || i != first + 1) putchar('\n');
    }
    putchar('\n');
    picture_free(&p);
    return EXIT_OK;
}
