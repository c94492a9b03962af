/* See profile.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "profile.h"

enum { FEWEST = 3, MOST = 2000 };

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median of runs for so long. */
static int run_for(profile *p, double limit, double *median, int *runs) {
    fac_error err = { 0 };
    static double times[MOST];
    int n = 0;
    for (double start = now(); n < MOST && (n < FEWEST || now() - start < limit); n++) {
        const double from = now();
        if (fac_program_run(p->j.program, p->j.in, p->j.out, &err) ||
            fac_device_sync(p->j.device, &err))
            return fail(&err);
        times[n] = now() - from;
    }
    qsort(times, (size_t)n, sizeof *times, by_value);
    *median = times[n / 2];
    *runs = n;
    return EXIT_OK;
}

static int launches(profile *p) {
    p->nlaunches = fac_program_launches(p->j.program, NULL, 0);
    p->launches = calloc(p->nlaunches + 1, sizeof *p->launches);
    if (!p->launches) return fail_text("out of memory");
    fac_program_launches(p->j.program, p->launches, p->nlaunches);
    return EXIT_OK;
}

/* A device's own clock makes its kernels no slower but the gaps between them, so whole runs are
 * timed without it. */
static int run_all(profile *p, double limit) {
    fac_error err = { 0 };
    double watched;
    int runs, code = EXIT_OK;
    if (fac_program_plan(p->j.program, p->j.in, &p->plan, &err)) return fail(&err);
    for (int i = 0; i < 2; i++)
        if (fac_program_run(p->j.program, p->j.in, p->j.out, &err)) return fail(&err);
    fac_program_profile(p->j.program, true);
    if (fac_program_run(p->j.program, p->j.in, p->j.out, &err)) return fail(&err);
    const bool clock = fac_program_launches(p->j.program, NULL, 0) > 0;
    if (clock) {
        fac_program_profile(p->j.program, false);
        code = run_for(p, limit / 2, &p->median, &p->runs);
        limit /= 2;
    }
    fac_program_profile(p->j.program, true);
    if (!code) code = run_for(p, limit, clock ? &watched : &p->median, clock ? &runs : &p->runs);
    return code ? code : launches(p);
}

static bool is_half(fac_dtype t) { return t == FAC_BF16 || t == FAC_F16; }

/* What products may reach: on tensor cores at the precision that was asked for, or in the type that
 * the model computes in; split products of f32 take three of TF32. */
static double products_peak(const fac_peaks *k, const job *j, const char *precision) {
    numerics how = { 0 };
    precision_parse(precision, &how);
    const bool half = is_half(how.mixed) || (j->in[0] && is_half(fac_tensor_type(j->in[0]).dtype));
    if ((half || how.products == FAC_PRECISION_MEDIUM) && k->tensor_half > 0) return k->tensor_half;
    if (how.products == FAC_PRECISION_HIGH && k->tensor_tf32 > 0) return k->tensor_tf32;
    return fmax(k->flops, k->tensor_tf32 / 3);
}

static int collect(profile *p) {
    p->n = fac_program_steps(p->j.program, NULL, 0);
    fac_step_stat *s = calloc(p->n + 1, sizeof *s);
    p->rows = calloc(p->n + 1, sizeof *p->rows);
    if (!s || !p->rows) {
        free(s);
        return fail_text("out of memory");
    }
    fac_program_steps(p->j.program, s, p->n);
    for (size_t i = 0; i < p->n; i++) {
        profile_row *r = &p->rows[i];
        *r = (profile_row){ .s = s[i],
                            .seconds = ratio(s[i].seconds, (double)s[i].runs),
                            .flops = 2 * s[i].macs };
        const double arithmetic = ratio(r->flops, p->peak),
                     memory = ratio(s[i].bytes, p->peaks.memory_read);
        r->limit = fmax(arithmetic, memory);
        r->by_memory = memory >= arithmetic;
        p->seconds += r->seconds;
        p->macs += s[i].macs;
        p->bytes += s[i].bytes;
    }
    for (size_t i = 0; i < p->nlaunches; i++)
        if (p->launches[i].step >= 0) p->rows[p->launches[i].step].launches++;
    free(s);
    return EXIT_OK;
}

/* Only where its sizes are those of the run: --shape may bind more than an analysis does. */
static int analyze(profile *p, const job_options *o) {
    fac_error err = { 0 };
    if (o->train) return EXIT_OK;
    if (fac_analyze(p->j.m.graph, o->batch, &p->analysis, &err)) return fail(&err);
    const fac_graph *g = fac_analysis_graph(p->analysis);
    for (int i = 0; i < fac_graph_inputs(g); i++) {
        const fac_dims known = fac_value_type(fac_graph_input(g, i)).dims,
                       run = fac_tensor_type(p->j.in[i]).dims;
        if (known.n == run.n && !memcmp(known.d, run.d, (size_t)run.n * sizeof *run.d)) continue;
        fac_analysis_free(p->analysis);
        p->analysis = NULL;
        break;
    }
    return EXIT_OK;
}

int profile_measure(profile *p, const verb *v, const job_options *o, const char *what,
                    double seconds) {
    fac_error err = { 0 };
    int code = job_open(&p->j, v, o, what);
    if (!code && fac_device_peaks(p->j.device, &p->peaks, &err)) code = fail(&err);
    if (!code) p->peak = products_peak(&p->peaks, &p->j, o->precision);
    if (!code) code = analyze(p, o);
    if (!code) code = run_all(p, seconds > 0 ? seconds : 1);
    return code ? code : collect(p);
}

void profile_free(profile *p) {
    free(p->rows);
    free(p->launches);
    fac_analysis_free(p->analysis);
    job_close(&p->j);
    p->rows = NULL;
    p->launches = NULL;
    p->analysis = NULL;
}

static int slowest_first(const void *a, const void *b) {
    const profile_row *x = *(const profile_row *const *)a, *y = *(const profile_row *const *)b;
    return x->seconds != y->seconds ? (x->seconds < y->seconds) - (x->seconds > y->seconds)
                                    : (x > y) - (x < y);
}

const profile_row **profile_order(const profile *p, bool slowest) {
    const profile_row **order = calloc(p->n + 1, sizeof *order);
    for (size_t i = 0; order && i < p->n; i++) order[i] = &p->rows[i];
    if (order && slowest) qsort(order, p->n, sizeof *order, slowest_first);
    return order;
}

profile_sum *profile_sums(const profile *p, size_t *n) {
    profile_sum *all = calloc(p->n + 1, sizeof *all);
    *n = 0;
    for (size_t i = 0; all && i < p->n; i++) {
        const profile_row *r = &p->rows[i];
        size_t k = 0;
        while (k < *n && strcmp(all[k].op, r->s.op)) k++;
        if (k == *n) all[(*n)++].op = r->s.op;
        all[k].n++, all[k].seconds += r->seconds, all[k].flops += r->flops,
            all[k].bytes += r->s.bytes;
    }
    for (size_t i = 1; all && i < *n; i++) /* few: by insertion */
        for (size_t k = i; k && all[k].seconds > all[k - 1].seconds; k--) {
            const profile_sum swap = all[k];
            all[k] = all[k - 1], all[k - 1] = swap;
        }
    return all;
}
