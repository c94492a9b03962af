/* Runs one solver of the cpu on one node, without the planner, and compares with the reference
 * driver.
 *
 * Unused lanes, gaps between planes and scratch are filled with NaN, so that anything taken from
 * there shows; memory around the output and its halo must stay as it was.  The error of a sum is
 * bounded relative to the sum of |x| |w|. */
#ifndef FACULA_TESTS_CPU_CHECK_H
#define FACULA_TESTS_CPU_CHECK_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fresh_seed.h"
#include "base/rng.h"
#include "facula/facula.h"
#include "graph/graph_internal.h"
#include "plan/plan.h"
#include "backends/layout_copy.h"
#include "ref/ref.h"

static bool check_nan; /* some elements of input check_nan_in are NaN */
static int check_nan_in;
static bool check_largest; /* relative to the largest sum of |x| |w|, not to that of the element */
static float check_tolerance = 1e-6f; /* of 1 + that sum */
static int check_variant;             /* of the solver; 0: what its estimates choose */
static double
    check_error; /* of the last call: the largest difference, relative to the largest output */
enum { CHECK_OPERANDS = 8, CHECK_GUARD = 64 };

typedef struct check_memory {
    float *at;
    size_t n;
} check_memory; /* n floats, then a guard */

static inline check_memory check_alloc(size_t bytes) {
    check_memory m = { aligned_alloc(64, (bytes + CHECK_GUARD * 4 + 63) / 64 * 64),
                       (bytes + 3) / 4 };
    assert_non_null(m.at);
    for (size_t k = 0; k < m.n + CHECK_GUARD; k++) m.at[k] = NAN;
    return m;
}
static inline void check_guard(check_memory m, const char *what) {
    for (size_t k = m.n; k < m.n + CHECK_GUARD; k++)
        if (!isnan(m.at[k])) fail_msg("%s: written %zu floats past its end", what, k - m.n);
    free(m.at);
}

/* Everything that is neither an element nor a lane of its block must still be NaN. */
static inline void check_untouched(const fac_layout *l, const fac_dims *d, check_memory m,
                                   const char *what) {
    bool *mine = calloc(m.n ? m.n : 1, 1);
    int64_t count = fac_dims_count(d);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = l->offset, rest = i;
        for (int k = d->n - 1; k >= 0; rest /= d->d[k], k--) {
            int64_t c = rest % d->d[k];
            at += l->block && k == l->axis ? c / l->block * l->stride[k] : c * l->stride[k];
        }
        for (int k = 0; k < (l->block ? l->block : 1); k++) mine[at + k] = true;
    }
    for (size_t k = 0; k < m.n; k++)
        if (!mine[k] && !isnan(m.at[k]))
            fail_msg("%s: written at %zu, outside of its elements", what, k);
    free(mine);
}

/* What the reference gives for a node, and the sums of sizes: every instruction set and number of
 * threads meets the same nodes. */
typedef struct check_known {
    fac_hash key;
    float *want, *size;
    struct check_known *next;
} check_known;
static check_known *check_seen;

static inline const check_known *check_reference(const fac_node *node, const fac_node *bare,
                                                 const fac_host *in, const fac_host *sizes,
                                                 uint64_t seed) {
    fac_error err = { 0 };
    const fac_type type = node->out[0]->type;
    fac_hash key = fac_node_hash(
        fac_node_hash(
            fac_hash_int(fac_hash_start(seed), check_nan ? 1 + (uint64_t)check_nan_in : 0), node),
        bare);
    for (int i = 0; i < node->nin; i++) {
        const fac_dims *d = node->in[i] ? &node->in[i]->type.dims : NULL;
        key = fac_hash_int(key, d ? (uint64_t)d->n : UINT64_MAX);
        for (int k = 0; d && k < d->n; k++) key = fac_hash_int(key, (uint64_t)d->d[k]);
    }
    for (const check_known *k = check_seen; k; k = k->next)
        if (fac_hash_equal(k->key, key)) return k;

    const size_t bytes = (size_t)fac_dims_count(&type.dims) * 4;
    check_known *new = malloc(sizeof *new);
    *new = (check_known){ key, malloc(bytes), malloc(bytes), check_seen };
    check_seen = new;
    fac_host want[2] = { { type, new->want, NULL } }, size[2] = { { type, new->size, NULL } };
    if (fac_ref_node(node, in, want, NULL, &err)) fail_msg("%s", err.text);
    if (fac_ref_node(bare, sizes, size, NULL, &err)) fail_msg("%s", err.text);
    return new;
}

static inline void check_forget(void) {
    for (check_known *k; (k = check_seen); free(k))
        check_seen = k->next, free(k->want), free(k->size);
}

/* node: what the solver gets; bare: the same without its body, for the size of the sums.  false: no
 * offer. */
