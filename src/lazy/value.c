/* Values: leaves, counting, and how contents are had. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "lazy/lazy_internal.h"

/* ---- counting ---- */

static void begin(fac_made *m, fac_recorder *r, fac_made_kind kind, int nout) {
    m->r = r;
    m->kind = kind;
    m->nout = nout;
    for (int k = 0; k < nout; k++) m->cell[k].made = m;
}

fac_made *fac_made_new(fac_recorder *r, fac_made_kind kind, int nout) {
    fac_made *m = fac_alloc(1, sizeof *m + (size_t)nout * sizeof *m->cell);
    if (m) begin(m, r, kind, nout);
    return m;
}

enum { MOST_UNUSED = 1 << 14 };

/* With the lock: from what was disposed of lately. */
fac_made *fac_made_again(fac_recorder *r, fac_made_kind kind, int nout) {
    fac_made *m = nout == 1 ? r->unused : NULL;
    if (m) {
        r->unused = m->dead;
        r->nunused--;
        memset(m, 0, sizeof *m + sizeof *m->cell);
        begin(m, r, kind, nout);
    } else
        m = fac_made_new(r, kind, nout);
    if (m) m->pooled = nout == 1;
    return m;
}

static void recycle(fac_made *m) {
    fac_recorder *r = m->r;
    if (!m->pooled || r->nunused >= MOST_UNUSED) {
        fac_release(m);
        return;
    }
    m->dead = r->unused;
    r->unused = m;
    r->nunused++;
}

void fac_made_drop_unused(fac_recorder *r) {
    for (fac_made *m; (m = r->unused);) {
        r->unused = m->dead;
        fac_release(m);
    }
    r->nunused = 0;
}

void fac_made_retain(fac_made *m) { atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed); }

void fac_failure_free(fac_failure *f) {
    if (f && atomic_fetch_sub(&f->refs, 1) == 1) fac_release(f);
}

static void free_tensor(void *t) { fac_tensor_free(t); }
static void free_graph(void *g) { fac_graph_free(g); }

static void give_up(fac_made *m, fac_tensor *t) { fac_recorder_later(m->r, t, free_tensor); }

/* Does anybody read the contents of a cell, now or when gradients are taken? */
static bool is_read(const fac_lazy *x) { return atomic_load(&x->users) || x->keeps; }

static void let_go(fac_lazy *x) {
    give_up(x->made, x->tensor);
    x->tensor = NULL;
}

static void unkeep(fac_lazy *x) {
    x->keeps--;
    if (x->made->kind >= FAC_MADE_OP && !is_read(x)) let_go(x);
}

static void drop_release(void *made) {
    fac_made *m = made;
    m->release(m->self);
    fac_release(m);
}

/* One less; true: it was the last. */
static bool last_ref(fac_made *m) {
    return atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) == 1;
}

/* For those who must not wait: see fac_made_drain. */
static void bury(fac_made *m) {
    m->dead = atomic_load(&m->r->dead);
    while (!atomic_compare_exchange_weak(&m->r->dead, &m->dead, m)) {}
}

/* The history of m, which others may outlive; what nothing needs any more joins the dead. */
void fac_made_forget(fac_made *m) {
    for (int i = 0; i < m->nin; i++) {
        fac_lazy *x = m->in[i];
        if (!x) continue;
        if (m->kept && (m->keep_in >> (i < 63 ? i : 63) & 1)) unkeep(x);
        if (last_ref(x->made)) bury(x->made);
    }
    for (int k = 0; k < m->nout && m->kept; k++)
        if (m->keep_out >> (k < 63 ? k : 63) & 1) unkeep(&m->cell[k]);
    for (int k = 0; k < 2; k++) fac_recorder_later(m->r, m->body[k], free_graph);
    fac_release(m->in);
    m->used_up = m->used_up || m->nin;
    m->in = NULL;
    m->attrs = NULL;
    m->body[0] = m->body[1] = NULL;
    m->nin = 0;
    m->kept = false;
}

/* With the lock, or when nobody else can know of m. */
static void dispose(fac_made *m) {
    fac_recorder *r = m->r;
    if (atomic_load(&m->pending)) r->pending[m->place] = NULL;
    for (int k = 0; k < m->nout; k++) {
        fac_lazy *x = &m->cell[k];
        if (x->value && x->epoch == r->epoch && r->by_id[x->value->id] == x)
            r->by_id[x->value->id] = NULL;
    }
    fac_made_forget(m);
    for (int k = 0; k < m->nout; k++) {
        if (m->cell[k].bound) fac_family_unbind(r, m->cell[k].tensor);
        give_up(m, m->cell[k].tensor);
    }
    if (m->next) fac_lazy_unassign(m);
    fac_lazy_unuse(m->room);
    fac_failure_free(m->failure);
    if (m->release)
        fac_recorder_later(r, m, drop_release);
    else
        recycle(m);
}

