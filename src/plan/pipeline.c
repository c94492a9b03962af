/* From the graph of a model to that of the steps: the passes of the planner, in their order. */
#include <math.h>
#include <string.h>
#include "backends/transfer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/spare.h"
#include "facula/passes.h"
#include "graph/build.h"
#include "op_list.h"
#include "passes/passes.h"
#include "plan/plan.h"
#include "ref/ref.h"

/* What parameters alone decide is computed by the reference, whatever kernels there are. */
static bool is_early(const fac_node *n) {
    return n->nout && n->out[0] && n->out[0]->time != FAC_RUN;
}

static bool accept(void *self, const fac_node *n) {
    const fac_plan *plan = self;
    if (is_early(n) && !fac_ref_able(n)) return false;
    return fac_would_solve(plan->device, plan->only, plan->precision, n);
}

/* Only solvers of this op: "matmul/thin" of "matmul". */
static bool is_of(const char *solver, const fac_op *op) {
    const size_t n = strlen(op->name);
    return !strncmp(solver, op->name, n) && (!solver[n] || solver[n] == '/');
}

/* A solver asked for by name is worth any price. */
static double price(void *self, const fac_node *n) {
    const fac_plan *plan = self;
    if (is_early(n) && !fac_ref_able(n)) return INFINITY;
    const double seconds = fac_solver_seconds(plan->device, plan->only, plan->precision, n);
    return plan->only && is_of(plan->only, n->op) && seconds < INFINITY ? 0 : seconds;
}

/* The same for a node with only its first output and those that are used. */
static bool accept_as_used(void *self, const fac_node *n) {
    enum { OUTPUTS = 8 };
    fac_value *out[OUTPUTS] = { NULL };
    fac_node seen = *n;
    if (n->nout > OUTPUTS) return false;
    for (int k = 0; k < n->nout; k++)
        if (k == 0 || n->out[k]->uses || n->out[k]->roots) out[k] = n->out[k];
    seen.out = out;
    return accept(self, &seen);
}

/* Replaces plan->graph by the result of a pass. */
static fac_status take(fac_plan *plan, fac_graph *next, fac_error *err) {
    if (!next) return fac_raise_memory(err, "a graph of %d nodes", plan->graph->nodes);
    if (next != plan->graph) fac_graph_retire(plan->graph, next);
    plan->graph = next;
    next->passing = true;
    return fac_graph_check(next, err);
}

/* No pass runs for a while: the graph may be read by others, and spare memory goes. */
static void rest(fac_plan *plan) {
    plan->graph->passing = false;
    fac_arena_drop_spare(&plan->graph->arena);
}

/* Keeps an op with a reference kernel if the caller forced `ref`, or a solver of this op, which
 * then reports why it cannot run. */
static bool accept_as_asked(void *self, const fac_node *n) {
    const fac_plan *plan = self;
    if (plan->only && fac_op_means(n->op) &&
        (fac_is_last_solver(plan->device, plan->only) || is_of(plan->only, n->op)))
        return true;
    return accept_as_used(self, n);
}

/* An op that only a fused kernel can run is expanded. */
static bool accept_plain(void *self, const fac_node *n) {
    return fac_op_means(n->op) && accept_as_asked(self, n);
}

/* Hooks and observers see each iteration of a loop, with the model's own nodes. */
static bool accept_loops(void *self, const fac_node *n) {
    return (n->op == &fac_op_loop && n->out[0]->time == FAC_RUN) || accept_plain(self, n);
}

static fac_accept *kept(const fac_plan *plan, const fac_program_opts *o) {
    return o->hook || o->observe          ? accept_loops
           : plan->observed || o->no_fuse ? accept_plain
                                          : accept_as_asked;
}

/* ---- the table ---- */

/* Which programs a pass is for; none is for those with an observer or a hook, or that look for
 * anomalies. */
enum {
    UNFUSED = 1,    /* also those whose nodes are steps of their own (no_fuse)       */
    ANY_SOLVER = 2, /* not where a solver was asked for by name                      */
    RECOMPUTES = 4, /* where forward values are to be made again                     */
    PARTS = 8       /* where slices are views, and parts are written to their places */
};

typedef fac_graph *fold_pass(const fac_graph *g, fac_evaluate *evaluate);
typedef fac_graph *accept_pass(const fac_graph *g, fac_accept *accept, void *self);
typedef fac_graph *price_pass(const fac_graph *g, fac_price *price, void *self);

typedef struct pass {
    const char *name;
    unsigned when;
    /* one of these */
    fac_graph *(*plain)(const fac_graph *g);
    fold_pass *folds;
    accept_pass *accepts, *accepts_used; /* used: unused outputs do not count */
    price_pass *prices;
    const fac_op *but; /* ANY_SOLVER, but for solvers of this op */
    const char *does;
} pass;

static fac_graph *sweep(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ 0 }, NULL);
}

