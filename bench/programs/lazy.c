/* What the recorder costs, in CPU time of one thread.
 *
 *     bench_lazy [ROUNDS [eager|record|plan]]
 *
 * eager:   an add of one element, op by op
 * record:  a training step of ResNet-18 with Adam, recorded node by node as a binding would
 * plan:    of that step, by a program of its own */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "facula/facula.h"
#include "op_list.h"

static fac_error err;
static void failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, err.text);
    exit(1);
}
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) failed(#call);                                                                   \
    } while (0)

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double best(double a, double b) { return a < b ? a : b; }

/* ---- eager ---- */

static void eager(fac_recorder *r) {
    enum { CALLS = 20000 };
    const fac_op *add = &fac_op_add;
    fac_tensor *t;
    fac_lazy *x, *y;
    double least = 1;
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(1), &t, &err));
    OK(fac_lazy_of(r, t, &x, &err));
    for (int round = 0; round < 10; round++) {
        const double start = now();
        for (int i = 0; i < CALLS; i++) {
            OK(fac_record(r, add, NULL, 2, (fac_lazy *[]){ x, x }, FAC_RECORD_NOW, 1, &y, &err));
            fac_lazy_free(y);
        }
        least = best(least, (now() - start) / CALLS);
    }
    printf("eager add of one element: %.0f ns\n", 1e9 * least);
    fac_lazy_free(x);
    fac_tensor_free(t);
}

/* ---- a step of ResNet-18 ---- */

enum { IMAGE = 32, BATCH = 2 };

static fac_tensor *new_input(fac_type t) {
    fac_tensor *x;
    OK(fac_tensor_new(NULL, t.dtype, t.dims, &x, &err));
    return x;
}

static fac_graph *step_graph(void) {
    const fac_zoo *z = fac_zoo_find("resnet18");
    fac_optim_opts opts = { 0 };
    fac_graph *g = fac_graph_new();
    fac_value *y = z->build(fac_input(g, "x", FAC_F32, fac_shape(BATCH, 3, IMAGE, IMAGE)));
    fac_value *loss = fac_cross_entropy(y, fac_input(g, "labels", FAC_I64, fac_shape(BATCH)), NULL);
    fac_adam(loss, fac_number(g, FAC_F32, 1e-3), &opts);
    fac_output(g, "loss", loss);
    OK(fac_graph_check(g, &err));
    return g;
}

typedef struct replay {
    fac_recorder *r;
    fac_graph *g;
    fac_lazy **of; /* by value id */
    size_t ids;
    const fac_node **node; /* in order */
    size_t nodes;
} replay;

static fac_lazy *leaf(replay *p, fac_value *v) {
    fac_lazy *x;
    fac_type t = fac_value_type(v);
    if (fac_value_tensor(v) && v->leaf != FAC_CONST) {
        OK(fac_lazy_state(p->r, fac_value_tensor(v), &x, &err));
        return x;
    }
    fac_tensor *data = fac_value_tensor(v);
    if (data) {
        OK(fac_lazy_of(p->r, data, &x, &err));
        return x;
    }
    data = new_input(t);
    OK(fac_lazy_of(p->r, data, &x, &err));
    fac_tensor_free(data);
    return x;
}

static void collect(replay *p) {
    for (int i = 0; i < fac_graph_inputs(p->g); i++)
        if (fac_graph_input(p->g, i)->id >= p->ids) p->ids = fac_graph_input(p->g, i)->id + 1;
    for (const fac_node *n = fac_graph_output(p->g, fac_graph_outputs(p->g) - 1)->node; n;
         n = n->next)
        for (int k = 0; k < n->nout; k++)
            if (n->out[k]->id >= p->ids) p->ids = n->out[k]->id + 1;
    const fac_node *first = fac_graph_output(p->g, 0)->node;
    while (first->prev) first = first->prev;
    for (const fac_node *n = first; n; n = n->next) {
        p->nodes++;
        for (int k = 0; k < n->nout; k++)
            if (n->out[k]->id >= p->ids) p->ids = n->out[k]->id + 1;
        for (int i = 0; i < n->nin; i++)
            if (n->in[i] && n->in[i]->id >= p->ids) p->ids = n->in[i]->id + 1;
    }
    p->node = calloc(p->nodes, sizeof *p->node);
    p->of = calloc(p->ids, sizeof *p->of);
    size_t at = 0;
    for (const fac_node *n = first; n; n = n->next) p->node[at++] = n;
    for (at = 0; at < p->nodes; at++)
        for (int i = 0; i < p->node[at]->nin; i++) {
            fac_value *v = p->node[at]->in[i];
            if (v && !v->node && !p->of[v->id]) p->of[v->id] = leaf(p, v);
        }
}

