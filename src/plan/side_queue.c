/* Steps done beside those that follow.  Only the optimizer reads what a convolution's gradient by
 * its weights makes, while the gradient by its input and the batch norms after that wait for each
 * other: on a device with a second queue the former fill what the latter leave idle.
 *
 * Such a step begins when all before it are done.  Until the run meets it, what it reads must not
 * be written over, what it makes must not be read, and its memory must not be given to others:
 * steps that would have to wait meet all that is aside, and so does each MOST-th step that goes
 * there. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "plan/plan.h"

enum { MOST = 4, READ = 1, WRITTEN = 2 };

/* What is aside since the last meeting: steps from first on; by root, what they do to it. */
typedef struct aside {
    fac_plan *plan;
    char *roots;
    int first, n;
} aside;

static bool goes(const fac_step *s) {
    static const char end[] = "_grad_w";
    const char *op = s->problem->node->op->name;
    const size_t n = strlen(op);
    if (s->kind != FAC_STEP_RUN || !s->problem->node->graph || s->solver == &fac_solver_away)
        return false;
    return n >= sizeof end && !strcmp(op + n - (sizeof end - 1), end);
}

static bool waits(const aside *a, const fac_step *s) {
    for (int k = 0; k < s->problem->nin; k++)
        if (s->in[k].root >= 0 && a->roots[s->in[k].root] & WRITTEN) return true;
    for (int k = 0; k < s->problem->nout; k++)
        if (s->out[k].root >= 0 && a->roots[s->out[k].root]) return true;
    return false;
}

static void keep(const fac_plan *p, int root, int step) {
    if (root >= 0 && p->roots[root].last < step) p->roots[root].last = step;
}

/* Before step i, or at the end; all memory of what was aside lives until then. */
static void meet(aside *a, int i) {
    fac_plan *p = a->plan;
    for (int j = a->first; j < i && a->n; j++) {
        const fac_step *s = &p->steps[j];
        for (int k = 0; k < s->problem->nin && s->aside; k++) keep(p, s->in[k].root, i - 1);
        for (int k = 0; k < s->problem->nout && s->aside; k++) keep(p, s->out[k].root, i - 1);
        if (s->aside) keep(p, s->work, i - 1);
    }
    if (a->n && i < p->nsteps) p->steps[i].meet = true;
    memset(a->roots, 0, (size_t)p->nroots);
    a->n = 0;
}

static void put_aside(aside *a, int i) {
    fac_step *s = &a->plan->steps[i];
    if (!a->n++) a->first = i;
    s->aside = true;
    for (int k = 0; k < s->problem->nin; k++)
        if (s->in[k].root >= 0) a->roots[s->in[k].root] |= READ;
    for (int k = 0; k < s->problem->nout; k++)
        if (s->out[k].root >= 0) a->roots[s->out[k].root] |= WRITTEN;
}

fac_status fac_plan_aside(fac_plan *p, fac_error *err) {
    const fac_beside *b = p->device->backend->beside;
    if (!b || !b->able(p->device) || p->observed) return FAC_OK;
    aside a = { .plan = p, .roots = fac_alloc((size_t)p->nroots + 1, 1) };
    if (!a.roots) return fac_raise_memory(err, "a plan");
    for (int i = 0; i < p->nsteps; i++) {
        const fac_step *s = &p->steps[i];
        const bool goes_aside = goes(s);
        if (goes_aside ? a.n == MOST : waits(&a, s)) meet(&a, i);
        if (goes_aside) put_aside(&a, i);
    }
    meet(&a, p->nsteps);
    fac_release(a.roots);
    return FAC_OK;
}
