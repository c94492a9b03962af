/* Graphs as text, what a pass leaves of them, and that the whole planner's results are those of the
 * formulas. */
#ifndef FACULA_TESTS_PASS_FORMS_H
#define FACULA_TESTS_PASS_FORMS_H
#include "opencl_check.h"
#include "problem_check.h"
#include "graph/graph_internal.h"
#include "passes/passes.h"

enum { INPUTS = 6 };

static fac_error err;

typedef struct expected {
    const char *op;
    int count;
} expected;
typedef struct form {
    const char *name;
    fac_graph *(*pass[2])(const fac_graph *g);
    double tolerance; /* of the whole planner's result */
    const char *text;
    expected left[4];
} form;

static int count(const fac_graph *g, const char *op) {
    int n = 0;
    for (const fac_node *k = g->first; k; k = k->next)
        n += !strcmp(k->op->name, op) && (k->out[0]->uses || k->out[0]->roots);
    return n;
}

static fac_graph *read_text(const form *f) {
    fac_graph *g = NULL;
    FILE *from = fmemopen((void *)f->text, strlen(f->text), "r");
    assert_non_null(from);
    if (fac_graph_read(from, &g, &err)) fail_msg("%s: %s", f->name, err.text);
    fclose(from);
    const problem_check c = { .seed = 77, .lo = -1, .hi = 1 };
    for (size_t i = 0; i < g->nparams; i++) problem_fill(&c, (int)i, g->params[i]->tensor);
    return g;
}

/* The ops that are left. */
static void check_structure(const form *forms, size_t n) {
    for (size_t i = 0; i < n; i++) {
        fac_graph *g = read_text(&forms[i]);
        for (int k = 0; k < 2 && forms[i].pass[k]; k++) {
            fac_graph *next = forms[i].pass[k](g);
            if (fac_graph_check(next, &err)) fail_msg("%s: %s", forms[i].name, err.text);
            fac_graph_free(g);
            g = next;
        }
        for (const expected *e = forms[i].left; e < forms[i].left + 4 && e->op; e++)
            if (count(g, e->op) != e->count)
                fail_msg("%s: %d of %s, expected %d", forms[i].name, count(g, e->op), e->op,
                         e->count);
        fac_graph_free(g);
    }
}

static void run(const fac_graph *g, fac_device *d, bool plain, fac_tensor *const in[],
                fac_tensor *out[]) {
    const fac_program_opts o = { .solver = plain ? "ref" : NULL, .no_fuse = plain };
    fac_program *p;
    fac_tensor *got[4] = { NULL };
    if (fac_program_new(g, d, &o, &p, &err) || fac_program_run(p, in, got, &err))
        fail_msg("%s", err.text);
    for (int k = 0; k < fac_graph_outputs(g); k++) {
        assert_int_equal(fac_tensor_convert(got[k], FAC_F64, &out[k], &err), FAC_OK);
        fac_tensor_free(got[k]);
    }
    fac_program_free(p);
}

/* The whole planner on a device against the formulas, step by step. */
static void check_graph_on(const char *device, const fac_graph *g, double tolerance,
                           const char *name) {
    fac_device *cpu, *d;
    fac_tensor *in[INPUTS] = { NULL }, *got[4] = { NULL }, *want[4] = { NULL };
    const problem_check c = { .seed = strlen(name), .lo = -2, .hi = 2, .tolerance = tolerance };
    if (!opencl_survives(device) || fac_device_open(device, NULL, &d, &err)) return;
    assert_int_equal(fac_device_open("cpu", NULL, &cpu, &err), FAC_OK);
    for (int k = 0; k < fac_graph_inputs(g); k++) {
        const fac_type t = fac_value_type(fac_graph_input(g, k));
        assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &in[k], &err), FAC_OK);
        problem_fill(&c, k, in[k]);
    }
    run(g, cpu, true, in, want);
    run(g, d, false, in, got);
    for (int k = 0; k < fac_graph_outputs(g); k++) {
        problem_compare(&c, got[k], want[k], name);
        fac_tensor_free(got[k]);
        fac_tensor_free(want[k]);
    }
    for (int k = 0; k < INPUTS; k++) fac_tensor_free(in[k]);
    fac_device_free(cpu);
    fac_device_free(d);
}

static void check_results(const form *forms, size_t n) {
    for (size_t i = 0; i < n; i++) {
        fac_graph *g = read_text(&forms[i]);
        check_graph_on("cpu", g, forms[i].tolerance, forms[i].name);
        check_graph_on("opencl", g, forms[i].tolerance, forms[i].name);
        fac_graph_free(g);
    }
}
#endif
