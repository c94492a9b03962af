/* Preloaded into a command: one of its allocations fails, or all from one on.  LOSE_AT=N: the N-th;
 * LOSE_FROM=N: the N-th and all that follow; LOSE_COUNT=FILE: how many there were is written there
 * in the end.  glibc only. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static atomic_long asked;
static long at, from;
static bool armed;
static const char *count_to;

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : 0;
}

/* The libraries that are loaded first are not what is tested. */
__attribute__((constructor)) static void arm(void) {
    at = number("LOSE_AT");
    from = number("LOSE_FROM");
    count_to = getenv("LOSE_COUNT");
    armed = true;
}

__attribute__((destructor)) static void tell(void) {
    armed = false;
    FILE *f = count_to ? fopen(count_to, "w") : NULL;
    if (!f) return;
    fprintf(f, "%ld\n", (long)asked);
    fclose(f);
}

static bool lost(void) {
    if (!armed) return false;
    const long k = atomic_fetch_add(&asked, 1) + 1;
    if (k != at && (!from || k < from)) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes) { return lost() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t n, size_t size) { return lost() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t bytes) { return lost() ? NULL : __libc_realloc(p, bytes); }
void *aligned_alloc(size_t align, size_t bytes) {
    return lost() ? NULL : __libc_memalign(align, bytes);
}
int posix_memalign(void **out, size_t align, size_t bytes) {
    void *p = lost() ? NULL : __libc_memalign(align, bytes);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}
