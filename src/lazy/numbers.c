/* Numbers: constants of a program until they change, whatever the sizes that it was made for. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "lazy/lazy_internal.h"

enum { MOST_FORMS = 4096 };

static bool is_number(const fac_lazy *leaf) { return leaf->made->kind == FAC_MADE_NUMBER; }

int fac_numbers_count(const fac_recorder *r) {
    int n = 0;
    for (size_t i = 0; i < r->nleaves; i++) n += is_number(r->leaves[i]);
    return n;
}

static bool same_number(double a, double b) { return !memcmp(&a, &b, sizeof a); }

bool fac_numbers_changed(const fac_recorder *r, const fac_family *f) {
    int k = 0;
    for (size_t i = 0; i < r->nleaves; i++) {
        if (!is_number(r->leaves[i])) continue;
        if (!f->lifted[k] && !same_number(f->number[k], r->leaves[i]->made->number)) return true;
        k++;
    }
    return false;
}

/* ---- segments of one form: the same ops of values of the same ranks ---- */

static uint64_t form_of_type(const fac_type *t) {
    return (uint64_t)t->dtype << 8 | (uint64_t)t->dims.n;
}

static uint64_t form_of_input(const fac_value *v) {
    if (!v) return UINT64_MAX;
    return v->leaf == FAC_CONST ? form_of_type(&v->type) : v->id;
}

static fac_hash fold(fac_hash h, const fac_node *n) {
    h = fac_hash_int(h, (uint64_t)(uintptr_t)n->op);
    h = fac_hash_int(h, (uint64_t)n->nin << 32 | (uint64_t)n->nout);
    for (int i = 0; i < n->nin; i++) h = fac_hash_int(h, form_of_input(n->in[i]));
    return h;
}

static fac_hash form_of(const fac_recorder *r) {
    fac_hash h = fac_hash_start(43);
    for (size_t i = 0; i < r->nleaves; i++) {
        const fac_lazy *x = r->leaves[i];
        h = fac_hash_int(h, form_of_type(&x->type) << 1 | is_number(x));
    }
    for (const fac_node *n = r->g->first; n; n = n->next) h = fold(h, n);
    return h;
}

/* What is remembered of a number of a form. */
typedef struct form_number {
    double last;
    bool seen, lifted;
} form_number;

static form_number *numbers_of_form(fac_recorder *r) {
    const fac_hash form = form_of(r);
    form_number *f = fac_keys_get(&r->forms, form);
    if (f) return f;
    if (r->forms.n >= MOST_FORMS) fac_keys_clear(&r->forms, fac_release);
    f = fac_alloc((size_t)fac_numbers_count(r) + 1, sizeof *f);
    if (f && fac_keys_put(&r->forms, form, f)) return f;
    fac_release(f);
    return NULL;
}

fac_status fac_numbers_lift(fac_recorder *r, fac_family *f, fac_error *err) {
    form_number *of_form = numbers_of_form(r);
    if (!of_form) return fac_raise_memory(err, "a flush");
    int k = 0;
    for (size_t i = 0; i < r->nleaves; i++) {
        if (!is_number(r->leaves[i])) continue;
        form_number *n = &of_form[k];
        const double now = r->leaves[i]->made->number;
        n->lifted = n->lifted || (n->seen && !same_number(n->last, now));
        n->last = now;
        n->seen = true;
        f->number[k] = now;
        f->lifted[k] = n->lifted;
        k++;
    }
    return FAC_OK;
}
