/* One solver against the reference driver: random contents in random layouts, every instruction
 * set, guarded memory.
 *
 * An operand's storage is filled with a pattern that no result may depend on: gaps between strided
 * elements, lanes after the last channel, bytes around the storage.  After the run the halo of a
 * result must be zero still, and the guards untouched. */
#ifndef SOLVER_CHECK_H
#define SOLVER_CHECK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>
#include "backends/cpu/device/cpu.h"
#include "base/rng.h"
#include "graph/graph_internal.h"
#include "ref/ref.h"
#include "spoil.h"
#include "tensor/tensor_internal.h"

enum { CHECK_OPERANDS = 16, CHECK_GUARD = 64, CHECK_PATTERN = 0x7B };
#if defined(__x86_64__)
static const char *const check_isas[] = { "portable", "avx2", "avx512" };
#else
static const char *const check_isas[] = { "portable", "portable",
                                          "portable" }; /* the only one, with other contents */
#endif

typedef struct check {
    uint64_t seed;
    double lo, hi;    /* contents                                                  */
    int64_t index;    /* > 0: integers are -index .. index - 1, as indices must be */
    double tolerance; /* of |y - reference| / max(1, |reference|); 0: the same bits */
    const char *isa;
    int threads;
    bool strided, blocked; /* layouts to try for inputs                                 */
    bool weights;          /* inputs after the first are parameters                     */
    bool any_out;          /* outputs too arrive in such layouts, as of a part of another tensor */
    bool all_out;          /* outputs that may be absent are there                      */
    bool in_place;         /* output 0 over input 0 where type and layout allow         */
    bool past;             /* as on a machine without caches: all that can goes past them */
    int nan_in;            /* > 0: some elements of this input are NaN                    */
} check;

static inline uint64_t check_random(check *c) {
    static const uint64_t stream = 7;
    return fac_random_bits(c->seed++, stream, 0);
}
static inline int64_t check_below(check *c, int64_t n) {
    return (int64_t)(check_random(c) % (uint64_t)n);
}

static inline int64_t check_place(const fac_layout *l, const fac_dims *d, const int64_t *i) {
    int64_t at = l->offset;
    for (int k = 0; k < d->n; k++)
        at += l->block && l->axis == k ? i[k] / l->block * l->stride[k] + i[k] % l->block
                                       : i[k] * l->stride[k];
    return at;
}

/* Moves between contiguous memory and a layout, one element at a time. */
static inline void check_move(const fac_type *t, const fac_layout *l, char *laid, char *flat,
                              bool in) {
    size_t size = (size_t)fac_dtype_get(t->dtype)->block_bytes;
    int64_t n = fac_dims_count(&t->dims);
    for (int64_t e = 0; e < n; e++) {
        int64_t i[FAC_DIMS], rest = e;
        for (int k = t->dims.n - 1; k >= 0; k--) {
            i[k] = rest % t->dims.d[k];
            rest /= t->dims.d[k];
        }
        char *at = laid + (size_t)check_place(l, &t->dims, i) * size;
        if (in)
            memcpy(at, flat + (size_t)e * size, size);
        else
            memcpy(flat + (size_t)e * size, at, size);
    }
}

/* Every place of the halo: the planes of the last two dims, `halo` wider on all sides, without the
 * planes themselves. */
static inline void check_halo(const fac_type *t, const fac_layout *l, char *memory, bool fill) {
    const fac_dims *d = &t->dims;
    size_t size = (size_t)fac_dtype_get(t->dtype)->block_bytes;
    int64_t planes = 1, h = l->halo;
    if (h == 0 || d->n < 2 || fac_dims_count(d) == 0) return;
    int64_t height = d->d[d->n - 2], width = d->d[d->n - 1];
    for (int k = 0; k < d->n - 2; k++)
        planes *= l->block && l->axis == k ? (d->d[k] + l->block - 1) / l->block : d->d[k];
    for (int64_t p = 0; p < planes; p++) {
        int64_t at = l->offset, rest = p;
        for (int k = d->n - 3; k >= 0; k--) {
            int64_t n = l->block && l->axis == k ? (d->d[k] + l->block - 1) / l->block : d->d[k];
            at += rest % n * l->stride[k];
            rest /= n;
        }
        for (int64_t y = -h; y < height + h; y++)
            for (int64_t x = -h; x < width + h; x++) {
                if (y >= 0 && y < height && x >= 0 && x < width) continue;
                char *place =
                    memory +
                    (size_t)(at + y * l->stride[d->n - 2] + x * l->stride[d->n - 1]) * size;
                for (size_t b = 0; b < size * (size_t)(l->block ? l->block : 1); b++) {
                    if (fill)
                        place[b] = 0;
                    else
                        assert_int_equal(place[b], 0);
                }
            }
    }
}

