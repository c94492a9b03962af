/* A trainer: two programs over one set of parameters. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_internal.h"
#include "passes/passes.h"
#include "ref/ref.h"
#include "train/train_internal.h"

/* How many labels count, i64. */
static fac_value *label_count(fac_value *labels, bool sequences) {
    if (!sequences) return fac_size_of(labels);
    fac_value *none = fac_number(labels->graph, FAC_I64, FAC_NO_LABEL);
    return fac_sum(fac_cast(fac_not(fac_equal(labels, none)), FAC_I64), (fac_dims){ 0 }, false);
}

/* The optimizer, with what accumulation asks for: how much a batch counts, and when its time has
 * come early. */
static void add_optimizer(fac_trainer *t, const fac_optim *optim, const fac_trainer_opts *o,
                          fac_value *loss) {
    fac_graph *g = t->step;
    fac_optim_opts opts = o->optim;
    fac_value *lr = fac_input(g, "lr", FAC_F64, (fac_dims){ 0 });
    if (opts.accumulate > 1) {
        opts.weight = label_count(fac_graph_find(g, "labels"), o->sequences);
        opts.flush = fac_input(g, "flush", FAC_BOOL, (fac_dims){ 0 });
    }
    opts.loss_scaling |= o->mixed == FAC_F16;
    optim->build(loss, lr, &opts);
    fac_train_guard(g, loss);
}

/* The graph of a step, without loss and optimizer. */
static fac_status build_step(fac_trainer *t, const fac_graph *model, const fac_trainer_opts *o,
                             fac_error *err) {
    fac_graph *known = fac_pass_known_forms(model, fac_ref_evaluate);
    fac_graph *mixed = known && o->mixed != FAC_NONE ? fac_graph_autocast(known, o->mixed) : known;
    t->step = mixed ? fac_graph_training(mixed) : NULL;
    if (mixed != known) fac_graph_free(mixed);
    fac_graph_free(known);
    return t->step ? fac_graph_check(t->step, err) : fac_raise_memory(err, "the graph of a step");
}

static fac_status build(fac_trainer *t, const fac_graph *plain, const fac_graph *model,
                        fac_device *device, const fac_trainer_opts *o, fac_error *err) {
    const fac_optim *optim = fac_optim_find(o->optimizer ? o->optimizer : "adam");
    if (!optim) return fac_raise(err, FAC_E_ARGUMENT, "there is no optimizer \"%s\"", o->optimizer);
    t->usual_lr = optim->lr;
    const bool accumulates = o->optim.accumulate > 1;
    const fac_label_form stepped = { o->label_smoothing, o->soft_labels, o->sequences };
    const fac_label_form tested = { .sequences = o->sequences };
    t->soft = o->soft_labels;
    t->sequences = o->sequences;
    FAC_TRY(build_step(t, plain, o, err));
    add_optimizer(t, optim, o, fac_train_loss(t->step, &stepped));
    FAC_TRY(fac_graph_check(t->step, err));
    FAC_TRY(fac_look_new(model, device, o, &t->look, err));
    t->look->judged = fac_train_averaged(model, t->step);
    t->test = t->look->judged ? fac_graph_inference(t->look->judged) : NULL;
    if (!t->test) return fac_raise_memory(err, "the graph of the evaluation");
    fac_train_loss(t->test, &tested);
    FAC_TRY(fac_graph_check(t->test, err));
    FAC_TRY(fac_train_memory_new(t, err));
    t->done = fac_value_tensor(
        fac_graph_find(t->step, accumulates ? "optimizer.batch" : "optimizer.step"));
    FAC_TRY(fac_tensor_new(NULL, FAC_F64, (fac_dims){ 0 }, &t->lr, err));
    if (accumulates) FAC_TRY(fac_tensor_new(NULL, FAC_BOOL, (fac_dims){ 0 }, &t->flush, err));
    if (!(o->recompute >= 0 && o->recompute <= 1))
        return fac_raise(err, FAC_E_ARGUMENT, "recompute is a share between 0 and 1, not %g",
                         o->recompute);
    const fac_program_opts how = { .precision = o->precision },
                           stepping = { .precision = o->precision,
                                        .detect_anomaly = o->detect_anomaly,
                                        .recompute = { .share = o->recompute } };
    FAC_TRY(fac_program_new(t->step, device, &stepping, &t->stepper, err));
    return fac_program_new(t->test, device, &how, &t->tester, err);
}

fac_status fac_trainer_new(const fac_graph *model, fac_device *device, const fac_trainer_opts *opts,
                           fac_trainer **out, fac_error *err) {
    static const fac_trainer_opts usual;
    FAC_TRY(fac_graph_usable(model, "fac_trainer_new", err));
    if (!opts) opts = &usual;
    fac_trainer *t = fac_alloc(1, sizeof *t);
    fac_graph *mixed = t && opts->mixed != FAC_NONE ? fac_graph_autocast(model, opts->mixed) : NULL;
    if (!t || (opts->mixed != FAC_NONE && !mixed)) {
        fac_release(t);
        return fac_raise_memory(err, "a trainer");
    }
    fac_status status = mixed ? fac_graph_check(mixed, err) : FAC_OK;
    if (!status) status = build(t, model, mixed ? mixed : model, device, opts, err);
    fac_graph_free(mixed);
    if (status)
        fac_trainer_free(t);
    else
        *out = t;
    return status;
}

