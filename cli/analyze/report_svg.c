/* Elements of the pictures and tables of a report. */
#include "report.h"

void svg_start(FILE *to, const char *id, double w, double h, const char *label, const char *more) {
    html(to,
         "<figure class=\"scroll\"><svg class=\"chart\" id=\"%s\" viewBox=\"0 0 %.0f %.0f\" "
         "role=\"img\" aria-label=\"%s\"",
         id, w, h, label);
    fprintf(to, "%s>\n", more);
}

void svg_line(FILE *to, const char *class, double x1, double y1, double x2, double y2) {
    html(to, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1,
         y1, x2, y2);
}

void svg_rect(FILE *to, const char *class, double x, double y, double w, double h, double radius) {
    html(to,
         "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" rx=\"%.1f\"/>",
         class, x, y, w, h, radius);
}

void svg_text(FILE *to, const char *class, double x, double y, const char *anchor,
              const char *text) {
    html(to, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", class, x, y,
         anchor, text);
}

void table_start(FILE *to, const char *class, const char *label, int n, const char *const *heads,
                 int numbers) {
    html(to,
         "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table "
         "class=\"%s\">\n<thead><tr>",
         label, class);
    for (int k = 0; k < n; k++)
        html(to, "<th scope=\"col\" class=\"%s\">%s</th>", k >= numbers ? "n" : "", heads[k]);
    fputs("</tr></thead>\n<tbody>\n", to);
}

void table_end(FILE *to) { fputs("</tbody>\n</table></div>\n", to); }
