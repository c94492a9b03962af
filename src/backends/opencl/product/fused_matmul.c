/* Solver "fused_matmul": a product into the scratch by the best of the products' solvers, then one
 * launch of the elementwise ops after it.  What the cpu gains by never storing the product, a
 * device with memory of its own and no caches to speak of would not. */
#include "backends/draft.h"
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

/* The two problems that the node is, and by whom they are solved.  The second has the product as
 * its last input. */
typedef struct halves {
    fac_graph *graph; /* of the second's node */
    fac_operand in[OPERANDS], factor[2], matrix;
    fac_problem product, rest;
    const fac_solver *solver; /* of the product */
    fac_offer product_offer, rest_offer;
} halves;

static void drop(void *arg) {
    halves *h = arg;
    fac_offer_drop(&h->product_offer);
    fac_offer_drop(&h->rest_offer);
    fac_graph_free(h->graph);
}

static bool halves_of(const fac_problem *p, halves *h) {
    const fac_node *matmul = p->node->body[0]->first;
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

/* The best for the product, if one takes it. */
static bool solve_product(fac_device *d, halves *h) {
    for (int i = 0; i < PRODUCTS; i++) {
        fac_offer one;
        if (!fac_solver_offer(products[i], d, &h->product, &one)) continue;
        if (h->solver && one.seconds >= h->product_offer.seconds) {
            fac_offer_drop(&one);
            continue;
        }
        fac_offer_drop(&h->product_offer);
        h->product_offer = one;
        h->solver = products[i];
    }
    return h->solver;
}

static size_t product_bytes(const halves *h) {
    return (fac_type_bytes(&h->matrix.type) + ALIGN - 1) / ALIGN * ALIGN;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    halves *h = fac_offer_keep(offer, sizeof *h, drop);
    if (!h || !halves_of(p, h) || !solve_product(d, h) ||
        !fac_solver_offer(&fac_cl_elementwise, d, &h->rest, &h->rest_offer))
        return false;
    for (int i = 0; i < p->nin; i++)
        p->in[i].layout = i < 2 ? h->factor[i].layout : h->in[i].layout;
    offer->seconds = h->product_offer.seconds + h->rest_offer.seconds;
    offer->work = product_bytes(h) + h->product_offer.work;
    return true;
}

static void done(fac_device *d, void *arg) {
    plan *q = arg;
    if (!q) return;
    if (q->solver) q->solver->done(d, q->product);
    fac_cl_elementwise.done(d, q->rest);
    fac_release(q);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    halves *h = fac_draft_take(p);
    plan *q = fac_alloc(1, sizeof *q);
    fac_status status =
        q ? FAC_OK : fac_raise(err, FAC_E_NOMEM, "%s: no memory for a plan", p->node->op->name);
    if (q) {
        q->nin = p->nin;
        q->product_bytes = product_bytes(h);
        q->solver = h->solver;
        h->rest.out = p->out;
        status = fac_solver_make(h->solver, d, &h->product, &h->product_offer, &q->product, err);
    }
    if (!status)
        status = fac_solver_make(&fac_cl_elementwise, d, &h->rest, &h->rest_offer, &q->rest, err);
    drop(h);
    fac_release(h);
    return fac_solver_made(status, d, q, done, out);
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
