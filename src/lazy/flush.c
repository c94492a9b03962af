/* Flushing: what is wanted of a segment, its program, its run. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/stop.h"
#include "lazy/lazy_internal.h"

/* What a node holds in a program's graphs and steps, as measured over steps of training (9 to 13
 * KB on the CPU); states count nothing: they are the caller's. */
enum { NODE_BYTES = 12 << 10 };

/* ---- what is wanted ---- */

static bool is_wanted(const fac_recorder *r, const fac_lazy *x) {
    if (!(x->value || x->id) || x->epoch != r->epoch || x->tensor) return false;
    return x->keeps || atomic_load(&x->users) > x->nexts;
}

static uint32_t number_of(const fac_outputs *outs, const fac_lazy *x) {
    return outs->numbered ? x->id : x->value->id;
}

/* Histories that are alive say what gradients will read. */
static fac_status keep(fac_recorder *r, fac_error *err) {
    for (size_t i = 0; i < r->npending; i++) {
        fac_made *m = r->pending[i];
        if (m && m->nin && m->kind == FAC_MADE_OP) FAC_TRY(fac_history_keep(m, err));
    }
    return FAC_OK;
}

static fac_status collect(fac_recorder *r, fac_outputs *outs, fac_error *err) {
    outs->numbered = !r->g;
    outs->of = fac_alloc(r->g ? r->g->ids : r->ids + 1, sizeof *outs->of);
    if (!outs->of) return fac_raise_memory(err, "a flush");
    for (size_t i = 0; i < r->npending; i++) {
        fac_made *m = r->pending[i];
        for (int k = 0; m && k < m->nout; k++) {
            fac_lazy *x = &m->cell[k];
            if (!is_wanted(r, x) || outs->of[number_of(outs, x)]) continue;
            if (!fac_reserve(&outs->cell, &outs->room, outs->n + 1, sizeof *outs->cell))
                return fac_raise_memory(err, "a flush");
            outs->cell[outs->n++] = x;
            outs->of[number_of(outs, x)] = (uint32_t)outs->n;
        }
    }
    return FAC_OK;
}

/* Both sides of each assignment are in the graph. */
static fac_status place_assigned(fac_recorder *r, fac_error *err) {
    fac_value *v;
    for (size_t i = 0; i < r->nassigned; i++) {
        fac_lazy *state = r->assigned[i];
        FAC_TRY(fac_segment_leaf(state, &v, err));
        FAC_TRY(fac_segment_leaf(state->made->next, &v, err));
    }
    return FAC_OK;
}

/* ---- keys ---- */

/* What is computed, but not of which states. */
static fac_hash structure_of(fac_recorder *r, const fac_outputs *outs) {
    if (r->g) fac_segment_fold(r);
    fac_hash h = fac_hash_int(fac_hash_int(r->key, outs->numbered), outs->n);
    for (size_t i = 0; i < outs->n; i++) h = fac_hash_int(h, number_of(outs, outs->cell[i]));
    return h;
}

static fac_hash key_of(const fac_recorder *r, fac_hash h) {
    for (size_t i = 0; i < r->nleaves; i++) {
        const fac_lazy *x = r->leaves[i];
        const fac_leaf_kind role = fac_leaf_role(x);
        h = fac_hash_int(h, role == FAC_LEAF_IS_STATE ? (uint64_t)(uintptr_t)x->tensor
                                                      : (uint64_t)role);
    }
    for (size_t i = 0; i < r->nassigned; i++) {
        const fac_lazy *state = r->assigned[i];
        h = fac_hash_int(fac_hash_int(h, state->value->id), state->made->next->value->id);
    }
    return h;
}

/* ---- the program and its run ---- */

static void free_program(void *p) { fac_program_free(p); }

static fac_status inputs_of(fac_recorder *r, const fac_family *f, fac_tensor **in, int *n,
                            fac_error *err) {
    int k = 0;
    *n = 0;
    for (size_t i = 0; i < r->nleaves; i++) {
        fac_lazy *x = r->leaves[i];
        const fac_leaf_kind role = fac_leaf_role(x);
        const bool number = role == FAC_LEAF_IS_NUMBER;
        if (number) FAC_TRY(fac_lazy_number_tensor(x, err));
        if (role == FAC_LEAF_IS_INPUT || (number && f->lifted[k])) in[(*n)++] = x->tensor;
        r->stat.numbers += number && f->lifted[k];
        k += number;
    }
    r->stat.inputs += (uint64_t)*n;
    r->stat.states += f->nstates;
    return FAC_OK;
}

