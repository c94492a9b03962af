/* See html.h.  What is no UTF-8, control characters and what turns text around become U+FFFD, so
 * that no browser has to guess. */
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include "facula/text.h"
#include "report/page/html.h"

static void escape(fac_text *to, const char *text) {
    for (size_t i = 0; text[i];) {
        const size_t from = i;
        uint32_t c;
        i += fac_utf8(text + i, &c);
        if (c == '&')
            fac_text_add(to, "&amp;");
        else if (c == '<')
            fac_text_add(to, "&lt;");
        else if (c == '>')
            fac_text_add(to, "&gt;");
        else if (c == '"')
            fac_text_add(to, "&quot;");
        else if (c == '\'')
            fac_text_add(to, "&#39;");
        else if (c == FAC_NO_LETTER || (fac_steers(c) && c != '\n' && c != '\t'))
            fac_text_add(to, "\xef\xbf\xbd");
        else
            fac_text_add_bytes(to, text + from, i - from);
    }
}

void fac_html_json(fac_text *to, const char *text) {
    fac_text_add(to, "\"");
    for (size_t i = 0; text[i];) {
        const size_t from = i;
        uint32_t c;
        i += fac_utf8(text + i, &c);
        if (fac_steers(c) || strchr("\"\\<>&'", c < 0x80 ? (int)c : 'a') || c == FAC_NO_LETTER)
            fac_text_print(to, "\\u%04x", (unsigned)c);
        else
            fac_text_add_bytes(to, text + from, i - from);
    }
    fac_text_add(to, "\"");
}

void fac_html(fac_text *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    while (*format) {
        const size_t plain = strcspn(format, "%");
        fac_text_add_bytes(to, format, plain);
        format += plain;
        if (!*format) break;
        char one[32];
        const size_t n =
            strcspn(format + 1, "%sdgfu") + 2; /* the directive with the letter that ends it */
        snprintf(one, sizeof one, "%.*s", (int)n, format);
        format += n;
        switch (one[strlen(one) - 1]) {
        case 's':
            escape(to, va_arg(args, const char *));
            break;
        case 'd':
            fac_text_print(to, one, va_arg(args, int));
            break;
        case 'u':
            fac_text_print(to, one, va_arg(args, unsigned));
            break;
        case 'g':
        case 'f':
            fac_text_print(to, one, va_arg(args, double));
            break;
        default:
            fac_text_add(to, "%");
            break;
        }
    }
    va_end(args);
}
