/* A step of training packs all weights that it changes, some forward and for gradients: as many
 * small steps as there are weights, each a launch on a device.  Where the backend has a packer,
 * those that may run at the place of the first one become one step there: nothing that lies between
 * them writes what they read.  Their results live longer for it, so one step makes no more of them
 * than MOST bytes. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "plan/schedule.h"

static const size_t most = (size_t)512 << 20;

/* By step: the number of the first one whose step it becomes a part of, one more; 0: it stays what
 * it is. */
typedef struct merge {
    int *into;
    bool *written;
    int merged;
} merge;

static bool packs(const fac_plan *p, const fac_step *s) {
    return s->kind == FAC_STEP_PACK && p->device->backend->packer->takes(s->solver) &&
           s->in[0].root >= 0;
}

/* Which of the steps from first on go together. */
static void find(const fac_plan *p, int first, merge *m) {
    size_t bytes = 0;
    int n = 0;
    memset(m->written, 0, (size_t)p->nroots * sizeof *m->written);
    for (int i = first; i < p->nsteps; i++) {
        const fac_step *s = &p->steps[i];
        for (int k = 0; s->kind == FAC_STEP_RUN && k < s->problem->nout; k++)
            if (s->out[k].root >= 0) m->written[s->out[k].root] = true;
        if (!packs(p, s) || m->into[i] || m->written[s->in[0].root]) continue;
        const size_t more = p->roots[s->out[0].root].bytes;
        if (n && (more > most || bytes > most - more)) break;
        m->into[i] = first + 1;
        bytes += more, n++;
    }
    if (n < 2)
        m->into[first] = 0;
    else
        m->merged += n - 1;
}

/* Fills in the one step for all that go with the first; the roots that it writes live from there
 * on. */
static fac_status join(fac_scheduler *s, int first, const merge *m) {
    fac_plan *p = s->plan;
    fac_step *to = &p->steps[first];
    int n = 0, sources = 0;
    for (int i = first; i < p->nsteps; i++) n += m->into[i] == first + 1;
    fac_problem *q = fac_problem_new(s, to->problem->node, n, n);
    fac_pack_job *jobs = fac_arena_alloc(&p->memory, (size_t)n, sizeof *jobs);
    fac_slot *in = fac_arena_alloc(&p->memory, 2 * (size_t)n, sizeof *in), *out = in + n;
    char label[32];
    snprintf(label, sizeof label, "%d weights", n);
    const char *name = fac_arena_text(&p->memory, label);
    if (!q || !jobs || !in || !name) return fac_raise_memory(s->err, "a plan");
    double bytes = 0;
    for (int i = first, k = 0; i < p->nsteps; i++) {
        const fac_step *from = &p->steps[i];
        int at = 0;
        if (m->into[i] != first + 1) continue;
        while (at < sources && in[at].root != from->in[0].root) at++;
        in[at] = from->in[0];
        q->in[at] = from->problem->in[0];
        if (at == sources) sources++;
        out[k] = from->out[0];
        p->roots[out[k].root].first = first;
        bytes += from->bytes;
        jobs[k++] = (fac_pack_job){ from->solver, from->plan, from->problem->in[0].type,
                                    from->input,  at,         0 };
    }
    q->nin = sources;
    to->kind = FAC_STEP_PACKS;
    to->plan = NULL;
    to->problem = q;
    to->jobs = jobs;
    to->in = in;
    to->out = out;
    to->label = name;
    to->bytes = bytes;
    if (sources + n > p->most) p->most = sources + n;
    return FAC_OK;
}

/* Takes out the steps that are parts of others now; number: by step, its new one, or that of the
 * next one that is left. */
static void close_up(fac_plan *p, const merge *m, int *number) {
    int left = 0;
    for (int i = 0; i < p->nsteps; i++) {
        number[i] = left;
        if (!m->into[i] || m->into[i] == i + 1) p->steps[left++] = p->steps[i];
    }
    number[p->nsteps] = left;
    for (int i = 0; i < p->nroots; i++) {
        fac_root *r = &p->roots[i];
        r->first = number[r->first];
        r->last = number[r->last];
    }
    for (int i = 0; i < p->nitems; i++) p->items[i].step = number[p->items[i].step];
    p->nsteps = left;
}

fac_status fac_merge_packs(fac_scheduler *s) {
    fac_plan *p = s->plan;
    if (!p->device->backend->packer) return FAC_OK;
    merge m = { fac_alloc((size_t)p->nsteps + 1, sizeof *m.into),
                fac_alloc((size_t)p->nroots + 1, sizeof *m.written), 0 };
    int *number = fac_alloc((size_t)p->nsteps + 1, sizeof *number);
    fac_status status = m.into && m.written && number ? FAC_OK : fac_raise_memory(s->err, "a plan");
    for (int i = 0; i < p->nsteps && !status; i++)
        if (packs(p, &p->steps[i]) && !m.into[i]) find(p, i, &m);
    for (int i = 0; i < p->nsteps && !status; i++)
        if (m.into[i] == i + 1) status = join(s, i, &m);
    if (!status && m.merged) close_up(p, &m, number);
    fac_release(m.into);
    fac_release(m.written);
    fac_release(number);
    return status;
}

fac_status fac_plan_packs(fac_plan *p, fac_error *err) {
    for (int i = 0; i < p->nsteps && !p->dry; i++) {
        fac_step *s = &p->steps[i];
        if (s->kind != FAC_STEP_PACKS) continue;
        for (int k = 0; k < s->problem->nout; k++) s->jobs[k].to = p->roots[s->out[k].root].at;
        FAC_TRY(
            p->device->backend->packer->make(p->device, s->jobs, s->problem->nout, &s->plan, err));
    }
    return FAC_OK;
}
