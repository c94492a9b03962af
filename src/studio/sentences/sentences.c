/* The page of texts: its commands, and training in slices. */
#include "studio/sentences/sentences.h"
#include <math.h>
#include <string.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "studio/server/export.h"

#define SLICE_NS INT64_C(8000000)
#define JUDGE_NS INT64_C(700000000)
enum { JUDGED_AT_ONCE = 32, CLASSES = 2 };

static const char first_text[] = "a clever and funny film , but the story is not good";

static void close_page(void *self) {
    fac_sentences_release(self);
    fac_release(self);
}

static fac_status read_net(fac_sentence_net *net, const cJSON *from, fac_error *err) {
    const char *text = fac_json_string_of(from, "net");
    return text ? fac_sentence_parse(text, net, err) : FAC_OK;
}

static fac_status read_setup(sentences_setup *s, const sentences *p, const cJSON *from,
                             fac_error *err) {
    sentences_setup new = *s;
    const int64_t most = p->all.count > 10 ? p->all.count : 10;
    FAC_TRY(fac_json_int(from, "samples", 10, most, &new.samples, err));
    FAC_TRY(fac_json_int(from, "batch", 1, 256, &new.batch, err));
    FAC_TRY(fac_json_int(from, "epochs", 1, 1000, &new.epochs, err));
    FAC_TRY(fac_json_int(from, "seed", 0, INT32_MAX, &new.seed, err));
    FAC_TRY(fac_json_real(from, "lr", 1e-8, 100, &new.lr, err));
    FAC_TRY(read_net(&new.net, from, err));
    *s = new;
    return FAC_OK;
}

/* Without sentences the page still opens, and says what it needs. */
static fac_status open_page(const studio_means *with, const cJSON *how, void **self,
                            fac_error *err) {
    sentences *p = fac_alloc(1, sizeof *p);
    sentences_setup s = { .batch = 50, .epochs = 5, .lr = 0.002 };
    if (!p) return fac_raise_memory(err, "a page");
    strcpy(p->text, first_text);
    p->threads = with->opts.threads ? with->opts.threads : fac_cores();
    fac_sentences_open(p, with->opts.data);
    fac_status status = fac_sentence_parse("", &s.net, err);
    s.samples = p->all.count;
    if (!status && !p->lacks.status) status = read_setup(&s, p, how, err);
    if (!status && !p->lacks.status) status = fac_sentences_build(p, &s, err);
    p->fresh_setup = true;
    if (status)
        close_page(p);
    else
        *self = p;
    return status;
}

/* ---- training ---- */

static void steps(sentences *p, int64_t n, int64_t most_ns) {
    const studio_training t = { p->trainer, &p->train, &p->order, &p->loader };
    const int64_t end = p->setup.epochs * p->in_epoch;
    p->dirty = true;
    if (fac_studio_steps(&t, p->setup.lr, end, n, most_ns, &p->done)) return;
    p->playing = false;
    p->judged_at = 0;
}

/* ---- evaluation on the test sentences, a few at a time ---- */

static void end_round(sentences *p) {
    double loss = 0;
    int64_t right = 0;
    for (int64_t i = 0; i < p->test.count; i++) {
        const double good = p->chance[i], of = p->test.labels[i] ? good : 1 - good;
        loss -= log(fmax(of, 1e-30));
        right += (good > 0.5) == (p->test.labels[i] != 0);
    }
    p->test_loss = loss / (double)p->test.count;
    p->test_accuracy = (double)right / (double)p->test.count;
    p->judging = -1;
    p->judged = true;
    p->fresh_table = true;
    p->dirty = true;
}

static void take_chances(sentences *p, const fac_tensor *logits) {
    const float *z = fac_tensor_data(logits);
    const int64_t from = p->judging * JUDGED_AT_ONCE, n = fac_tensor_type(logits).dims.d[0];
    for (int64_t i = 0; i < n && z; i++)
        p->chance[from + i] = 1 / (1 + exp((double)z[CLASSES * i] - (double)z[CLASSES * i + 1]));
}

