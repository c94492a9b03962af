/* What a program tells of its last plan: the time of its steps and launches, and the places in its
 * arena. */
#include <string.h>
#include "plan/plan.h"
#include "run/flow.h"
#include "run/program_internal.h"

void fac_program_profile(fac_program *p, bool on) {
    pthread_mutex_lock(&p->lock);
    p->timed = on;
    for (size_t i = 0; on && i < p->nplans; i++)
        for (int k = 0; k < p->plans[i]->nsteps; k++) {
            p->plans[i]->steps[k].seconds = 0;
            p->plans[i]->steps[k].runs = 0;
        }
    for (size_t i = 0; i < p->nplans; i++)
        if (p->plans[i]->cut) fac_cut_profile(p->plans[i]->cut, on);
    pthread_mutex_unlock(&p->lock);
}

size_t fac_program_steps(fac_program *p, fac_step_stat *to, size_t max) {
    pthread_mutex_lock(&p->lock);
    size_t n = p->last && !p->last->cut ? (size_t)p->last->nsteps : 0;
    if (p->last && p->last->cut) n = fac_cut_steps(p->last->cut, to, max);
    const bool own = p->last && !p->last->cut;
    for (size_t i = 0; own && i < n && i < max; i++) {
        const fac_step *s = &p->last->steps[i];
        const char *solver = s->kind == FAC_STEP_RUN ? s->solver->name : "pack";
        const char *op = s->kind != FAC_STEP_RUN    ? "pack"
                         : !s->problem->node->graph ? "reorder"
                                                    : s->problem->node->op->name;
        to[i] = (fac_step_stat){ s->label,
                                 solver,
                                 s->seconds,
                                 s->macs,
                                 s->bytes,
                                 s->runs,
                                 s->solver == &fac_solver_away,
                                 op,
                                 s->layouts,
                                 s->problem->variant,
                                 s->does,
                                 s->ndoes };
    }
    pthread_mutex_unlock(&p->lock);
    return n;
}

size_t fac_program_launches(fac_program *p, fac_launch_stat *to, size_t max) {
    size_t n = 0;
    pthread_mutex_lock(&p->lock);
    const fac_plan *plan = p->last && !p->last->cut ? p->last : NULL;
    int step = 0;
    for (size_t i = 0; plan && i < plan->ncommands; i++) {
        const fac_command *c = &plan->commands[i];
        int k = step;
        while (k < plan->nsteps && plan->steps[k].label != c->step) k++;
        const bool own = k < plan->nsteps;
        if (own) step = k;
        if (n < max)
            to[n] =
                (fac_launch_stat){ own ? k : -1,      "",        c->start - plan->commands[0].start,
                                   c->end - c->start, c->groups, c->items };
        if (n < max) memcpy(to[n].kernel, c->name, sizeof to[n].kernel);
        n++;
    }
    pthread_mutex_unlock(&p->lock);
    return n;
}

size_t fac_program_arena(fac_program *p, fac_arena_part *to, size_t max) {
    pthread_mutex_lock(&p->lock);
    const size_t n = p->last && !p->last->cut ? fac_plan_arena(p->last, to, max) : 0;
    pthread_mutex_unlock(&p->lock);
    return n;
}
