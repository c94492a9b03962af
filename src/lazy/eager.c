/* Eager ops: programs of one op, kept by op, attributes and types. */
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"
#include "lazy/lazy_internal.h"

enum { MOST_SINGLES = 4096, FEW = FAC_FEW_OPERANDS };

struct fac_single {
    atomic_uint refs;
    fac_program *program;
    int nout; /* results of the op */
};

static void drop_single(void *at) {
    fac_single *s = at;
    if (atomic_fetch_sub(&s->refs, 1) != 1) return;
    fac_program_free(s->program);
    fac_release(s);
}

void fac_singles_drop(fac_recorder *r) {
    for (size_t i = 0; i < r->singles.room; i++)
        fac_recorder_later(r, r->singles.slots[i].value, drop_single);
    fac_keys_free(&r->singles);
}

/* ---- the key ---- */

static bool is_constant(const fac_lazy *x) { return x && x->made->kind == FAC_MADE_INTS; }

static fac_hash key_of(const fac_op *op, const void *attrs, int n, fac_lazy *const in[], int nout,
                       uint64_t kept) {
    fac_hash h = fac_hash_int(fac_hash_start(41), (uint64_t)(uintptr_t)op);
    h = fac_hash_int(fac_hash_int(h, (uint64_t)n << 32 | (uint64_t)nout), kept);
    if (attrs) h = fac_attrs_hash(h, op, attrs);
    for (int i = 0; i < n; i++) {
        const fac_lazy *x = in[i];
        const fac_type *t = x ? &x->type : NULL;
        h = fac_hash_int(h, t ? (uint64_t)t->dtype << 8 | (uint64_t)t->dims.n << 1 | is_constant(x)
                              : UINT64_MAX);
        for (int k = 0; t && k < t->dims.n; k++) h = fac_hash_int(h, (uint64_t)t->dims.d[k]);
        if (is_constant(x)) h = fac_hash_bytes(h, fac_tensor_data(x->tensor), fac_type_bytes(t));
    }
    return h;
}

/* ---- the program ---- */

static fac_value *operand(fac_graph *g, int i, const fac_lazy *x) {
    char name[24];
    if (!x) return NULL;
    if (is_constant(x)) return fac_const(g, x->tensor);
    snprintf(name, sizeof name, "x%d", i);
    return fac_input(g, name, x->type.dtype, x->type.dims);
}

static bool is_given(int k, int nout, uint64_t kept) {
    return k < nout || kept >> (k < 63 ? k : 63) & 1;
}

static fac_status build(fac_recorder *r, const fac_op *op, const void *attrs, int n,
                        fac_lazy *const in[], int nout, uint64_t kept, fac_single *s,
                        fac_error *err) {
    const fac_program_opts opts = { .precision = r->opts.precision };
    fac_graph *g = fac_graph_new();
    fac_value **v = g ? fac_arena_alloc(&g->arena, (size_t)n + 1, sizeof *v) : NULL;
    if (!v) {
        fac_graph_free(g);
        return fac_raise_memory(err, "a program");
    }
    for (int i = 0; i < n; i++) v[i] = operand(g, i, in[i]);
    fac_value *y = fac_emit_body(g, op, attrs, n, n, v, NULL, NULL);
    fac_status status = fac_graph_check(g, err);
    if (!status && nout > y->node->nout)
        status = fac_raise(err, FAC_E_ARGUMENT, "%s has %d results, %d were asked for", op->name,
                           y->node->nout, nout);
    char name[24];
    for (int k = 0; !status && k < y->node->nout; k++) {
        snprintf(name, sizeof name, "y%d", k);
        if (is_given(k, nout, kept)) fac_output(g, name, y->node->out[k]);
    }
    if (!status) s->nout = y->node->nout;
    if (!status) status = fac_program_new(g, r->device, &opts, &s->program, err);
    fac_graph_free(g);
    return status;
}

/* A reference of the caller's. */
static fac_status single_for(fac_recorder *r, const fac_op *op, const void *attrs, int n,
                             fac_lazy *const in[], int nout, uint64_t kept, fac_single **out,
                             fac_error *err) {
    const fac_hash key = key_of(op, attrs, n, in, nout, kept);
    fac_single *s = fac_keys_get(&r->singles, key);
    if (s) {
        atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
        *out = s;
        return FAC_OK;
    }
    if (!(s = fac_alloc(1, sizeof *s))) return fac_raise_memory(err, "a program");
    atomic_init(&s->refs, 1);
    const fac_status status = build(r, op, attrs, n, in, nout, kept, s, err);
    if (status) {
        drop_single(s);
        return status;
    }
    if (r->singles.n >= MOST_SINGLES) fac_singles_drop(r);
    if (fac_keys_put(&r->singles, key, s)) atomic_fetch_add(&s->refs, 1);
    r->stat.now_planned++;
    *out = s;
    return FAC_OK;
}

/* ---- a run ---- */

typedef struct eager {
    fac_operands o;
    fac_tensor *few[FEW], **in;
    void *many;
    fac_single *single;
    fac_made *made; /* with its history, if it has one */
    int nin;
} eager;

