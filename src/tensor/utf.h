/* UTF-8 and UTF-32.  What is malformed becomes U+FFFD. */
#ifndef FACULA_TENSOR_UTF_H
#define FACULA_TENSOR_UTF_H
#include "base/arena.h"
#include <stdbool.h>
#include <stdint.h>

uint32_t fac_utf8_next(const unsigned char **p); /* the code point at *p, which moves after it; the
                                                    text ends in a NUL */
char *fac_utf8_put(char *p, uint32_t c);         /* writes up to 4 bytes; after them */

size_t fac_utf32_length(const char *s);              /* code points */
void fac_utf32_of_utf8(uint32_t *to, const char *s); /* fac_utf32_length(s) of them */
/* At most n, up to a zero; from has any alignment; big: the highest byte is the first.  NULL: no
 * memory. */
char *fac_utf8_of_utf32(fac_arena *a, const void *from, size_t n, bool big);
#endif
