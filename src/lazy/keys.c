/* A table of 128-bit keys: linear probing, at most three quarters full. */
#include "base/memory.h"
#include "lazy/lazy_internal.h"

static size_t home_of(const fac_keys *k, fac_hash key) { return (size_t)key.a & (k->room - 1); }

/* The slot of the key, or the empty one where it belongs. */
static fac_keys_slot *slot_of(const fac_keys *k, fac_hash key) {
    size_t i = home_of(k, key);
    while (k->slots[i].value && !fac_hash_equal(k->slots[i].key, key)) i = (i + 1) & (k->room - 1);
    return &k->slots[i];
}

void *fac_keys_get(const fac_keys *k, fac_hash key) {
    return k->room ? slot_of(k, key)->value : NULL;
}

static bool grow(fac_keys *k) {
    fac_keys larger = { .room = k->room ? k->room * 2 : 16, .n = k->n };
    larger.slots = fac_alloc(larger.room, sizeof *larger.slots);
    if (!larger.slots) return false;
    for (size_t i = 0; i < k->room; i++)
        if (k->slots[i].value) *slot_of(&larger, k->slots[i].key) = k->slots[i];
    fac_release(k->slots);
    *k = larger;
    return true;
}

/* Those after an emptied slot move up, so that no search ends too early. */
static void take_out(fac_keys *k, fac_keys_slot *slot) {
    size_t hole = (size_t)(slot - k->slots), i = hole;
    slot->value = NULL;
    k->n--;
    for (;;) {
        i = (i + 1) & (k->room - 1);
        if (!k->slots[i].value) return;
        const size_t home = home_of(k, k->slots[i].key);
        const size_t from_home = (i - home) & (k->room - 1), from_hole = (i - hole) & (k->room - 1);
        if (from_home < from_hole) continue;
        k->slots[hole] = k->slots[i];
        k->slots[i].value = NULL;
        hole = i;
    }
}

bool fac_keys_put(fac_keys *k, fac_hash key, void *value) {
    if (!value) {
        fac_keys_slot *slot = k->room ? slot_of(k, key) : NULL;
        if (slot && slot->value) take_out(k, slot);
        return true;
    }
    if (4 * (k->n + 1) > 3 * k->room && !grow(k)) return false;
    fac_keys_slot *slot = slot_of(k, key);
    k->n += !slot->value;
    *slot = (fac_keys_slot){ key, value };
    return true;
}

void fac_keys_clear(fac_keys *k, void (*drop)(void *value)) {
    for (size_t i = 0; i < k->room; i++)
        if (k->slots[i].value) drop(k->slots[i].value);
    fac_keys_free(k);
}

void fac_keys_free(fac_keys *k) {
    fac_release(k->slots);
    *k = (fac_keys){ 0 };
}
