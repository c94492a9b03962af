/* facula train: from options to a device, data, a model and a trainer. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "train.h"

static int check_model(const train_job *j) {
    fac_type want = fac_value_type(fac_graph_input(j->m.graph, 0)),
             gives = fac_value_type(fac_graph_output(j->m.graph, 0));
    const fac_dims *item = &j->train.item;
    bool fits = want.dtype == (j->train.tokens ? FAC_I64 : FAC_F32) && want.dims.n == item->n + 1;
    for (int k = 0; fits && k < item->n; k++)
        fits = want.dims.d[k + 1] < 0 || want.dims.d[k + 1] == item->d[k];
    char a[64], b[64];
    if (!fits)
        return fail_text(
            "the model takes %s %s, the samples are %s%s", fac_dtype_get(want.dtype)->name,
            dims_text(j->m.graph, &want.dims, a, sizeof a),
            dims_text(j->m.graph, item, b, sizeof b),
            want.dims.n == 4 && item->n == 3 ? " (--size 64x64 makes images and model fit)" : "");
    if (gives.dims.n != 2 || (gives.dims.d[1] >= 0 && gives.dims.d[1] < j->train.classes))
        return fail_text("the model gives %s, the data set has %d classes",
                         dims_text(j->m.graph, &gives.dims, a, sizeof a), j->train.classes);
    return EXIT_OK;
}

/* Each --freeze means something. */
static int freeze_fits(const train_options *o, const fac_graph *g) {
    for (int i = 0; i < o->freeze.n; i++) {
        bool found = false;
        for (int k = 0; k < fac_graph_params(g) && !found; k++)
            found = !fnmatch(o->freeze.at[i], fac_value_name(fac_graph_param(g, k)), 0);
        if (!found)
            return fail_text("--freeze %s: the model has no such parameter", o->freeze.at[i]);
    }
    return EXIT_OK;
}

static int new_trainer(const train_options *o, train_job *j) {
    fac_error err = { 0 };
    numerics how;
    const int wrong = freeze_fits(o, j->m.graph);
    if (wrong) return wrong;
    precision_parse(o->precision, &how);
    const char **freeze = calloc((size_t)o->freeze.n + 1, sizeof *freeze);
    if (!freeze) return fail_text("out of memory");
    for (int i = 0; i < o->freeze.n; i++) freeze[i] = o->freeze.at[i];
    const fac_optim_group vectors = { .vectors = true, .weight_decay = -1 };
    const fac_trainer_opts opts = { .sequences = j->train.sequences,
                                    .optimizer = o->optimizer,
                                    .label_smoothing = o->label_smoothing,
                                    .soft_labels = j->augment.mixup > 0,
                                    .precision = how.products,
                                    .mixed = how.mixed,
                                    .recompute = o->recompute,
                                    .detect_anomaly = o->detect_anomaly,
                                    .optim = { .momentum = o->momentum,
                                               .nesterov = o->nesterov,
                                               .beta2 = o->beta2,
                                               .weight_decay = o->weight_decay,
                                               .clip_norm = o->clip,
                                               .clip_value = o->clip_value,
                                               .freeze = freeze,
                                               .groups = &vectors,
                                               .ngroups = o->spare_vectors,
                                               .accumulate = (int)o->accumulate,
                                               .ema = o->ema,
                                               .ema_warmup = true } };
    fac_status status = fac_trainer_new(j->m.graph, j->dev, &opts, &j->trainer, &err);
    free(freeze);
    return status ? fail(&err) : EXIT_OK;
}

