/* No operator of the OpenCL device falls back to the cpu but those whose output shapes are known only after they ran: the choice
 * of a solver for every case of every operator, without running any.  FACULA_VERBOSE=1 prints who solves what.  Skipped where no
 * driver is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "backends/device.h"
#include "graph/graph_internal.h"
#include "opencl_check.h"

enum { OPERANDS = 64 };

static fac_error err;
static fac_device *device;

static int open_device(void **state) {
    (void)state;
    return opencl_open(&device, &err);
}

static int close_device(void **state) {
    (void)state;
    fac_device_free(device);
    return 0;
}

/* Has no meaning of its own: it is expanded before it is planned. */
static bool expanded(const fac_node *n) {
    return !n->op->map && !n->op->move && !n->op->ref && !(n->op->is & FAC_OP_BODIES) && n->op->expand;
}

/* The first solver of the device that makes an offer. */
static const char *solver_of(const fac_node *n) {
    for (const fac_solver *const *s = device->backend->solvers; *s; s++) {
        fac_operand o[OPERANDS] = { 0 };
        fac_problem p = { .node = n, .precision = FAC_PRECISION_HIGHEST, .nin = n->nin, .nout = n->nout, .in = o, .out = o + n->nin };
        fac_offer offer = { 0 };
        assert_true(n->nin + n->nout <= OPERANDS);
        if ((*s)->op && strcmp((*s)->op, n->op->name)) continue;
        for (int i = 0; i < n->nin + n->nout; i++) {
            const fac_value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
            if (v) o[i] = (fac_operand){ v->type, fac_layout_plain(&v->type.dims), FAC_RUN, v->known };
        }
        if ((*s)->offer(device, &p, &offer)) return (*s)->name;
    }
    return NULL;
}

/* Passes make these where a kernel takes them: on the cpu, or on NVIDIA's matrix units. */
static bool made_for_kernels(const char *name) {
    static const char *const names[] = { "fused_conv", "conv2d_moments", "conv2d_grad_x_norm", "batch_norm_given",
                                         "batch_norm_grad_given", "conv2d_max_pool" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

static void nothing_falls_back(void **state) {
    (void)state;
    if (!device) skip();
    int away = 0;
    for (const fac_op *const *op = fac_ops; *op; op++) {
        for (const fac_case *c = (*op)->cases; c && c->problem; c++) {
            fac_graph *g = NULL;
            if (fac_problem_graph(c->problem, false, &g, &err)) fail_msg("%s: %s", c->problem, err.text);
            const char *name = expanded(g->last) ? "(expanded)" : solver_of(g->last);
            if (getenv("FACULA_VERBOSE")) printf("%-20s %-20s %s\n", (*op)->name, name ? name : "cpu", c->problem);
            const bool ours = !made_for_kernels((*op)->name);
            const bool sized = strcmp((*op)->name, "nonzero");         /* its sizes are data */
            const bool flows = (*op)->is & FAC_OP_FLOW;                /* expanded, or cut out and run body by body */
            if (!name && ours && sized && !flows && !((*op)->is & FAC_OP_DYNAMIC)) {
                print_message("%s falls back to the cpu\n", c->problem);
                away++;
            }
            fac_graph_free(g);
        }
    }
    assert_int_equal(away, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(nothing_falls_back) };
    return cmocka_run_group_tests_name("opencl ops", tests, open_device, close_device);
}
