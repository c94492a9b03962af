/* How code inside the library reports. */
#ifndef FACULA_BASE_ERROR_H
#define FACULA_BASE_ERROR_H
#include <stdarg.h>
#include "facula/status.h"

/* Fills err (may be NULL) and returns status, so that a function can `return fac_raise(err,
 * FAC_E_IO, "%s: ...", path)`. */
fac_status fac_raise(fac_error *err, fac_status status, const char *format, ...) FAC_PRINTF(3, 4);
fac_status fac_raise_list(fac_error *err, fac_status status, const char *format, va_list args);

/* Puts "where: " before the text of an error that was raised further down, and returns its status.
 */
fac_status fac_raise_in(fac_error *err, fac_status status, const char *format, ...)
    FAC_PRINTF(3, 4);

/* The same, but the compiler sees which status comes back: that it is not FAC_OK, so that what a
 * failed call left unset is not taken for used. */
static inline fac_status fac_raised(fac_status status) { return status; }
#define fac_raise(err, status, ...) ((fac_raise)(err, status, __VA_ARGS__), fac_raised(status))

/* "no memory for WHAT": what is a format, a literal, with its arguments after it. */
#define fac_raise_memory(err, ...) fac_raise(err, FAC_E_NOMEM, "no memory for " __VA_ARGS__)

#define FAC_TRY(call)                                                                              \
    do {                                                                                           \
        fac_status fac_status_ = (call);                                                           \
        if (fac_status_) return fac_status_;                                                       \
    } while (0)
#endif
