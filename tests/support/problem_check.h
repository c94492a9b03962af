/* A problem through a whole program with one solver forced, against the reference kernels in f64
 * without fusion: for solvers of ops that have no reference kernel of their own, and for operands
 * of any type. */
#ifndef FACULA_TESTS_PROBLEM_CHECK_H
#define FACULA_TESTS_PROBLEM_CHECK_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fresh_seed.h"
#include "backends/cpu/device/cpu.h"
#include "base/rng.h"
#include "facula/backend.h"
#include "facula/facula.h"
#include "graph/graph_internal.h"
#include "tensor/tensor_internal.h"

enum { PROBLEM_OPERANDS = 16, PROBLEM_TEXT = 1000 };
#if defined(__x86_64__)
static const char *const problem_isas[] = { "avx512", "avx2", "portable", NULL };
#else
static const char *const problem_isas[] = { "portable", NULL };
#endif

typedef struct problem_check {
    uint64_t seed;
    double lo, hi, tolerance; /* of |y - reference| / max(1, |reference|) */
    double zeros;             /* so many elements of input 0 are 0: 0 to 1 */
    bool params;              /* operands after the first are parameters  */
    bool all_out;             /* optional outputs are wanted too           */
    bool past;                /* as on a machine without caches: all that can goes past them */
    int infinite;             /* operand, counted from 1, with one infinite and one NaN element */
    bool single; /* numbers are floats, also for a reference in f64: equal ones are equal in both */
} problem_check;

/* What element e of operand k is; bools are 0 or 1, integers whole. */
static inline double problem_number(const problem_check *c, int k, int64_t e, char kind) {
    const double u = fac_random_uniform(c->seed, (uint64_t)k, (uint64_t)e);
    if (k == 0 && c->zeros > 0 && fac_random_uniform(c->seed, 77, (uint64_t)e) < c->zeros) return 0;
    if (k + 1 == c->infinite && e == 5) return INFINITY;
    if (k + 1 == c->infinite && e == 11) return NAN;
    if (kind == 'b') return u < 0.3 ? 0 : 1;
    const double x = c->lo + (c->hi - c->lo) * u;
    if (kind == 'f') return c->single ? (double)(float)x : x;
    return kind == 'u' ? fabs(rint(x)) : rint(x);
}

/* The numbers of operand k, drawn once for all devices: to draw them takes longer than most
 * kernels. */
typedef struct problem_drawn {
    problem_check c;
    char kind;
    int64_t n;
    double *x;
} problem_drawn;

static inline bool problem_same_draw(const problem_drawn *a, const problem_check *c, char kind,
                                     int64_t n) {
    const problem_check *b = &a->c;
    return a->x && a->kind == kind && a->n == n && b->seed == c->seed && b->lo == c->lo &&
           b->hi == c->hi && b->zeros == c->zeros && b->infinite == c->infinite &&
           b->single == c->single;
}

static inline const double *problem_numbers(const problem_check *c, int k, char kind, int64_t n) {
    static problem_drawn all[PROBLEM_OPERANDS];
    problem_drawn *d = &all[k];
    if (problem_same_draw(d, c, kind, n)) return d->x;
    free(d->x);
    *d = (problem_drawn){ *c, kind, n, calloc((size_t)n + 1, sizeof *d->x) };
    for (int64_t e = 0; e < n; e++) d->x[e] = problem_number(c, k, e, kind);
    return d->x;
}

static inline void problem_fill(const problem_check *c, int k, fac_tensor *t) {
    fac_error err = { 0 };
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims);
    const size_t size = (size_t)fac_dtype_get(type.dtype)->block_bytes;
    char *data = calloc((size_t)n + 1, size);
    const double *x = problem_numbers(c, k, fac_dtype_get(type.dtype)->kind, n);
    fac_convert(type.dtype, data, FAC_F64, x, (size_t)n);
    if (fac_tensor_write(t, data, (size_t)n * size, &err)) fail_msg("%s", err.text);
    free(data);
}

