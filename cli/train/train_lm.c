/* facula train text: language models from a text, by nanoGPT's recipe for a CPU, or a model of
 * Hugging Face that is trained further.  A batch is of blocks that begin anywhere in the text. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "facula/read.h"
#include "files.h"
#include "train.h"

static const size_t largest = (size_t)1 << 31; /* bytes of a text */
enum { STEPS = 2000, FURTHER_STEPS = 200, CONTEXT = 64, FURTHER_CONTEXT = 256, WARMUP = 100 };
static const double test_part = 0.1;

bool lm_is_set(const char *set) { return !strcmp(set, "text"); }

/* A new model, not one of a folder. */
static bool is_new(const train_options *o) {
    return !strncmp(o->model, "gpt:", 4) || !strncmp(o->model, "llama:", 6);
}

void lm_list(void) {
    printf("  text           a text, for a language model that `facula generate` goes on with\n"
           "                 --data FILE.txt --model gpt:4x4x128 --optimizer adamw --lr 1e-3\n"
           "                 --batch 12 --weight-decay 0.1 --spare-vectors --beta2 0.99 --clip 1\n"
           "                 --warmup 100 --schedule cosine (to a tenth of --lr) --steps 2000\n"
           "                 a model is gpt: or llama:LAYERSxHEADSxWIDTH, or a folder of Hugging\n"
           "                 Face, which is trained further: --lr 5e-5 --context 256 --batch 4\n"
           "                 --weight-decay 0.01 --steps 200\n");
}

/* ---- what was not given ---- */

static const char *wrong(const train_options *o) {
    if (o->quantize.n) return "--quantize is for networks of classes";
    if (o->weights) return "text goes on from a model by --model DIR, from a training by --resume";
    if (o->size || o->augment || o->glove)
        return "--size, --augment and --glove are not for a text";
    if (o->show) return "--show is for samples of classes";
    if (o->tokenizer && !is_new(o)) return "--tokenizer is for a new model: this one has its own";
    if (o->dropout > 0 && !is_new(o)) return "--dropout is for a new model";
    return NULL;
}

static long usual_warmup(long steps) { return steps >= 10 * WARMUP ? WARMUP : steps / 10; }

int lm_defaults(train_options *o) {
    const verb *v = verb_find("train");
    if (!o->model) o->model = "gpt:4x4x128";
    const char *why = o->resume ? NULL : wrong(o);
    if (why) return usage_error(v, "%s", why);
    const bool fresh = is_new(o);
    if (!o->optimizer) {
        o->optimizer = "adamw";
        o->spare_vectors = true;
        if (!option_given(&o->weight_decay)) o->weight_decay = fresh ? 0.1 : 0.01;
    }
    if (!o->lr) o->lr = fresh ? 1e-3 : 5e-5;
    if (!o->beta2) o->beta2 = 0.99;
    if (!o->clip) o->clip = 1;
    if (!o->batch && !fresh) o->batch = 4;
    if (!o->steps && !o->epochs) o->steps = fresh ? STEPS : FURTHER_STEPS;
    if (!o->warmup && !option_given(&o->warmup) && o->steps) o->warmup = usual_warmup(o->steps);
    if (!o->evaluate_every) o->evaluate_every = 250;
    if (!o->test_batches) o->test_batches = 100;
    if (o->test_part == 0) o->test_part = test_part;
    if (!o->tokenizer && fresh) o->tokenizer = "char";
    return EXIT_OK;
}

/* ---- the text and its tokens ---- */

typedef struct text {
    char *s;
    size_t n, middle; /* bytes; where the test part begins */
    int32_t *ids[2];  /* of the training part, of the test part */
    int64_t count[2];
} text;

static void free_text(text *t) {
    fac_read_free(t->s);
    free(t->ids[0]);
    free(t->ids[1]);
}

static int read_data(const train_options *o, text *t) {
    fac_error err = { 0 };
    if (fac_read_text(o->data, largest, FAC_READ_FILE, &t->s, &t->n, &err)) return fail(&err);
    if (!t->n) return fail_text("%s: an empty file: there is nothing to learn", o->data);
    t->middle = (size_t)((double)t->n * (1 - o->test_part));
    while (t->middle < t->n && ((unsigned char)t->s[t->middle] & 0xC0) == 0x80) t->middle++;
    return EXIT_OK;
}

/* "char", or "bpe:512". */
static int learn(const train_options *o, const text *t, fac_tokenizer **out) {
    fac_error err = { 0 };
    char *end = NULL;
    long n = strcmp(o->tokenizer, "char") ? -1 : 0;
    if (!strncmp(o->tokenizer, "bpe:", 4)) n = strtol(o->tokenizer + 4, &end, 10);
    if (n < 0 || n > INT32_MAX || (end && (end == o->tokenizer + 4 || *end || !n)))
        return usage_error(verb_find("train"), "--tokenizer \"%s\": char or bpe:N", o->tokenizer);
    if (!fac_tokenizer_learn(t->s, t->n, (int32_t)n, out, &err)) return EXIT_OK;
    return fail_text("%s: %s", o->data, err.text);
}

static int encode(const train_options *o, const fac_tokenizer *with, text *t, int part) {
    const char *from = t->s + (part ? t->middle : 0);
    const size_t n = part ? t->n - t->middle : t->middle;
    t->ids[part] = malloc((n + 1) * sizeof **t->ids); /* a token is a byte at least */
    if (!t->ids[part]) return fail_text("out of memory");
    t->count[part] = fac_tokenizer_encode(with, from, n, 0, t->ids[part], (int64_t)n);
    if (t->count[part] == -1) return fail_text("%s: a text that is no UTF-8", o->data);
    if (t->count[part] < 0) return fail_text("out of memory");
    if (t->count[part] <= o->context)
        return fail_text(
            "%s: the part for %s has %lld token%s: a --context of %ld needs more than that",
            o->data, part ? "testing" : "training", (long long)t->count[part],
            plural((double)t->count[part]), o->context);
    return EXIT_OK;
}

