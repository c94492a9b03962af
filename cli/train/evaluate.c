/* facula evaluate: how good a model is on the test part of a data set, and whether another model
 * gives the same answers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analyze/kind.h"
#include "analyze/levels.h"
#include "json.h"
#include "run/photo.h"
#include "run/samples.h"
#include "evaluate.h"

static struct { const char *against, *preset, *histograms; } o;
static train_options *const t = &train_given;

static const option options[] = {
    { "--data", OPTION_TEXT, &train_given.data, "DIR", "where the data set is" },
    { "--weights", OPTION_TEXT, &train_given.weights, "FILE", "of zoo:NAME" },
    LINK_ROOT_OPTION,
    { "--against", OPTION_TEXT, &o.against, "MODEL",
      "another form of the model: print how far its answers differ" },
    { "--histograms", OPTION_OUT, &o.histograms, "FILE",
      "draw weights and activations of few bits, with their levels and thresholds, to a .svg or "
      ".png" },
    { "--batch", OPTION_INT, &train_given.batch, "N", "samples at once; default by data set",
      "[1, 1048576]" },
    { "--size", OPTION_TEXT, &train_given.size, "HxW",
      "resize images, and the model's input, to this size" },
    { "--preset", OPTION_TEXT, &o.preset, "SPEC",
      "how the model wants its images (`facula help run`); their size stays" },
    DEVICE_OPTIONS(train_given.device),
    { "--json", OPTION_FLAG, &train_given.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

/* -log softmax(row)[label], and the place of the largest. */
static double row_loss(const float *row, int64_t n, int64_t label, int64_t *best) {
    double sum = 0;
    *best = 0;
    for (int64_t k = 1; k < n; k++)
        if (row[k] > row[*best]) *best = k;
    for (int64_t k = 0; k < n; k++) sum += exp((double)row[k] - (double)row[*best]);
    return log(sum) + (double)row[*best] - (double)row[label];
}

static fac_status logits_of(fac_program *p, fac_tensor *x, fac_tensor **out, fac_error *err) {
    fac_tensor *y = NULL;
    fac_status status = fac_program_run(p, &x, &y, err);
    if (!status) status = fac_tensor_convert(y, FAC_F32, out, err);
    fac_tensor_free(y);
    return status;
}

/* One batch; second NULL: there is nothing to compare with. */
static fac_status add_batch(fac_program *first, fac_program *second, fac_tensor *x,
                            const int64_t *labels, scores *s, fac_error *err) {
    fac_tensor *a = NULL, *b = NULL;
    fac_status status = logits_of(first, x, &a, err);
    if (!status && second) status = logits_of(second, x, &b, err);
    if (!status) {
        const fac_dims d = fac_tensor_type(a).dims;
        const float *row = fac_tensor_data(a), *other = b ? fac_tensor_data(b) : NULL;
        for (int64_t i = 0; i < d.d[0]; i++, row += d.d[1], other += other ? d.d[1] : 0) {
            int64_t best, best_of_other;
            s->loss += row_loss(row, d.d[1], labels[i], &best);
            s->right += best == labels[i];
            recordings_add(&s->heard, row, (int64_t)s->samples + i);
            if (!other) continue;
            row_loss(other, d.d[1], labels[i], &best_of_other);
            s->same += best == best_of_other;
            for (int64_t k = 0; k < d.d[1]; k++)
                s->difference = fmax(s->difference, fabs((double)row[k] - (double)other[k]));
        }
        s->samples += (double)d.d[0];
    }
    fac_tensor_free(a);
    fac_tensor_free(b);
    return status;
}

