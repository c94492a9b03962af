/* facula/report/page.h: everything that is known of a model, as one HTML page that needs nothing
 * else: graph, modules, operators, memory over time, the roofline, what others count, the plan, and
 * what a run takes where that was measured. */
#ifndef FACULA_PAGE_H
#define FACULA_PAGE_H

#include "facula/report/analyze.h"
#include "facula/device.h"
#include "facula/program.h"
#include "facula/tune.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- where the time of a run goes ---- */

/* One step of a mean run.  limit: seconds that the machine at its best would take for it, by
 * arithmetic or by memory. */
typedef struct fac_timed_step {
    fac_step_stat s;
    double seconds, flops, limit;
    bool by_memory;
} fac_timed_step;

typedef struct fac_timing {
    const char *device; /* about it, the caller's; NULL: not said */
    fac_peaks peaks;
    double products; /* operations a second that products of this precision can reach */
    double median;   /* seconds of whole runs */
    int runs;
    fac_timed_step *steps;
    size_t n;
    double seconds, macs, bytes; /* sums over the steps */
} fac_timing;

/* What products of f32 ops may reach at this precision; half: of a model that computes in half
 * precision.  Matrix units count where they are there; split products take three of TF32. */
double fac_peaks_products(const fac_peaks *k, fac_precision precision, bool half);

/* Fills in the steps and their sums from a program that ran with fac_program_profile on; the other
 * fields are the caller's and stand before.  Texts of the steps live as long as the program. */
fac_status fac_timing_of(fac_program *p, fac_timing *t, fac_error *err);
void fac_timing_free(fac_timing *t); /* the steps; one of zeros is fine */

/* The steps in the order of the run, or the slowest first: of t->n, to be given to
 * fac_timing_drop.  NULL: no memory. */
const fac_timed_step **fac_timing_order(const fac_timing *t, bool slowest_first);

/* The steps by op, the slowest first: *n of them, to be given to fac_timing_drop.  NULL: no memory.
 */
typedef struct fac_timed_sum {
    const char *op;
    int n;
    double seconds, flops, bytes;
} fac_timed_sum;
fac_timed_sum *fac_timing_sums(const fac_timing *t, size_t *n);
void fac_timing_drop(const void *list); /* what the two above gave; NULL is fine */

/* ---- memory: of any engine, and of our plan ---- */

typedef struct fac_memory_facts {
    fac_plan_stat plan;
    bool planned;          /* plan is filled in */
    char why_not[512];     /* otherwise */
    double order_peak;     /* bytes: the least of the orders that were looked at */
    bool order_exact;      /* no order needs less */
    fac_arena_part *parts; /* of the arena, by address; their texts are its own */
    int nparts;
} fac_memory_facts;

/* Plans g for the cpu of this machine, with inputs of these types (NULL: those of the analysis).  A
 * model that cannot be planned is no error: *out says why.  FAC_E_NOMEM; fac_memory_facts_free in
 * any case. */
fac_status fac_memory_facts_of(const fac_analysis *a, const fac_graph *g, const fac_type *inputs,
                               fac_memory_facts *out, fac_error *err);
void fac_memory_facts_free(fac_memory_facts *f); /* one of zeros is fine */

/* ---- the page ---- */

typedef struct fac_page_opts {
    const char *name, *about; /* of the model; about: a line below the name, or NULL */
    const char *date;         /* of the page; NULL: none, and a model gives one and the same page */
    const fac_memory_facts *memory; /* must be there */
    /* The machine of the roofline: its operations and bytes a second (0: 1e12 and 1e11), about it,
     * and what more is known of it, or NULL. */
    const char *machine;
    double flops, bytes;
    const fac_peaks *peaks;
    const fac_timing *time; /* what was measured; NULL: nothing */
} fac_page_opts;

/* "350G,20G": operations and bytes a second, with k, M, G or T.  false: it is no such text. */
bool fac_page_machine(const char *text, double *flops, double *bytes);

/* Of g and its analysis.  put gets the whole text, once.  FAC_E_NOMEM; FAC_E_ARGUMENT without the
 * facts about memory; what put returned. */
typedef fac_status fac_page_put(void *self, const char *text, size_t n, fac_error *err);
fac_status fac_page_write(const fac_graph *g, const fac_analysis *a, const fac_page_opts *opts,
                          fac_page_put *put, void *self, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
