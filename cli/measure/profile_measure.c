/* See profile.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "profile.h"

enum { FEWEST = 3, MOST = 2000 };

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
    *median = median_of(times, n);
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
        code = run_for(p, limit / 2, &p->t.median, &p->t.runs);
        limit /= 2;
    }
    fac_program_profile(p->j.program, true);
    if (code) return code;
    code = clock ? run_for(p, limit, &watched, &runs) : run_for(p, limit, &p->t.median, &p->t.runs);
    return code ? code : launches(p);
}

static bool is_half(fac_dtype t) { return t == FAC_BF16 || t == FAC_F16; }

/* What products may reach at the precision that was asked for, or in the type that the model
 * computes in. */
static double products_peak(const fac_peaks *k, const job *j, const char *precision) {
    numerics how = { 0 };
    precision_parse(precision, &how);
    const bool half = is_half(how.mixed) || (j->in[0] && is_half(fac_tensor_type(j->in[0]).dtype));
    return fac_peaks_products(k, how.products, half);
}

static int collect(profile *p) {
    fac_error err = { 0 };
    if (fac_timing_of(p->j.program, &p->t, &err)) return fail(&err);
    p->launched = calloc(p->t.n + 1, sizeof *p->launched);
    if (!p->launched) return fail_text("out of memory");
    for (size_t i = 0; i < p->nlaunches; i++)
        if (p->launches[i].step >= 0) p->launched[p->launches[i].step]++;
    return EXIT_OK;
}

/* Only where its sizes are those of the run: --shape may bind more than an analysis does. */
static int analyze(profile *p, const job_options *o) {
    fac_error err = { 0 };
    if (o->train || p->j.lm) return EXIT_OK;
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
    int code =
        job_is_language(what) ? job_open_language(&p->j, v, o, what) : job_open(&p->j, v, o, what);
    if (!code && fac_device_peaks(p->j.device, &p->t.peaks, &err)) code = fail(&err);
    if (!code) p->t.products = products_peak(&p->t.peaks, &p->j, o->precision);
    if (!code) p->t.device = fac_device_about(p->j.device);
    if (!code) code = analyze(p, o);
    if (!code) code = run_all(p, seconds > 0 ? seconds : 1);
    return code ? code : collect(p);
}

void profile_free(profile *p) {
    fac_timing_free(&p->t);
    free(p->launched);
    free(p->launches);
    fac_analysis_free(p->analysis);
    job_close(&p->j);
    p->launched = NULL;
    p->launches = NULL;
    p->analysis = NULL;
}
