/* See html.h.  What is no UTF-8, and control characters, become U+FFFD, so that no browser has to guess. */
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include "html.h"

/* One character of UTF-8 (RFC 3629) at s, as its number; its bytes are added to *n.  What is none is U+FFFD, one byte long. */
static uint32_t character(const unsigned char *s, size_t *n) {
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char first = s[0];
    const size_t length = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf8 ? 4 : 0;
    uint32_t c = length == 1 ? s[0] : length ? s[0] & (0x7fu >> length) : 0;
    bool good = length > 0;
    for (size_t k = 1; k < length && good; k++) {
        good = (s[k] & 0xc0) == 0x80;
        c = c << 6 | (s[k] & 0x3f);
    }
    good = good && c >= least[length] && c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000);
    *n += good ? length : 1;
    return good ? c : 0xfffd;
}

static void escape(FILE *to, const char *text) {
    for (size_t i = 0; text[i];) {
        const size_t from = i;
        const uint32_t c = character((const unsigned char *)text + i, &i);
        if (c == '&') fputs("&amp;", to);
        else if (c == '<') fputs("&lt;", to);
        else if (c == '>') fputs("&gt;", to);
        else if (c == '"') fputs("&quot;", to);
        else if (c == '\'') fputs("&#39;", to);
        else if (c == 0xfffd || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) fputs("\xef\xbf\xbd", to);
        else fwrite(text + from, 1, i - from, to);
    }
}

void html_json(FILE *to, const char *text) {
    fputc('"', to);
    for (size_t i = 0; text[i];) {
        const size_t from = i;
        const uint32_t c = character((const unsigned char *)text + i, &i);
        if (c < 0x20 || strchr("\"\\<>&'", c < 0x80 ? (int)c : 'a') || c == 0x7f || c == 0x2028 || c == 0x2029 || c == 0xfffd)
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
        const size_t n = strcspn(format + 1, "%sdgfu") + 2;     /* the directive with the letter that ends it */
        snprintf(one, sizeof one, "%.*s", (int)n, format);
        format += n;
        switch (one[strlen(one) - 1]) {
        case 's': escape(to, va_arg(args, const char *)); break;
        case 'd': fprintf(to, one, va_arg(args, int)); break;
        case 'u': fprintf(to, one, va_arg(args, unsigned)); break;
        case 'g': case 'f': fprintf(to, one, va_arg(args, double)); break;
        default: fputc('%', to); break;
        }
    }
    va_end(args);
}
