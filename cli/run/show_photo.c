#include "show_photo.h"
#include <stdlib.h>
#include <string.h>
#include "picture.h"

enum { BAR = 20, NAME = 22 };

/* One class: a bar, its share, its name cut to fit. */
static void print_class(const fac_class *c) {
    char room[64], blocks[BAR_BYTES(BAR)];
    style(stdout, "38;5;214");
    printf("%s", bar(c->probability, BAR, blocks));
    style(stdout, "0");
    printf(" %5.1f %%  %.*s", 100 * c->probability, 3 * NAME, label_of(c, room, sizeof room));
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
    int first = draw ? (p.lines - n - 2) / 2 : 0;
    int lines = draw && p.lines > n + 2 ? p.lines : n + 2;
    if (first < 0) first = 0;
    for (int i = 0; i < lines; i++) {
        bool row = draw && i < p.lines;
        if (row) out_raw(p.line[i], stdout);
        if (draw)
            printf("%*s", wide + 2 - (row ? p.columns : 0),
                   ""); /* one column of classes for all photos */
        int k = i - first - 2;
        if (i == first && draw) style(stdout, "1");
        if (i == first) printf("%s", file);
        if (i == first && draw) style(stdout, "0");
        if (k >= 0 && k < n) print_class(&top[k]);
        if (draw || i != first + 1) putchar('\n');
    }
    putchar('\n');
    picture_free(&p);
    return EXIT_OK;
}
