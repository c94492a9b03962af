/* Collects the marks of a drawing. */
#include "view/canvas.h"
#include <string.h>
#include "base/memory.h"
#include "facula/text.h"
#include "tensor/utf.h"

void fac_canvas_free(fac_canvas *c) {
    fac_release(c->marks);
    fac_arena_free(&c->arena);
    *c = (fac_canvas){ 0 };
}

static void add(fac_canvas *c, fac_mark m) {
    if (c->failed || !fac_reserve(&c->marks, &c->room, c->n + 1, sizeof *c->marks))
        c->failed = true;
    else
        c->marks[c->n++] = m;
}

void fac_draw_box(fac_canvas *c, double x, double y, double w, double h, fac_ink ink) {
    add(c, (fac_mark){ .kind = FAC_MARK_BOX, .ink = ink, .at = { x, y }, .w = w, .h = h });
}

void fac_draw_disc(fac_canvas *c, double x, double y, double radius, fac_ink ink) {
    add(c, (fac_mark){ .kind = FAC_MARK_DISC, .ink = ink, .at = { x, y }, .w = radius });
}

void fac_draw_line(fac_canvas *c, int n, const fac_point *points, fac_ink ink) {
    if (n < 2) return;
    fac_point *copy = fac_arena_alloc(&c->arena, (size_t)n, sizeof *copy);
    if (copy) memcpy(copy, points, (size_t)n * sizeof *copy);
    c->failed |= !copy;
    add(c, (fac_mark){ .kind = FAC_MARK_LINE, .ink = ink, .points = copy, .n = n });
}

void fac_draw_rule(fac_canvas *c, double x0, double y0, double x1, double y1, fac_ink ink) {
    fac_draw_line(c, 2, (fac_point[]){ { x0, y0 }, { x1, y1 } }, ink);
}

void fac_draw_text(fac_canvas *c, double x, double y, const char *s, fac_font font, uint32_t rgb) {
    size_t n = strlen(s);
    char *copy = fac_arena_alloc(&c->arena, 3 * n + 1, 1),
         *to = copy; /* one bad byte becomes U+FFFD: three */
    const unsigned char *from = (const unsigned char *)s;
    while (copy && *from) {
        uint32_t letter = fac_utf8_next(&from);
        const bool shown = !fac_steers(letter) && letter != 0xFFFE && letter != 0xFFFF;
        if (shown) to = fac_utf8_put(to, letter);
    }
    c->failed |= !copy;
    add(c, (fac_mark){ .kind = FAC_MARK_TEXT,
                       .ink = { rgb, 1, 0, false },
                       .at = { x, y },
                       .font = font,
                       .text = copy });
}

double fac_text_width(const char *s, double size) {
    size_t letters = 0;
    for (; *s; s++) letters += ((unsigned char)*s & 0xC0) != 0x80;
    return 0.56 * size * (double)letters;
}