static void judge_some(sentences *p) {
    const fac_batches some = { .size = JUDGED_AT_ONCE, .trim = p->order.trim };
    fac_tensor *x, *labels, *logits;
    p->unjudged = (fac_error){ 0 };
    fac_status status = fac_batch(&p->test, &some, 0, p->judging, &x, &labels, &p->unjudged);
    if (status) {
        p->judging = -1;
        p->dirty = true;
        return;
    }
    status = fac_trainer_predict(p->trainer, x, &logits, &p->unjudged);
    if (!status) {
        take_chances(p, logits);
        fac_tensor_free(logits);
    }
    fac_tensor_free(x);
    fac_tensor_free(labels);
    p->dirty |= status != FAC_OK;
    if (status)
        p->judging = -1;
    else if (++p->judging == fac_batches_count(&p->test, &some))
        end_round(p);
}

/* Some time after the last round began while it trains, or if that round failed. */
static bool wants_round(const sentences *p) {
    const bool again = p->playing || p->unjudged.status;
    return !p->judged_at || (again && p->judging < 0 && fac_now_ns() - p->judged_at > JUDGE_NS);
}

static int64_t work(void *self) {
    sentences *p = self;
    if (!p->model) return -1;
    if (wants_round(p)) {
        p->judged_at = fac_now_ns();
        p->judging = 0;
    }
    if (p->judging >= 0) judge_some(p);
    if (p->playing) steps(p, INT64_MAX, SLICE_NS);
    return p->playing || p->judging >= 0 ? 0 : -1;
}

/* ---- commands ---- */

static bool same_net(const fac_sentence_net *a, const fac_sentence_net *b) {
    char x[128], y[128];
    fac_sentence_text(a, x, sizeof x);
    fac_sentence_text(b, y, sizeof y);
    return !strcmp(x, y);
}

static fac_status set_up(sentences *p, const cJSON *what, fac_text *to, fac_error *err) {
    sentences_setup s = p->setup;
    (void)to;
    FAC_TRY(read_setup(&s, p, what, err));
    const bool same = p->model && s.samples == p->setup.samples && s.batch == p->setup.batch &&
                      s.seed == p->setup.seed && same_net(&s.net, &p->setup.net);
    if (!same) return fac_sentences_build(p, &s, err);
    p->setup = s;
    p->fresh_setup = true;
    return FAC_OK;
}

static fac_status reset(sentences *p, const cJSON *what, fac_text *to, fac_error *err) {
    sentences_setup s = p->setup;
    (void)to;
    FAC_TRY(read_setup(&s, p, what, err));
    return fac_sentences_build(p, &s, err);
}

static fac_status play(sentences *p, const cJSON *what, fac_text *to, fac_error *err) {
    (void)what, (void)to, (void)err;
    if (p->done.step >= p->setup.epochs * p->in_epoch)
        p->setup.epochs += p->done.step / p->in_epoch;
    p->done.stopped = (fac_error){ 0 };
    p->playing = true;
    return FAC_OK;
}

static fac_status halt(sentences *p, const cJSON *what, fac_text *to, fac_error *err) {
    (void)what, (void)to, (void)err;
    p->playing = false;
    p->judged_at = 0;
    return FAC_OK;
}

static fac_status do_steps(sentences *p, const cJSON *what, fac_text *to, fac_error *err) {
    int64_t n = 1;
    (void)to;
    FAC_TRY(fac_json_int(what, "n", 1, 100, &n, err));
    const int64_t epochs = (p->done.step + n + p->in_epoch - 1) / p->in_epoch;
    if (epochs > p->setup.epochs) p->setup.epochs = epochs;
    p->done.stopped = (fac_error){ 0 };
    steps(p, n, INT64_MAX);
    p->judged_at = 0;
    return FAC_OK;
}

static fac_status type_text(sentences *p, const cJSON *what, fac_text *to, fac_error *err) {
    const char *text = fac_json_string_of(what, "text");
    (void)to;
    if (!text || strlen(text) > SENTENCES_TEXT)
        return fac_raise(err, FAC_E_ARGUMENT, "text must be a sentence of at most %d bytes",
                         SENTENCES_TEXT);
    strcpy(p->text, text);
    return FAC_OK;
}

