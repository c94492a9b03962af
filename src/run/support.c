/* Who would do a problem: it is compiled as a program is, but nothing is made. */
#include "base/error.h"
#include "base/memory.h"
#include "facula/backend.h"
#include "run/run.h"
#include "plan/plan.h"

static fac_status plan_of(const fac_graph *g, fac_device *d, bool *steers, fac_tensor **in,
                          fac_support *out, fac_error *err) {
    const fac_program_opts opts = { 0 };
    fac_plan *plan;
    for (size_t i = 0; i < g->ninputs; i++)
        FAC_TRY(
            fac_tensor_new(NULL, g->inputs[i]->type.dtype, g->inputs[i]->type.dims, &in[i], err));
    if (!fac_graph_steering(g, steers)) return fac_raise_memory(err, "a problem");
    FAC_TRY(fac_plan_new(g, steers, in, d, &opts, true, &plan, err));
    *out = (fac_support){ .steps = plan->nsteps };
    for (int i = 0; i < plan->nsteps; i++)
        out->fallbacks += plan->steps[i].solver == fac_last_solver(d);
    fac_plan_free(plan);
    return FAC_OK;
}

fac_status fac_problem_support(const char *problem, fac_device *d, fac_support *out,
                               fac_error *err) {
    fac_graph *g;
    FAC_TRY(fac_problem_graph(problem, false, &g, err));
    bool *steers = fac_alloc(g->ninputs + 1, sizeof *steers);
    fac_tensor **in = fac_alloc(g->ninputs + 1, sizeof *in);
    fac_status status = FAC_OK;
    if (steers && in)
        status = plan_of(g, d, steers, in, out, err);
    else
        status = fac_raise_memory(err, "a problem");
    for (size_t i = 0; in && i < g->ninputs; i++) fac_tensor_free(in[i]);
    fac_release(in);
    fac_release(steers);
    fac_graph_free(g);
    return status;
}
