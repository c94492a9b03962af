/* The arena of the plan as a picture: steps from left to right, addresses upwards, a box for each
 * part while it is alive. */
#include <stdlib.h>
#include <stdio.h>
#include "base/memory.h"
#include "base/optional.h"
#include "report/page/page_internal.h"

enum { MOST = 600 }; /* boxes: the largest */
static const double left = 76, wide = 1000, high = 260, head = 12, foot = 34;

static int largest_first(const void *x, const void *y) {
    const fac_arena_part *a = *(const fac_arena_part *const *)x,
                         *b = *(const fac_arena_part *const *)y;
    const double p = (double)a->bytes * (a->last - a->first + 1),
                 q = (double)b->bytes * (b->last - b->first + 1);
    return p != q ? (p < q) - (p > q) : (a > b) - (a < b);
}

static void box(fac_text *to, const fac_memory_facts *f, const fac_arena_part *p) {
    const double across = (wide - left - 8) / (f->plan.steps > 0 ? f->plan.steps : 1),
                 up = high / (double)f->plan.arena;
    const int last = p->last < f->plan.steps
                         ? p->last
                         : f->plan.steps - 1; /* results live on after the last step */
    char text[32];
    fac_html(to,
             "<rect class=\"box %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" "
             "height=\"%.2f\"><title>%s%s\n%s from byte %.0f on\n"
             "steps %d to %d</title></rect>\n",
             p->scratch ? "scratch" : "value", left + across * p->first,
             head + high - up * (double)(p->at + p->bytes), across * (last - p->first + 1),
             up * (double)p->bytes, fac_text_if(p->scratch, "scratch of "),
             fac_text_or(p->made_by, "?"), fac_bytes_text((double)p->bytes, text, sizeof text),
             (double)p->at, p->first, last);
}

bool fac_section_arena(fac_text *to, const fac_page *r) {
    const fac_memory_facts *f = r->memory;
    const fac_arena_part **order = fac_alloc((size_t)f->nparts + 1, sizeof *order);
    char text[32];
    if (!order) return false;
    if (!f->planned || !f->parts || !f->nparts || !f->plan.arena) {
        fac_release(order);
        return true;
    }
    for (int k = 0; k < f->nparts; k++) order[k] = &f->parts[k];
    qsort(order, (size_t)f->nparts, sizeof *order, largest_first);
    const int n = f->nparts < MOST ? f->nparts : MOST;
    fac_text_add(to, "<h3>What lies where in the arena</h3>\n");
    fac_page_svg_start(to, "arena", wide, head + high + foot,
                       "The arena: steps from left to right, addresses upwards", "");
    fac_page_svg_line(to, "grid", left, head, wide - 8, head);
    fac_page_svg_line(to, "grid", left, head + high, wide - 8, head + high);
    fac_page_svg_text(to, "tick", left - 8, head + 4, "end",
                      fac_bytes_text((double)f->plan.arena, text, sizeof text));
    fac_page_svg_text(to, "tick", left - 8, head + high + 4, "end", "0");
    fac_page_svg_text(to, "tick", left, head + high + 22, "start", "step 0");
    snprintf(text, sizeof text, "%d", f->plan.steps - 1);
    fac_page_svg_text(to, "tick", wide - 8, head + high + 22, "end", text);
    for (int k = 0; k < n; k++) box(to, f, order[k]);
    fac_text_add(to, "</svg></figure>\n");
    fac_html(to, "<p class=\"note\">Dashed boxes are scratch memory of one step.%s</p>\n",
             n < f->nparts ? " The smallest parts are left out." : "");
    fac_release(order);
    return true;
}
