/* Texts as JSON writes them. */
#ifndef FACULA_BASE_QUOTE_H
#define FACULA_BASE_QUOTE_H
#include "base/text.h"

/* The n bytes as a string of JSON (RFC 8259), quotes included.  What is no UTF-8 becomes U+FFFD. */
void fac_text_quote(fac_text *t, const char *s, size_t n);
#endif