/* A model of the zoo or of a file becomes a classifier of the data set's classes. */
int train_fit_head(const train_options *o, int classes, model *m, bool *fresh) {
    fac_error err = { 0 };
    fac_graph *fitted;
    fac_head h;
    *fresh = false;
    if (text_is_model(o->model) || train_model_ours(o->model)) return EXIT_OK;
    fac_status status =
        fac_graph_replace_head(m->graph, classes, (uint64_t)o->seed, &fitted, &h, &err);
    if (status)
        return status == FAC_E_UNSUPPORTED ? EXIT_OK
                                           : fail(&err); /* check_model says what does not fit */
    fac_graph_free(m->graph);
    m->graph = fitted;
    *fresh = h.replaced;
    if (h.replaced)
        fprintf(stderr,
                "facula: %s gave %lld classes, the data set has %lld: it is replaced by a fresh "
                "layer\n",
                h.layer, (long long)h.had, (long long)h.classes);
    return EXIT_OK;
}

int train_quantize(const train_options *o, model *m) {
    fac_error err = { 0 };
    fac_graph *quantized;
    if (!o->quantize.n) return EXIT_OK;
    const char **schemes = calloc((size_t)o->quantize.n + 1, sizeof *schemes);
    if (!schemes) return fail_text("out of memory");
    for (int i = 0; i < o->quantize.n; i++) schemes[i] = o->quantize.at[i];
    const fac_quantizing how = { .n = o->quantize.n, .schemes = schemes };
    const fac_status status = fac_graph_quantize(m->graph, &how, &quantized, NULL, &err);
    free(schemes);
    if (status) return fail(&err);
    fac_graph_free(m->graph);
    m->graph = quantized;
    return EXIT_OK;
}

/* Weights first, as bases begin with how they are spread; those of a quantized training
 * afterwards. */
static int quantize_and_begin(const train_options *o, model *m) {
    bool later = false;
    const bool ours = o->weights && train_model_ours(o->model);
    int code = ours ? train_begin_with(o, m->graph, false, &later) : EXIT_OK;
    if (!code) code = train_quantize(o, m);
    return code || !later ? code : train_begin_with(o, m->graph, true, &later);
}

/* With --size a model that takes another one is given this one. */
static int resize_input(const train_options *o, train_job *j) {
    fac_error err = { 0 };
    fac_graph *sized;
    fac_value *x = fac_graph_input(j->m.graph, 0);
    fac_dims want = fac_value_type(x).dims;
    const int64_t *has = j->train.item.d + 1;
    char text[256];
    if (!o->size || want.n != 4) return EXIT_OK;
    if ((want.d[2] < 0 && want.d[3] < 0) || (want.d[2] == has[0] && want.d[3] == has[1]))
        return EXIT_OK;
    memcpy(want.d + 2, has, 2 * sizeof *has);
    if (fac_graph_shaped(j->m.graph, fac_value_name(x),
                         dims_text(j->m.graph, &want, text, sizeof text), &sized, &err))
        return fail(&err);
    fac_graph_free(j->m.graph);
    j->m.graph = sized;
    return EXIT_OK;
}

int train_load(train_options *o, train_job *j) {
    int code = device_open(&o->device, &j->dev);
    if (lm_is_set(o->set)) return code ? code : lm_load(o, j);
    if (!code && !text_is_model(o->model)) code = train_model(o, NULL, &j->m);
    if (!code && j->m.graph && sound_is_set(o->set)) code = sound_heard(o, &j->m);
    if (code) return code;
    fac_dims want = { 0 };
    if (j->m.graph && fac_graph_inputs(j->m.graph))
        want = fac_value_type(fac_graph_input(j->m.graph, 0)).dims;
    code = train_data(o, want, &j->train, &j->test);
    if (!code && !j->m.graph)
        code = text_is_model(o->model) ? text_model(o, &j->train, 0, &j->m)
                                       : train_model(o, &j->train, &j->m);
    if (code) return code;
    if (fac_graph_inputs(j->m.graph) != 1 || fac_graph_outputs(j->m.graph) < 1)
        return fail_text("the model must have one input and an output");
    code = resize_input(o, j);
    if (!code) code = train_fit_head(o, j->train.classes, &j->m, &j->fresh_head);
    if (!code) code = check_model(j);
    return code ? code : quantize_and_begin(o, &j->m);
}

