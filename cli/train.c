/* facula train: trains a classifier on a data set. */
#include <string.h>
#include <stdlib.h>
#include "train.h"

static train_options o;
static device_options device_o;
static const char *out_dir, *resume;
static bool json, quiet;
static long show;

static const option options[] = {
    { "--data", OPTION_TEXT, &o.data, "DIR", "where the data set is" },
    { "--model", OPTION_TEXT, &o.model, "NAME", "mlp, cnn, zoo:NAME or FILE.onnx; default by data set" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "start from these (zoo:NAME); random without" },
    { "--freeze", OPTION_LIST, &o.freeze, "PATTERN", "parameters that stay as they are: 'conv1.*'; may be repeated" },
    { "--epochs", OPTION_INT, &o.epochs, "N", "how often over all samples" },
    { "--batch", OPTION_INT, &o.batch, "N", "samples in a step" },
    { "--optimizer", OPTION_TEXT, &o.optimizer, "NAME", "sgd, adam, adamw, rmsprop, adagrad or lion; default adam" },
    { "--lr", OPTION_REAL, &o.lr, "X", "highest learning rate; default by data set and optimizer" },
    { "--momentum", OPTION_REAL, &o.momentum, "X", "of sgd and rmsprop; default 0" },
    { "--weight-decay", OPTION_REAL, &o.weight_decay, "X", "default 0, adamw 0.01" },
    { "--schedule", OPTION_TEXT, &o.schedule, "NAME", "constant, step, exponential, cosine or one-cycle" },
    { "--warmup", OPTION_INT, &o.warmup, "N", "first steps with a rising learning rate; default 0" },
    { "--clip", OPTION_REAL, &o.clip, "X", "largest norm of all gradients together; default none" },
    { "--label-smoothing", OPTION_REAL, &o.label_smoothing, "X", "part of a label spread over all classes; default 0" },
    { "--augment", OPTION_TEXT, &o.augment, "LIST", "changes of training images, such as crop,flip,cutout=8; see below" },
    { "--size", OPTION_TEXT, &o.size, "HxW", "image-folder: photos become so large; default the model's, else 64x64" },
    { "--glove", OPTION_TEXT, &o.glove, "FILE", "texts: vectors of words to begin with, a word and its numbers a line" },
    { "--seed", OPTION_INT, &o.seed, "S", "of everything random; default 0" },
    { "--out", OPTION_TEXT, &out_dir, "DIR", "for run.json, logs (log.csv), checkpoint.safetensors, model.safetensors" },
    { "--resume", OPTION_TEXT, &resume, "DIR", "go on with a training from its --out folder" },
    { "--tensorboard", OPTION_TEXT, &o.tensorboard, "DIR", "event files for TensorBoard: curves, histograms, graph, pictures" },
    { "--show", OPTION_INT, &show, "N", "at the end so many test samples with their predictions" },
    { "--quiet", OPTION_FLAG, &quiet, NULL, "at the end one line instead of charts" },
    DEVICE_OPTIONS(device_o),
    { "--json", OPTION_FLAG, &json, NULL, "for machines: a line for each epoch, the last one for the whole" },
    { 0 } };

typedef struct job {
    fac_device *device;
    fac_dataset train, test;
    model       m;
    fac_trainer *trainer;
    fac_augment augment;
    char       *about;          /* run.json */
    train_view  view;
} job;

