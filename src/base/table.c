/* Hashing, and a table of strings with linear probing, at most three quarters full. */
#include "base/table.h"
#include <string.h>
#include "base/memory.h"

/* The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014; constants by D. Stafford): every
 * input bit reaches every output bit. */
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Two lanes that start apart and step by different odd constants, so that a collision in one says
 * nothing of the other. */
fac_hash fac_hash_start(uint64_t seed) {
    return (fac_hash){ mix(seed + 0x9e3779b97f4a7c15u), mix(seed ^ 0xd1b54a32d192ed03u) };
}

fac_hash fac_hash_int(fac_hash h, uint64_t x) {
    return (fac_hash){ mix((h.a ^ x) + 0x9e3779b97f4a7c15u),
                       mix((h.b + x) * 0xd1b54a32d192ed03u + 1) };
}

fac_hash fac_hash_bytes(fac_hash h, const void *data, size_t n) {
    const unsigned char *p = data;
    h = fac_hash_int(h, n);
    while (n) {
        uint64_t word = 0;
        size_t take = n < 8 ? n : 8;
        memcpy(&word, p, take);
        h = fac_hash_int(h, word);
        p += take;
        n -= take;
    }
    return h;
}

fac_hash fac_hash_text(fac_hash h, const char *s) {
    return s ? fac_hash_bytes(h, s, strlen(s)) : fac_hash_int(h, UINT64_MAX);
}

fac_hash fac_hash_join(fac_hash h, fac_hash x) { return fac_hash_int(fac_hash_int(h, x.a), x.b); }

/* The slot of key, or the empty one where it belongs; there always is an empty one. */
static fac_table_slot *slot_of(const fac_table *t, const char *key) {
    size_t i = (size_t)fac_hash_text((fac_hash){ 0 }, key).a & (t->room - 1);
    while (t->slots[i].key && strcmp(t->slots[i].key, key)) i = (i + 1) & (t->room - 1);
    return &t->slots[i];
}

void *fac_table_get(const fac_table *t, const char *key) {
    return t->room ? slot_of(t, key)->value : NULL;
}

static bool grow(fac_table *t) {
    fac_table larger = { .room = t->room ? t->room * 2 : 16, .n = t->n };
    larger.slots = fac_alloc(larger.room, sizeof *larger.slots);
    if (!larger.slots) return false;
    for (size_t i = 0; i < t->room; i++)
        if (t->slots[i].key) *slot_of(&larger, t->slots[i].key) = t->slots[i];
    fac_release(t->slots);
    *t = larger;
    return true;
}

bool fac_table_put(fac_table *t, const char *key, void *value) {
    if (4 * (t->n + 1) > 3 * t->room && !grow(t)) return false;
    fac_table_slot *slot = slot_of(t, key);
    if (!slot->key) {
        slot->key = key;
        t->n++;
    }
    slot->value = value;
    return true;
}

void fac_table_free(fac_table *t) {
    fac_release(t->slots);
    *t = (fac_table){ 0 };
}