static const pass passes[] = {
    { "simplify", .plain = fac_pass_simplify, .does = "the same in fewer nodes" },
    { "cse", UNFUSED, .plain = fac_pass_cse, .does = "equal nodes become one" },
    { "gather_slices", PARTS, .plain = fac_pass_gather_slices,
      .does = "gathers of one place become views" },
    { "slice_sums", .plain = fac_pass_slice_sums, .does = "gradients of slices become one concat" },
    { "gelu", .plain = fac_pass_gelu, .does = "what exporters write for gelu becomes one node" },
    { "attention", .accepts_used = fac_pass_attention,
      .does = "softmax between two products becomes one node" },
    { "decoding", .accepts = fac_pass_decoding,
      .does = "caches and attention of a new row become one node" },
    { "row_order", .plain = fac_pass_row_order, .does = "moves of rows become one gather" },
    /* after CSE, which may share forward values with the backward part, and no CSE after it */
    { "recompute", UNFUSED | RECOMPUTES, .does = "forward values are made again instead of kept" },
    { "batch_norm", .plain = fac_pass_batch_norm, .does = "norms of inference go into weights" },
    { "conv_depths", ANY_SOLVER, .prices = fac_pass_conv_depths,
      .does = "convolutions of three dims become such of two" },
    { "patch_products", ANY_SOLVER, .prices = fac_pass_patch_products,
      .does = "gradients by weights of patches become products" },
    { "fold", .folds = fac_pass_fold, .does = "constants are computed" },
    { "conv_chains", ANY_SOLVER, .prices = fac_pass_conv_chains, .but = &fac_op_fused_conv,
      .does = "an expansion, a depthwise convolution and a projection become one" },
    { "weight_casts", .accepts = fac_pass_weight_casts,
      .does = "casts of all weights become one step" },
    { "updates", .accepts = fac_pass_updates, .does = "updates of parameters become few steps" },
    { "sink_views", PARTS, .plain = fac_pass_sink_views,
      .does = "views go after what can join a product" },
    { "sink_transposes", PARTS, .plain = fac_pass_sink_transposes,
      .does = "transposes go after what can join a product" },
    { "epilogue", .accepts = fac_pass_epilogue,
      .does = "bias, add and activation join convolutions and products" },
    { "quantized_sums", .accepts = fac_pass_quantized_sums,
      .does = "sums of bytes join convolutions" },
    { "relu_pools", .accepts = fac_pass_relu_pools, .does = "gradients of max pools mask by relu" },
    { "norm_epilogue", .accepts = fac_pass_norm_epilogue,
      .does = "add and activation join norms of training" },
    { "norm_casts", .accepts = fac_pass_norm_casts,
      .does = "casts join the norms that they stand around" },
    { "norm_moments", ANY_SOLVER, .prices = fac_pass_norm_moments,
      .does = "convolutions give mean and variance" },
    { "norm_sums", ANY_SOLVER, .prices = fac_pass_norm_sums,
      .does = "gradients give the sums of the next norm's gradient" },
    { "norm_masks", ANY_SOLVER, .prices = fac_pass_norm_masks,
      .does = "relu keeps its mask as bits" },
    { "norm_pairs", ANY_SOLVER, .prices = fac_pass_norm_pairs,
      .does = "two norms that are added become one" },
    { "conv_pools", .prices = fac_pass_conv_pools, .does = "max pools join convolutions" },
    { "siblings", PARTS, .accepts = fac_pass_siblings,
      .does = "convolutions of one image become one" },
    { "sibling_products", PARTS, .accepts = fac_pass_sibling_products,
      .does = "queries, keys and values become one product" },
    { "joins", PARTS, .plain = fac_pass_joins, .does = "concats begin as others do" },
    { "chains", .plain = fac_pass_chains, .does = "chains of elementwise ops become one node" },
    { "sweep", .plain = sweep, .does = "values without a reader are dropped" },
};
enum { PASSES = sizeof passes / sizeof *passes };

static bool recomputes(const fac_recompute_opts *r) {
    return r->on || r->share > 0 || r->bytes || r->scopes;
}

static bool applies(const pass *p, const fac_plan *plan, const fac_program_opts *o) {
    if (plan->observed) return false;
    if (o->no_fuse && !(p->when & UNFUSED)) return false;
    if ((p->when & RECOMPUTES) && !recomputes(&o->recompute)) return false;
    if ((p->when & ANY_SOLVER) && plan->only && !(p->but && is_of(plan->only, p->but)))
        return false;
    return !(p->when & PARTS) || fac_in_sight(plan->device) || fac_chooses_forms(plan->device);
}

static fac_graph *run(const pass *p, fac_plan *plan, const fac_program_opts *o) {
    const fac_graph *g = plan->graph;
    if (p->plain) return p->plain(g);
    if (p->folds) return p->folds(g, fac_ref_evaluate);
    if (p->accepts) return p->accepts(g, accept, plan);
    if (p->accepts_used) return p->accepts_used(g, accept_as_used, plan);
    if (p->prices) return p->prices(g, price, plan);
    return fac_graph_recompute(g, &o->recompute, &plan->recompute);
}