static int check_model(const job *j) {
    fac_type want = fac_value_type(fac_graph_input(j->m.graph, 0)), gives = fac_value_type(fac_graph_output(j->m.graph, 0));
    const fac_dims *item = &j->train.item;
    bool fits = want.dtype == (j->train.tokens ? FAC_I64 : FAC_F32) && want.dims.n == item->n + 1;
    for (int k = 0; fits && k < item->n; k++) fits = want.dims.d[k + 1] < 0 || want.dims.d[k + 1] == item->d[k];
    char a[64], b[64];
    if (!fits) return fail_text("the model takes %s %s, the samples are %s", fac_dtype_get(want.dtype)->name,
                                dims_text(j->m.graph, &want.dims, a, sizeof a), dims_text(j->m.graph, item, b, sizeof b));
    if (gives.dims.n != 2 || (gives.dims.d[1] >= 0 && gives.dims.d[1] < j->train.classes))
        return fail_text("the model gives %s, the data set has %d classes", dims_text(j->m.graph, &gives.dims, a, sizeof a),
                         j->train.classes);
    return EXIT_OK;
}

/* Everything up to the trainer. */
static int prepare(job *j) {
    fac_error err = { 0 };
    int code = device_open(&device_o, &j->device);
    if (!code && !text_is_model(o.model)) code = train_model(&o, NULL, &j->m);
    if (code) return code;
    fac_dims want = { 0 };
    if (j->m.graph && fac_graph_inputs(j->m.graph)) want = fac_value_type(fac_graph_input(j->m.graph, 0)).dims;
    code = train_data(&o, want, &j->train, &j->test);
    if (!code && text_is_model(o.model)) code = text_model(&o, &j->train, 0, &j->m);
    else if (!code && !j->m.graph) code = train_model(&o, &j->train, &j->m);
    if (code) return code;
    if (fac_graph_inputs(j->m.graph) != 1 || fac_graph_outputs(j->m.graph) < 1)
        return fail_text("the model must have one input and an output");
    code = check_model(j);
    if (code) return code;
    if (o.augment && fac_augment_parse(o.augment, &j->train.item, &j->augment, &err)) return fail(&err);
    const char **freeze = calloc((size_t)o.freeze.n + 1, sizeof *freeze);
    if (!freeze) return fail_text("out of memory");
    for (int i = 0; i < o.freeze.n; i++) freeze[i] = o.freeze.at[i];
    fac_trainer_opts opts = { .optimizer = o.optimizer, .label_smoothing = o.label_smoothing,
        .soft_labels = j->augment.mixup > 0,
        .optim = { .momentum = o.momentum, .weight_decay = o.weight_decay, .clip_norm = o.clip, .freeze = freeze } };
    fac_status status = fac_trainer_new(j->m.graph, j->device, &opts, &j->trainer, &err);
    free(freeze);
    return status ? fail(&err) : EXIT_OK;
}

static int work(job *j) {
    fac_error err = { 0 };
    char checkpoint[4096], path[4096];
    fac_train_opts t = { .epochs = o.epochs, .batches = { .size = o.batch, .shuffle = true, .seed = (uint64_t)o.seed },
        .schedule = { .lr = o.lr, .warmup = o.warmup, .every = 1 }, .report = train_progress, .self = &j->view };
    if (!fac_schedule_find(o.schedule, &t.schedule.kind))
        return usage_error(verb_find("train"), "there is no schedule \"%s\"", o.schedule);
    int code = prepare(j);
    if (code) return code;
    j->about = train_about(&o, j->device);
    if (!j->about) return fail_text("out of memory");
    j->view = (train_view){ .json = json, .quiet = quiet, .show = show, .dir = out_dir, .tensorboard = o.tensorboard,
        .about = j->about, .trainer = j->trainer, .model = j->m.graph, .train = &j->train, .test = &j->test };
    t.batches.augment = j->augment;
    if (text_any_length(o.model)) t.batches.trim = 8;  /* few lengths: each is planned once */
    /* torch counts the steps of these two in epochs: three tenths down, or 0.95 for each */
    int64_t in_epoch = fac_batches_count(&j->train, &t.batches);
    if (t.schedule.kind == FAC_SCHEDULE_STEP) t.schedule.every = (o.epochs * in_epoch + 2) / 3;
    if (t.schedule.kind == FAC_SCHEDULE_EXPONENTIAL) {
        t.schedule.kind = FAC_SCHEDULE_STEP;
        t.schedule.every = in_epoch;
        t.schedule.gamma = 0.95;
    }
    if (out_dir) {
        snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.safetensors", out_dir);
        t.checkpoint = checkpoint;
        code = train_record(out_dir, j->about);
        if (code) return code;
    }
    if (resume ? fac_trainer_load(j->trainer, checkpoint, &err) : out_dir ? fac_trainer_save(j->trainer, checkpoint, &err) : FAC_OK)
        return fail(&err);              /* a first checkpoint: whatever happens later, --resume works */
    j->view.batches = &t.batches;
    code = train_view_open(&j->view, resume);
    if (code) return code;
    train_catch_interrupt();
    fac_train_result r;
    if (fac_train(j->trainer, &j->train, &j->test, &t, &r, &err)) return fail(&err);
    if (out_dir && !r.stopped) {
        snprintf(path, sizeof path, "%s/model.safetensors", out_dir);
        if (fac_graph_save_weights(j->m.graph, path, &err)) return fail(&err);
    }
    return train_summary(&j->view, &r);
}

