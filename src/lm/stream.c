/* Text that may be shown: whole characters only, and nothing that may yet turn out to begin a stop
 * text. */
#include <string.h>
#include "base/unicode/unicode.h"
#include "base/memory.h"
#include "lm/lm.h"

/* Bytes of the character that a first byte announces; 1 for what begins none. */
static size_t announced(unsigned char c) {
    return c < 0xc2 || c > 0xf4 ? 1 : 1 + (size_t)fac_utf8_announced(c);
}

/* Bytes at the end that begin a character which is not whole. */
static size_t unfinished(const char *s, size_t n) {
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned char c = (unsigned char)s[n - back];
        if ((c & 0xc0) == 0x80) continue;
        return announced(c) > back ? back : 0;
    }
    return 0;
}

/* Bytes at the end that are how a stop text begins. */
static size_t may_stop(const fac_stream *t, size_t n) {
    size_t most = 0;
    for (int k = 0; k < t->nstop; k++)
        for (size_t m = strlen(t->stop[k]) - 1; m > most; m--)
            if (m <= n && !memcmp(t->held + n - m, t->stop[k], m)) most = m;
    return most;
}

static bool find_stop(const fac_stream *t, size_t *at) {
    bool found = false;
    for (int k = 0; k < t->nstop; k++) {
        const size_t n = strlen(t->stop[k]);
        for (size_t i = 0; i + n <= t->n; i++) {
            if (memcmp(t->held + i, t->stop[k], n) || (found && i >= *at)) continue;
            *at = i;
            found = true;
        }
    }
    return found;
}

size_t fac_stream_add(fac_stream *s, const char *bytes, size_t n, bool *stopped) {
    size_t at = 0;
    *stopped = false;
    if (!fac_reserve(&s->held, &s->room, s->n + n + 1, 1)) return SIZE_MAX;
    memcpy(s->held + s->n, bytes, n);
    s->n += n;
    if (find_stop(s, &at)) {
        *stopped = true;
        return s->n = at;
    }
    const size_t begun = unfinished(s->held, s->n), stops = may_stop(s, s->n);
    return s->n - (begun > stops ? begun : stops);
}

void fac_stream_take(fac_stream *s, size_t n) {
    s->n -= n;
    memmove(s->held, s->held + n, s->n);
}

void fac_stream_end(fac_stream *s) {
    fac_release(s->held);
    *s = (fac_stream){ 0 };
}
