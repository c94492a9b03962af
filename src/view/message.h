/* Protobuf messages built from the inside out: a message is a string of bytes, put into the one
 * around it when it is complete. The bytes come from nanopb's encoder.  Sticky as fac_text is:
 * after memory ran out everything is a no-op. */
#ifndef FACULA_VIEW_MESSAGE_H
#define FACULA_VIEW_MESSAGE_H
#include <stdint.h>
#include "base/text.h"

typedef fac_text fac_proto; /* { 0 } is an empty one */

void fac_put_int(fac_proto *m, int field, int64_t x); /* every integer and enum, bool too */
void fac_put_float(fac_proto *m, int field, float x);
void fac_put_double(fac_proto *m, int field, double x);
void fac_put_doubles(fac_proto *m, int field, size_t n, const double *x); /* packed */
void fac_put_bytes(fac_proto *m, int field, const void *data, size_t n);
void fac_put_text(fac_proto *m, int field, const char *s);
void fac_put_message(fac_proto *m, int field, fac_proto *inner); /* inner is empty afterwards */
#endif
