/* The modules of a model as a table whose rows are nested: it reads without the script, which
 * folds, sorts and searches it. */
#include <stdio.h>
#include "report/page/page_internal.h"
#include "base/optional.h"

enum { ROWS = 8000 };

static void row(fac_text *to, const fac_page *r, const fac_branch *b, int depth) {
    const fac_layer *l = b->layer;
    const fac_graph *g = fac_analysis_graph(r->a);
    const double bytes = b->read + b->activations + b->weights;
    char text[256];
    const char *key = l && !b->child ? l->name : b->name;
    const char *kind = l ? l->kind : "";
    fac_html(to,
             "<tr data-d=\"%d\" class=\"%s\" data-key=\"%s\"><th scope=\"row\" "
             "style=\"--d:%d\"><span>%s</span></th>",
             depth, b->child ? "group" : "leaf", key, depth, b->name);
    if (l && b->calls > 1)
        fac_html(to, "<td>%s \xc3\x97%d</td>", l->kind, b->calls);
    else
        fac_html(to, "<td>%s</td>", fac_text_or(b->of_class, kind));
    const fac_layer *made = l ? l : b->final; /* a container gives what its last layer makes */
    fac_html(to, "<td>%s</td>", made ? fac_page_dims(g, &made->out, text, sizeof text) : "");
    fac_page_cell_number(to, b->params,
                         b->params > 0   ? fac_digits_text(b->params, text, sizeof text)
                         : b->shared > 0 ? "shared"
                                         : "",
                         -1);
    fac_page_cell_number(to, b->counted,
                         b->counted > 0 ? fac_digits_text(b->counted, text, sizeof text) : "",
                         fac_page_ratio(b->counted, r->t.macs));
    fac_page_cell_number(to, b->activations, fac_bytes_text(b->activations, text, sizeof text), -1);
    fac_page_cell_number(to, b->weights,
                         b->weights > 0 ? fac_bytes_text(b->weights, text, sizeof text) : "", -1);
    snprintf(text, sizeof text, "%.1f", fac_page_ratio(b->macs, bytes));
    fac_page_cell_number(to, fac_page_ratio(b->macs, bytes), b->macs > 0 ? text : "", -1);
    fac_text_add(to, "</tr>\n");
}

static int rows(fac_text *to, const fac_page *r, const fac_branch *b, int depth, int left) {
    for (const fac_branch *c = b->child; c; c = c->next) {
        if (left > 0) row(to, r, c, depth);
        left = rows(to, r, c, depth + 1, left - 1);
    }
    return left;
}

bool fac_section_tree(fac_text *to, const fac_page *r) {
    static const char *const heads[] = { "Layer",         "Kind",    "Output",  "Parameters",
                                         "Multiply-adds", "Results", "Weights", "MAC/byte" };
    fac_page_section_start(
        to, "modules", "Modules",
        "What each module holds and costs; a module counts all that is inside of it. "
        "Results are written by its layers, weights are read.");
    fac_text_add(
        to,
        "<p class=\"tools js\"><button type=\"button\" id=\"unfold\">Unfold all</button><button "
        "type=\"button\" "
        "id=\"fold\">Fold all</button>"
        "<label><input type=\"checkbox\" id=\"flat\"> layers only</label></p>\n");
    fac_page_table_start(to, "tree", "Modules", sizeof heads / sizeof *heads, heads, 3);
    const int left = rows(to, r, r->tree, 0, ROWS);
    fac_page_table_end(to);
    if (left < 0)
        fac_html(
            to,
            "<p class=\"note\">%d more rows are left out here; `facula summary` lists all.</p>\n",
            -left);
    fac_page_section_end(to);
    return true;
}
