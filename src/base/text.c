/* A string that grows. */
#include "base/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/memory.h"

static bool room_for(fac_text *t, size_t more) {
    size_t need;
    if (!t->failed && !(fac_size_add(t->n, more, &need) && fac_size_add(need, 1, &need) &&
                        fac_reserve(&t->s, &t->room, need, 1)))
        t->failed = true;
    return !t->failed;
}

void fac_text_add_bytes(fac_text *t, const char *s, size_t n) {
    if (!room_for(t, n)) return;
    if (n) memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}

void fac_text_add(fac_text *t, const char *s) { fac_text_add_bytes(t, s, strlen(s)); }

void fac_text_print(fac_text *t, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0)
        t->failed = true;
    else if (room_for(t, (size_t)length)) {
        vsnprintf(t->s + t->n, (size_t)length + 1, format, again);
        t->n += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

void fac_text_free(fac_text *t) {
    fac_release(t->s);
    *t = (fac_text){ 0 };
}