static fac_status plan(fac_recorder *r, fac_family *f, const fac_outputs *outs, fac_tensor **in,
                       int *n, fac_error *err) {
    fac_plan_stat stat = { 0 };
    r->stat.planned++;
    FAC_TRY(fac_compile(r, f, outs, err));
    FAC_TRY(inputs_of(r, f, in, n, err));
    FAC_TRY(fac_program_plan(f->program, in, &stat, err));
    f->bytes = stat.arena + stat.packed + (size_t)r->g->nodes * NODE_BYTES;
    r->bytes += f->bytes;
    fac_family_shrink(r, f);
    return FAC_OK;
}

static void unplan(fac_recorder *r, fac_family *f) {
    fac_recorder_later(r, f->program, free_program);
    f->program = NULL;
    r->bytes -= f->bytes;
    f->bytes = 0;
}

static fac_status program_for(fac_recorder *r, const fac_outputs *outs, fac_hash key,
                              fac_tensor **in, fac_family **out, fac_error *err) {
    int n;
    fac_family *f = fac_family_find(r, key);
    if (!f) FAC_TRY(fac_family_new(r, key, fac_numbers_count(r), &f, err));
    if (f->program && fac_numbers_changed(r, f)) unplan(r, f);
    *out = f;
    if (f->program) {
        r->stat.hits++;
        return inputs_of(r, f, in, &n, err);
    }
    fac_status status = fac_segment_open(r, err);
    if (!status) status = fac_numbers_lift(r, f, err);
    if (!status) status = plan(r, f, outs, in, &n, err);
    if (status) fac_family_drop(r, f);
    return status;
}

static void deliver(fac_recorder *r, const fac_outputs *outs, fac_tensor **result) {
    for (size_t i = 0; i < r->npending; i++) {
        fac_made *m = r->pending[i];
        for (int k = 0; m && k < m->nout; k++) {
            fac_lazy *x = &m->cell[k];
            const uint32_t at = is_wanted(r, x) ? outs->of[number_of(outs, x)] : 0;
            if (!at) continue;
            x->tensor = fac_tensor_retain(result[at - 1]);
            x->type = fac_tensor_type(x->tensor);
        }
    }
    for (size_t i = 0; i < outs->n; i++) fac_tensor_free(result[i]);
}

static fac_status run(fac_recorder *r, const fac_outputs *outs, fac_hash key, fac_error *err) {
    enum { FEW = 64 };
    fac_tensor *few[FEW], **in = few;
    fac_family *f;
    if (r->nleaves + outs->n > FEW && !(in = fac_alloc(r->nleaves + outs->n, sizeof *in)))
        return fac_raise_memory(err, "a flush");
    fac_tensor **result = in + r->nleaves;
    for (size_t i = 0; i < outs->n; i++) {
        fac_tensor *target = outs->cell[i]->target;
        result[i] = target ? fac_tensor_retain(target) : NULL;
    }
    fac_status status = program_for(r, outs, key, in, &f, err);
    if (!status) status = fac_program_run(f->program, in, result, err);
    if (!status) deliver(r, outs, result);
    for (size_t i = 0; status && i < outs->n; i++) fac_tensor_free(outs->cell[i]->target);
    if (in != few) fac_release(in);
    return status;
}

static fac_status compute(fac_recorder *r, fac_outputs *outs, fac_error *err) {
    FAC_TRY(keep(r, err));
    FAC_TRY(place_assigned(r, err));
    FAC_TRY(collect(r, outs, err));
    if (!outs->n && !r->nassigned) return FAC_OK;
    const fac_hash structure = structure_of(r, outs);
    FAC_TRY(fac_leaf_find_weights(r, structure, err));
    r->stat.flushes++;
    return run(r, outs, key_of(r, structure), err);
}

/* A segment that the user stopped stays as it was recorded, for another time: nothing is lost by
 * Ctrl-C.  Not where it assigns, since a part of that may be done. */
static bool stays(const fac_recorder *r) { return !r->nassigned && fac_device_stopping(r->device); }

fac_status fac_flush_held(fac_recorder *r, fac_error *err) {
    if (!r->g && !r->ncalls && !r->nassigned) return FAC_OK;
    fac_outputs outs = { 0 };
    fac_error why = { 0 };
    fac_status status = r->ncalls ? FAC_OK : fac_segment_open(r, &why);
    const bool calls = r->ncalls > 0;
    const fac_hash before = r->key;
    if (!status) status = compute(r, &outs, &why);
    if (status && stays(r))
        r->key = calls && r->g ? r->key : before;
    else
        fac_segment_close(r, status ? &why : NULL);
    fac_release(outs.cell);
    fac_release(outs.of);
    if (status && err) *err = why;
    return status;
}
