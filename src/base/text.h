/* A string that grows.  Sticky: after memory ran out everything is a no-op and failed is set. */
#ifndef FACULA_BASE_TEXT_H
#define FACULA_BASE_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include "facula/status.h"

typedef struct fac_text {
    char *s;
    size_t n, room;
    bool failed;
} fac_text; /* { 0 } is an empty one; s is NULL then */

void fac_text_add(fac_text *t, const char *s);
void fac_text_add_bytes(fac_text *t, const char *s, size_t n);
void fac_text_print(fac_text *t, const char *format, ...) FAC_PRINTF(2, 3);
void fac_text_free(fac_text *t);
#endif