fac_status evaluate_scores(const train_job *j, const fac_graph *other, scores *s, fac_error *err) {
    const fac_batches order = { .size = t->batch };
    fac_program *first = NULL, *second = NULL;
    fac_graph *quiet = fac_graph_inference(j->m.graph);
    fac_status status = quiet ? fac_program_new(quiet, j->dev, NULL, &first, err) : FAC_E_NOMEM;
    if (!status && other) status = fac_program_new(other, j->dev, NULL, &second, err);
    if (!status && recordings_open(&s->heard, &j->test)) status = out_of_memory(err);
    const double start = now();
    const int64_t batches = fac_batches_count(&j->test, &order);
    for (int64_t i = 0; i < batches && !status; i++) {
        fac_tensor *x, *labels;
        status = fac_batch(&j->test, &order, 0, i, &x, &labels, err);
        if (status) break;
        status = add_batch(first, second, x, fac_tensor_data(labels), s, err);
        fac_tensor_free(x);
        fac_tensor_free(labels);
    }
    s->seconds = now() - start;
    fac_program_free(first);
    fac_program_free(second);
    fac_graph_free(quiet);
    return status;
}

static int print(const scores *s, const photo_plan *plan, const fac_quantizers *levels) {
    char loss[24];
    const double n = s->samples > 0 ? s->samples : 1;
    if (t->json) {
        cJSON *root = cJSON_CreateObject();
        json_number(root, "accuracy", s->right / n, 9);
        json_number(root, "loss", s->loss / n, 9);
        cJSON_AddNumberToObject(root, "samples", s->samples);
        json_number(root, "seconds", s->seconds, 6);
        if (o.against) {
            cJSON_AddNumberToObject(root, "same_answers", s->same);
            json_number(root, "largest_difference", s->difference, 6);
        }
        recordings_json(&s->heard, root);
        if (levels) levels_json(levels, root);
        photo_plan_json(plan, root);
        return json_print(root);
    }
    printf("accuracy %.2f %% (%.0f of %.0f), loss %s, %.0f samples/s\n", 100 * s->right / n,
           s->right, s->samples, loss_text(s->loss / n, loss), n / s->seconds);
    recordings_print(&s->heard);
    if (o.against)
        printf("%s: %.0f of %.0f answers are the same, the outputs differ by %.2g at most\n",
               o.against, s->same, s->samples, s->difference);
    if (levels) printf("%s: what becomes which level\n", o.histograms);
    photo_plan_print(plan);
    return EXIT_OK;
}

/* What the quantizers of the model are given by the first samples of the test part. */
static int count_levels(const train_job *j, const char *title, fac_quantizers **out) {
    enum { SAMPLES = 256 };
    fac_error err = { 0 };
    fac_tensor *x = NULL, *labels = NULL;
    const fac_batches first = { .size = SAMPLES };
    if (!o.histograms) return EXIT_OK;
    fac_status status = fac_quantizers_new(j->m.graph, j->dev, out, &err);
    if (!status) status = fac_batch(&j->test, &first, 0, 0, &x, &labels, &err);
    if (!status) status = fac_quantizers_add(*out, &x, &err);
    fac_tensor_free(x);
    fac_tensor_free(labels);
    return status ? fail(&err) : levels_draw(*out, title, o.histograms);
}

/* Classes of a training, which the labels of other data must be. */
static samples trained;

/* A folder of `facula train`: its model, data set and weights.  Sounds of another place than those
 * of the training are all for testing. */
static int open_folder(const char *folder, train_job *j) {
    fac_error err = { 0 };
    char path[4096];
    fac_weights *w = NULL;
    const char *given = t->data;
    t->data = NULL;
    int code = train_recall(folder, t);
    if (!code && lm_is_set(t->set))
        return fail_text("%s: a language model: facula perplexity %s TEXT measures it", folder,
                         folder);
    const bool other = given && (!t->data || strcmp(given, t->data));
    if (given) t->data = given;
    t->weights = NULL;
    if (!code) code = train_defaults(t);
    if (!code && other && sound_is_set(t->set)) {
        code = samples_recall(folder, &trained);
        t->whole = true;
        t->like = &trained.like;
    }
    if (!code) code = train_load(t, j);
    if (code) return code;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    fac_status status = fac_weights_load(path, &w, &err);
    if (!status) status = fac_graph_load_weights(j->m.graph, w, NULL, NULL, &err);
    fac_weights_free(w);
    return status ? fail(&err) : EXIT_OK;
}