static inline bool check_solver(fac_device *device, const char *solver, const fac_node *node,
                                const fac_node *bare, uint64_t seed) {
    fac_error err = { 0 };
    const fac_solver *s = NULL;
    for (const fac_solver *const *k = device->backend->solvers; *k; k++)
        if (!strcmp((*k)->name, solver)) s = *k;
    if (!s) fail_msg("no solver %s", solver);

    fac_type type = node->out[0]->type;
    fac_layout plain_out = fac_layout_plain(&type.dims);
    fac_operand in[CHECK_OPERANDS] = { 0 },
                outs[2] = { { type, plain_out, FAC_RUN, NULL } }; /* pools: no indices */
    fac_host host[CHECK_OPERANDS] = { 0 }, sizes[CHECK_OPERANDS] = { 0 };
    for (int i = 0; i < node->nin; i++) {
        if (!node->in[i]) continue;
        fac_type t = node->in[i]->type;
        in[i] = (fac_operand){ t, fac_layout_plain(&t.dims), i ? FAC_PREPARE : FAC_RUN, NULL };
        size_t n = (size_t)fac_dims_count(&t.dims);
        float *x = malloc(n * 4), *size = malloc(n * 4);
        fac_random_fill(seed, (uint64_t)i, -1, 1, n, x);
        for (size_t k = seed % 17; check_nan && i == check_nan_in && k < n; k += 17) x[k] = NAN;
        for (size_t k = 0; k < n; k++) size[k] = isnan(x[k]) ? 0 : fabsf(x[k]);
        host[i] = (fac_host){ t, x, NULL }, sizes[i] = (fac_host){ t, size, NULL };
    }
    size_t outputs = (size_t)fac_dims_count(&type.dims);

    outs->layout.halo = (int)(seed % 3);
    fac_problem p = { .node = node,
                      .nin = node->nin,
                      .nout = node->nout,
                      .in = in,
                      .out = outs,
                      .variant = check_variant };
    fac_offer o = { 0 };
    bool offered = fac_solver_offer(s, device, &p, &o);
    if (offered) {
        const check_known *known = check_reference(node, bare, host, sizes, seed);
        const float *want = known->want, *size = known->size;
        float *got = malloc(outputs * 4);
        void *plan = NULL;
        if (!outs->layout.block) outs->layout.halo = 0;
        assert_true(o.seconds > 0 && o.seconds < 1e3);
        if (fac_solver_make(s, device, &p, &o, &plan, &err)) fail_msg("%s", err.text);
        check_memory m[CHECK_OPERANDS] = { { 0 } };
        check_memory to = check_alloc(fac_layout_bytes(&outs->layout, &type)),
                     work = check_alloc(o.work);
        fac_span spans[CHECK_OPERANDS] = { { 0 } };
        for (int i = 0; i < node->nin; i++) {
            if (!node->in[i]) continue;
            if (i < FAC_OFFER_PACKED && o.packed[i]) {
                m[i] = check_alloc(o.packed[i]);
                fac_span from = { host[i].data, 0 }, packed = { m[i].at, 0 };
                if (s->pack(plan, device, i, from, packed, &err)) fail_msg("%s", err.text);
            } else {
                fac_layout plain = fac_layout_plain(&host[i].type.dims);
                m[i] = check_alloc(fac_layout_bytes(&in[i].layout, &host[i].type));
                fac_zero_halo(&host[i].type, m[i].at, &in[i].layout);
                fac_copy_layout(&host[i].type, host[i].data, &plain, m[i].at, &in[i].layout);
            }
            spans[i].memory = m[i].at;
        }
        fac_span out_span = { to.at, 0 }, work_span = { work.at, 0 };
        if (s->run(plan, device, spans, &out_span, work_span, &err)) fail_msg("%s", err.text);
        s->done(device, plan);
        fac_copy_layout(&type, to.at, &outs->layout, got, &plain_out);
        check_untouched(&outs->layout, &type.dims, to, solver);
        for (int i = 0; i < node->nin; i++)
            if (node->in[i]) check_guard(m[i], "an input");
        check_guard(to, "the output");
        check_guard(work, "the scratch");
        float largest = 0;
        for (size_t k = 0; k < outputs; k++) largest = fmaxf(largest, size[k]);
        double top = 0, worst = 0;
        for (size_t k = 0; k < outputs; k++) {
            top = fmax(top, fabs(want[k]));
            worst = fmax(worst, fabs((double)got[k] - want[k]));
        }
        check_error = top > 0 ? worst / top : worst;
        for (size_t k = 0; k < outputs; k++)
            if (isnan(want[k]) ? !isnan(got[k])
                               : !(fabsf(got[k] - want[k]) <=
                                   check_tolerance * (1 + (check_largest ? largest : size[k]))))
                fail_msg(
                    "%s, seed %llu: element %zu of %zu is %.9g, expected %.9g, sum of sizes %g",
                    solver, (unsigned long long)seed, k, outputs, (double)got[k], (double)want[k],
                    (double)size[k]);
        free(got);
    }
    for (int i = 0; i < node->nin; i++) free(host[i].data), free(sizes[i].data);
    return offered;
}

/* Devices of every instruction set of this machine, with 1 and 3 threads. */
typedef void check_body(fac_device *d, uint64_t seed);
static inline void check_everywhere(check_body *body, uint64_t seed) {
#if defined(__x86_64__)
    static const char *const isas[] = { "avx512", "avx2", "portable" };
#else
    static const char *const isas[] = { "portable" };
#endif
    for (size_t k = 0; k < sizeof isas / sizeof *isas; k++)
        for (int threads = 1; threads <= 3; threads += 2) {
            fac_device *d;
            fac_error err = { 0 };
            fac_device_opts o = { .isa = isas[k], .threads = threads };
            if (fac_device_open("cpu", &o, &d, &err)) fail_msg("%s", err.text);
            body(d, seed);
            fac_device_free(d);
        }
    check_forget();
}

static inline int64_t check_pick(uint64_t seed, uint64_t i, int64_t lo, int64_t hi) {
    return lo + (int64_t)(fac_random_bits(seed, 99, i) % (uint64_t)(hi - lo + 1));
}
#endif
