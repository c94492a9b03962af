/* Solver "group": independent elementwise nodes, single or `fused`, in one parallel region.
 *
 * Each node of the body is a part with a walk of its own (elementwise.h); the blocks of all parts
 * are numbered through and shared out among the threads, so that small and large tensors make even
 * shares.  Operands lie plain. */
#include "backends/draft.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_internal.h"
#include "op_list.h"

enum { SHARES = 8, SERIAL = 16 << 10, INS = FAC_CHAIN_SOURCES / 2 };

typedef struct part {
    fac_elementwise e;
    int in[INS], out[FAC_CHAIN_OUTS]; /* operands of the node */
    int nin, nout;
    int64_t first; /* number of its first block */
} part;

typedef struct plan {
    int parts;
    int64_t units, elements;
    size_t share;
    part part[];
} plan;

/* Operand numbers by value id of the body; 0 is none, input i is i + 1, output k is -(k + 1). */
static int *operands_of(const fac_graph *body) {
    int *of = fac_alloc(body->ids, sizeof *of);
    for (size_t i = 0; of && i < body->ninputs; i++) of[body->inputs[i]->id] = (int)i + 1;
    for (size_t k = 0; of && k < body->noutputs; k++)
        of[body->outputs[k].value->id] = -((int)k + 1);
    return of;
}

/* The part of one node; false when it is not elementwise, or reads what another node of the body
 * makes. */
static bool build_part(const fac_problem *p, const fac_node *n, const int *of, const fac_simd *simd,
                       part *to) {
    fac_operand o[INS + FAC_CHAIN_OUTS];
    fac_problem q = { .node = n,
                      .precision = p->precision,
                      .nin = n->nin,
                      .nout = n->nout,
                      .in = o,
                      .out = o + n->nin };
    fac_frame frame;
    if (n->nin > INS || n->nout > FAC_CHAIN_OUTS) return false;
    for (int i = 0; i < n->nin; i++) {
        const int k = n->in[i] ? of[n->in[i]->id] : 0;
        if (k <= 0) return false;
        to->in[i] = k - 1;
        o[i] = p->in[k - 1];
    }
    for (int i = 0; i < n->nout; i++) {
        const int k = -of[n->out[i]->id];
        if (k <= 0 || p->out[k - 1].type.dtype == FAC_NONE) return false;
        to->out[i] = k - 1;
        o[n->nin + i] = p->out[k - 1];
    }
    to->nin = n->nin;
    to->nout = n->nout;
    to->e.copies = 0;
    to->e.copy = NULL;
    return fac_elementwise_settle(&q, 0, &frame) && !frame.block &&
           fac_elementwise_build(&q, frame, simd, &to->e);
}

/* Bytes of a plan of so many parts; 0: more than there are. */
static size_t plan_bytes(size_t parts) {
    size_t bytes;
    return fac_size_mul(parts, sizeof(part), &bytes) && fac_size_add(bytes, sizeof(plan), &bytes)
               ? bytes
               : 0;
}

/* All parts; false when one does not fit, or there is no memory. */
static bool build(const fac_cpu *cpu, const fac_problem *p, fac_offer *o, plan *g) {
    int *of = operands_of(p->node->body[0]);
    o->lost |= !of;
    bool fits = of != NULL;
    for (const fac_node *n = p->node->body[0]->first; n && fits; n = n->next) {
        part *to = &g->part[g->parts];
        fits = build_part(p, n, of, cpu->simd, to);
        if (!fits) break;
        to->e.streams = cpu->simd->streams;
        to->first = g->units;
        g->units += to->e.units;
        g->elements += to->e.units * to->e.block;
        if (to->e.share > g->share) g->share = to->e.share;
        g->parts++;
    }
    fac_release(of);
    return fits;
}

/* ---- running ---- */

typedef struct job {
    const plan *g;
    const fac_span *in, *out;
    char *work;
} job;

/* The part that holds a block. */
static int part_with(const plan *g, int64_t unit) {
    int low = 0, high = g->parts - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (g->part[middle].first <= unit)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    char *scratch = j->work + (size_t)thread * j->g->share;
    for (int i = part_with(j->g, first); first < last; i++) {
        const part *p = &j->g->part[i];
        fac_span in[INS], out[FAC_CHAIN_OUTS];
        int64_t end = p->first + p->e.units < last ? p->first + p->e.units : last;
        if (end <= first) continue; /* a part without elements */
        for (int k = 0; k < p->nin; k++) in[k] = j->in[p->in[k]];
        for (int k = 0; k < p->nout; k++) out[k] = j->out[p->out[k]];
        fac_elementwise_run(&p->e, in, out, NULL, scratch, first - p->first, end - p->first);
        first = end;
    }
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)err;
    const plan *g = arg;
    const fac_pool *pool = &fac_cpu_of(d)->pool;
    job j = { g, in, out, (char *)work.memory + work.at };
    if (g->units)
        fac_parallel_ranges(pool, g->units, g->elements > SERIAL ? SHARES * pool->threads : 1,
                            run_units, &j);
    return FAC_OK;
}

/* ---- the solver ---- */

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *cpu = fac_cpu_of(d);
    const size_t room = plan_bytes((size_t)p->node->body[0]->nodes);
    double bytes = 0;
    for (int i = 0; i < p->nin; i++) {
        if (fac_copy_size(p->in[i].type.dtype) == 0) return false;
        p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
        bytes += (double)fac_type_bytes(&p->in[i].type);
    }
    for (int k = 0; k < p->nout; k++) {
        if (fac_copy_size(p->out[k].type.dtype) == 0) return false;
        if (!fac_layout_is_plain(&p->out[k].layout, &p->out[k].type.dims)) return false;
        bytes += (double)fac_type_bytes(&p->out[k].type);
    }
    plan *g = room ? fac_offer_keep(o, room, NULL) : NULL;
    if (!g || !build(cpu, p, o, g)) return false;
    o->work = g->share * (size_t)cpu->pool.threads;
    o->seconds = fac_cpu_speeds.step + bytes / cpu->bandwidth;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d, (void)err;
    *out = fac_draft_take(p);
    return FAC_OK;
}

const fac_solver fac_cpu_group = { .name = "group",
                                   .op = &fac_op_group,
                                   .rank = 730,
                                   .offer = offer,
                                   .make = make,
                                   .done = fac_solver_done,
                                   .run = run };
