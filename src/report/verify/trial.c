/* Running the models of a comparison: programs on the trial's inputs, once or in rounds. */
#include "base/error.h"
#include "base/memory.h"
#include "report/verify/verify.h"

void fac_drop_tensors(fac_tensor *t[], size_t n) {
    for (size_t k = 0; t && k < n; k++) {
        fac_tensor_free(t[k]);
        t[k] = NULL;
    }
}

fac_status fac_trial_program(const fac_trial *t, const fac_graph *g, fac_program **out) {
    const fac_program_opts opts = { .precision = FAC_PRECISION_HIGHEST };
    return fac_program_new(g, t->device, &opts, out, t->err);
}

/* The trial's inputs in the types of this graph; the model's own come first in every graph that is
 * made of it. */
fac_status fac_trial_run(const fac_trial *t, const fac_graph *g, fac_program *p,
                         fac_tensor *out[]) {
    const size_t n = g->ninputs;
    fac_tensor **in = fac_alloc(n + 1, sizeof *in);
    fac_status status = in ? FAC_OK : fac_raise_memory(t->err, "%zu inputs", n);
    for (size_t i = 0; i < n && !status; i++) {
        if (g->inputs[i]->type.dtype == fac_tensor_type(t->in[i]).dtype)
            in[i] = fac_tensor_retain(t->in[i]);
        else
            status = fac_tensor_convert(t->in[i], g->inputs[i]->type.dtype, &in[i], t->err);
    }
    if (!status) status = fac_program_run(p, in, out, t->err);
    fac_drop_tensors(in, n);
    fac_release(in);
    return status;
}

fac_status fac_trial_once(const fac_trial *t, const fac_graph *g, fac_tensor *out[]) {
    fac_program *p = NULL;
    FAC_TRY(fac_trial_program(t, g, &p));
    fac_status status = fac_trial_run(t, g, p, out);
    fac_program_free(p);
    return status;
}

/* ---- all rounds ----
 * First all of one model, then all of the other, so that one program and its packed weights are in
 * memory at a time. */

fac_status fac_trial_rounds(fac_trial *t, fac_verify_side *s, int first, int rounds) {
    fac_program *p = NULL;
    fac_drop_tensors(s->out, s->nout);
    fac_release(s->out);
    s->nout = (size_t)rounds * s->run->noutputs;
    s->out = fac_alloc(s->nout + 1, sizeof *s->out);
    if (!s->out) return fac_raise_memory(t->err, "%zu outputs", s->nout);
    fac_status status = fac_trial_program(t, s->run, &p);
    for (int r = 0; r < rounds && !status; r++) {
        status = fac_trial_inputs(t, first + r);
        if (!status) status = fac_trial_run(t, s->run, p, s->out + (size_t)r * s->run->noutputs);
    }
    fac_program_free(p);
    return status;
}

void fac_side_done(fac_verify_side *s) {
    fac_drop_tensors(s->out, s->nout);
    fac_release(s->out);
    fac_graph_free(s->run);
    s->out = NULL;
    s->nout = 0;
    s->run = NULL;
}
