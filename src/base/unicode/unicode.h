/* What texts need to know of characters: Unicode general categories, and letters of the other case.
 */
#ifndef FACULA_BASE_UNICODE_H
#define FACULA_BASE_UNICODE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool fac_unicode_is_letter(uint32_t c); /* L */
bool fac_unicode_is_mark(uint32_t c);   /* M: accents that stand after their letter */
bool fac_unicode_is_number(uint32_t c); /* N */
bool fac_unicode_is_space(uint32_t c);  /* White_Space */
uint32_t fac_unicode_lower(uint32_t c); /* the simple mapping */
uint32_t fac_unicode_upper(uint32_t c); /* its inverse        */

/* Bytes after the first one that a character has in UTF-8: 0 to 3. */
static inline int fac_utf8_more(uint32_t c) { return (c >= 0x80) + (c >= 0x800) + (c >= 0x10000); }
/* Those that the first byte of a character announces. */
static inline int fac_utf8_announced(unsigned char first) {
    return (first >= 0x80) + (first >= 0xe0) + (first >= 0xf0);
}
#endif