/* Histories are long chains: one after the other, never one within the other. */
void fac_made_drain(fac_recorder *r) {
    for (fac_made *m; (m = atomic_exchange(&r->dead, NULL));)
        while (m) {
            fac_made *next = m->dead;
            dispose(m);
            m = next;
        }
}

void fac_made_free(fac_made *m) {
    if (m && last_ref(m)) bury(m);
}

fac_lazy *fac_lazy_use(fac_lazy *x) {
    if (!atomic_fetch_add_explicit(&x->users, 1, memory_order_relaxed)) fac_made_retain(x->made);
    return x;
}

void fac_lazy_unuse(fac_lazy *x) {
    if (!x || atomic_fetch_sub_explicit(&x->users, 1, memory_order_acq_rel) != 1) return;
    if (x->made->kind >= FAC_MADE_OP && !x->keeps) let_go(x);
    fac_made_free(x->made);
}

fac_status fac_made_list(fac_made *m, fac_error *err) {
    fac_recorder *r = m->r;
    if (!fac_reserve(&r->pending, &r->room_pending, r->npending + 1, sizeof *r->pending))
        return fac_raise_memory(err, "a value");
    atomic_store(&m->pending, true);
    m->place = r->npending;
    r->pending[r->npending++] = m;
    return FAC_OK;
}

void fac_lazy_unassign(fac_made *state) {
    state->next->nexts--;
    fac_lazy_unuse(state->next);
    state->next = NULL;
}

fac_lazy *fac_lazy_retain(fac_lazy *x) {
    if (x) atomic_fetch_add_explicit(&x->users, 1, memory_order_relaxed);
    return x;
}

/* Nothing here but a tensor: nobody else can reach it. */
static bool is_simple(const fac_made *m) {
    return !atomic_load(&m->pending) && !m->pooled && !m->nin && !m->next && !m->room &&
           !m->failure && m->kind != FAC_MADE_STATE && !m->release && !m->cell[0].value &&
           !m->cell[0].bound;
}

void fac_lazy_free(fac_lazy *x) {
    if (!x || atomic_fetch_sub_explicit(&x->users, 1, memory_order_acq_rel) != 1) return;
    fac_made *m = x->made;
    fac_recorder *r = m->r;
    if (m->kind >= FAC_MADE_OP && atomic_load(&m->refs) > 1 && !pthread_mutex_trylock(&r->lock)) {
        if (!is_read(x)) let_go(x); /* a history may go on without the contents */
        fac_recorder_let_go(r);
    }
    if (!last_ref(m)) return;
    if (is_simple(m)) {
        for (int k = 0; k < m->nout; k++) fac_tensor_free(m->cell[k].tensor);
        fac_release(m);
        return;
    }
    bury(m);
    if (pthread_mutex_trylock(&r->lock)) return;
    fac_made_drain(r);
    fac_recorder_let_go(r);
}

/* ---- leaves ---- */

static fac_status check_new(const char *who, const fac_recorder *r, const void *given,
                            const char *what, fac_lazy **out, fac_error *err) {
    if (r && given && out) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT, "%s: %s is NULL", who,
                     !r      ? "the recorder"
                     : given ? "out"
                             : what);
}

static fac_status leaf(fac_recorder *r, fac_made_kind kind, fac_type type, fac_tensor *t,
                       fac_lazy **out, fac_error *err) {
    fac_made *m = fac_made_new(r, kind, 1);
    if (!m) return fac_raise_memory(err, "a value");
    fac_lazy *x = &m->cell[0];
    x->type = type;
    x->tensor = t ? fac_tensor_retain(t) : NULL;
    atomic_init(&x->users, 1);
    atomic_init(&m->refs, 1);
    *out = x;
    return FAC_OK;
}

fac_status fac_lazy_of(fac_recorder *r, fac_tensor *t, fac_lazy **out, fac_error *err) {
    FAC_TRY(check_new("fac_lazy_of", r, t, "the tensor", out, err));
    return leaf(r, FAC_MADE_TENSOR, fac_tensor_type(t), t, out, err);
}

fac_status fac_lazy_state(fac_recorder *r, fac_tensor *t, fac_lazy **out, fac_error *err) {
    FAC_TRY(check_new("fac_lazy_state", r, t, "the tensor", out, err));
    if (!fac_tensor_contiguous(t))
        return fac_raise(err, FAC_E_ARGUMENT, "fac_lazy_state: the tensor is not contiguous");
    return leaf(r, FAC_MADE_STATE, fac_tensor_type(t), t, out, err);
}