/* ---- models ---- */

static int new_model(train_options *o, train_job *j) {
    fac_error err = { 0 };
    fac_lm_shape shape = { .context = o->context,
                           .dropout = o->dropout,
                           .seed = (uint64_t)o->seed,
                           .vocabulary = fac_tokenizer_count(j->tokens) };
    if (fac_lm_shape_parse(o->model, &shape, &err)) return fail_text("--model: %s", err.text);
    return fac_lm_new(&shape, j->dev, &j->lm, &err) ? fail(&err) : EXIT_OK;
}

static int old_model(train_options *o, train_job *j) {
    fac_error err = { 0 };
    struct stat s;
    if (stat(o->model, &s) || !S_ISDIR(s.st_mode))
        return fail_text(
            "--model %s: neither gpt:LAYERSxHEADSxWIDTH, llama:LAYERSxHEADSxWIDTH nor a "
            "folder with config.json and weights",
            o->model);
    const fac_lm_opts opts = { .context = o->context };
    fac_status status = fac_tokenizer_load(o->model, &j->tokens, &err);
    if (!status) status = fac_lm_load(o->model, j->dev, &opts, &j->lm, &err);
    if (!status) status = fac_lm_make_trainable(j->lm, &err);
    if (status) return fail(&err);
    const int64_t most = fac_lm_about(j->lm).trained_context;
    if (!o->context) o->context = most < FURTHER_CONTEXT ? (long)most : FURTHER_CONTEXT;
    return EXIT_OK;
}

static int load_model(train_options *o, const text *t, train_job *j) {
    fac_error err = { 0 };
    if (!is_new(o)) return old_model(o, j);
    if (!o->context) o->context = CONTEXT;
    fac_lm_shape shape;
    if (fac_lm_shape_parse(o->model, &shape, &err)) return fail_text("--model: %s", err.text);
    const int code = learn(o, t, &j->tokens);
    return code ? code : new_model(o, j);
}

/* ---- all of it ---- */

/* Blocks between two looks at the test part are an epoch; of --epochs, each is as many blocks as
 * the text has. */
static void count_steps(train_options *o, const text *t, train_job *j) {
    const int64_t in_step = (int64_t)o->batch * o->context;
    j->steps = o->steps;
    if (!j->steps) j->steps = (long)((t->count[0] * o->epochs + in_step - 1) / in_step);
    if (!o->warmup && !option_given(&o->warmup)) o->warmup = usual_warmup(j->steps);
    j->in_epoch = o->evaluate_every < j->steps ? o->evaluate_every : j->steps;
}

static int make_data(train_options *o, text *t, train_job *j) {
    fac_error err = { 0 };
    const int classes = (int)fac_lm_about(j->lm).vocabulary;
    for (int part = 0; part < 2; part++) {
        const int code = encode(o, j->tokens, t, part);
        if (code) return code;
    }
    count_steps(o, t, j);
    const int64_t count[2] = { j->in_epoch * o->batch, (int64_t)o->test_batches * o->batch };
    for (int part = 0; part < 2; part++)
        if (fac_dataset_stream(t->ids[part], t->count[part], o->context, count[part], classes,
                               part ? &j->test : &j->train, &err))
            return fail(&err);
    return EXIT_OK;
}

int lm_load(train_options *o, train_job *j) {
    fac_error err = { 0 };
    text t = { 0 };
    int code = read_data(o, &t);
    if (!code) code = load_model(o, &t, j);
    if (!code) code = make_data(o, &t, j);
    if (!code && fac_lm_graph(j->lm, 0, &j->m.graph, &err)) code = fail(&err);
    free_text(&t);
    return code;
}

void lm_loop_opts(const train_options *o, const train_job *j, fac_train_opts *t) {
    t->epochs = (j->steps + j->in_epoch - 1) / j->in_epoch;
    t->steps = j->steps;
    t->evaluate_every = 1;
    t->schedule.low = o->lr / 10;
}

/* ---- what is left behind ---- */

/* Of a model that was trained further: the tokenizer's files, as they are. */
static int copy_tokenizer(const char *from, const char *to) {
    static const char *const names[] = { "tokenizer.json",      "tokenizer_config.json",
                                         "vocab.json",          "merges.txt",
                                         "added_tokens.json",   "special_tokens_map.json",
                                         "chat_template.jinja", "generation_config.json" };
    char path[4096];
    int code = EXIT_OK;
    for (size_t k = 0; k < sizeof names / sizeof *names && !code; k++) {
        fac_error err = { 0 };
        char *contents;
        size_t bytes;
        struct stat s;
        code = path_join(path, sizeof path, from, names[k], "");
        if (code || stat(path, &s)) continue;
        if (fac_read_text(path, largest, FAC_READ_FILE, &contents, &bytes, &err)) return fail(&err);
        code = path_join(path, sizeof path, to, names[k], "");
        if (!code) code = file_write(path, contents, bytes);
        fac_read_free(contents);
    }
    return code;
}

int lm_store(const train_options *o, const train_job *j) {
    fac_error err = { 0 };
    char path[4096];
    int code = is_new(o) ? path_join(path, sizeof path, o->out, "tokenizer.json", "")
                         : copy_tokenizer(o->model, o->out);
    if (!code && is_new(o) && fac_tokenizer_save(j->tokens, path, &err)) code = fail(&err);
    if (!code && fac_lm_save(j->lm, o->out, &err)) code = fail(&err);
    return code;
}
