/* facula predict: what a trained model says of texts, photos or rows of numbers.  Everything comes
 * from the --out folder of the training: run.json (the model), samples.json (sizes, classes,
 * normalization), vocab.txt, model.safetensors. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "json.h"
#include "labels.h"
#include "photo.h"
#include "run_sound.h"
#include "samples.h"
#include "train/train.h"

enum { LONGEST_LINE = 1 << 20 };
static long top = 5;
static train_options *const how = &train_given; /* where train_recall puts run.json */

static const option options[] = {
    { "--top", OPTION_INT, &top, "N", "how many classes to print, the likeliest first; default 5",
      OPTION_COUNT },
    LINK_ROOT_OPTION,
    { "--json", OPTION_FLAG, &train_given.json, NULL,
      "print JSON, a line for each answer, as docs/JSON.md describes" },
    DEVICE_OPTIONS(train_given.device),
    { 0 }
};

typedef struct job {
    samples s;
    model m;
    fac_graph *graph;
    fac_device *device;
    fac_program *program;
    int32_t *ids;
    int64_t room;
    photo_plan plan; /* of a training of images */
} job;

/* ---- the model ---- */

/* The network as the training built it, with the weights that it ended with. */
static int load_weights(job *j, const char *dir, fac_weights *w) {
    fac_error err = { 0 };
    const fac_tensor *table = fac_weights_find(w, "embedding.weight");
    const fac_dims dims = table ? fac_tensor_type(table).dims : (fac_dims){ 0 };
    how->weights = how->glove = NULL; /* where the training began matters no more */
    how->vocab = j->s.vocab;
    const bool text = text_is_model(how->model);
    if (text && !j->s.vocab) return fail_text("%s: the model %s goes with texts", dir, how->model);
    const int length = dims.n == 2 ? (int)dims.d[1] : 0;
    int code = text ? text_model(how, &j->s.like, length, &j->m) : train_model(how, NULL, &j->m);
    if (!code && !j->m.graph) code = train_model(how, &j->s.like, &j->m);
    bool fresh; /* a head that the training replaced: its weights come now */
    if (!code) code = train_fit_head(how, j->s.like.classes, &j->m, &fresh);
    if (!code) code = train_quantize(how, &j->m);
    if (!code && fac_graph_load_weights(j->m.graph, w, NULL, NULL, &err)) code = fail(&err);
    return code;
}

static int prepare(job *j, const char *dir) {
    char path[4096];
    fac_error err = { 0 };
    fac_weights *w = NULL;
    int code = train_recall(dir, how);
    if (!code) code = train_defaults(how);
    if (!code) code = samples_recall(dir, &j->s);
    if (!code) code = device_open(&how->device, &j->device);
    if (code) return code;
    if (j->s.kind == SAMPLES_IMAGES) photo_plan_trained(&j->s.like, PHOTO_TRAINING, &j->plan);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    if (fac_weights_load(path, &w, &err)) return fail(&err);
    code = load_weights(j, dir, w);
    fac_weights_free(w);
    if (code) return code;
    fac_value *logits = fac_graph_output(j->m.graph, 0);
    fac_output(j->m.graph, "probabilities", fac_softmax(logits, 1));
    j->graph = fac_graph_inference(j->m.graph);
    if (!j->graph) return fail_text("out of memory");
    return fac_program_new(j->graph, j->device, NULL, &j->program, &err) ? fail(&err) : EXIT_OK;
}

/* ---- samples ---- */

/* A text is as long as it is, or as the model says. */
static fac_status text_tensor(job *j, const char *text, fac_tensor **out, fac_error *err) {
    int64_t n = fac_vocab_encode(j->s.vocab, text, j->ids, j->room), length = j->s.like.item.d[0];
    if (text_any_length(how->model)) length = n ? n : 1;
    if (length > j->room) {
        int32_t *more = realloc(j->ids, (size_t)length * sizeof *more);
        if (!more) return out_of_memory(err);
        j->ids = more;
        j->room = length;
    }
    memset(j->ids, 0, (size_t)length * sizeof *j->ids); /* FAC_PAD */
    fac_vocab_encode(j->s.vocab, text, j->ids, length);
    fac_tensor *narrow;
    fac_status status =
        fac_tensor_borrow(FAC_I32, fac_shape(1, length), NULL, j->ids, NULL, NULL, &narrow, err);
    if (status) return status;
    status = fac_tensor_convert(narrow, FAC_I64, out, err);
    fac_tensor_free(narrow);
    return status;
}

static fac_status image_tensor(const job *j, const char *path, fac_tensor **out, fac_error *err) {
    return photo_tensor(path, &j->plan, out, err);
}

/* "0.5,1.25": as many numbers as a sample has. */
static fac_status values_tensor(const job *j, const char *text, fac_tensor **out, fac_error *err) {
    fac_dims dims = { .n = j->s.like.item.n + 1, .d = { 1 } };
    memcpy(dims.d + 1, j->s.like.item.d, (size_t)j->s.like.item.n * sizeof *dims.d);
    const int64_t n = fac_dims_count(&dims);
    float *x = calloc((size_t)n, sizeof *x);
    int64_t k = 0;
    char *end = NULL;
    if (!x) return out_of_memory(err);
    for (const char *p = text; k < n; p = end + 1) {
        x[k] = strtof(p, &end);
        if (end == p) break;
        k++;
        if (*end != ',' && *end != ' ') break;
    }
    fac_status status =
        k == n && !*end ? fac_tensor_new(NULL, FAC_F32, dims, out, err) : FAC_E_ARGUMENT;
    if (k != n || *end)
        snprintf(err->text, sizeof err->text, "\"%.60s\": a sample is %lld numbers", text,
                 (long long)n);
    if (!status) status = fac_tensor_write(*out, x, (size_t)n * sizeof *x, err);
    free(x);
    return status;
}

