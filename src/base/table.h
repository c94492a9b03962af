/* Strings to pointers, and 128-bit keys to pointers: open addressing, keys of the string table are
 * borrowed. */
#ifndef FACULA_BASE_TABLE_H
#define FACULA_BASE_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fac_table_slot {
    const char *key;
    void *value;
} fac_table_slot;
typedef struct fac_table {
    fac_table_slot *slots;
    size_t room, n;
} fac_table; /* { 0 } is an empty one */

void *fac_table_get(const fac_table *t, const char *key); /* NULL if there is none */
bool fac_table_put(fac_table *t, const char *key,
                   void *value); /* replaces; false when memory is gone */
void fac_table_free(fac_table *t);

/* 128-bit hashes are keys without an equality check: collisions are taken to be impossible. */
typedef struct fac_hash {
    uint64_t a, b;
} fac_hash;
fac_hash fac_hash_start(uint64_t seed);
fac_hash fac_hash_int(fac_hash h, uint64_t x);
fac_hash fac_hash_bytes(fac_hash h, const void *data, size_t n);
fac_hash fac_hash_text(fac_hash h, const char *s); /* NULL differs from "" */
fac_hash fac_hash_join(fac_hash h, fac_hash x);
static inline bool fac_hash_equal(fac_hash x, fac_hash y) { return x.a == y.a && x.b == y.b; }
#endif
