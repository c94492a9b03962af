/* The modules of a model as a table whose rows are nested: it reads without the script, which
 * folds, sorts and searches it. */
#include "report.h"

enum { ROWS = 8000 };

static void row(FILE *to, const report *r, const branch *b, int depth) {
    const fac_layer *l = b->layer;
    const fac_graph *g = fac_analysis_graph(r->a);
    const double bytes = b->read + b->activations + b->weights;
    char text[256];
    html(to,
         "<tr data-d=\"%d\" class=\"%s\" data-key=\"%s\"><th scope=\"row\" "
         "style=\"--d:%d\"><span>%s</span></th>",
         depth, b->child ? "group" : "leaf", l && !b->child ? l->name : b->name, depth, b->name);
    if (l && b->calls > 1)
        html(to, "<td>%s \xc3\x97%d</td>", l->kind, b->calls);
    else
        html(to, "<td>%s</td>", b->class ? b->class : l ? l->kind : "");
    const fac_layer *made = l ? l : b->final; /* a container gives what its last layer makes */
    html(to, "<td>%s</td>", made ? type_dims(g, &made->out, text, sizeof text) : "");
    cell_number(to, b->params,
                b->params > 0   ? digits_text(b->params, text, sizeof text)
                : b->shared > 0 ? "shared"
                                : "",
                -1);
    cell_number(to, b->counted, b->counted > 0 ? digits_text(b->counted, text, sizeof text) : "",
                ratio(b->counted, r->t.macs));
    cell_number(to, b->activations, bytes_text(b->activations, text, sizeof text), -1);
    cell_number(to, b->weights, b->weights > 0 ? bytes_text(b->weights, text, sizeof text) : "",
                -1);
    snprintf(text, sizeof text, "%.1f", ratio(b->macs, bytes));
    cell_number(to, ratio(b->macs, bytes), b->macs > 0 ? text : "", -1);
    fputs("</tr>\n", to);
}

static int rows(FILE *to, const report *r, const branch *b, int depth, int left) {
    for (const branch *c = b->child; c; c = c->next) {
        if (left > 0) row(to, r, c, depth);
        left = rows(to, r, c, depth + 1, left - 1);
    }
    return left;
}

bool report_tree(FILE *to, const report *r) {
    static const char *const heads[] = { "Layer",         "Kind",    "Output",  "Parameters",
                                         "Multiply-adds", "Results", "Weights", "MAC/byte" };
    section_start(to, "modules", "Modules",
                  "What each module holds and costs; a module counts all that is inside of it. "
                  "Results are written by its layers, weights are read.");
    fputs("<p class=\"tools js\"><button type=\"button\" id=\"unfold\">Unfold all</button><button "
          "type=\"button\" "
          "id=\"fold\">Fold all</button>"
          "<label><input type=\"checkbox\" id=\"flat\"> layers only</label></p>\n",
          to);
    table_start(to, "tree", "Modules", sizeof heads / sizeof *heads, heads, 3);
    const int left = rows(to, r, r->tree, 0, ROWS);
    table_end(to);
    if (left < 0)
        html(to,
             "<p class=\"note\">%d more rows are left out here; `facula summary` lists all.</p>\n",
             -left);
    section_end(to);
    return true;
}
