/* Text for HTML and for JSON inside of it, from names that anybody may have chosen. */
#ifndef FACULA_REPORT_HTML_H
#define FACULA_REPORT_HTML_H
#include "base/text.h"

/* As fac_text_print, but every %s is escaped for text and for attributes in double quotes: markup
 * stands in the format only. */
void fac_html(fac_text *to, const char *format, ...) FAC_PRINTF(2, 3);
/* A string of JSON with its quotes that may stand in a <script>: no '<', '>' or '&' is left. */
void fac_html_json(fac_text *to, const char *text);
#endif
