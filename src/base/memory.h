/* The only places that call malloc and free.  Sizes are checked for overflow; NULL means no memory.
 */
#ifndef FACULA_BASE_MEMORY_H
#define FACULA_BASE_MEMORY_H
#include <stdbool.h>
#include <stddef.h>

void *fac_alloc(size_t n, size_t size); /* n * size zero bytes */
void *fac_resize(void *p, size_t n,
                 size_t size); /* realloc; what was added is undefined; p stays valid on NULL */
void fac_release(void *p);
char *fac_copy_text(const char *s); /* strdup; NULL for NULL                                      */

/* Room for `need` elements in an array that grows by doubling: *array and *room are changed; false
 * when memory is gone. */
bool fac_reserve(void *array, size_t *room, size_t need, size_t size);

/* For tensors and arenas: 64-byte aligned, huge pages for large ones; contents undefined (fresh
 * pages are zero). */
void *fac_alloc_aligned(size_t bytes);
void fac_release_aligned(void *p);

bool fac_size_mul(size_t a, size_t b, size_t *out); /* false on overflow */
bool fac_size_add(size_t a, size_t b, size_t *out);

#ifdef FAC_TESTS
/* A test program may define this: false makes the allocation at hand fail, which is how running out
 * of memory is tested. */
bool fac_test_allows(size_t bytes) __attribute__((weak));
#endif
#endif
