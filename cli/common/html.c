/* See html.h.  What is no UTF-8, control characters and what turns text around become U+FFFD, so
 * that no browser has to guess. */
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include "html.h"

static void escape(FILE *to, const char *text) {
    for (size_t i = 0; text[i];) {
        const size_t from = i;
        uint32_t c;
        i += fac_utf8(text + i, &c);
        if (c == '&')
            fputs("&amp;", to);
        else if (c == '<')
            fputs("&lt;", to);
        else if (c == '>')
            fputs("&gt;", to);
        else if (c == '"')
            fputs("&quot;", to);
        else if (c == '\'')
            fputs("&#39;", to);
        else if (c == FAC_NO_LETTER || (fac_steers(c) && c != '\n' && c != '\t'))
            fputs("\xef\xbf\xbd", to);
        else
            fwrite(text + from, 1, i - from, to);
    }
}

void html_json(FILE *to, const char *text) {
    fputc('"', to);
    for (size_t i = 0; text[i];) {
        const size_t from = i;
        uint32_t c;
        i += fac_utf8(text + i, &c);
        if (fac_steers(c) || strchr("\"\\<>&'", c < 0x80 ? (int)c : 'a') || c == FAC_NO_LETTER)
            fprintf(to, "\\u%04x", (unsigned)c);
        else
            fwrite(text + from, 1, i - from, to);
    }
    fputc('"', to);
}

void html(FILE *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    while (*format) {
        const size_t plain = strcspn(format, "%");
        fwrite(format, 1, plain, to);
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
            fprintf(to, one, va_arg(args, int));
            break;
        case 'u':
            fprintf(to, one, va_arg(args, unsigned));
            break;
        case 'g':
        case 'f':
            fprintf(to, one, va_arg(args, double));
            break;
        default:
            fputc('%', to);
            break;
        }
    }
    va_end(args);
}
