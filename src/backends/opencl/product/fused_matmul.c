/* Solver "fused_matmul": a product into the scratch by the best of the products' solvers, then one
 * launch of the elementwise ops after it.  What the cpu gains by never storing the product, a
 * device with memory of its own and no caches to speak of would not. */
#include "backends/opencl/product/gemm.h"
#include "opencl_solvers.h"
#include "backends/problem.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_internal.h"
#include "op_list.h"

enum { OPERANDS = 24, ALIGN = 1024 };

static const fac_solver *const products[] = { &fac_cl_matmul_wgmma, &fac_cl_matmul_tile,
                                              &fac_cl_matmul_vector, &fac_cl_matmul_thin };
enum { PRODUCTS = sizeof products / sizeof *products };

typedef struct plan {
    const fac_solver *solver; /* of the product */
    void *product, *rest;     /* its plan; a plan of the elementwise solver */
    size_t product_bytes;     /* in front of its solver's scratch */
    int nin;
} plan;

/* The two problems that the node is.  The second has the product as its last input. */
typedef struct halves {
    fac_graph *graph; /* of the second's node */
    fac_operand in[OPERANDS], factor[2], matrix;
    fac_problem product, rest;
} halves;

static bool halves_of(const fac_problem *p, halves *h) {
    const fac_node *matmul = p->node->body[0]->first;
    *h = (halves){ 0 };
    if (p->nin >= OPERANDS || !(h->graph = fac_after_product(p->node))) return false;
    h->matrix = (fac_operand){ matmul->out[0]->type, fac_layout_plain(&matmul->out[0]->type.dims),
                               FAC_RUN, NULL };
    for (int i = 0; i < p->nin; i++) h->in[i] = p->in[i];
    for (int i = 0; i < 2; i++) {
        h->factor[i] = p->in[i];
        h->factor[i].time =
            FAC_RUN; /* nothing is packed before the run: this solver has no pack() */
        if (h->factor[i].layout.block)
            h->factor[i].layout = fac_layout_plain(&h->factor[i].type.dims);
    }
    h->in[p->nin] = h->matrix;
    h->product = (fac_problem){ .node = matmul,
                                .precision = p->precision,
                                .nin = 2,
                                .nout = 1,
                                .in = h->factor,
                                .out = &h->matrix };
    h->rest = (fac_problem){ .node = h->graph->last,
                             .precision = p->precision,
                             .nin = p->nin + 1,
                             .nout = p->nout,
                             .in = h->in,
                             .out = p->out };
    return true;
}

static const fac_solver *solver_of(fac_device *d, halves *h, fac_offer *best) {
    const fac_solver *found = NULL;
    for (int i = 0; i < PRODUCTS; i++) {
        fac_offer one;
        if (!fac_solver_offer(products[i], d, &h->product, &one) ||
            (found && one.seconds >= best->seconds))
            continue;
        *best = one, found = products[i];
    }
    return found;
}

static size_t product_bytes(const halves *h) {
    return (fac_type_bytes(&h->matrix.type) + ALIGN - 1) / ALIGN * ALIGN;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    halves h;
    fac_offer product = { 0 }, rest = { 0 };
    if (!halves_of(p, &h)) return false;
    const bool good =
        solver_of(d, &h, &product) && fac_solver_offer(&fac_cl_elementwise, d, &h.rest, &rest);
    for (int i = 0; good && i < p->nin; i++)
        p->in[i].layout = i < 2 ? h.factor[i].layout : h.in[i].layout;
    if (good) {
        offer->seconds = product.seconds + rest.seconds;
        offer->work = product_bytes(&h) + product.work;
    }
    fac_graph_free(h.graph);
    return good;
}

static void done(fac_device *d, void *arg) {
    plan *q = arg;
    if (!q) return;
    if (q->solver) q->solver->done(d, q->product);
    fac_cl_elementwise.done(d, q->rest);
    fac_release(q);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    halves h;
    fac_offer product = { 0 }, rest = { 0 };
    plan *q = fac_alloc(1, sizeof *q);
    if (!q || !halves_of(p, &h)) {
        fac_release(q);
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for a plan", p->node->op->name);
    }
    q->nin = p->nin;
    q->product_bytes = product_bytes(&h);
    q->solver = solver_of(d, &h, &product);
    fac_status status =
        q->solver ? fac_solver_make(q->solver, d, &h.product, &product, &q->product, err)
                  : fac_raise(err, FAC_E_INTERNAL, "%s: not the problem that was offered for",
                              p->node->op->name);
    /* its layouts are settled, and elementwise leaves no draft */
    if (!status) status = fac_solver_make(&fac_cl_elementwise, d, &h.rest, &rest, &q->rest, err);
    fac_graph_free(h.graph);
    if (status)
        done(d, q);
    else
        *out = q;
    return status;
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *q = arg;
    fac_span all[OPERANDS];
    for (int i = 0; i < q->nin; i++) all[i] = in[i];
    all[q->nin] = work;
    FAC_TRY(q->solver->run(q->product, d, in, &work,
                           (fac_span){ work.memory, work.at + q->product_bytes }, err));
    return fac_cl_elementwise.run(q->rest, d, all, out, (fac_span){ NULL, 0 }, err);
}

const fac_solver fac_cl_fused_matmul = { .name = "fused_matmul",
                                         .op = &fac_op_fused_matmul,
                                         .rank = 430,
                                         .offer = offer,
                                         .make = make,
                                         .done = done,
                                         .run = run };
