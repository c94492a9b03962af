/* What a run says of itself: the steps of its plan, its time, and what the network is made of. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "run_stats.h"

int run_steps_print(fac_program *p, const fac_device *device) {
    const size_t n = fac_program_steps(p, NULL, 0);
    fac_step_stat *steps = calloc(n + 1, sizeof *steps);
    size_t away = 0, reorders = 0;
    if (!steps) return fail_text("out of memory");
    fac_program_steps(p, steps, n);
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(steps[i].op, "reorder")) {
            reorders++;
            fprintf(stderr, "reorder %s: after %s\n", steps[i].layouts,
                    i ? steps[i - 1].nodes : "the inputs");
            continue;
        }
        if (!steps[i].fallback) continue;
        away++;
        fprintf(stderr, "on the cpu: %s\n", steps[i].nodes);
    }
    fprintf(stderr, "%zu of %zu steps on %s, %zu on the cpu, %zu reorders\n", n - away, n,
            fac_device_name(device), away, reorders);
    free(steps);
    return EXIT_OK;
}

int run_stats_print(fac_program *p, const fac_device *device, const fac_graph *g, double ms,
                    int runs, size_t arena) {
    double params = 0, macs = 0;
    for (int i = 0; i < fac_graph_params(g); i++) {
        fac_type t = fac_value_type(fac_graph_param(g, i));
        if (fac_value_trains(fac_graph_param(g, i))) params += (double)fac_dims_count(&t.dims);
    }
    size_t n = fac_program_steps(p, NULL, 0);
    fac_step_stat *steps = calloc(n + 1, sizeof *steps);
    if (!steps) return fail_text("out of memory");
    fac_program_steps(p, steps, n);
    for (size_t i = 0; i < n; i++) macs += steps[i].macs;
    free(steps);
    struct rusage u;
    char a[32], b[32], c[32], d[32];
    getrusage(RUSAGE_SELF, &u);
    printf("%.2f ms an image (median of %d), %.0f images/s on %s (%s)\n", ms, runs, 1e3 / ms,
           fac_device_name(device), fac_device_about(device));
    printf("%s parameters, %s multiply-adds, peak memory %s (activations %s)\n",
           count_text(params, a, sizeof a), count_text(macs, b, sizeof b),
           bytes_text(1024.0 * (double)u.ru_maxrss, c, sizeof c),
           bytes_text((double)arena, d, sizeof d));
    return EXIT_OK;
}
