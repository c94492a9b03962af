/* Programs of segments, by key, the least recently used first to go. */
#include "base/error.h"
#include "base/memory.h"
#include "lazy/lazy_internal.h"

static void free_program(void *p) { fac_program_free(p); }

static void unlink_family(fac_recorder *r, fac_family *f) {
    *(f->newer ? &f->newer->older : &r->newest) = f->older;
    *(f->older ? &f->older->newer : &r->oldest) = f->newer;
    f->newer = f->older = NULL;
}

static void link_family(fac_recorder *r, fac_family *f) {
    f->older = r->newest;
    *(r->newest ? &r->newest->newer : &r->oldest) = f;
    r->newest = f;
}

fac_family *fac_family_find(fac_recorder *r, fac_hash key) {
    fac_family *f = fac_keys_get(&r->families, key);
    if (!f || f == r->newest) return f;
    unlink_family(r, f);
    link_family(r, f);
    return f;
}

fac_status fac_family_new(fac_recorder *r, fac_hash key, int nnumbers, fac_family **out,
                          fac_error *err) {
    fac_family *f = fac_alloc(1, sizeof *f);
    if (f) f->number = fac_alloc((size_t)nnumbers + 1, sizeof *f->number);
    if (f) f->lifted = fac_alloc((size_t)nnumbers + 1, sizeof *f->lifted);
    if (!f || !f->number || !f->lifted || !fac_keys_put(&r->families, key, f)) {
        if (f) fac_release(f->number);
        if (f) fac_release(f->lifted);
        fac_release(f);
        return fac_raise_memory(err, "a program");
    }
    f->key = key;
    f->nnumbers = nnumbers;
    link_family(r, f);
    *out = f;
    return FAC_OK;
}

void fac_family_drop(fac_recorder *r, fac_family *f) {
    fac_keys_put(&r->families, f->key, NULL);
    unlink_family(r, f);
    r->bytes -= f->bytes;
    fac_recorder_later(r, f->program, free_program);
    fac_release(f->number);
    fac_release(f->lifted);
    fac_release(f->states);
    fac_release(f);
}

void fac_family_shrink(fac_recorder *r, const fac_family *keep) {
    while (r->bytes > r->opts.cache_bytes && r->oldest && r->oldest != keep)
        fac_family_drop(r, r->oldest);
}

/* Nobody can hand in that state any more. */
void fac_family_unbind(fac_recorder *r, const fac_tensor *state) {
    for (fac_family *f = r->newest, *older; f; f = older) {
        older = f->older;
        size_t i = 0;
        while (i < f->nstates && f->states[i] != state) i++;
        if (i < f->nstates) fac_family_drop(r, f);
    }
}