static inline fac_layout check_layout(check *c, const fac_dims *d, int lanes) {
    int64_t kind = check_below(c, 3);
    if (kind == 1 && c->strided && d->n > 0) { /* dims in any order, with gaps */
        fac_layout l = { .offset = check_below(c, 4) };
        int order[FAC_DIMS];
        int64_t step = 1 + check_below(c, 2);
        for (int k = 0; k < d->n; k++) order[k] = k;
        for (int k = d->n - 1; k > 0; k--) {
            int j = (int)check_below(c, k + 1), o = order[k];
            order[k] = order[j];
            order[j] = o;
        }
        for (int k = d->n - 1; k >= 0; k--) {
            l.stride[order[k]] = step;
            step *= d->d[order[k]] + check_below(c, 2);
        }
        return l;
    }
    if (kind == 2 && c->blocked && d->n == 4)
        return fac_layout_blocked(d, 1, lanes, (int)check_below(c, 3));
    return fac_layout_plain(d);
}

/* What is only read has no guard after it, so that the address sanitizer sees a read past its end.
 */
static inline char *check_storage(size_t bytes, bool written) {
    void *p = NULL;
    size_t all = bytes + CHECK_GUARD + (written ? CHECK_GUARD : 0);
    assert_int_equal(posix_memalign(&p, 64, all), 0);
    memset(p, CHECK_PATTERN, all);
    return (char *)p + CHECK_GUARD;
}

static inline void check_guards(const char *p, size_t bytes, bool written) {
    for (int k = 1; k <= CHECK_GUARD; k++) {
        assert_int_equal(p[-k], CHECK_PATTERN);
        if (written) assert_int_equal(p[bytes + (size_t)k - 1], CHECK_PATTERN);
    }
}

static inline void check_fill(check *c, const fac_type *t, void *to) {
    int64_t n = fac_dims_count(&t->dims);
    for (int64_t e = 0; e < n; e++) {
        double x = c->lo + (c->hi - c->lo) * fac_random_uniform(c->seed, 3, (uint64_t)e);
        char kind = fac_dtype_get(t->dtype)->kind;
        if (kind != 'f') x = kind == 'b' ? x > (c->lo + c->hi) / 2 : rint(x);
        if (kind == 'u' && x < 0) x = -x;
        fac_convert(t->dtype, (char *)to + (size_t)e * (size_t)fac_dtype_get(t->dtype)->block_bytes,
                    FAC_F64, &x, 1);
    }
    c->seed++;
}

static inline void check_equal(const check *c, const fac_type *t, const void *got, const void *want,
                               const char *what) {
    int64_t n = fac_dims_count(&t->dims);
    size_t size = (size_t)fac_dtype_get(t->dtype)->block_bytes;
    for (int64_t e = 0; e < n; e++) {
        const char *a = (const char *)got + (size_t)e * size,
                   *b = (const char *)want + (size_t)e * size;
        double x, y;
        if (!memcmp(a, b, size)) continue;
        fac_convert(FAC_F64, &x, t->dtype, a, 1);
        fac_convert(FAC_F64, &y, t->dtype, b, 1);
        bool near = (isnan(x) && isnan(y)) || fabs(x - y) <= c->tolerance * fmax(1, fabs(y));
        if (fac_dtype_get(t->dtype)->kind == 'f' && near) continue;
        fail_msg("%s: element %lld is %.9g, the reference has %.9g (seed %llu, %s)", what,
                 (long long)e, x, y, (unsigned long long)c->seed, c->isa);
    }
}

