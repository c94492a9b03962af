/* facula train: trains a classifier on a data set, or a language model on a text. */
#include <string.h>
#include "files.h"
#include "run/labels.h"
#include "run/photo.h"
#include "run/samples.h"
#include "train.h"

static train_options *const o = &train_given;

/* The file says how its photos are prepared and what its classes are called, whatever the model
 * that it began with said. */
static int describe(const train_job *j, fac_graph *g) {
    photo_plan plan;
    fac_graph_set_note(g, FAC_NOTE_PRESET, NULL);
    int code = labels_note(g, j->train.classes, j->train.class_names);
    if (!code && sound_is_set(o->set)) code = sound_note(o, g);
    if (code || !j->train.bytes) return code;
    photo_plan_trained(&j->train, PHOTO_TRAINING, &plan);
    return photo_note(g, &plan.how);
}

/* A network of few bits: packed,
    where its weights are levels of a basis; and without its quantizers. */
static int save_packed(fac_graph **g) {
    fac_error err = { 0 };
    fac_graph *plain;
    char path[4096];
    bool bytes;
    rest_chosen(o->rest, &bytes);
    const int code = bytes ? with_byte_weights(g) : EXIT_OK;
    if (code) return code;
    snprintf(path, sizeof path, "%s/model.fac", o->out);
    fac_status status = fac_packed_save(*g, path, NULL, &err);
    if (status && status != FAC_E_ARGUMENT) return fail(&err);
    status = fac_graph_dequantize(*g, &plain, &err);
    if (status) return fail(&err);
    fac_graph_free(*g);
    *g = plain;
    return EXIT_OK;
}

/* What is left behind: weights by name, and the network as others read it. */
static int save(train_job *j) {
    fac_error err = { 0 };
    char path[4096], weights[4096];
    if (fac_trainer_average(j->trainer, &err)) return fail(&err);
    snprintf(weights, sizeof weights, "%s/model.safetensors", o->out);
    int code = j->lm ? lm_store(o, j) : EXIT_OK;
    if (!code && !j->lm && fac_graph_save_weights(j->m.graph, weights, &err)) code = fail(&err);
    if (!code && j->whole.graph) code = sound_whole(j, weights);
    if (code || o->lora) return code;
    snprintf(path, sizeof path, "%s/model.onnx", o->out);
    fac_graph *quiet = fac_graph_inference(j->whole.graph ? j->whole.graph : j->m.graph);
    if (!quiet) return fail_text("out of memory");
    if (!j->lm) code = describe(j, quiet);
    if (!code && o->quantize.n) code = save_packed(&quiet);
    fac_status status = code ? FAC_OK : fac_onnx_save(quiet, path, NULL, &err);
    fac_graph_free(quiet);
    if (code) return code;
    if (status == FAC_E_UNSUPPORTED)
        fprintf(stderr, "facula: no model.onnx is written: %s\n", err.text);
    return status && status != FAC_E_UNSUPPORTED ? fail(&err) : EXIT_OK;
}

/* The folder of a training: what it was started with, and a checkpoint, so that --resume works
 * whatever happens later.  A resumed one that cannot go on like this leaves the folder as it was.
 */
static int begin(train_job *j, const fac_train_opts *t) {
    fac_error err = { 0 };
    if (o->resume && (fac_trainer_load(j->trainer, t->checkpoint, &err) ||
                      fac_trainer_continues(j->trainer, &j->train, &t->batches, &err)))
        return fail(&err);
    if (o->overwrite) train_folder_clear(o->out);
    int code = train_record(o->out, j->about);
    if (!code && !j->lm)
        code = samples_record(o->out, j->whole.graph ? &j->waves : &j->train, o->vocab);
    return code || o->resume || !fac_trainer_save(j->trainer, t->checkpoint, &err) ? code
                                                                                   : fail(&err);
}