/* Expansions may bring constants and constants may settle expansions, so these go round twice. */
fac_status fac_plan_settle(fac_plan *plan, const fac_program_opts *o, fac_error *err) {
    if (!plan->observed && !o->no_fuse && !o->hook && !o->observe)
        FAC_TRY(take(plan, fac_pass_quantized(plan->graph), err));
    if (!plan->observed && !o->no_fuse && !o->hook && !o->observe)
        FAC_TRY(take(plan, fac_pass_low_bits(plan->graph, price, plan), err));
    if (!plan->observed && !o->no_fuse && !o->hook && !o->observe)
        FAC_TRY(take(plan, fac_pass_bits_between(plan->graph, accept, plan), err));
    for (int round = 0; round < 2; round++) {
        FAC_TRY(take(plan, fac_pass_fold(plan->graph, fac_ref_evaluate), err));
        FAC_TRY(take(plan, fac_pass_expand(plan->graph, kept(plan, o), plan), err));
    }
    rest(plan);
    return FAC_OK;
}

fac_status fac_plan_rewrite(fac_plan *plan, const fac_program_opts *o, int many, fac_error *err) {
    for (int k = 0; k < PASSES && k < many; k++) {
        if (!applies(&passes[k], plan, o)) continue;
        if (passes[k].plain == sweep) rest(plan); /* what is left is compact */
        FAC_TRY(take(plan, run(&passes[k], plan, o), err));
    }
    rest(plan);
    return FAC_OK;
}

/* ---- for those who look ---- */

static const char *when_of(const pass *p) {
    if (p->when & RECOMPUTES) return "with recomputing";
    if (p->when & ANY_SOLVER) return "where no solver is forced";
    return p->when & PARTS ? "where slices are views" : "";
}

bool fac_pass_info_of(int i, fac_pass_info *out) {
    if (i < 0 || i > PASSES) return false;
    *out = (fac_pass_info){ "settle", "",
                            "sizes are bound, constants computed, ops without kernels expanded" };
    if (i)
        *out = (fac_pass_info){ passes[i - 1].name, when_of(&passes[i - 1]), passes[i - 1].does };
    return true;
}

/* How many passes run up to this one; -1: there is none of that name. */
static int place_of(const char *name) {
    fac_pass_info info;
    for (int i = 0; fac_pass_info_of(i, &info); i++)
        if (!strcmp(info.name, name)) return i;
    return -1;
}

static fac_status inputs_of(const fac_graph *g, fac_tensor **in, fac_error *err) {
    for (size_t i = 0; i < g->ninputs; i++) {
        fac_dims d = g->inputs[i]->type.dims;
        for (int k = 0; k < d.n; k++)
            if (d.d[k] < 0) d.d[k] = 1;
        FAC_TRY(fac_tensor_new(NULL, g->inputs[i]->type.dtype, d, &in[i], err));
    }
    return FAC_OK;
}

static fac_status graph_after(const fac_graph *g, fac_device *d, const fac_program_opts *o,
                              int many, bool *steers, fac_tensor **in, fac_graph **out,
                              fac_error *err) {
    fac_plan *plan;
    if (!fac_graph_steering(g, steers)) return fac_raise_memory(err, "a graph's inputs");
    FAC_TRY(inputs_of(g, in, err));
    FAC_TRY(fac_plan_begin(g, steers, in, d, o, true, &plan, err));
    fac_status status = fac_plan_rewrite(plan, o, many, err);
    if (!status) {
        *out = plan->graph;
        plan->graph = NULL;
    }
    fac_plan_drop(plan);
    return status;
}

fac_status fac_graph_after(const fac_graph *g, fac_device *device, const fac_program_opts *opts,
                           const char *name, fac_graph **out, fac_error *err) {
    if (!g || !device || !name || !out)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_graph_after: an argument is NULL");
    FAC_TRY(fac_graph_usable(g, "fac_graph_after", err));
    const fac_program_opts none = { 0 };
    const int many = place_of(name);
    if (many < 0) return fac_raise(err, FAC_E_ARGUMENT, "there is no pass \"%s\"", name);
    bool *steers = fac_alloc(g->ninputs + 1, sizeof *steers);
    fac_tensor **in = fac_alloc(g->ninputs + 1, sizeof *in);
    fac_status status = FAC_OK;
    if (steers && in)
        status = graph_after(g, device, opts ? opts : &none, many, steers, in, out, err);
    else
        status = fac_raise_memory(err, "a graph's inputs");
    for (size_t i = 0; in && i < g->ninputs; i++) fac_tensor_free(in[i]);
    fac_release(in);
    fac_release(steers);
    return status;
}
