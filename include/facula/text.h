/* facula/text.h: text of others, such as names in a model, and how it may be shown; how numbers
 * read.
 *
 * A name may hold anything.  On a terminal some of it would move the cursor, change what was
 * printed before, or make text read in another order than it is stored.  Errors of the library are
 * free of that; who prints names makes them plain, too.  These functions keep nothing and may be
 * called from any thread. */
#ifndef FACULA_TEXT_H
#define FACULA_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

enum { FAC_NO_LETTER = 0xfffd }; /* U+FFFD */

/* The character of UTF-8 (RFC 3629) at s, which ends in a zero byte: how many bytes it has, 1 to 4.
 * What is no UTF-8 is one byte long and FAC_NO_LETTER.  At the end: one byte, 0. */
size_t fac_utf8(const char *s, uint32_t *c);

/* Control characters (C0, DEL, C1), separators of lines and paragraphs (U+2028, U+2029), and those
 * that turn text around (U+202A to U+202E, U+2066 to U+2069). */
bool fac_steers(uint32_t c);

/* Each of these, and each byte that is no UTF-8, becomes '?', in place.  The new length, which is
 * never larger. */
size_t fac_plain(char *text);

/* Numbers as people read them; what does not fit is cut.  All return `to`. */
const char *fac_bytes_text(double bytes, char *to, size_t size); /* "12.4 MB", of 1,000 kB */
const char *fac_count_text(double count, char *to, size_t size); /* "1.82 G" */
const char *fac_digits_text(double x, char *to, size_t size);    /* "1,814,073,344" */

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