static int run(list args) {
    static job j;
    const verb *v = verb_find("train");
    if (resume && !out_dir) out_dir = resume;
    if (args.n > 1 || (!args.n && !resume)) return usage_error(v, "which data set?");
    if (args.n) o.set = args.at[0];
    if (resume && strcmp(resume, out_dir)) return usage_error(v, "--resume goes on in its own folder");
    int code = resume ? train_recall(resume, &o) : EXIT_OK;
    if (!code) code = train_defaults(&o);
    if (code) return code;
    if (o.epochs < 1 || o.batch < 1 || o.batch > 1 << 20 || o.warmup < 0 || !(o.lr > 0) || o.clip < 0
        || !(o.label_smoothing >= 0 && o.label_smoothing < 1))
        return usage_error(v, "--epochs, --batch, --lr, --warmup and --clip are positive, --label-smoothing is below 1");
    code = work(&j);
    train_view_close(&j.view);
    free(j.about);
    fac_trainer_free(j.trainer);
    model_free(&j.m);
    fac_vocab_free(o.vocab);
    fac_dataset_free(&j.train);
    fac_dataset_free(&j.test);
    fac_device_free(j.device);
    return code;
}

static void list_sets(void) {
    printf("\naugmentation, any of these, \"crop=2\" for another number than the usual one:\n"
           "  crop=PIXELS     black pixels around, then a random window of the old size (28 x 28: 2, else an eighth of the side)\n"
           "  flip            half of the images are mirrored, left to right\n"
           "  resize=PART     a window of at least this part of the area becomes the image (0.5)\n"
           "  rotate=DEGREES  by up to so many to either side (10)\n"
           "  colour=X        brightness=X, contrast=X and saturation=X together: factors within 1 - X to 1 + X (0.4)\n"
           "  hue=X           by up to this part of a turn (0.1)\n"
           "  cutout=PIXELS   a square of this side becomes 0 (a quarter of the side)\n"
           "  erase=PART      in this part of the images a random rectangle becomes 0 (0.5)\n"
           "  mixup=ALPHA     images and labels are mixed with others, by shares from Beta(ALPHA, ALPHA) (0.2)\n");
    printf("\ndata sets and their defaults (optimizer adam):\n");
    for (const train_set *s = train_sets; s->name; s++)
        printf("  %-14s %s\n  %-14s --model %s --epochs %ld --batch %ld --lr %g --schedule %s%s%s\n", s->name, s->help, "",
               s->model, s->epochs, s->batch, s->lr, s->schedule, s->folder ? " --data " : "", s->folder ? s->folder : "");
}

const verb verb_train = {
    .name = "train", .summary = "trains a classifier on a data set", .usage = "facula train SET [options]",
    .options = options, .run = run, .list = list_sets };
