/* How few bits a model's products have, as summary, inspect and report say it. */
#ifndef FACULA_CLI_BITS_H
#define FACULA_CLI_BITS_H
#include "cli.h"

/* "w1a2"; "--": its products have no weight. */
const char *bits_text(const fac_layer *l, char *to, size_t size);

/* Are there products of 8 bits or fewer? */
bool bits_few(const fac_totals *t);
/* Of all weights if they were packed. */
double bits_packed(const fac_totals *t);
/* Both as lines of text; nothing where all products are of floats. */
void bits_print(const fac_analysis *a);
#endif
