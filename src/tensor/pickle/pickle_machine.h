/* The state of the interpreter (pickle.c) and what calls do to it (pickle_call.c). */
#ifndef FACULA_TENSOR_PICKLE_MACHINE_H
#define FACULA_TENSOR_PICKLE_MACHINE_H
#include "base/error.h"
#include "tensor/pickle/pickle.h"

typedef struct fac_pickle_machine {
    fac_arena *arena;
    const unsigned char *start, *p, *end;
    fac_pickle_value **stack, **memo;
    size_t n, room, memos, room_memos, pairs;
    fac_pickle_value *storages;
    fac_pickle_value *none, *yes, *no, *mark; /* there is one of each */
    fac_error *err;
} fac_pickle_machine;

/* The value that is k below the top; NULL when there is none. */
static inline fac_pickle_value *fac_pickle_top(const fac_pickle_machine *m, size_t k) {
    return k < m->n ? m->stack[m->n - 1 - k] : NULL;
}
static inline bool fac_pickle_is(const fac_pickle_value *v, fac_pickle_kind kind) {
    return v && v->kind == kind;
}

/* ---- pickle.c ---- */
fac_status fac_pickle_no_memory(fac_pickle_machine *m);
fac_status fac_pickle_broken(fac_pickle_machine *m, const char *what);
/* A new value of the arena; NULL: no memory. */
fac_pickle_value *fac_pickle_make(fac_pickle_machine *m, fac_pickle_kind kind);
/* v NULL: no memory. */
fac_status fac_pickle_push(fac_pickle_machine *m, fac_pickle_value *v);
fac_status fac_pickle_append(fac_pickle_machine *m, fac_pickle_value *to,
                             fac_pickle_value *const *items, size_t n);

/* ---- pickle_call.c: what an opcode does to the values on the stack ---- */
fac_status fac_pickle_persistent(fac_pickle_machine *m); /* BINPERSID */
fac_status fac_pickle_reduce(fac_pickle_machine *m);     /* REDUCE */
fac_status fac_pickle_new_object(fac_pickle_machine *m); /* NEWOBJ */
fac_status fac_pickle_build(fac_pickle_machine *m);      /* BUILD */
#endif