void fac_trainer_free(fac_trainer *t) {
    if (!t) return;
    fac_program_free(t->stepper);
    fac_program_free(t->tester);
    fac_look_free(t->look);
    fac_graph_free(t->step);
    fac_graph_free(t->test);
    for (int k = 0; k < FAC_TRAIN_OUTPUTS; k++) fac_tensor_free(t->result[k]);
    fac_tensor_free(t->lr);
    fac_tensor_free(t->flush);
    fac_release(t);
}

int64_t fac_trainer_steps(const fac_trainer *t) {
    int64_t steps = 0;
    fac_tensor_read(t->done, &steps, sizeof steps,
                    NULL); /* none when a device failed, which the next step tells */
    return steps;
}
fac_program *fac_trainer_program(const fac_trainer *t) { return t->stepper; }

fac_status fac_trainer_flush(fac_trainer *t, fac_error *err) {
    static const bool yes = true;
    return t->flush ? fac_tensor_write(t->flush, &yes, sizeof yes, err) : FAC_OK;
}

static int64_t labels_that_count(const fac_trainer *t, const fac_tensor *labels, fac_error *err) {
    const fac_type type = fac_tensor_type(labels);
    if (!t->sequences) return type.dims.d[0];
    const int64_t all = fac_dims_count(&type.dims), *label = fac_tensor_data(labels);
    int64_t n = 0;
    if (!label) fac_raise(err, FAC_E_DEVICE, "the labels cannot be read");
    for (int64_t k = 0; label && k < all; k++) n += label[k] != FAC_NO_LABEL;
    return label ? n : -1;
}

/* One run of either program. */
static fac_status run(fac_trainer *t, fac_program *p, fac_tensor *x, fac_tensor *labels,
                      fac_score *score, fac_error *err) {
    fac_tensor *in[] = { x, labels, t->lr, t->flush };
    const int64_t n = labels_that_count(t, labels, err);
    float loss, correct;
    if (n < 0) return FAC_E_DEVICE;
    FAC_TRY(fac_program_run(p, in, t->result, err));
    FAC_TRY(fac_tensor_read(t->result[FAC_TRAIN_LOSS], &loss, sizeof loss, err));
    FAC_TRY(fac_tensor_read(t->result[FAC_TRAIN_CORRECT], &correct, sizeof correct, err));
    *score = (fac_score){ (double)loss, n ? (double)correct / (double)n : 0, n, 0 };
    return FAC_OK;
}

fac_status fac_trainer_step(fac_trainer *t, fac_tensor *x, fac_tensor *labels, double lr,
                            fac_score *score, fac_error *err) {
    fac_score s;
    static const bool no = false;
    FAC_TRY(fac_tensor_write(t->lr, &lr, sizeof lr, err));
    FAC_TRY(run(t, t->stepper, x, labels, &s, err));
    if (t->flush) FAC_TRY(fac_tensor_write(t->flush, &no, sizeof no, err));
    if (!isfinite(s.loss))
        return fac_raise(err, FAC_E_ARGUMENT,
                         "the loss of step %lld is %g: a smaller learning rate (it is %g) or "
                         "clipping may help; detect_anomaly "
                         "names the first operation that makes NaN or infinity",
                         (long long)fac_trainer_steps(t), s.loss, lr);
    if (score) *score = s;
    return FAC_OK;
}

/* Welford's sums over the losses of batches. */
typedef struct spread {
    double n, mean, squares;
} spread;

static void spread_add(spread *s, double x) {
    const double from = x - s->mean;
    s->n += 1;
    s->mean += from / s->n;
    s->squares += from * (x - s->mean);
}

/* Of the mean. */
static double spread_error(const spread *s) {
    return s->n > 1 ? sqrt(s->squares / (s->n - 1) / s->n) : 0;
}

fac_status fac_trainer_evaluate(fac_trainer *t, const fac_dataset *data, int64_t batch,
                                fac_score *score, fac_error *err) {
    const fac_batches order = { .size = batch };
    const int64_t batches = fac_batches_count(data, &order);
    fac_score all = { 0 };
    spread losses = { 0 };
    fac_loader *loader = NULL;
    fac_status status = fac_loader_new(data, &order, 0, batches, 2, &loader, err);
    for (int64_t i = 0; i < batches && !status; i++) {
        fac_tensor *x, *labels;
        fac_score s;
        status = fac_loader_next(loader, &x, &labels, err);
        if (!status) status = run(t, t->tester, x, labels, &s, err);
        if (!status) fac_score_add(&all, &s);
        if (!status) spread_add(&losses, s.loss);
    }
    fac_loader_free(loader);
    all.error = spread_error(&losses);
    if (!status) *score = all;
    return status;
}
