/* Elements of the pictures and tables of a report. */
#include "report/page/page_internal.h"

void fac_page_svg_start(fac_text *to, const char *id, double w, double h, const char *label,
                        const char *more) {
    fac_html(to,
             "<figure class=\"scroll\"><svg class=\"chart\" id=\"%s\" viewBox=\"0 0 %.0f %.0f\" "
             "role=\"img\" aria-label=\"%s\"",
             id, w, h, label);
    fac_text_print(to, "%s>\n", more);
}

void fac_page_svg_line(fac_text *to, const char *class, double x1, double y1, double x2,
                       double y2) {
    fac_html(to, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class,
             x1, y1, x2, y2);
}

void fac_page_svg_rect(fac_text *to, const char *class, double x, double y, double w, double h,
                       double radius) {
    fac_html(
        to, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" rx=\"%.1f\"/>",
        class, x, y, w, h, radius);
}

void fac_page_svg_text(fac_text *to, const char *class, double x, double y, const char *anchor,
                       const char *text) {
    fac_html(to, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", class,
             x, y, anchor, text);
}

void fac_page_table_start(fac_text *to, const char *class, const char *label, int n,
                          const char *const *heads, int numbers) {
    fac_html(to,
             "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table "
             "class=\"%s\">\n<thead><tr>",
             label, class);
    for (int k = 0; k < n; k++)
        fac_html(to, "<th scope=\"col\" class=\"%s\">%s</th>", k >= numbers ? "n" : "", heads[k]);
    fac_text_add(to, "</tr></thead>\n<tbody>\n");
}

void fac_page_table_end(fac_text *to) { fac_text_add(to, "</tbody>\n</table></div>\n"); }