int train_prepare(train_options *o, train_job *j) {
    fac_error err = { 0 };
    int code = train_load(o, j);
    if (code) return code;
    if (o->augment && fac_augment_parse(o->augment, &j->train.item, &j->augment, &err))
        return fail(&err);
    if (sound_is_set(o->set)) code = sound_keep(o, j);
    return code ? code : new_trainer(o, j);
}

/* torch counts the steps of these two in epochs. */
static void count_epochs(const train_options *o, int64_t in_epoch, fac_schedule *s) {
    if (s->kind == FAC_SCHEDULE_STEP)
        s->every = (o->epochs * in_epoch + 2) / 3; /* three tenths down in the whole */
    if (s->kind == FAC_SCHEDULE_RESTARTS) s->every = (o->epochs * in_epoch + 2) / 3;
    if (s->kind == FAC_SCHEDULE_EXPONENTIAL) {
        s->kind = FAC_SCHEDULE_STEP;
        s->every = in_epoch;
        s->gamma = o->gamma != 0 ? o->gamma : 0.95;
    }
}

/* What recomputing saves, said once before the first step. */
int train_tell_saving(const train_job *j, const fac_batches *b) {
    fac_error err = { 0 };
    fac_plan_stat s = { 0 };
    fac_tensor *in[3] = { NULL };
    char before[32], after[32];
    fac_status status = fac_batch(&j->train, b, 0, 0, &in[0], &in[1], &err);
    if (!status) status = fac_tensor_new(NULL, FAC_F64, (fac_dims){ 0 }, &in[2], &err);
    if (!status) status = fac_program_plan(fac_trainer_program(j->trainer), in, &s, &err);
    for (int i = 0; i < 3; i++) fac_tensor_free(in[i]);
    if (status) return fail(&err);
    if (s.recompute.after >= s.recompute.before)
        fprintf(stderr, "facula: recomputing saves nothing here\n");
    else
        fprintf(stderr,
                "facula: recomputing: forward values take %s instead of %s, %.0f %% of the forward "
                "multiply-adds "
                "are done twice\n",
                bytes_text((double)s.recompute.after, after, sizeof after),
                bytes_text((double)s.recompute.before, before, sizeof before),
                s.recompute.forward > 0 ? 100 * s.recompute.macs / s.recompute.forward : 0);
    return EXIT_OK;
}

int train_loop_opts(const train_options *o, train_job *j, fac_train_opts *t) {
    *t = (fac_train_opts){ .epochs = o->epochs,
                           .evaluate_every = o->evaluate_every,
                           .batches = { .size = o->batch,
                                        .shuffle = true,
                                        .seed = (uint64_t)o->seed,
                                        .augment = j->augment },
                           .schedule = { .lr = o->lr,
                                         .warmup = o->warmup,
                                         .gamma = o->gamma,
                                         .patience = o->patience },
                           .report = train_progress,
                           .self = &j->view };
    if (!fac_schedule_find(o->schedule, &t->schedule.kind))
        return usage_error(verb_find("train"), "there is no schedule \"%s\"", o->schedule);
    if (text_any_length(o->model)) t->batches.trim = 8; /* few lengths: each is planned once */
    if (j->lm) lm_loop_opts(o, j, t);
    count_epochs(o, fac_batches_count(&j->train, &t->batches), &t->schedule);
    return EXIT_OK;
}

void train_free(train_options *o, train_job *j) {
    free(j->about);
    fac_trainer_free(j->trainer);
    model_free(&j->m);
    model_free(&j->whole);
    fac_dataset_free(&j->waves);
    fac_lm_free(j->lm);
    fac_tokenizer_free(j->tokens);
    fac_vocab_free(o->vocab);
    fac_dataset_free(&j->train);
    fac_dataset_free(&j->test);
    fac_device_free(j->dev);
}
