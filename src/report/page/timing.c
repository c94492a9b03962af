/* Where the time of a run goes: steps of a program that was watched, beside what the machine can
 * do.  See facula/report/page.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/page/page_internal.h"

double fac_peaks_products(const fac_peaks *k, fac_precision precision, bool half) {
    if ((half || precision == FAC_PRECISION_MEDIUM) && k->tensor_half > 0) return k->tensor_half;
    if (precision == FAC_PRECISION_HIGH && k->tensor_tf32 > 0) return k->tensor_tf32;
    return fmax(k->flops, k->tensor_tf32 / 3);
}

static void take(fac_timing *t, const fac_step_stat *s, fac_timed_step *to) {
    *to = (fac_timed_step){ .s = *s,
                            .seconds = fac_page_ratio(s->seconds, (double)s->runs),
                            .flops = 2 * s->macs };
    const double arithmetic = fac_page_ratio(to->flops, t->products),
                 memory = fac_page_ratio(s->bytes, t->peaks.memory_read);
    to->limit = fmax(arithmetic, memory);
    to->by_memory = memory >= arithmetic;
    t->seconds += to->seconds;
    t->macs += s->macs;
    t->bytes += s->bytes;
}

fac_status fac_timing_of(fac_program *p, fac_timing *t, fac_error *err) {
    const size_t n = fac_program_steps(p, NULL, 0);
    fac_step_stat *s = fac_alloc(n + 1, sizeof *s);
    t->steps = fac_alloc(n + 1, sizeof *t->steps);
    if (!s || !t->steps) {
        fac_release(s);
        return fac_raise_memory(err, "the times of %zu steps", n);
    }
    t->n = n;
    t->seconds = 0;
    t->macs = 0;
    t->bytes = 0;
    fac_program_steps(p, s, n);
    for (size_t i = 0; i < n; i++) take(t, &s[i], &t->steps[i]);
    fac_release(s);
    return FAC_OK;
}

void fac_timing_free(fac_timing *t) {
    fac_release(t->steps);
    t->steps = NULL;
    t->n = 0;
}

static int slowest_first(const void *a, const void *b) {
    const fac_timed_step *x = *(const fac_timed_step *const *)a,
                         *y = *(const fac_timed_step *const *)b;
    if (x->seconds != y->seconds) return (x->seconds < y->seconds) - (x->seconds > y->seconds);
    return (x > y) - (x < y);
}

const fac_timed_step **fac_timing_order(const fac_timing *t, bool slowest) {
    const fac_timed_step **order = fac_alloc(t->n + 1, sizeof *order);
    for (size_t i = 0; order && i < t->n; i++) order[i] = &t->steps[i];
    if (order && slowest) qsort(order, t->n, sizeof *order, slowest_first);
    return order;
}

fac_timed_sum *fac_timing_sums(const fac_timing *t, size_t *n) {
    fac_timed_sum *all = fac_alloc(t->n + 1, sizeof *all);
    *n = 0;
    for (size_t i = 0; all && i < t->n; i++) {
        const fac_timed_step *r = &t->steps[i];
        size_t k = 0;
        while (k < *n && strcmp(all[k].op, r->s.op)) k++;
        if (k == *n) all[(*n)++].op = r->s.op;
        all[k].n++;
        all[k].seconds += r->seconds;
        all[k].flops += r->flops;
        all[k].bytes += r->s.bytes;
    }
    for (size_t i = 1; all && i < *n; i++) /* few: by insertion */
        for (size_t k = i; k && all[k].seconds > all[k - 1].seconds; k--) {
            const fac_timed_sum swap = all[k];
            all[k] = all[k - 1];
            all[k - 1] = swap;
        }
    return all;
}

void fac_timing_drop(const void *list) { fac_release((void *)(uintptr_t)list); }
