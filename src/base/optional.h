/* Texts that are not always there, for formats. */
#ifndef FACULA_BASE_OPTIONAL_H
#define FACULA_BASE_OPTIONAL_H
#include <stdbool.h>

/* text, if it is on; else nothing. */
static inline const char *fac_text_if(bool on, const char *text) { return on ? text : ""; }

/* text, or what stands for it where it is NULL. */
static inline const char *fac_text_or(const char *text, const char *otherwise) {
    return text ? text : otherwise;
}
#endif