static fac_status near_by(sentences *p, const cJSON *what, fac_text *to, fac_error *err) {
    const char *word = fac_json_string_of(what, "word");
    if (!word) return fac_raise(err, FAC_E_ARGUMENT, "word must be a string");
    return fac_sentences_near(p, word, to, err);
}

static fac_status choose_rows(sentences *p, const cJSON *what, fac_text *to, fac_error *err) {
    static const char *const names[] = { "wrong", "sure", "file" };
    const char *name = fac_json_string_of(what, "order");
    (void)to;
    for (size_t k = 0; name && k < sizeof names / sizeof *names; k++) {
        if (strcmp(name, names[k])) continue;
        p->rows = (sentences_order)k;
        p->fresh_table = p->judged;
        return FAC_OK;
    }
    return fac_raise(err, FAC_E_ARGUMENT, "order must be wrong, sure or file");
}

static const struct {
    const char *name;
    fac_status (*run)(sentences *p, const cJSON *what, fac_text *to, fac_error *err);
} commands[] = { { "setup", set_up }, { "reset", reset },     { "play", play },
                 { "pause", halt },   { "step", do_steps },   { "text", type_text },
                 { "near", near_by }, { "rows", choose_rows } };

static fac_status command(void *self, const cJSON *what, fac_text *answer, fac_error *err) {
    sentences *p = self;
    const char *name = fac_json_string_of(what, "do");
    if (p->lacks.status) return fac_raise(err, FAC_E_ARGUMENT, "%s", p->lacks.text);
    for (size_t k = 0; name && k < sizeof commands / sizeof *commands; k++) {
        if (strcmp(commands[k].name, name)) continue;
        if (!p->model && commands[k].run != reset && commands[k].run != set_up)
            return fac_raise(err, FAC_E_ARGUMENT, "no network is loaded: press Reset first");
        fac_json_put_pair(answer, "step", (double)p->done.step);
        p->dirty = true;
        return commands[k].run(p, what, answer, err);
    }
    return fac_raise(err, FAC_E_ARGUMENT, "unknown command");
}

/* ---- files ---- */

static void write_command(const sentences *p, fac_text *to) {
    const sentences_setup *s = &p->setup;
    const int64_t done = (p->done.step + p->in_epoch - 1) / p->in_epoch;
    char net[128];
    fac_sentence_text(&s->net, net, sizeof net);
    fac_text_print(to,
                   "facula train sst2 --data DIR --model text-cnn:%s --optimizer adam --lr %.9g "
                   "--schedule constant --batch %lld --epochs %lld --seed %lld --threads %d --out "
                   "run\n",
                   net, s->lr, (long long)s->batch, (long long)(done ? done : s->epochs),
                   (long long)s->seed, p->threads);
    if (p->train.count < p->all.count)
        fac_text_print(to, "# The page trains on the first %lld sentences, the command on all.\n",
                       (long long)p->train.count);
}

/* Words in the order of their tokens: line n, from 0, is the word of token n. */
static void write_words(const sentences *p, fac_text *to) {
    for (int64_t k = 0; k < fac_vocab_count(p->vocab); k++)
        fac_text_print(to, "%s\n", fac_vocab_word(p->vocab, k));
}

static fac_status file(void *self, const char *name, fac_text *out, const char **type,
                       fac_error *err) {
    sentences *p = self;
    if (!p->model) return fac_raise(err, FAC_E_ARGUMENT, "no network is loaded");
    *type = "text/plain; charset=utf-8";
    if (!strcmp(name, "command.txt"))
        write_command(p, out);
    else if (!strcmp(name, "words.txt"))
        write_words(p, out);
    else
        return fac_export_file(p->model, name, out, type, err);
    return FAC_OK;
}

const page fac_page_text = { .name = "text",
                             .open = open_page,
                             .close = close_page,
                             .command = command,
                             .work = work,
                             .show = fac_sentences_show,
                             .file = file };