/* The model says how it wants its images; where it does not, they stay as the data set has them. */
static int prepare_images(train_job *j, const char *preset, photo_plan *plan) {
    fac_error err = { 0 };
    const int code = photo_plan_of(&(photo_options){ .preset = preset }, &j->m, plan);
    if (code) return code;
    if (plan->from == PHOTO_GUESS) {
        photo_plan_trained(&j->test, PHOTO_DATA, plan);
        return EXIT_OK;
    }
    /* images of a data set have the model's size already, whatever the preset does to photos */
    plan->how.resize = 0;
    plan->how.height = (int)j->test.item.d[1];
    plan->how.width = (int)j->test.item.d[2];
    fac_status status = fac_dataset_prepare(&j->test, &plan->how, &err);
    if (!status) status = fac_dataset_prepare(&j->train, &plan->how, &err);
    return status ? fail(&err) : EXIT_OK;
}

int evaluate_open(const verb *v, const evaluate_what *what, train_job *j, photo_plan *plan) {
    const char *path = what->model, *set = what->set;
    if (is_folder(path)) {
        if (what->preset)
            return usage_error(v, "--preset is for files and zoo models: a training knows its own");
        if (t->weights) return usage_error(v, "--weights is for zoo:NAME: a training has its own");
        t->set = set;
        const int code = open_folder(folder_name(path), j);
        if (!code && j->test.bytes) photo_plan_trained(&j->test, PHOTO_TRAINING, plan);
        return code;
    }
    if (!set) return usage_error(v, "on which data set?");
    if (lm_is_set(set)) return usage_error(v, "facula perplexity measures language models");
    t->set = set;
    t->model = path;
    t->whole = !strcmp(set, "sound-folder"); /* a file does not say what it was trained on */
    int code = train_defaults(t);
    if (!code) code = train_load(t, j);
    if (!code && j->test.bytes) code = prepare_images(j, what->preset, plan);
    return !code && j->fresh_head
               ? fail_text("%s: was not trained for these classes, there is nothing to evaluate",
                           path)
               : code;
}

static int run(list args) {
    static train_job j;
    const verb *v = verb_find("evaluate");
    fac_error err = { 0 };
    model other = { 0 };
    scores s = { 0 };
    photo_plan plan = { 0 };
    fac_quantizers *levels = NULL;
    const int wrong = arguments_fit(v, args, 1, 2, "which model, on which data set?");
    if (wrong) return wrong;
    const evaluate_what what = { args.at[0], args.n > 1 ? args.at[1] : NULL, o.preset };
    int code = evaluate_open(v, &what, &j, &plan);
    if (!code) code = train_fits(v, t);
    if (!code && o.against) code = model_load(o.against, NULL, NULL, 0, &other);
    if (!code && evaluate_scores(&j, other.graph, &s, &err)) code = fail(&err);
    if (!code) code = count_levels(&j, args.at[0], &levels);
    if (!code) code = print(&s, &plan, levels);
    fac_quantizers_free(levels);
    model_free(&other);
    recordings_free(&s.heard);
    train_free(t, &j);
    samples_free(&trained);
    return code;
}

const verb verb_evaluate = {
    .name = "evaluate",
    .summary = "measure how good a model is on the test part of a data set",
    .usage = "facula evaluate MODEL [SET] [options]",
    .options = options,
    .examples = "evaluate runs/first\nevaluate model.onnx cifar10 --data cifar-10-batches-bin "
                "--preset cifar10\nevaluate runs/first --against int8.onnx",
    .run = run,
    .more = "MODEL is the --out folder of a training, which knows its data set, or FILE.onnx or "
            "zoo:NAME.  SET is\nas for `facula train`.\n\nOf sounds, the answers of a recording's "
            "windows are averaged, too.  All recordings are for testing\nwhere --data (a folder or "
            "a table) is another one than that of the training, and for models of files."
};
