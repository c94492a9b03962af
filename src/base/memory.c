/* malloc with its sizes checked. */
#include "base/memory.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CACHE_LINE = 64, HUGE_PAGE = 2 << 20 };

bool fac_size_mul(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
bool fac_size_add(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }

/* Nobody has a use for a TiB in one piece: such a size comes from a malformed file.  The allocators
 * of the sanitizers would not return NULL for it but end the program. */
static const uint64_t LARGEST = (UINT64_C(1) << 40) - (UINT64_C(1) << 26);

static bool allowed(size_t bytes) {
#ifdef FAC_TESTS
    if (fac_test_allows && !fac_test_allows(bytes)) return false;
#endif
    return bytes <= PTRDIFF_MAX && bytes <= LARGEST;
}

/* malloc(0) may be NULL, which would look like failure: one byte is the least that is asked for. */
void *fac_alloc(size_t n, size_t size) {
    size_t bytes;
    if (!fac_size_mul(n, size, &bytes) || !allowed(bytes)) return NULL;
    return calloc(bytes ? bytes : 1, 1);
}

void *fac_resize(void *p, size_t n, size_t size) {
    size_t bytes;
    if (!fac_size_mul(n, size, &bytes) || !allowed(bytes)) return NULL;
    return realloc(p, bytes ? bytes : 1);
}

void fac_release(void *p) { free(p); }

char *fac_copy_text(const char *s) {
    if (!s) return NULL;
    size_t bytes = strlen(s) + 1;
    char *copy = fac_alloc(bytes, 1);
    if (copy) memcpy(copy, s, bytes);
    return copy;
}

bool fac_reserve(void *array, size_t *room, size_t need, size_t size) {
    if (need <= *room) return true;
    void *old, *new;
    memcpy(&old, array, sizeof old); /* array is a T **, and T is not known here */
    size_t grown = *room < 4 ? 8 : *room * 2;
    if (grown < need) grown = need;
    new = fac_resize(old, grown, size);
    if (!new) return false;
    memcpy(array, &new, sizeof new);
    *room = grown;
    return true;
}

void *fac_alloc_aligned(size_t bytes) {
    void *p = NULL;
    bool large = bytes >= 2 * (size_t)HUGE_PAGE;
    const size_t line = large ? HUGE_PAGE : CACHE_LINE;
    if (!allowed(bytes) || posix_memalign(&p, line, bytes ? bytes : 1)) return NULL;
#ifdef MADV_HUGEPAGE
    /* Fewer TLB misses for weights and arenas; a kernel that refuses costs nothing but speed. */
    if (large) madvise(p, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return p;
}

void fac_release_aligned(void *p) { free(p); }