/* Runs one node with the solver of this name.  false: it made no offer. */
static inline bool check_node(check *c, const char *solver, const fac_node *n) {
    fac_operand in[CHECK_OPERANDS], out[CHECK_OPERANDS];
    memset(in, 0, sizeof in);
    memset(out, 0, sizeof out);
    fac_problem p = { .node = n, .nin = n->nin, .nout = n->nout, .in = in, .out = out };
    fac_device *d = NULL;
    fac_error err = { 0 };
    uint64_t seed = c->seed;
    char what[160];
    snprintf(what, sizeof what, "%s on %s", solver, n->op->name);
    assert_true(n->nin <= CHECK_OPERANDS && n->nout <= CHECK_OPERANDS);
    if (fac_device_open("cpu", &(fac_device_opts){ .isa = c->isa, .threads = c->threads }, &d,
                        &err))
        fail_msg("%s", err.text);
    if (c->past) ((fac_cpu *)d)->l2 = ((fac_cpu *)d)->l3 = 0;
    int lanes = ((fac_cpu *)d)->simd->lanes;

    for (int i = 0; i < n->nin; i++)
        if (n->in[i])
            in[i] = (fac_operand){ n->in[i]->type, check_layout(c, &n->in[i]->type.dims, lanes),
                                   c->weights && i ? FAC_PREPARE : FAC_RUN, n->in[i]->known };
    int halo = (int)check_below(c, 3);
    for (int k = 0; k < n->nout; k++) {
        const fac_dims *d_out = &n->out[k]->type.dims;
        fac_layout layout = c->any_out ? check_layout(c, d_out, lanes) : fac_layout_plain(d_out);
        out[k] = (fac_operand){ n->out[k]->type, layout, FAC_RUN, NULL };
        if (!c->any_out) out[k].layout.halo = halo;
        bool optional = n->op->out && n->op->out[1].name && n->op->out[1].is & FAC_OPTIONAL;
        if (k > 0 && !c->all_out && optional) out[k] = (fac_operand){ 0 };
    }
    const fac_solver *s = NULL;
    for (const fac_solver *const *all = d->backend->solvers; *all; all++)
        if (!strcmp((*all)->name, solver)) s = *all;
    assert_non_null(s);
    fac_offer offer = { 0 };
    if (!fac_solver_offer(s, d, &p, &offer)) {
        fac_device_free(d);
        return false;
    }
    for (int k = 0; k < n->nout; k++)
        if (!out[k].layout.block) out[k].layout.halo = 0;

    fac_host hin[CHECK_OPERANDS], hout[CHECK_OPERANDS];
    memset(hin, 0, sizeof hin);
    memset(hout, 0, sizeof hout);
    fac_span sin[CHECK_OPERANDS] = { { 0 } }, sout[CHECK_OPERANDS] = { { 0 } };
    size_t bin[CHECK_OPERANDS] = { 0 }, bout[CHECK_OPERANDS] = { 0 };
    for (int i = 0; i < n->nin; i++) {
        if (in[i].type.dtype == FAC_NONE) continue;
        hin[i] = (fac_host){ in[i].type, calloc(1, fac_type_bytes(&in[i].type) + 1), in[i].known };
        if (in[i].known) {
            fac_convert(in[i].type.dtype, hin[i].data, FAC_I64, in[i].known->v,
                        (size_t)in[i].known->n);
        } else {
            check as = *c;
            if (c->index && fac_dtype_get(in[i].type.dtype)->kind != 'f') {
                as.lo = (double)-c->index;
                as.hi = (double)(c->index - 1);
            }
            check_fill(&as, &in[i].type, hin[i].data);
            if (i && i == c->nan_in) spoil(&in[i].type, hin[i].data);
            c->seed = as.seed;
        }
        bin[i] = fac_layout_bytes(&in[i].layout, &in[i].type);
        sin[i] = (fac_span){ check_storage(bin[i], false), 0 };
        check_halo(&in[i].type, &in[i].layout, sin[i].memory, true);
        check_move(&in[i].type, &in[i].layout, sin[i].memory, hin[i].data, true);
    }
    bool over = c->in_place && out[0].type.dtype == in[0].type.dtype &&
                fac_dims_equal(&out[0].type.dims, &in[0].type.dims) &&
                fac_layout_equal(&in[0].layout, &out[0].layout, &out[0].type.dims);
    for (int k = 0; k < n->nout; k++) {
        if (out[k].type.dtype == FAC_NONE) continue;
        hout[k] = (fac_host){ out[k].type, calloc(1, fac_type_bytes(&out[k].type) + 1), NULL };
        bout[k] = fac_layout_bytes(&out[k].layout, &out[k].type);
        sout[k] = over && k == 0 ? sin[0] : (fac_span){ check_storage(bout[k], true), 0 };
        check_halo(&out[k].type, &out[k].layout, sout[k].memory,
                   true); /* as the executor does before every step */
    }
    if (fac_ref_node(n, hin, hout, NULL, &err)) fail_msg("reference: %s", err.text);

    char *work = check_storage(offer.work, true);
    void *plan = NULL;
    if (fac_solver_make(s, d, &p, &offer, &plan, &err)) fail_msg("%s: %s", what, err.text);
    for (int i = 0; i < n->nin && i < FAC_OFFER_PACKED; i++) { /* packed inputs come contiguous */
        if (!offer.packed[i]) continue;
        free((char *)sin[i].memory - CHECK_GUARD);
        bin[i] = offer.packed[i];
        sin[i] = (fac_span){ check_storage(bin[i], true), 0 };
        if (s->pack(plan, d, i, (fac_span){ hin[i].data, 0 }, sin[i], &err))
            fail_msg("%s: %s", what, err.text);
        check_guards(sin[i].memory, bin[i], true);
    }
    if (s->run(plan, d, sin, sout, (fac_span){ work, 0 }, &err)) fail_msg("%s: %s", what, err.text);
    if (s->done) s->done(d, plan);

    check_guards(work, offer.work, true);
    c->seed = seed;
    for (int k = 0; k < n->nout; k++) {
        if (out[k].type.dtype == FAC_NONE) continue;
        void *flat = calloc(1, fac_type_bytes(&out[k].type) + 1);
        check_move(&out[k].type, &out[k].layout, sout[k].memory, flat, false);
        check_equal(c, &out[k].type, flat, hout[k].data, what);
        check_halo(&out[k].type, &out[k].layout, sout[k].memory, false);
        check_guards(sout[k].memory, bout[k], !over || k);
        free(flat);
        free(hout[k].data);
        if (!over || k) free((char *)sout[k].memory - CHECK_GUARD);
    }
    for (int i = 0; i < n->nin; i++) {
        if (in[i].type.dtype == FAC_NONE) continue;
        check_guards(sin[i].memory, bin[i], false);
        free(hin[i].data);
        free((char *)sin[i].memory - CHECK_GUARD);
    }
    free(work - CHECK_GUARD);
    fac_device_free(d);
    c->seed = seed + 1000;
    return true;
}
#endif
