/* How far the results of layers are from those in floats: both models run on the same samples. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "quantize/quantize.h"

static fac_integer_work *layer_of(const fac_calibrator *c, const char *name) {
    const fac_value *v = name ? fac_table_get(&c->values, name) : NULL;
    for (int i = 0; v && i < c->nlayers; i++)
        if (c->layers[i].seen == v) return &c->layers[i];
    return NULL;
}

static fac_status keep(void *self, fac_hooked *h, fac_error *err) {
    const fac_node *n = fac_hooked_node(h);
    for (int k = 0; k < n->nout; k++) {
        fac_integer_work *l = layer_of(self, n->out[k]->name);
        const fac_tensor *t;
        if (!l || l->float_result) continue;
        FAC_TRY(fac_hooked_output(h, k, &t, err));
        if (t) FAC_TRY(fac_tensor_convert(t, FAC_F32, &l->float_result, err));
    }
    return FAC_OK;
}

static void add(fac_integer_work *l, const float *is, const float *was, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const double off = (double)is[i] - (double)was[i];
        l->signal += (double)was[i] * (double)was[i];
        l->error += off * off;
    }
}

static fac_status compare(void *self, fac_hooked *h, fac_error *err) {
    const fac_node *n = fac_hooked_node(h);
    for (int k = 0; k < n->nout; k++) {
        fac_integer_work *l = layer_of(self, n->out[k]->name);
        const fac_tensor *t;
        fac_tensor *is;
        if (!l || !l->float_result) continue;
        FAC_TRY(fac_hooked_output(h, k, &t, err));
        if (!t) continue;
        FAC_TRY(fac_tensor_convert(t, FAC_F32, &is, err));
        const fac_type a = fac_tensor_type(is), b = fac_tensor_type(l->float_result);
        if (fac_dims_equal(&a.dims, &b.dims))
            add(l, fac_tensor_data(is), fac_tensor_data(l->float_result), fac_dims_count(&a.dims));
        fac_tensor_free(is);
        fac_tensor_free(l->float_result);
        l->float_result = NULL;
    }
    return FAC_OK;
}

static fac_status run_samples(fac_calibrator *c, fac_program *floats, fac_program *integers,
                              fac_error *err) {
    for (int i = 0; i < c->samples; i++) {
        FAC_TRY(fac_integers_run(floats, c->model->noutputs, c->sample[i], err));
        FAC_TRY(fac_integers_run(integers, c->model->noutputs, c->sample[i], err));
        for (int k = 0; k < c->nlayers; k++) {
            fac_tensor_free(c->layers[k].float_result);
            c->layers[k].float_result = NULL;
        }
    }
    return FAC_OK;
}

fac_status fac_integers_measure(fac_calibrator *c, const fac_graph *result, fac_error *err) {
    fac_program *floats = NULL, *integers = NULL;
    for (int k = 0; k < c->nlayers; k++) c->layers[k].is.output_sqnr = NAN;
    if (!c->samples) return FAC_OK;
    const fac_program_opts first = { .hook = keep, .hook_self = c };
    const fac_program_opts second = { .hook = compare, .hook_self = c };
    fac_status status = fac_program_new(c->model, c->device, &first, &floats, err);
    if (!status) status = fac_program_new(result, c->device, &second, &integers, err);
    if (!status) status = run_samples(c, floats, integers, err);
    fac_program_free(floats);
    fac_program_free(integers);
    for (int k = 0; k < c->nlayers && !status; k++) {
        fac_integer_work *l = &c->layers[k];
        if (l->signal > 0 || l->error > 0) l->is.output_sqnr = fac_decibels(l->signal, l->error);
    }
    return status;
}