static int work(train_job *j) {
    fac_error err = { 0 };
    char checkpoint[4096];
    fac_train_opts t;
    train_catch_interrupt(); /* one that comes while data is read stops after the first step */
    int code = o->out && !o->resume && !o->overwrite ? train_folder_free(o->out) : EXIT_OK;
    if (!code) code = train_prepare(o, j);
    if (!code) code = train_loop_opts(o, j, &t);
    if (code) return code;
    j->about = train_about(o, j->dev);
    if (!j->about) return fail_text("out of memory");
    j->view = (train_view){ .json = o->json,
                            .quiet = o->quiet,
                            .show = o->show,
                            .dir = o->out,
                            .tensorboard = o->tensorboard,
                            .about = j->about,
                            .trainer = j->trainer,
                            .model = j->m.graph,
                            .train = &j->train,
                            .test = &j->test,
                            .adapted = o->lora ? o->model : NULL,
                            .batches = &t.batches };
    if (o->out) {
        snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.safetensors", o->out);
        t.checkpoint = checkpoint;
        code = begin(j, &t);
        if (code) return code;
    }
    code = o->recompute > 0 ? train_tell_saving(j, &t.batches) : EXIT_OK;
    if (!code) code = train_view_open(&j->view, o->resume);
    if (code) return code;
    if (!o->out) fprintf(stderr, "facula: without --out DIR nothing of this training is kept\n");
    fac_train_result r;
    if (fac_train(j->trainer, &j->train, &j->test, &t, &r, &err)) return fail(&err);
    if (o->out && !r.stopped) code = save(j);
    if (!code) code = train_summary(&j->view, &r);
    if (!o->out)
        fprintf(stderr, "facula: nothing of this training was kept: there was no --out DIR\n");
    return code;
}

/* A training begun from files of its own folder would write over them. */
static int check_outputs(const char *dir) {
    static const char *const names[] = { "run.json",          "samples.json",
                                         "vocab.txt",         "checkpoint.safetensors",
                                         "model.safetensors", "model.onnx",
                                         "config.json",       "tokenizer.json",
                                         "model.fac",         "log.jsonl",
                                         "log.csv",           "steps.jsonl",
                                         "confusion.json",    NULL };
    char path[4096];
    int code = EXIT_OK;
    for (const char *const *name = names; *name && !code; name++) {
        code = path_join(path, sizeof path, dir, *name, "");
        if (!code) code = output_check(path);
    }
    return code;
}

static int run(list args) {
    static train_job j;
    const verb *v = verb_find("train");
    if (o->resume && !o->out) o->out = o->resume;
    const int unfit = arguments_fit(v, args, !o->resume, 1, "which data set?");
    if (unfit) return unfit;
    if (args.n) o->set = args.at[0];
    if (o->resume && o->overwrite)
        return usage_error(v, "--resume goes on with a training, --overwrite begins a new one");
    if (o->overwrite && !o->out) return usage_error(v, "--overwrite is for the folder of --out");
    if (o->resume && strcmp(o->resume, o->out))
        return usage_error(v, "--resume goes on in its own folder");
    int code = o->resume ? train_recall(o->resume, o) : EXIT_OK;
    if (!code) code = train_defaults(o);
    if (code) return code;
    const char *which, *wrong = train_wrong(o);
    if (wrong) return usage_error(v, "%s", wrong);
    wrong = train_wrong_scheme(o, &which);
    if (wrong) return usage_error(v, "--quantize \"%s\": %s", which, wrong);
    code = train_fits(v, o);
    if (code) return code;
    if (o->out && !o->resume && o->weights && same_file(o->weights, o->out))
        return usage_error(v, "%s: the folder of --weights " INPUT_TOO, o->out);
    code = o->out ? check_outputs(o->out) : EXIT_OK;
    if (code) return code;
    code = work(&j);
    train_view_close(&j.view);
    if (!code && j.view.lost) code = EXIT_FAILED;
    train_free(o, &j);
    return code;
}

const verb verb_train = {
    .name = "train",
    .summary = "train a classifier on a data set, or a language model on a text",
    .usage = "facula train SET [options]",
    .options = train_rows,
    .examples = "train fashion-mnist --out runs/first\ntrain image-folder --data photos --model "
                "zoo:resnet18 --epochs 10 --out runs/photos\ntrain text --data book.txt --steps "
                "5000 --out runs/book\ntrain --resume runs/first --epochs 12",
    .run = run,
    .list = train_list
};