/* Records the step, keeps the loss, frees all else; assigns the states. */
static fac_lazy *record(replay *p, bool assign) {
    enum { MOST = 64 };
    fac_lazy *in[MOST], *out[MOST];
    for (size_t at = 0; at < p->nodes; at++) {
        const fac_node *n = p->node[at];
        for (int i = 0; i < n->nports; i++) in[i] = n->in[i] ? p->of[n->in[i]->id] : NULL;
        OK(fac_record(p->r, n->op, n->attrs, n->nports, in, FAC_RECORD_NO_GRAD, n->nout, out,
                      &err));
        for (int k = 0; k < n->nout; k++) p->of[n->out[k]->id] = out[k];
    }
    for (int i = 0; i < fac_graph_params(p->g) && assign; i++) {
        const fac_value *v = fac_graph_param(p->g, i);
        if (v->next && p->of[v->id]) OK(fac_lazy_assign(p->of[v->id], p->of[v->next->id], &err));
    }
    fac_lazy *loss =
        fac_lazy_retain(p->of[fac_graph_output(p->g, fac_graph_outputs(p->g) - 1)->id]);
    for (size_t at = 0; at < p->nodes; at++)
        for (int k = 0; k < p->node[at]->nout; k++) {
            fac_lazy_free(p->of[p->node[at]->out[k]->id]);
            p->of[p->node[at]->out[k]->id] = NULL;
        }
    return loss;
}

/* Recording alone, as the flush that follows is mostly the run. */
static void step(fac_recorder *r, int rounds) {
    replay p = { .r = r, .g = step_graph() };
    double recording = 1, flushing = 1;
    collect(&p);
    for (int i = 0; i < rounds; i++) {
        const double start = now();
        fac_lazy *loss = record(&p, true);
        const double recorded = now();
        OK(fac_flush(r, &err));
        const double done = now();
        fac_lazy_free(loss);
        if (i < 4) continue;
        recording = best(recording, recorded - start);
        flushing = best(flushing, done - recorded);
    }
    double warm = 1;
    for (int i = 0; i < 4 * rounds; i++) { /* no result is wanted: no run */
        const double start = now();
        fac_lazy_free(record(&p, false));
        OK(fac_flush(r, &err));
        warm = best(warm, now() - start);
    }
    printf("the same without a run, caches warm: %.3f ms\n", 1e3 * warm);
    const fac_recorder_stat s = fac_recorder_stats(r);
    printf("a step of ResNet-18 with Adam, %zu nodes: recorded in %.3f ms (%.0f ns a node), "
           "flushed in %.2f; planned %d of %d\n",
           p.nodes, 1e3 * recording, 1e9 * recording / (double)p.nodes, 1e3 * flushing,
           (int)s.planned, (int)s.flushes);
}

static void plan(fac_device *d, int rounds) {
    fac_graph *g = step_graph();
    fac_tensor *in[4];
    double planning = 1;
    for (int k = 0; k < fac_graph_inputs(g); k++)
        in[k] = new_input(fac_value_type(fac_graph_input(g, k)));
    for (int i = 0; i < rounds; i++) {
        fac_program *p;
        const double start = now();
        OK(fac_program_new(g, d, &(fac_program_opts){ .plan_only = true }, &p, &err));
        OK(fac_program_plan(p, in, NULL, &err));
        planning = best(planning, now() - start);
        fac_program_free(p);
    }
    printf("planned in %.2f ms\n", 1e3 * planning);
    for (int k = 0; k < fac_graph_inputs(g); k++) fac_tensor_free(in[k]);
    fac_graph_free(g);
}

int main(int argc, char **argv) {
    fac_device *d;
    fac_recorder *r;
    const int rounds = argc > 1 ? atoi(argv[1]) : 20;
    const char *only = argc > 2 ? argv[2] : NULL;
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1, .wisdom = "" }, &d, &err));
    OK(fac_recorder_new(d, NULL, &r, &err));
    if (!only || !strcmp(only, "eager")) eager(r);
    if (!only || !strcmp(only, "record")) step(r, rounds);
    if (!only || !strcmp(only, "plan")) plan(d, rounds);
    return 0;
}
