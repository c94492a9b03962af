/* Which nodes are to be steps of relays (fac_relay), before solvers are chosen.  Alone a solver for
 * relays is slower than others, since the launch of a relay costs more than theirs; many such steps
 * together leave out all launches but one.  So the whole row of nodes is decided at once: the
 * cheapest way through it, where each step of a relay costs what its solver says, each other step a
 * gap besides, and each beginning of a relay its start (a shortest way with two states, as Viterbi
 * has it). */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "backends/speed.h"
#include "op_list.h"
#include "plan/plan.h"

typedef enum state { OTHER, RELAY, STATES } state;
/* from: where the cheapest way to a state comes from */
typedef struct stop {
    const fac_node *node;
    state from[STATES];
} stop;

/* Nothing is done for it where its operand or result lies: it does not end a relay. */
static bool is_nothing(const fac_node *n) { return n->op->view || FAC_IS(n, concat); }

static void step(const fac_plan *p, stop *s, double cost[STATES]) {
    const fac_relay *r = p->device->backend->relay;
    const double relay = fac_step_seconds(p->device, p->precision, s->node, true);
    double other = fac_step_seconds(p->device, p->precision, s->node, false);
    if (!(other < fac_last_speeds.unsolved)) other = fac_last_speeds.unsolved;
    const double before[STATES] = { cost[OTHER], cost[RELAY] }, begun = before[OTHER] + r->start;
    s->from[OTHER] = before[RELAY] < before[OTHER] ? RELAY : OTHER;
    s->from[RELAY] = begun < before[RELAY] ? OTHER : RELAY;
    cost[OTHER] = fmin(before[OTHER], before[RELAY]) + other + r->gap;
    cost[RELAY] = fmin(begun, before[RELAY]) + relay;
}

fac_status fac_plan_relay_wishes(fac_plan *p, fac_error *err) {
    if (!p->device->backend->relay || p->observed || p->only) return FAC_OK;
    stop *stops = fac_alloc((size_t)p->graph->nodes + 1, sizeof *stops);
    p->relayed = fac_arena_alloc(&p->memory, (size_t)p->graph->ids + 1, sizeof *p->relayed);
    fac_status status = stops && p->relayed ? FAC_OK : fac_raise_memory(err, "a plan");
    double cost[STATES] = { 0, INFINITY };
    int n = 0;
    for (const fac_node *k = p->graph->first; k && !status; k = k->next) {
        if (k->out[0]->time != FAC_RUN || is_nothing(k)) continue;
        stops[n].node = k;
        step(p, &stops[n++], cost);
    }
    state at = cost[RELAY] < cost[OTHER] ? RELAY : OTHER;
    for (int i = n - 1; i >= 0 && !status; i--) {
        p->relayed[stops[i].node->out[0]->id] = at == RELAY;
        at = stops[i].from[at];
    }
    fac_release(stops);
    return status;
}
