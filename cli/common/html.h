/* Text for HTML and for JSON inside of it, from names that anybody may have chosen. */
#ifndef FACULA_CLI_HTML_H
#define FACULA_CLI_HTML_H
#include "cli.h"

/* As fprintf, but every %s is escaped for text and for attributes in double quotes: markup stands
 * in the format only. */
void html(FILE *to, const char *format, ...) FAC_PRINTF(2, 3);
/* A string of JSON with its quotes that may stand in a <script>: no '<', '>' or '&' is left. */
void html_json(FILE *to, const char *text);
#endif
