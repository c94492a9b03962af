/* Solver "fused_matmul": a product into the scratch, then one launch of the elementwise ops behind it.  What the cpu gains by
 * never storing the product, a device with memory of its own and no caches to speak of would not. */
#include "backends/opencl/gemm.h"
#include "backends/opencl/solvers.h"
#include "backends/problem.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_internal.h"

enum { OPERANDS = 24, ALIGN = 64 };

typedef struct plan {
    fac_cl_product r;
    fac_cl_gemm    g;
    size_t         behind;                      /* bytes of the product, in front of the parts of split sums */
    int            nin;
    void          *rest;                        /* a plan of the elementwise solver */
} plan;

/* The two problems that the node is.  The second has the product as its last input. */
typedef struct halves {
    fac_graph  *graph;                          /* of the second's node */
    fac_operand in[OPERANDS], matrix;
    fac_problem product, rest;
} halves;

static bool halves_of(const fac_problem *p, halves *h) {
    const fac_node *matmul = p->node->body[0]->first;
    *h = (halves){ 0 };
    if (p->nin >= OPERANDS || !(h->graph = fac_behind_product(p->node))) return false;
    h->matrix = (fac_operand){ matmul->out[0]->type, fac_layout_plain(&matmul->out[0]->type.dims), FAC_RUN, NULL };
    for (int i = 0; i < p->nin; i++) h->in[i] = p->in[i];
    h->in[p->nin] = h->matrix;
    h->product = (fac_problem){ .node = matmul, .precision = p->precision, .nin = 2, .nout = 1, .in = h->in, .out = &h->matrix };
    h->rest = (fac_problem){ .node = h->graph->last, .precision = p->precision, .nin = p->nin + 1, .nout = p->nout, .in = h->in,
                             .out = p->out };
    return true;
}

/* The best of all kinds of kernels. */
static bool tile_of(const fac_opencl *o, const halves *h, fac_cl_product *r, fac_cl_tile *best) {
    bool found = false;
    if (!fac_cl_product_read(o, &h->product, r)) return false;
    for (fac_cl_way way = 0; way < FAC_CL_WAYS; way++) {
        fac_cl_tile t;
        if (!fac_cl_tile_choose(o, r, way, &t) || (found && t.seconds >= best->seconds)) continue;
        *best = t, found = true;
    }
    return found;
}

static size_t product_bytes(const halves *h) { return (fac_type_bytes(&h->matrix.type) + ALIGN - 1) / ALIGN * ALIGN; }

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    halves h;
    fac_cl_product r;
    fac_cl_tile t;
    fac_offer rest = { 0 };
    for (int i = 0; i < 2; i++)
        if (p->in[i].layout.block) p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    if (!halves_of(p, &h)) return false;
    const bool good = tile_of(fac_opencl_of(d), &h, &r, &t) && fac_cl_elementwise.offer(d, &h.rest, &rest);
    for (int i = 2; good && i < p->nin; i++) p->in[i].layout = h.in[i].layout;
    if (good) {
        offer->seconds = t.seconds + rest.seconds;
        offer->work = product_bytes(&h) + fac_cl_gemm_work(&t, &r);
    }
    fac_graph_free(h.graph);
    return good;
}

static void done(fac_device *d, void *arg) {
    plan *q = arg;
    if (!q) return;
    fac_cl_gemm_free(fac_opencl_of(d), &q->g);
    fac_cl_elementwise.done(d, q->rest);
    fac_release(q);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    halves h;
    fac_cl_tile t;
    plan *q = fac_alloc(1, sizeof *q);
    if (!q || !halves_of(p, &h)) {
        fac_release(q);
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for a plan", p->node->op->name);
    }
    q->nin = p->nin;
    q->behind = product_bytes(&h);
    fac_status status = tile_of(o, &h, &q->r, &t)
        ? fac_cl_gemm_make(o, &q->r, &t, &q->g, err)
        : fac_raise(err, FAC_E_INTERNAL, "%s: not the problem that was offered for", p->node->op->name);
    if (!status) status = fac_cl_elementwise.make(d, &h.rest, &q->rest, err);
    fac_graph_free(h.graph);
    if (status) done(d, q);
    else *out = q;
    return status;
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out, fac_span work, fac_error *err) {
    const plan *q = arg;
    fac_span all[OPERANDS];
    for (int i = 0; i < q->nin; i++) all[i] = in[i];
    all[q->nin] = work;
    const fac_cl_operands x = { .a = in[0], .b = in[1], .y = work, .work = { work.memory, work.at + q->behind } };
    FAC_TRY(fac_cl_gemm_run(fac_opencl_of(d), &q->g, &q->r.s, &x, err));
    return fac_cl_elementwise.run(q->rest, d, all, out, (fac_span){ NULL, 0 }, err);
}

const fac_solver fac_cl_fused_matmul = {
    .name = "fused_matmul", .op = "fused_matmul", .offer = offer, .make = make, .done = done, .run = run };
