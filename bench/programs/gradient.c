/* How long the gradients of one problem take, with the result itself: the graph of  y, d sum(y dy)
 * / d each floating operand.
 *   gradient PROBLEM [THREADS [SECONDS [profile]]]
 * Prints the median in milliseconds, and the time of each step if asked to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "facula/backend.h"
#include "facula/facula.h"
#include "graph/graph_internal.h"

enum { OPERANDS = 16, RUNS = 10000, STEPS = 200 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(fac_status status, const fac_error *err) {
    if (!status) return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Numbers from -1 to 1 of no particular order. */
static fac_tensor *numbers(fac_type type, unsigned seed) {
    fac_error err = { 0 };
    fac_tensor *t;
    check(fac_tensor_new(NULL, type.dtype, type.dims, &t, &err), &err);
    if (type.dtype != FAC_F32) return t;
    const int64_t n = fac_dims_count(&type.dims);
    float *x = malloc((size_t)n * sizeof *x + 1);
    for (int64_t i = 0; x && i < n; i++)
        x[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608 - 1;
    check(x ? fac_tensor_write(t, x, (size_t)n * sizeof *x, &err) : FAC_E_NOMEM, &err);
    free(x);
    return t;
}

static void print_steps(fac_program *p) {
    fac_step_stat s[STEPS];
    const size_t n = fac_program_steps(p, s, STEPS);
    for (size_t i = 0; i < n && i < STEPS; i++)
        printf("%10.1f us  %-24s %s\n", 1e6 * s[i].seconds / (double)(s[i].runs ? s[i].runs : 1),
               s[i].solver, s[i].nodes);
}

int main(int argc, char **argv) {
    const int threads = argc > 2 ? atoi(argv[2]) : 2;
    const double enough = argc > 3 ? atof(argv[3]) : 1;
    fac_error err = { 0 };
    fac_graph *g;
    fac_device *d;
    fac_program *p;
    if (argc < 2)
        return fprintf(stderr, "usage: gradient PROBLEM [THREADS [SECONDS [profile]]]\n"), 2;
    check(fac_problem_graph(argv[1], false, &g, &err), &err);
    const fac_port *port = g->last->op->out; /* optional results are not made, as in a network */
    for (int k = (int)g->noutputs - 1; k > 0 && (port[k].is & FAC_OPTIONAL); k--)
        g->outputs[--g->noutputs].value->roots--;
    fac_value *y = fac_graph_output(g, 0), *wrt[OPERANDS], *dx[OPERANDS];
    int n = 0;
    for (int i = 0; i < fac_graph_inputs(g) && n < OPERANDS; i++)
        if (fac_value_type(fac_graph_input(g, i)).dtype == FAC_F32)
            wrt[n++] = fac_graph_input(g, i);
    const fac_type type = fac_value_type(y);
    fac_grad(fac_sum(fac_mul(y, fac_input(g, "dy", type.dtype, type.dims)), (fac_dims){ 0 }, false),
             n, wrt, dx);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "dx%d", i);
        fac_output(g, name, dx[i]);
    }
    check(fac_graph_check(g, &err), &err);
    check(fac_device_open("cpu", &(fac_device_opts){ .threads = threads }, &d, &err), &err);
    check(fac_program_new(g, d, NULL, &p, &err), &err);
    fac_tensor *in[OPERANDS + 1] = { NULL }, *out[2 * OPERANDS] = { NULL };
    for (int i = 0; i < fac_graph_inputs(g); i++)
        in[i] = numbers(fac_value_type(fac_graph_input(g, i)), (unsigned)i + 1);
    for (int i = 0; i < 3; i++) check(fac_program_run(p, in, out, &err), &err);

    static double times[RUNS];
    int runs = 0;
    fac_program_profile(p, argc > 4 && !strcmp(argv[4], "profile"));
    for (const double end = now() + enough; runs < RUNS && (runs < 3 || now() < end); runs++) {
        const double start = now();
        check(fac_program_run(p, in, out, &err), &err);
        times[runs] = 1e3 * (now() - start);
    }
    qsort(times, (size_t)runs, sizeof *times, by_value);
    printf("%.6f\n", times[runs / 2]);
    if (argc > 4) print_steps(p);
    for (int i = 0; i < fac_graph_inputs(g); i++) fac_tensor_free(in[i]);
    for (int i = 0; i < 2 * OPERANDS; i++) fac_tensor_free(out[i]);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(d);
    return 0;
}
