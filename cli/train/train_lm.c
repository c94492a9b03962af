/* facula train text: language models from a text, by nanoGPT's recipe for a CPU, or a model of
 * Hugging Face that is trained further.  A batch is of blocks that begin anywhere in the text. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "facula/read.h"
#include "files.h"
#include "train.h"

static const size_t largest = (size_t)1 << 31; /* bytes of a text */
enum {
    STEPS = 2000,
    FURTHER_STEPS = 200,
    CONTEXT = 64,
    FURTHER_CONTEXT = 256,
    WARMUP = 100,
    CHAT_EPOCHS = 3
};
static const double test_part = 0.1;

bool lm_is_set(const char *set) { return !strcmp(set, "text"); }

bool lm_writes_gguf(const train_options *o) {
    return !lm_is_new(o) && !is_folder(o->model) && (!o->lora || o->merge);
}

bool lm_is_new(const train_options *o) {
    return !strncmp(o->model, "gpt:", 4) || !strncmp(o->model, "llama:", 6);
}

void lm_list(void) {
    help_row("text", 14,
             "a text, for a language model that `facula generate` continues texts with");
    help_row("", 14,
             "--data FILE.txt --model gpt:4x4x128 --optimizer adamw --lr 1e-3 --batch 12 "
             "--weight-decay 0.1 --spare-vectors --beta2 0.99 --clip 1 --warmup 100 "
             "--schedule cosine (to a tenth of --lr) --steps 2000");
    help_row("", 14,
             "--model may be gpt: or llama:LAYERSxHEADSxWIDTH; or a folder of Hugging Face, "
             "which is trained further: --lr 5e-5 --context 256 --batch 4 --weight-decay "
             "0.01 --steps 200; or a .gguf, which becomes DIR/model.gguf, in the types that "
             "it had or as --scheme says.");
    help_row("", 14,
             "--lora r=8,alpha=16,q_proj,v_proj trains adapters of these layers alone, also "
             "of a .gguf: --lr 2e-4.  `facula generate MODEL --lora DIR` uses them.");
    help_row("", 14,
             "--data FILE.jsonl, whose lines are {\"messages\": [{\"role\", \"content\"}]}, "
             "has conversations: only the answers are learned, --epochs 3.");
}

/* ---- what was not given ---- */

static const char *wrong(const train_options *o) {
    if (o->quantize.n) return "--quantize is for networks of classes";
    if (o->weights) return "text goes on from a model by --model DIR, from a training by --resume";
    if (o->show) return "--show is for samples of classes";
    if (o->tokenizer && !lm_is_new(o))
        return "--tokenizer is for a new model: this one has its own";
    if (o->dropout > 0 && !lm_is_new(o)) return "--dropout is for a new model";
    if (o->lora && lm_is_new(o)) return "--lora needs --model DIR or FILE.gguf, a model to adapt";
    if (o->scheme && lm_is_new(o)) return "--scheme is for a model of a .gguf";
    if (o->scheme && o->lora && !o->merge)
        return "--scheme needs --merge: adapters alone have no scheme";
    if (o->merge && !o->lora) return "--merge is for the adapters of --lora";
    if (o->lora && o->freeze.n) return "--lora trains adapters alone: there is nothing to freeze";
    return NULL;
}

static long usual_warmup(long steps) { return steps >= 10 * WARMUP ? WARMUP : steps / 10; }

static double usual_lr(const train_options *o) {
    if (o->lora) return 2e-4;
    return lm_is_new(o) ? 1e-3 : 5e-5;
}

/* Adapters are small enough. */
static double usual_decay(const train_options *o) {
    if (o->lora) return -1;
    return lm_is_new(o) ? 0.1 : 0.01;
}

