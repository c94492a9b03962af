/* Normal forms of Unicode (UAX 15): NFD by table, Hangul by formula; NFC from it. */
#ifndef FACULA_TEXT_NORMAL_H
#define FACULA_TEXT_NORMAL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/text.h"

enum { FAC_DECOMPOSED = 8 };
int fac_decompose(uint32_t c, uint32_t to[FAC_DECOMPOSED]); /* canonical, full; how many */
size_t fac_utf8_write(char *to, uint32_t c);
bool fac_unicode_is_nonspacing(uint32_t c);  /* Mn */
bool fac_unicode_is_punctuation(uint32_t c); /* P  */
bool fac_unicode_is_format(uint32_t c);      /* Cf, Co */
/* The text in NFC; to->failed: no memory. */
void fac_nfc(const char *s, size_t n, fac_text *to);
#endif
