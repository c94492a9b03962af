/* Texts as JSON writes them. */
#include "base/quote.h"
#include <string.h>
#include "facula/text.h"

/* The character at s, of which n bytes are left: how many bytes it has; *c FAC_NO_LETTER: it is
 * none. */
static size_t letter(const char *s, size_t n, uint32_t *c) {
    char four[8] = { 0 };
    memcpy(four, s, n < 4 ? n : 4);
    if (*s) return fac_utf8(four, c);
    *c = 0;
    return 1;
}

void fac_text_quote(fac_text *t, const char *s, size_t n) {
    fac_text_add(t, "\"");
    for (size_t k = 0; k < n;) {
        uint32_t c;
        const size_t bytes = letter(s + k, n - k, &c);
        if (c < 0x20)
            fac_text_print(t, "\\u%04x", (unsigned)c);
        else if (c == '"' || c == '\\')
            fac_text_print(t, "\\%c", (char)c);
        else if (c == FAC_NO_LETTER)
            fac_text_add(t, "\xef\xbf\xbd");
        else
            fac_text_add_bytes(t, s + k, bytes);
        k += bytes;
    }
    fac_text_add(t, "\"");
}
