/* Numbers in graph text: the shortest decimal that reads back to the same value, whatever the
 * locale. */
#ifndef FACULA_GRAPH_NUMBER_H
#define FACULA_GRAPH_NUMBER_H
#include "base/text.h"
#include "facula/tensor.h"

/* dtype: as precise as this type is (FAC_F32 prints 0.1f as 0.1). */
void fac_real_print(double x, fac_dtype dtype, fac_text *to);
/* Reads one number (also inf, -inf, nan) at *s, not after end, and moves *s after it; false if
 * there is none. */
bool fac_real_parse(const char **s, const char *end, double *out);
/* The same for integers in decimal; false also when it does not fit. */
bool fac_int_parse(const char **s, const char *end, int64_t *out);
bool fac_unsigned_parse(const char **s, const char *end, uint64_t *out);
#endif
