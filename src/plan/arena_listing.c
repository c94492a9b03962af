/* What lies where in the arena of a plan, for those who want to see it. */
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "plan/plan.h"

static int whole(const fac_plan *p, int root) {
    return p->roots[root].kind == FAC_ROOT_PART ? p->roots[root].index : root;
}

/* By root: the step that writes it first, counted from 1; its scratch counts below that. */
static void find_makers(const fac_plan *p, int *maker) {
    for (int i = p->nsteps - 1; i >= 0; i--) {
        const fac_step *s = &p->steps[i];
        for (int k = 0; k < s->problem->nout; k++)
            if (s->out[k].root >= 0) maker[whole(p, s->out[k].root)] = i + 1;
        if (s->work >= 0) maker[s->work] = -(i + 1);
    }
}

static int by_place(const void *a, const void *b) {
    const fac_arena_part *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                                : (x->last > y->last) - (x->last < y->last);
}

static size_t list(const fac_plan *plan, const int *maker, fac_arena_part *to) {
    size_t n = 0;
    for (int i = 0; i < plan->nroots; i++) {
        const fac_root *r = &plan->roots[i];
        if (r->kind != FAC_ROOT_ARENA || !maker[i]) continue;
        const int step = (maker[i] < 0 ? -maker[i] : maker[i]) - 1;
        if (to)
            to[n] = (fac_arena_part){
                plan->steps[step].label, r->at, r->bytes, r->first, r->last, maker[i] < 0
            };
        n++;
    }
    if (to) qsort(to, n, sizeof *to, by_place);
    return n;
}

size_t fac_plan_arena(const fac_plan *plan, fac_arena_part *to, size_t max) {
    size_t n = 0;
    int *maker = fac_alloc((size_t)plan->nroots + 1, sizeof *maker);
    fac_arena_part *all = maker && to ? fac_alloc((size_t)plan->nroots + 1, sizeof *all) : NULL;
    if (maker) {
        find_makers(plan, maker);
        n = list(plan, maker, all);
    }
    if (to && !all) n = 0; /* no memory to sort them */
    if (all) memcpy(to, all, (n < max ? n : max) * sizeof *to);
    fac_release(all);
    fac_release(maker);
    return n;
}
