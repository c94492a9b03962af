/* The different problems of a program that is tuned, and for each everything that offers to solve
 * it. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "tune/tune.h"

static const double HOPELESS = 5; /* times the least estimate: not worth a pass */

typedef fac_tune_candidate candidate;
typedef fac_tune_subject subject;
typedef fac_tuning tuning;

bool fac_tune_is_subject(const fac_step *s) {
    return s->kind == FAC_STEP_RUN && s->problem->node->graph && !s->relay;
}

subject *fac_tune_subject_of(const tuning *t, const char *key) {
    const uintptr_t place = (uintptr_t)fac_table_get(&t->places, key);
    return place ? &t->at[place - 1] : NULL;
}

int fac_tune_place_of(const subject *s, const fac_solver *solver, int variant) {
    for (int i = 0; i < s->n; i++)
        if (s->at[i].is.solver == solver && s->at[i].is.variant == variant) return i;
    return -1;
}

static fac_status fill(tuning *t, subject *s, const fac_step *step) {
    const int n = fac_candidates(t->p->device, step->problem, NULL, 0),
              most = t->o->most > 0 && t->o->most < n ? t->o->most : n;
    fac_candidate *all = fac_alloc((size_t)n + 1, sizeof *all);
    s->at = fac_alloc((size_t)n + 1, sizeof *s->at);
    if (all) fac_candidates(t->p->device, step->problem, all, n);
    for (int i = 0; all && s->at && i < n; i++) {
        const bool usual =
            all[i].solver == step->solver && all[i].variant == step->problem->variant;
        if (!usual &&
            (all[i].seconds > HOPELESS * all[0].seconds || s->n - (s->usual >= 0) >= most - 1))
            continue;
        if (usual) s->usual = s->n;
        s->at[s->n++] = (candidate){ all[i], INFINITY };
    }
    fac_release(all);
    if (!all || !s->at) return fac_raise(t->err, FAC_E_NOMEM, "no memory to tune %s", s->key);
    if (s->usual < 0) { /* the last resort of the planner */
        s->usual = s->n;
        s->at[s->n++] =
            (candidate){ { step->solver, step->problem->variant, 0, INFINITY }, INFINITY };
    }
    return FAC_OK;
}

fac_status fac_tune_add(tuning *t, const fac_step *step) {
    char *key = fac_problem_key(step->problem);
    if (key && fac_tune_subject_of(t, key)) {
        fac_release(key);
        return FAC_OK;
    }
    if (!key || !fac_reserve(&t->at, &t->room, t->n + 1, sizeof *t->at) ||
        !fac_table_put(&t->places, key, (void *)(t->n + 1))) {
        fac_release(key);
        return fac_raise(t->err, FAC_E_NOMEM, "no memory to tune %zu problems", t->n);
    }
    t->at[t->n] = (subject){ .key = key, .usual = -1, .best = -1 };
    return fill(t, &t->at[t->n++], step);
}

void fac_tune_forget(tuning *t) {
    for (size_t i = 0; i < t->n; i++) {
        fac_release(t->at[i].key);
        fac_release(t->at[i].at);
    }
    fac_release(t->at);
    fac_table_free(&t->places);
    fac_device_free(t->judge);
}
