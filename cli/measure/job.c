/* See job.h. */
#include <string.h>
#include "job.h"
#include "problem.h"

/* After the samples: labels and the learning rate. */
static int train_program(job *j, const job_options *o, const numerics *how) {
    fac_error err = { 0 };
    const double lr = 1e-3;
    fac_type scalar = { .dtype = FAC_F64 };
    fac_type labels = { FAC_I64, { .n = 1, .d = { fac_tensor_type(j->in[0]).dims.d[0] } } };
    if (tensor_random(labels, (uint64_t)o->seed, 1, &j->in[1], &err)) return fail(&err);
    if (fac_tensor_new(NULL, scalar.dtype, scalar.dims, &j->in[2], &err)) return fail(&err);
    if (fac_tensor_write(j->in[2], &lr, sizeof lr, &err)) return fail(&err);
    const fac_trainer_opts opts = { .precision = how->products,
                                    .mixed = how->mixed,
                                    .recompute = o->recompute };
    if (fac_trainer_new(j->m.graph, j->device, &opts, &j->trainer, &err)) return fail(&err);
    j->program = fac_trainer_program(j->trainer);
    return EXIT_OK;
}

static fac_type type_of_input(const job *j, const job_options *o, int i) {
    const fac_value *v = fac_graph_input(j->m.graph, i);
    const fac_dims open = fac_value_type(v).dims;
    fac_type t = input_type(v, &o->shapes, o->batch);
    if (!j->m.zoo || t.dims.n != 4 || o->shapes.n) return t;
    if (open.d[2] < 0) t.dims.d[2] = j->m.zoo->height;
    if (open.d[3] < 0) t.dims.d[3] = j->m.zoo->width;
    return t;
}

/* Where the device will read it, so that a run uploads nothing; whole numbers may be sizes, which
 * the host reads. */
static int make_input(job *j, const job_options *o, int i) {
    fac_error err = { 0 };
    fac_tensor *host = NULL;
    const fac_type type = type_of_input(j, o, i);
    if (tensor_random(type, (uint64_t)o->seed, (uint64_t)i, &host, &err)) return fail(&err);
    if (fac_dtype_get(type.dtype)->kind != 'f') {
        j->in[i] = host;
        return EXIT_OK;
    }
    fac_status status = fac_tensor_new(j->device, type.dtype, type.dims, &j->in[i], &err);
    if (!status)
        status = fac_tensor_write(j->in[i], fac_tensor_data(host), fac_type_bytes(&type), &err);
    fac_tensor_free(host);
    return status ? fail(&err) : EXIT_OK;
}

int job_begin(job *j, const verb *v, const job_options *o, const char *what) {
    const bool problem = strchr(what, '(') != NULL;
    if (o->train && problem) return usage_error(v, "--train is for whole models");
    if (o->inputs && !problem) return usage_error(v, "--inputs is for problems");
    if (o->recompute && !o->train) return usage_error(v, "--recompute is for --train");
    const double start = now();
    int code = device_open(&o->device, &j->device);
    if (!code)
        code = problem ? problem_load(what, !o->inputs, (uint64_t)o->seed, &j->m.graph)
                       : model_load(what, o->weights, &o->shapes, o->seed, &j->m);
    if (code) return code;
    j->loaded = now() - start;
    return EXIT_OK;
}

/* A step of training reads samples, labels and a learning rate, and gives the loss and how many
 * were right. */
static int make_room(job *j, bool train) {
    enum { READ = 3, GIVEN = 2 };
    j->nin = train ? READ : fac_graph_inputs(j->m.graph);
    j->nout = train ? GIVEN : fac_graph_outputs(j->m.graph);
    j->in = tensors_new(j->nin);
    j->out = tensors_new(j->nout);
    return j->in && j->out ? EXIT_OK : fail_text("out of memory");
}

int job_settle(job *j, const verb *v, const job_options *o) {
    fac_error err = { 0 };
    numerics how;
    int code = precision_read(v, o->precision, &how);
    if (!code) code = batch_fits(j->m.graph, fac_graph_inputs(j->m.graph), o->batch);
    if (!code && !o->train) code = precision_apply(&how, &j->m.graph);
    if (!code && o->train && fac_graph_inputs(j->m.graph) != 1)
        code = fail_text("--train needs a model with one input");
    if (!code) code = make_room(j, o->train);
    for (int i = 0; i < fac_graph_inputs(j->m.graph) && !code; i++) code = make_input(j, o, i);
    if (code) return code;
    if (o->train) return train_program(j, o, &how);
    fac_program_opts opts = { .solver = o->solver, .precision = how.products };
    return fac_program_new(j->m.graph, j->device, &opts, &j->program, &err) ? fail(&err) : EXIT_OK;
}

int job_open(job *j, const verb *v, const job_options *o, const char *what) {
    const int code = job_begin(j, v, o, what);
    return code ? code : job_settle(j, v, o);
}

void job_unsettle(job *j) {
    tensors_free(j->in, j->nin);
    tensors_free(j->out, j->nout);
    j->in = j->out = NULL;
    if (j->trainer)
        fac_trainer_free(j->trainer);
    else
        fac_program_free(j->program);
    j->trainer = NULL;
    j->program = NULL;
}

void job_close(job *j) {
    if (!j->session) job_unsettle(j);
    fac_session_free(j->session);
    fac_lm_free(j->lm);
    model_free(&j->m);
    fac_device_free(j->device);
    *j = (job){ 0 };
}
