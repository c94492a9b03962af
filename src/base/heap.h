/* Binary heaps of any type.  FAC_HEAP(NAME, TYPE, BEFORE) makes the struct NAME_heap, zero when it
 * is empty, and two functions:
 *   bool NAME_push(NAME_heap *h, TYPE item)   false: no memory
 *   TYPE NAME_pop(NAME_heap *h)               the first one by bool BEFORE(const TYPE *a, const
 * TYPE *b); there must be one fac_release(h.at) frees it.  A macro, since who compares in its
 * innermost loop wants no call. */
#ifndef FACULA_BASE_HEAP_H
#define FACULA_BASE_HEAP_H
#include <stdbool.h>
#include <stddef.h>
#include "base/memory.h"

#define FAC_HEAP(name, type, before)                                                               \
    typedef struct name##_heap {                                                                   \
        type *at;                                                                                  \
        size_t n, room;                                                                            \
    } name##_heap;                                                                                 \
                                                                                                   \
    static bool name##_push(name##_heap *h, type item) {                                           \
        if (!fac_reserve(&h->at, &h->room, h->n + 1, sizeof *h->at)) return false;                 \
        size_t k = h->n++;                                                                         \
        for (; k && before(&item, &h->at[(k - 1) / 2]); k = (k - 1) / 2)                           \
            h->at[k] = h->at[(k - 1) / 2];                                                         \
        h->at[k] = item;                                                                           \
        return true;                                                                               \
    }                                                                                              \
                                                                                                   \
    static type name##_pop(name##_heap *h) {                                                       \
        const type best = h->at[0], last = h->at[--h->n];                                          \
        size_t k = 0;                                                                              \
        for (size_t child; (child = 2 * k + 1) < h->n; k = child) {                                \
            if (child + 1 < h->n && before(&h->at[child + 1], &h->at[child])) child++;             \
            if (!before(&h->at[child], &last)) break;                                              \
            h->at[k] = h->at[child];                                                               \
        }                                                                                          \
        h->at[k] = last;                                                                           \
        return best;                                                                               \
    }
#endif