fac_status fac_lazy_number(fac_recorder *r, fac_dtype dtype, double x, fac_lazy **out,
                           fac_error *err) {
    FAC_TRY(check_new("fac_lazy_number", r, r, "", out, err));
    const char kind = fac_dtype_get(dtype)->kind;
    const bool number =
        kind == 'f' || kind == 'i' || kind == 'u' || (kind == 'b' && dtype != FAC_BIT);
    if (!number)
        return fac_raise(err, FAC_E_DTYPE, "fac_lazy_number: %s is no type of a number",
                         fac_dtype_get(dtype)->name);
    FAC_TRY(leaf(r, FAC_MADE_NUMBER, (fac_type){ dtype, { 0 } }, NULL, out, err));
    (*out)->made->number = x;
    return FAC_OK;
}

fac_status fac_lazy_ints(fac_recorder *r, int n, const int64_t *numbers, fac_lazy **out,
                         fac_error *err) {
    FAC_TRY(check_new("fac_lazy_ints", r, n ? (const void *)numbers : (const void *)r, "the list",
                      out, err));
    if (n < 0) return fac_raise(err, FAC_E_ARGUMENT, "fac_lazy_ints: %d numbers", n);
    fac_tensor *t;
    FAC_TRY(fac_tensor_new(NULL, FAC_I64, fac_shape(n), &t, err));
    fac_status status = n ? fac_tensor_write(t, numbers, (size_t)n * sizeof *numbers, err) : FAC_OK;
    if (!status) status = leaf(r, FAC_MADE_INTS, fac_tensor_type(t), t, out, err);
    fac_tensor_free(t);
    return status;
}

/* ---- what may be asked ---- */

fac_type fac_lazy_type(const fac_lazy *x) { return x->type; }
fac_recorder *fac_lazy_recorder(const fac_lazy *x) { return x->made->r; }
void fac_lazy_set_user(fac_lazy *x, void *user) { x->user = user; }
void *fac_lazy_user(const fac_lazy *x) { return x->user; }

bool fac_lazy_pending(const fac_lazy *x) {
    fac_recorder *r = x->made->r;
    fac_recorder_hold(r);
    const bool pending = x->made->next || x->made->room || fac_lazy_recorded(x);
    fac_recorder_let_go(r);
    return pending;
}

/* ---- contents ---- */

fac_status fac_lazy_lost(const fac_lazy *x, fac_error *err) {
    const fac_failure *f = x->made->failure;
    if (f)
        return fac_raise(err, f->error.status, "this value was not computed: %.400s",
                         f->error.text);
    return fac_raise(err, FAC_E_ARGUMENT, "the contents of this value were let go");
}

fac_status fac_lazy_number_tensor(fac_lazy *x, fac_error *err) {
    if (x->tensor) return FAC_OK;
    fac_tensor *wide = NULL, *t = NULL;
    FAC_TRY(fac_tensor_new(NULL, FAC_F64, (fac_dims){ 0 }, &wide, err));
    fac_status status = fac_tensor_write(wide, &x->made->number, sizeof x->made->number, err);
    if (!status && x->type.dtype != FAC_F64)
        status = fac_tensor_convert(wide, x->type.dtype, &t, err);
    if (!status) x->tensor = t ? t : wide;
    if (status || t) fac_tensor_free(wide);
    return status;
}

fac_status fac_lazy_fetch(fac_lazy *x, fac_tensor **out, fac_error *err) {
    if (x->made->kind == FAC_MADE_ALIAS) return fac_lazy_fetch(x->made->in[0], out, err);
    if (x->made->kind == FAC_MADE_ROOM) FAC_TRY(fac_room_settle(x, err));
    if (x->made->next || fac_lazy_recorded(x)) {
        const fac_status status = fac_flush_held(x->made->r, err);
        if (status && !x->tensor) return status;
    }
    if (x->made->kind == FAC_MADE_NUMBER) FAC_TRY(fac_lazy_number_tensor(x, err));
    if (!x->tensor) return fac_lazy_lost(x, err);
    *out = x->tensor;
    return FAC_OK;
}

fac_status fac_lazy_tensor(fac_lazy *x, fac_tensor **out, fac_error *err) {
    if (!x || !out)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_lazy_tensor: %s is NULL",
                         x ? "out" : "the value");
    fac_recorder *r = x->made->r;
    fac_recorder_hold(r);
    fac_tensor *t;
    const fac_status status = fac_lazy_fetch(x, &t, err);
    if (!status) *out = fac_tensor_retain(t);
    fac_recorder_let_go(r);
    return status;
}
