/* Memory that is shown outside.  An array over a tensor may be written at any time, without notice,
 * and programs keep what they made from tensors that stay unwritten.  So lazy calls ask here
 * whether a tensor is shown, and whether it was since they last looked (docs/LAZY.md).  All of it
 * is under Python's lock.
 *
 * An address stays in the table after its tensor is freed, since `ended` must never go back.  A
 * later tensor there is only looked at once more than it needs.  Freed addresses are used again, so
 * the table grows with the tensors that were alive at once, not with those that were ever made. */
#include "module.h"

typedef struct Shown {
    const fac_tensor *t; /* only its address: the tensor may be gone */
    unsigned viewers;
    uint64_t ended; /* when the last of them ended; 0: none did */
} Shown;

static Shown *table;
static size_t slots, count;
static uint64_t clock_;

static Shown *slot_of(Shown *in, size_t n, const fac_tensor *t) {
    size_t i = (size_t)(((uintptr_t)t >> 4) * 0x9e3779b97f4a7c15u) & (n - 1);
    while (in[i].t && in[i].t != t) i = (i + 1) & (n - 1);
    return &in[i];
}

static bool grow(void) {
    const size_t n = slots ? 2 * slots : 64;
    Shown *wider = PyMem_Calloc(n, sizeof *wider);
    if (!wider) return PyErr_NoMemory() != NULL;
    for (size_t i = 0; i < slots; i++)
        if (table[i].t) *slot_of(wider, n, table[i].t) = table[i];
    PyMem_Free(table);
    table = wider;
    slots = n;
    return true;
}

bool py_show(const fac_tensor *t) {
    if (2 * (count + 1) > slots && !grow()) return false;
    Shown *s = slot_of(table, slots, t);
    count += !s->t;
    s->t = t;
    s->viewers++;
    return true;
}

void py_hide(const fac_tensor *t) {
    Shown *s = slot_of(table, slots, t);
    s->viewers--;
    s->ended = ++clock_;
}

bool py_is_shown(const fac_tensor *t, uint64_t *ended) {
    const Shown *s = count ? slot_of(table, slots, t) : NULL;
    *ended = s ? s->ended : 0;
    return s && s->viewers;
}