static fac_status contents(eager *e, fac_error *err) {
    const int n = e->o.n;
    e->in = e->few;
    if (n > FEW && !(e->in = e->many = fac_alloc((size_t)n, sizeof *e->in)))
        return fac_raise_memory(err, "%d operands", n);
    for (int i = 0; i < n; i++) {
        if (!e->o.cell[i] || is_constant(e->o.cell[i])) continue;
        FAC_TRY(fac_lazy_fetch(e->o.cell[i], &e->in[e->nin], err));
        e->nin++;
    }
    return FAC_OK;
}

/* With the lock: contents, history, program. */
static fac_status begin(fac_recorder *r, eager *e, const fac_op *op, const void *attrs, int n,
                        fac_lazy *const in[], unsigned flags, int nout, fac_error *err) {
    FAC_TRY(fac_operands_begin(&e->o, op, n, in, err));
    FAC_TRY(contents(e, err));
    uint64_t kept = 0;
    const bool history = !(op->is & FAC_OP_NO_GRAD) && fac_history_wanted(n, e->o.cell, flags);
    if (!history) return single_for(r, op, attrs, n, e->o.cell, nout, 0, &e->single, err);
    /* how many results there are is known by the program: so it is made first without a history */
    FAC_TRY(single_for(r, op, attrs, n, e->o.cell, nout, 0, &e->single, err));
    if (!(e->made = fac_made_new(r, FAC_MADE_OP, e->single->nout)))
        return fac_raise_memory(err, "a value");
    e->made->serial = ++r->serials;
    FAC_TRY(fac_history_note(e->made, op, attrs, NULL, n, e->o.cell, err));
    FAC_TRY(fac_history_keep(e->made, err));
    kept = e->made->keep_out & ~(nout > 62 ? UINT64_MAX : ((uint64_t)1 << nout) - 1);
    if (!kept) return FAC_OK;
    drop_single(e->single);
    e->single = NULL;
    return single_for(r, op, attrs, n, e->o.cell, nout, kept, &e->single, err);
}

static void deliver(fac_made *m, int nout, uint64_t kept, fac_tensor **result) {
    int at = 0;
    for (int k = 0; k < m->nout; k++) {
        if (!is_given(k, nout, kept)) continue;
        fac_lazy *x = &m->cell[k];
        x->tensor = result[at++];
        x->type = fac_tensor_type(x->tensor);
        x->requires = m->nin && fac_dtype_get(x->type.dtype)->kind == 'f';
    }
}

/* Without the lock. */
static fac_status run(fac_recorder *r, eager *e, const fac_op *op, int nout, fac_lazy *out[],
                      fac_error *err) {
    fac_tensor *few[FEW] = { NULL }, **result = few;
    fac_made *m = e->made;
    const uint64_t kept = m ? m->keep_out : 0;
    if (!m && !(m = fac_made_new(r, FAC_MADE_OP, e->single->nout)))
        return fac_raise_memory(err, "a value");
    if (m->nout > FEW && !(result = fac_alloc((size_t)m->nout, sizeof *result))) {
        if (!e->made) fac_release(m);
        return fac_raise_memory(err, "%d results", m->nout);
    }
    const fac_status status = fac_program_run(e->single->program, e->in, result, err);
    if (status && !e->made) fac_release(m);
    if (!status) {
        m->op = op;
        deliver(m, nout, kept, result);
        atomic_init(&m->refs, nout ? (unsigned)nout : 1);
        for (int k = 0; k < nout; k++) atomic_init(&m->cell[k].users, 1);
        for (int k = 0; k < nout; k++) out[k] = &m->cell[k];
        e->made = NULL;
    }
    if (result != few) fac_release(result);
    return status;
}

static void end(fac_recorder *r, eager *e) {
    const bool lock = e->made || e->o.many;
    bool own = false;
    for (int i = 0; i < e->o.n && e->o.own; i++) own |= e->o.own[i] != NULL;
    if (lock || own) fac_recorder_hold(r);
    if (e->made) fac_made_forget(e->made);
    fac_operands_end(&e->o);
    if (lock || own) fac_recorder_let_go(r);
    fac_release(e->made);
    fac_release(e->many);
    if (e->single) drop_single(e->single);
}

fac_status fac_eager(fac_recorder *r, const fac_op *op, const void *attrs, int n,
                     fac_lazy *const in[], unsigned flags, int nout, fac_lazy *out[],
                     fac_error *err) {
    eager e;
    e.o.n = 0;
    e.nin = 0;
    e.many = NULL;
    e.single = NULL;
    e.made = NULL;
    if (nout < 1) return fac_raise(err, FAC_E_ARGUMENT, "%s: no result was asked for", op->name);
    fac_recorder_hold(r);
    fac_status status = begin(r, &e, op, attrs, n, in, flags, nout, err);
    r->stat.recorded++;
    r->stat.now++;
    fac_recorder_let_go(r);
    if (!status) status = run(r, &e, op, nout, out, err);
    end(r, &e);
    return status;
}
