/* FACULA_SHARD=i/n: of all that a test tries, what falls to the i-th of n processes, counted from
 * 0.  Without it: everything. */
#ifndef FACULA_TESTS_SHARD_H
#define FACULA_TESTS_SHARD_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

typedef struct shard {
    unsigned mine, of, next;
} shard;

static inline shard shard_asked_for(void) {
    shard s = { 0, 1, 0 };
    const char *asked = getenv("FACULA_SHARD");
    if (asked && (sscanf(asked, "%u/%u", &s.mine, &s.of) != 2 || s.mine >= s.of))
        fail_msg("FACULA_SHARD=%s", asked);
    return s;
}

/* Of the next one. */
static inline bool shard_is_mine(shard *s) { return s->next++ % s->of == s->mine; }
#endif
