/* facula bench --callers N: throughput.  Programs are immutable, so many threads may call one at
 * once, each with outputs of its own; with a device of one thread each call stays on its core, and
 * no two wait for each other between steps. */
#include <pthread.h>
#include <stdlib.h>
#include "bench.h"
#include "json.h"

typedef struct caller {
    const job *j;
    pthread_t thread;
    bool started;
    double limit, seconds; /* to measure; measured */
    long runs;
    fac_tensor **out;
    fac_status status;
    fac_error err;
} caller;

static bool call(caller *c) {
    c->status = fac_program_run(c->j->program, c->j->in, c->out, &c->err);
    return !c->status;
}

/* The first calls make outputs and a frame. */
static void *work(void *arg) {
    caller *c = arg;
    for (int i = 0; i < 3; i++)
        if (!call(c)) return NULL;
    const double start = now();
    do {
        if (!call(c)) return NULL;
        c->runs++;
        c->seconds = now() - start;
    } while (c->seconds < c->limit);
    return NULL;
}

static int print(const job *j, int n, double rate, double latency, bool json) {
    const fac_type first =
        fac_graph_inputs(j->m.graph) ? fac_tensor_type(j->in[0]) : (fac_type){ 0 };
    const double images = rate * (first.dims.n > 0 ? (double)first.dims.d[0] : 1);
    if (json) {
        cJSON *root = cJSON_CreateObject();
        cJSON_AddNumberToObject(root, "callers", n);
        json_number(root, "runs_per_s", rate, 6);
        json_number(root, "images_per_s", images, 6);
        json_number(root, "latency_ms", 1e3 * latency, 6);
        return json_print(root);
    }
    printf("throughput  %.1f images/s, %.1f runs/s by %d caller%s at once\n", images, rate, n,
           plural(n));
    printf("latency     %.3f ms a run (mean)\n", 1e3 * latency);
    printf("device      %s (%s)\n", fac_device_name(j->device), fac_device_about(j->device));
    return EXIT_OK;
}

int bench_callers(const job *j, int n, double seconds, bool json) {
    caller *all = calloc((size_t)n, sizeof *all);
    if (!all) return fail_text("out of memory");
    int code = EXIT_OK;
    double rate = 0, busy = 0;
    long runs = 0;
    for (int k = 0; k < n; k++) {
        all[k].j = j;
        all[k].limit = seconds;
        all[k].out = tensors_new(j->nout);
        all[k].started = all[k].out && !pthread_create(&all[k].thread, NULL, work, &all[k]);
    }
    for (int k = 0; k < n; k++) {
        if (all[k].started) pthread_join(all[k].thread, NULL);
        if (!code && !all[k].out) code = fail_text("out of memory");
        if (!code && !all[k].started)
            code = fail_text("cannot start a thread for caller %d of %d", k + 1, n);
        if (!code && all[k].status) code = fail(&all[k].err);
        if (all[k].seconds > 0) rate += (double)all[k].runs / all[k].seconds;
        busy += all[k].seconds;
        runs += all[k].runs;
        tensors_free(all[k].out, j->nout);
    }
    free(all);
    return code ? code : print(j, n, rate, busy / (double)runs, json);
}