/* ---- answers ---- */

static int print_json(const job *j, const char *what, const fac_class *b, int n) {
    const fac_dataset *d = &j->s.like;
    cJSON *root = cJSON_CreateObject(), *all = NULL;
    cJSON_AddStringToObject(root, "input", what);
    cJSON_AddStringToObject(root, "class", d->class_names[b[0].index]);
    json_number(root, "probability", b[0].probability, 6);
    all = cJSON_AddArrayToObject(root, "classes");
    for (int k = 0; k < n; k++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "index", (double)b[k].index);
        cJSON_AddStringToObject(row, "class", d->class_names[b[k].index]);
        json_number(row, "probability", b[k].probability, 6);
        cJSON_AddItemToArray(all, row);
    }
    photo_plan_json(&j->plan, root);
    return json_line(root);
}

static int print_line(const job *j, const char *what, const fac_class *b, int n) {
    for (int k = 0; k < n; k++)
        printf("%s%s %.2f %%", k ? ", " : "", j->s.like.class_names[b[k].index],
               100 * b[k].probability);
    printf("  %s\n", what);
    return EXIT_OK;
}

static int print_best(const job *j, const char *what, const fac_tensor *scores) {
    const int classes = j->s.like.classes, most = top < classes ? (int)top : classes;
    fac_error err = { 0 };
    int n = 0;
    fac_class *b = calloc((size_t)classes, sizeof *b);
    if (!b) return fail_text("out of memory");
    int code = fac_top(scores, 0, NULL, most, b, &n, &err) ? fail(&err) : EXIT_OK;
    if (!code && n) code = (how->json ? print_json : print_line)(j, what, b, n);
    free(b);
    return code;
}

static int answer(job *j, const char *what) {
    fac_error err = { 0 };
    fac_tensor *x = NULL, *y[2] = { NULL, NULL };
    fac_status status = j->s.kind == SAMPLES_TEXTS    ? text_tensor(j, what, &x, &err)
                        : j->s.kind == SAMPLES_IMAGES ? image_tensor(j, what, &x, &err)
                                                      : values_tensor(j, what, &x, &err);
    if (!status) status = fac_program_run(j->program, &x, y, &err);
    const int code = status ? fail(&err) : print_best(j, what, y[1]);
    fac_tensor_free(x);
    fac_tensor_free(y[0]);
    fac_tensor_free(y[1]);
    fflush(stdout);
    return code;
}

/* Files, folders and tables, each sound with the average of its windows. */
static int answer_sounds(job *j, list sounds) {
    labels names = { 0 };
    const sound_run r = { &j->m, j->device, j->program, &names, NULL, (int)top, how->json, true };
    int code = sounds.n ? EXIT_OK : usage_error(verb_find("predict"), "which sounds?");
    if (!code) code = sound_note(how, j->m.graph);
    if (!code) code = labels_note(j->m.graph, j->s.like.classes, j->s.like.class_names);
    if (!code) code = run_sounds(&r, sounds);
    labels_free(&names);
    return code;
}

/* A line is a sample; one that never ends is none. */
static int answer_lines(job *j) {
    static char line[LONGEST_LINE];
    int code = EXIT_OK;
    while (!code && fgets(line, sizeof line, stdin)) {
        size_t n = strlen(line);
        if (n + 1 == sizeof line && line[n - 1] != '\n')
            return fail_text("a line of more than %zu bytes", n);
        while (n && (line[n - 1] == '\n' || line[n - 1] == '\r')) line[--n] = 0;
        if (n) code = answer(j, line);
    }
    if (!code && ferror(stdin))
        code = fail_text("standard input cannot be read: %s", strerror(errno));
    return code;
}

static int run(list args) {
    static job j;
    const verb *v = verb_find("predict");
    const int wrong = arguments_fit(v, args, 1, ANY_NUMBER, "the folder of which training?");
    if (wrong) return wrong;
    int code = prepare(&j, folder_name(args.at[0]));
    const bool sounds = !code && sound_is_set(how->set);
    if (sounds) code = answer_sounds(&j, (list){ args.at + 1, args.n - 1 });
    for (int i = 1; i < args.n && !code && !sounds; i++) code = answer(&j, args.at[i]);
    if (!code && args.n == 1) code = answer_lines(&j);
    if (!code && !how->json && !sounds) photo_plan_print(&j.plan);
    free(j.ids);
    fac_program_free(j.program);
    fac_graph_free(j.graph);
    model_free(&j.m);
    samples_free(&j.s);
    fac_device_free(j.device);
    return code;
}

const verb verb_predict = {
    .name = "predict",
    .summary = "classify texts, photos, sounds or numbers with a trained model",
    .usage = "facula predict DIR [TEXT | PHOTO | SOUND | NUMBERS]... [options]",
    .options = options,
    .examples = "predict runs/fashion shoe.png bag.png\npredict runs/sst2 'a warm, funny film' "
                "--top 2\npredict runs/circle 0.2,0.8",
    .run = run,
    .more =
        "DIR is the --out folder of a training.  Without samples, each line of standard input is "
        "one: a\nsentence, the path of a photo, or numbers separated by commas, whatever the model "
        "was trained on.\n\nSounds may also be folders, or tables of lines FILE,label[,start,end]. "
        " The answers of a sound's\nwindows are averaged; --json has each window."
};
