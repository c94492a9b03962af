/* No operator of the OpenCL device falls back to the cpu but those whose output shapes are known
 * only after they ran: the choice of a solver for every case of every operator, or for all that it
 * expands to, without running any.  FACULA_VERBOSE=1 prints who solves what.  Skipped where no
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
#include "op_list.h"
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

/* The first solver of the device that makes an offer. */
static const char *solver_of(const fac_node *n) {
    for (const fac_solver *const *s = device->backend->solvers; *s; s++) {
        fac_operand o[OPERANDS] = { 0 };
        fac_problem p = { .node = n,
                          .precision = FAC_PRECISION_HIGHEST,
                          .nin = n->nin,
                          .nout = n->nout,
                          .in = o,
                          .out = o + n->nin };
        fac_offer offer = { 0 };
        assert_true(n->nin + n->nout <= OPERANDS);
        if ((*s)->op && (*s)->op != n->op) continue;
        for (int i = 0; i < n->nin + n->nout; i++) {
            const fac_value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
            if (v)
                o[i] = (fac_operand){ v->type, fac_layout_plain(&v->type.dims), FAC_RUN, v->known };
        }
        if (!fac_solver_offer(*s, device, &p, &offer)) continue;
        fac_offer_drop(&offer);
        return (*s)->name;
    }
    return NULL;
}

/* Its expansion, as it is planned, is all kernels. */
static bool expands_to_kernels(const fac_node *n, const char *problem) {
    fac_support s = { 0 };
    if (!fac_node_expands(n)) return false;
    if (fac_problem_support(problem, device, &s, &err)) fail_msg("%s: %s", problem, err.text);
    return !s.fallbacks;
}

static bool is_of_host_type(const fac_value *v) {
    return v && (v->type.dtype == FAC_TEXT || fac_dtype_is_stored(v->type.dtype));
}

/* Texts, and numbers of fewer bits than kernels know. */
static bool is_of_host_types(const fac_node *n) {
    bool any = false;
    for (int k = 0; k < n->nin; k++) any |= is_of_host_type(n->in[k]);
    for (int k = 0; k < n->nout; k++) any |= is_of_host_type(n->out[k]);
    return any;
}

static void nothing_falls_back(void **state) {
    (void)state;
    if (!device) skip();
    int away = 0;
    for (const fac_op *const *op = fac_ops; *op; op++) {
        for (const fac_case *c = (*op)->cases; c && c->problem; c++) {
            fac_graph *g = NULL;
            if (fac_problem_graph(c->problem, false, &g, &err))
                fail_msg("%s: %s", c->problem, err.text);
            const char *name = solver_of(g->last);
            if (!name && expands_to_kernels(g->last, c->problem)) name = "(expanded)";
            if (getenv("FACULA_VERBOSE"))
                printf("%-20s %-20s %s\n", (*op)->name, name ? name : "cpu", c->problem);
            /* sizes are data; a box is chosen by those that were chosen before; pixels of a box and
             * pivots are data; weights of mels are made once; neighbours of numbers are rarely
             * asked for */
            static const fac_op *const alone[] = { &fac_op_nextafter,
                                                   &fac_op_nonzero,
                                                   &fac_op_non_max_suppression,
                                                   &fac_op_max_roi_pool,
                                                   &fac_op_det,
                                                   &fac_op_inverse,
                                                   &fac_op_solve,
                                                   &fac_op_cholesky,
                                                   &fac_op_qr,
                                                   &fac_op_eigh,
                                                   &fac_op_svd,
                                                   &fac_op_mel_weights,
                                                   NULL };
            /* not integers: fits and packing are made once, in f64 or for the cpu */
            static const fac_op *const lacking[] = {
                &fac_op_tf_idf,            /* looks words up in a list, also words of text */
                &fac_op_pairwise_coupling, /* iterates over a few numbers until they are still */
                &fac_op_uniform_mt,        /* NumPy's generator is one sequence: each word follows
                                              from those before */
                &fac_op_conv2d_basis /* f64 */,
                &fac_op_conv2d_codes /* f64 */,
                NULL
            };
            const bool listed = fac_op_is_one_of(*op, alone) || fac_op_is_one_of(*op, lacking);
            const bool sized = !listed && !is_of_host_types(g->last);
            const bool flows =
                (*op)->is & FAC_OP_FLOW; /* expanded, or cut out and run body by body */
            if (!name && sized && !flows && !((*op)->is & FAC_OP_DYNAMIC)) {
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