int lm_defaults(train_options *o) {
    const verb *v = verb_find("train");
    if (!o->model) o->model = "gpt:4x4x128";
    const char *why = o->resume ? NULL : wrong(o);
    if (why) return usage_error(v, "%s", why);
    const bool fresh = lm_is_new(o), chats = lm_is_chat(o);
    if (!o->optimizer) {
        o->optimizer = "adamw";
        o->spare_vectors = true;
        if (!option_given(&o->weight_decay)) o->weight_decay = usual_decay(o);
    }
    if (!o->lr) o->lr = usual_lr(o);
    if (!o->beta2) o->beta2 = 0.99;
    if (!o->clip) o->clip = 1;
    if (!o->batch && !fresh) o->batch = 4;
    if (!o->epochs && !o->steps && chats) o->epochs = CHAT_EPOCHS;
    if (!o->steps && !o->epochs) o->steps = fresh ? STEPS : FURTHER_STEPS;
    if (!o->warmup && !option_given(&o->warmup) && o->steps) o->warmup = usual_warmup(o->steps);
    if (!o->evaluate_every) o->evaluate_every = 250;
    if (!o->test_batches) o->test_batches = 100;
    if (o->test_part == 0 && !option_given(&o->test_part)) o->test_part = test_part;
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
    if (t->count[part] == -1) return fail_text("%s: the text is not UTF-8", o->data);
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

static int add_adapters(const train_options *o, train_job *j) {
    fac_error err = { 0 };
    fac_lora how = { .seed = (uint64_t)o->seed };
    if (!o->lora) return EXIT_OK;
    if (fac_lora_parse(o->lora, &how, &err)) return fail_text("--lora: %s", err.text);
    return fac_lm_lora_new(j->lm, &how, &err) ? fail(&err) : EXIT_OK;
}

static int old_model(train_options *o, train_job *j) {
    fac_error err = { 0 };
    const bool there = !access(o->model, F_OK);
    if (!there)
        return fail_text(
            "--model %s: neither gpt:LAYERSxHEADSxWIDTH, llama:LAYERSxHEADSxWIDTH, a .gguf "
            "nor a folder with config.json and weights",
            o->model);
    if (o->scheme && is_folder(o->model))
        return usage_error(verb_find("train"),
                           "--scheme is for a model of a .gguf: facula quantize writes others");
    const fac_lm_opts opts = { .context = o->context };
    fac_status status = fac_tokenizer_load(o->model, &j->tokens, &err);
    if (!status) status = fac_lm_load(o->model, j->dev, &opts, &j->lm, &err);
    if (!status) status = fac_lm_make_trainable(j->lm, &err);
    if (!status && lm_writes_gguf(o)) /* sooner than after the training */
        status = fac_lm_save_gguf(j->lm, j->tokens, o->scheme, NULL, &err);
    if (status) return fail(&err);
    const int64_t most = fac_lm_about(j->lm).trained_context;
    if (!o->context) o->context = most < FURTHER_CONTEXT ? (long)most : FURTHER_CONTEXT;
    return add_adapters(o, j);
}

static int load_model(train_options *o, const text *t, train_job *j) {
    fac_error err = { 0 };
    if (!lm_is_new(o)) return old_model(o, j);
    if (!o->context) o->context = CONTEXT;
    fac_lm_shape shape;
    if (fac_lm_shape_parse(o->model, &shape, &err)) return fail_text("--model: %s", err.text);
    const int code = learn(o, t, &j->tokens);
    return code ? code : new_model(o, j);
}

/* ---- all of it ---- */

/* Conversations are samples of their own: an epoch is all of them. */
static int chat_data(train_options *o, const text *t, train_job *j) {
    const int code = lm_read_chats(o, j, t->s, t->n);
    if (code) return code;
    const fac_batches b = { .size = o->batch };
    j->in_epoch = (long)fac_batches_count(&j->train, &b);
    j->steps = o->steps ? o->steps : j->in_epoch * o->epochs;
    if (!o->warmup && !option_given(&o->warmup)) o->warmup = usual_warmup(j->steps);
    return EXIT_OK;
}

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
    if (!code) code = lm_is_chat(o) ? chat_data(o, &t, j) : make_data(o, &t, j);
    if (!code && fac_lm_graph(j->lm, 0, &j->m.graph, &err)) code = fail(&err);
    free_text(&t);
    return code;
}

void lm_loop_opts(const train_options *o, const train_job *j, fac_train_opts *t) {
    t->epochs = (j->steps + j->in_epoch - 1) / j->in_epoch;
    t->steps = j->steps;
    t->evaluate_every = 1;
    t->schedule.low = o->lr / 10;
    if (lm_is_chat(o)) t->batches.trim = 16; /* few lengths: each is planned once */
}
