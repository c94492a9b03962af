/* Memory of a model as our plan has it, and in the best order that is known.  See
 * facula/report/page.h. */
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/page/page_internal.h"

/* Zeros of the right sizes: a plan asks for no more, unless contents steer its shapes. */
static fac_status zeros(const fac_graph *g, const fac_type *types, fac_tensor **in,
                        fac_error *err) {
    fac_status status = FAC_OK;
    for (int i = 0; i < fac_graph_inputs(g) && !status; i++)
        status = fac_tensor_new(NULL, types[i].dtype, types[i].dims, &in[i], err);
    return status;
}

static fac_status copy_parts(fac_program *p, fac_memory_facts *f, fac_error *err) {
    f->nparts = (int)fac_program_arena(p, NULL, 0);
    f->parts = fac_alloc((size_t)f->nparts + 1, sizeof *f->parts);
    if (!f->parts) {
        f->nparts = 0;
        return fac_raise_memory(err, "the parts of a plan");
    }
    fac_program_arena(p, f->parts, (size_t)f->nparts);
    bool good = true;
    for (int k = 0; k < f->nparts; k++) {
        const char *made_by = f->parts[k].made_by;
        f->parts[k].made_by = fac_copy_text(made_by);
        good &= !made_by || f->parts[k].made_by;
    }
    return good ? FAC_OK : fac_raise_memory(err, "the parts of a plan");
}

static fac_status plan_with(const fac_graph *g, const fac_type *types, fac_tensor **in,
                            fac_memory_facts *f, fac_error *err) {
    fac_error why = { 0 };
    fac_device *device = NULL;
    fac_program *p = NULL;
    const fac_program_opts opts = { .plan_only = true };
    fac_status status = fac_device_open("cpu", NULL, &device, &why);
    if (!status) status = zeros(g, types, in, &why);
    if (!status) status = fac_program_new(g, device, &opts, &p, &why);
    if (!status) status = fac_program_plan(p, in, &f->plan, &why);
    f->planned = !status;
    snprintf(f->why_not, sizeof f->why_not, "%s", why.text);
    status = f->planned ? copy_parts(p, f, err) : FAC_OK;
    fac_program_free(p);
    fac_device_free(device);
    return status;
}

static fac_status plan_of(const fac_analysis *a, const fac_graph *g, const fac_type *inputs,
                          fac_memory_facts *f, fac_error *err) {
    const fac_graph *bound = fac_analysis_graph(a);
    const int n = fac_graph_inputs(g), known = fac_graph_inputs(bound);
    fac_type *types = fac_alloc((size_t)n + 1, sizeof *types);
    fac_tensor **in = fac_alloc((size_t)n + 1, sizeof *in);
    fac_status status = types && in ? FAC_OK : fac_raise_memory(err, "the parts of a plan");
    for (int i = 0; i < n && !status; i++) {
        types[i] = fac_value_type(fac_graph_input(g, i));
        if (inputs) types[i] = inputs[i];
        if (!inputs && n == known) types[i] = fac_value_type(fac_graph_input(bound, i));
    }
    if (!status) status = plan_with(g, types, in, f, err);
    for (int i = 0; in && i < n; i++) fac_tensor_free(in[i]);
    fac_release(in);
    fac_release(types);
    return status;
}

fac_status fac_memory_facts_of(const fac_analysis *a, const fac_graph *g, const fac_type *inputs,
                               fac_memory_facts *out, fac_error *err) {
    int *order = fac_alloc((size_t)fac_analysis_totals(a).layers + 1, sizeof *order);
    *out = (fac_memory_facts){ 0 };
    if (!order) return fac_raise_memory(err, "the parts of a plan");
    const fac_status status =
        fac_analysis_order(a, order, &out->order_peak, &out->order_exact, err);
    fac_release(order);
    return status ? status : plan_of(a, g, inputs, out, err);
}

void fac_memory_facts_free(fac_memory_facts *f) {
    for (int k = 0; k < f->nparts; k++) fac_release((char *)(uintptr_t)f->parts[k].made_by);
    fac_release(f->parts);
    f->parts = NULL;
    f->nparts = 0;
}