/* The outputs as f64; solver NULL: the planner's choice.  used: the solver of the last step. */
static inline int problem_run(const problem_check *c, const char *text, fac_device *d,
                              const char *solver, fac_tensor **to, char used[64]) {
    fac_error err = { 0 };
    fac_graph *g = NULL;
    fac_tensor *in[PROBLEM_OPERANDS] = { NULL }, *out[PROBLEM_OPERANDS] = { NULL };
    if (fac_problem_graph(text, c->params, &g, &err)) fail_msg("%s: %s", text, err.text);
    const fac_port *port = g->last->op->out;
    for (int k = (int)g->noutputs - 1; k > 0 && !c->all_out && (port[k].is & FAC_OPTIONAL); k--)
        g->outputs[--g->noutputs].value->roots--;
    const int inputs = fac_graph_inputs(g), params = fac_graph_params(g), n = fac_graph_outputs(g);
    for (int k = 0; k < inputs; k++) {
        const fac_type t = fac_value_type(fac_graph_input(g, k));
        if (fac_tensor_new(NULL, t.dtype, t.dims, &in[k], &err)) fail_msg("%s", err.text);
        problem_fill(c, k, in[k]);
    }
    for (int k = 0; k < params; k++)
        problem_fill(c, inputs + k, fac_value_tensor(fac_graph_param(g, k)));
    const bool reference = solver && !strcmp(solver, "ref");
    fac_program_opts o = { .solver = solver, .no_fuse = reference };
    fac_program *p = NULL;
    if (fac_program_new(g, d, &o, &p, &err) || fac_program_run(p, in, out, &err))
        fail_msg("%s: %s", text, err.text);
    fac_step_stat s[16] = { { 0 } };
    size_t steps = fac_program_steps(p, s, 16);
    size_t last = steps < 16 ? steps : 16;
    while (last > 1 && !strcmp(s[last - 1].solver, "reorder"))
        last--; /* the result, in its own layout */
    snprintf(used, 64, "%s", last ? s[last - 1].solver : "");
    for (int k = 0; k < n; k++)
        if (fac_tensor_convert(out[k], FAC_F64, &to[k], &err)) fail_msg("%s", err.text);
    for (int k = 0; k < PROBLEM_OPERANDS; k++) fac_tensor_free(in[k]), fac_tensor_free(out[k]);
    fac_program_free(p);
    fac_graph_free(g);
    return n;
}

static inline void problem_compare(const problem_check *c, fac_tensor *got, fac_tensor *want,
                                   const char *what) {
    const fac_type t = fac_tensor_type(want);
    const double *x = fac_tensor_data(got), *y = fac_tensor_data(want);
    for (int64_t e = 0; e < fac_dims_count(&t.dims); e++) {
        const bool good =
            isnan(y[e]) ? isnan(x[e])
                        : x[e] == y[e] || fabs(x[e] - y[e]) <= c->tolerance * fmax(1, fabs(y[e]));
        if (!good)
            fail_msg("%s (seed %llu): element %lld is %.9g, expected %.9g", what,
                     (unsigned long long)c->seed, (long long)e, x[e], y[e]);
    }
}

/* Every instruction set, 1 and 3 threads; the last step must be that solver (NULL: any). */
static inline void problem_everywhere(problem_check c, const char *solver, const char *text) {
    fac_error err = { 0 };
    char wide[PROBLEM_TEXT], what[PROBLEM_TEXT + 100], used[64];
    fac_tensor *want[PROBLEM_OPERANDS] = { NULL };
    size_t n = 0;
    for (const char *s = text; *s && n + 1 < sizeof wide; s++)
        wide[n++] = !strncmp(s - (s > text), "f32[", 4) && s[-1] == 'f' ? '6' : *s;
    wide[n] = 0;
    for (char *s = wide; (s = strstr(s, "f62[")); s++) s[2] = '4';
    c.single = strcmp(wide, text) != 0;
    fac_device *ref;
    if (fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &ref, &err))
        fail_msg("%s", err.text);
    const int outputs = problem_run(&c, wide, ref, "ref", want, used);
    for (int i = 0; problem_isas[i]; i++)
        for (int threads = 1; threads <= 3; threads += 2) {
            fac_tensor *got[PROBLEM_OPERANDS] = { NULL };
            fac_device *d;
            if (fac_device_open("cpu",
                                &(fac_device_opts){ .isa = problem_isas[i], .threads = threads },
                                &d, &err))
                fail_msg("%s", err.text);
            if (c.past) ((fac_cpu *)d)->l2 = ((fac_cpu *)d)->l3 = 0;
            problem_run(&c, text, d, solver, got, used);
            if (solver && strcmp(used, solver))
                fail_msg("%s: the solver was %s, not %s", text, used, solver);
            for (int k = 0; k < outputs; k++) {
                snprintf(what, sizeof what, "%s, %s, output %d of %s",
                         solver ? solver : "any solver", problem_isas[i], k, text);
                problem_compare(&c, got[k], want[k], what);
                fac_tensor_free(got[k]);
            }
            fac_device_free(d);
        }
    for (int k = 0; k < outputs; k++) fac_tensor_free(want[k]);
    fac_device_free(ref);
}
#endif
