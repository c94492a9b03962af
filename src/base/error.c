/* Error texts: formatted into the caller's struct, so reporting needs no memory. */
#include "base/error.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "facula/text.h"

/* Names in messages come from files: what could steer a terminal is shown as '?'.  A text that does
 * not fit ends in "...". */
static void put(fac_error *err, fac_status status, const char *text, int length) {
    size_t room = sizeof err->text, n = length < 0 ? 0 : (size_t)length;
    bool cut = n >= room;
    if (cut) n = room - 1;
    memcpy(err->text, text, n);
    err->text[n] = 0;
    n = fac_plain(err->text);
    if (cut) memcpy(err->text + (n < room - 4 ? n : room - 4), "...", 4);
    err->status = status;
}

fac_status fac_raise_list(fac_error *err, fac_status status, const char *format, va_list args) {
    if (err) {
        char text[sizeof err->text]; /* an argument may be err->text itself */
        int length = vsnprintf(text, sizeof text, format, args);
        put(err, status, text, length);
    }
    return status;
}

fac_status(fac_raise)(fac_error *err, fac_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fac_raise_list(err, status, format, args);
    va_end(args);
    return status;
}

fac_status fac_raise_in(fac_error *err, fac_status status, const char *format, ...) {
    if (err) {
        char where[sizeof err->text], text[2 * sizeof err->text + 2];
        va_list args;
        va_start(args, format);
        vsnprintf(where, sizeof where, format, args);
        va_end(args);
        int length = snprintf(text, sizeof text, "%s: %s", where, err->text);
        put(err, status, text, length);
    }
    return status;
}
