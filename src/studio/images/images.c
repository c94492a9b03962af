/* The page of images: its commands, and training in slices. */
#include "studio/images/images.h"
#include <string.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "studio/server/export.h"

#define SLICE_NS INT64_C(8000000)
#define JUDGE_NS INT64_C(700000000)

static fac_status show_image(images *p, int64_t index, fac_error *err) {
    if (!p->test.count) return fac_raise(err, FAC_E_IO, "%s", p->lacks.text);
    p->index = index;
    p->drawn = false;
    memcpy(p->pixels, p->test.bytes + index * IMAGES_PIXELS, IMAGES_PIXELS);
    p->dirty = true;
    return FAC_OK;
}

/* A first drawing, if the test images are not digits but the network knows digits. */
static fac_status draw_seven(images *p, fac_error *err) {
    cJSON *strokes = cJSON_Parse("[[0.25, 0.25, 0.75, 0.25, 0.45, 0.8]]");
    const fac_status status = fac_sketch_read(strokes, p->pixels, err);
    cJSON_Delete(strokes);
    p->drawn = true;
    return status;
}

static void close_page(void *self) {
    fac_images_release(self);
    fac_release(self);
}

static fac_status read_setup(images_setup *s, const images *p, const cJSON *from, fac_error *err) {
    images_setup new = *s;
    const int64_t most = p->all.count ? p->all.count : 60000;
    FAC_TRY(fac_json_int(from, "samples", 10, most, &new.samples, err));
    FAC_TRY(fac_json_int(from, "batch", 1, 1024, &new.batch, err));
    FAC_TRY(fac_json_int(from, "epochs", 1, 1000, &new.epochs, err));
    FAC_TRY(fac_json_int(from, "seed", 0, INT32_MAX, &new.seed, err));
    FAC_TRY(fac_json_real(from, "lr", 1e-8, 100, &new.lr, err));
    FAC_TRY(fac_json_bool(from, "known", &new.known, err));
    if (!new.known && p->lacks.status) return fac_raise(err, FAC_E_IO, "%s", p->lacks.text);
    *s = new;
    return FAC_OK;
}

static fac_status open_page(const studio_means *with, const cJSON *how, void **self,
                            fac_error *err) {
    images *p = fac_alloc(1, sizeof *p);
    images_setup s = { .samples = 1000, .batch = 16, .epochs = 20, .lr = 0.001, .known = true };
    if (!p) return fac_raise_memory(err, "a page");
    p->data = with->opts.data;
    p->threads = with->opts.threads ? with->opts.threads : fac_cores();
    fac_status status = fac_images_open(p, err);
    if (!status) status = read_setup(&s, p, how, err);
    if (!status) status = fac_images_build(p, &s, err);
    if (status) {
        close_page(p);
        return status;
    }
    *self = p;
    return fac_images_foreign(p) ? draw_seven(p, err) : show_image(p, 0, err);
}

/* ---- training ---- */

static void steps(images *p, int64_t n, int64_t most_ns) {
    const studio_training t = { p->trainer, &p->train, &p->order, &p->loader };
    const int64_t end = p->setup.epochs * p->in_epoch;
    p->dirty = true;
    if (fac_studio_steps(&t, p->setup.lr, end, n, most_ns, &p->done)) return;
    p->playing = false;
    p->judged_at = 0;
}

/* Finds the first test images that are classified wrongly. */
static fac_status count_wrong(images *p, const fac_tensor *logits, int64_t n, fac_error *err) {
    int64_t best[IMAGES_JUDGED], right = 0;
    FAC_TRY(fac_tensor_best(logits, best, err));
    p->nwrong = 0;
    for (int64_t i = 0; i < n; i++) {
        right += best[i] == p->test.labels[i];
        if (best[i] == p->test.labels[i] || p->nwrong == IMAGES_WRONG) continue;
        p->taken_for[p->nwrong] = (uint8_t)best[i];
        p->wrong[p->nwrong++] = i;
    }
    p->test_accuracy = (double)right / (double)n;
    p->judged = true;
    return FAC_OK;
}

static fac_status judge_first(images *p, fac_error *err) {
    fac_tensor *x, *labels, *logits = NULL;
    const fac_batches first = { .size = IMAGES_JUDGED };
    FAC_TRY(fac_batch(&p->test, &first, 0, 0, &x, &labels, err));
    fac_status status = fac_trainer_predict(p->trainer, x, &logits, err);
    if (!status) status = count_wrong(p, logits, fac_tensor_type(labels).dims.d[0], err);
    fac_tensor_free(logits);
    fac_tensor_free(x);
    fac_tensor_free(labels);
    return status;
}

static void judge(images *p) {
    p->judged_at = fac_now_ns();
    p->unjudged = (fac_error){ 0 };
    judge_first(p, &p->unjudged);
    p->dirty = true;
}

/* Some time after the last evaluation while it trains, or if that one failed. */
static bool wants_judge(const images *p) {
    const bool again = p->playing || p->unjudged.status;
    if (fac_images_foreign(p)) return false;
    return !p->judged_at || (again && fac_now_ns() - p->judged_at > JUDGE_NS);
}

static int64_t work(void *self) {
    images *p = self;
    if (!p->model) return -1;
    if (wants_judge(p)) judge(p);
    if (!p->playing) return -1;
    steps(p, INT64_MAX, SLICE_NS);
    return 0;
}

/* ---- commands ---- */

static fac_status set_up(images *p, const cJSON *what, fac_error *err) {
    images_setup s = p->setup;
    FAC_TRY(read_setup(&s, p, what, err));
    const bool same = p->model && s.samples == p->setup.samples && s.batch == p->setup.batch &&
                      s.seed == p->setup.seed && s.known == p->setup.known;
    if (!same) return fac_images_build(p, &s, err);
    p->setup = s;
    p->fresh_setup = true;
    return FAC_OK;
}

static fac_status reset(images *p, const cJSON *what, fac_error *err) {
    images_setup s = p->setup;
    FAC_TRY(read_setup(&s, p, what, err));
    return fac_images_build(p, &s, err);
}

/* The trained network stays unchanged: a new one is trained. */
static fac_status learn(images *p, fac_error *err) {
    images_setup s = p->setup;
    s.known = false;
    if (p->lacks.status) return fac_raise(err, FAC_E_IO, "%s", p->lacks.text);
    return p->setup.known ? fac_images_build(p, &s, err) : FAC_OK;
}

static fac_status play(images *p, const cJSON *what, fac_error *err) {
    (void)what;
    FAC_TRY(learn(p, err));
    if (p->done.step >= p->setup.epochs * p->in_epoch)
        p->setup.epochs += p->done.step / p->in_epoch;
    p->done.stopped = (fac_error){ 0 };
    p->playing = p->model != NULL;
    return FAC_OK;
}

static fac_status halt(images *p, const cJSON *what, fac_error *err) {
    (void)what, (void)err;
    p->playing = false;
    p->judged_at = 0;
    return FAC_OK;
}

static fac_status do_steps(images *p, const cJSON *what, fac_error *err) {
    int64_t n = 1;
    FAC_TRY(fac_json_int(what, "n", 1, 100, &n, err));
    FAC_TRY(learn(p, err));
    if (p->model) {
        const int64_t epochs = (p->done.step + n + p->in_epoch - 1) / p->in_epoch;
        if (epochs > p->setup.epochs) p->setup.epochs = epochs;
        p->done.stopped = (fac_error){ 0 };
        steps(p, n, INT64_MAX);
    }
    p->judged_at = 0;
    return FAC_OK;
}

static fac_status choose(images *p, const cJSON *what, fac_error *err) {
    int64_t index = 0;
    const int64_t last = p->test.count ? p->test.count - 1 : 0;
    FAC_TRY(fac_json_int(what, "index", 0, last, &index, err));
    return show_image(p, index, err);
}

static fac_status draw(images *p, const cJSON *what, fac_error *err) {
    FAC_TRY(fac_sketch_read(cJSON_GetObjectItemCaseSensitive(what, "strokes"), p->pixels, err));
    p->drawn = true;
    return FAC_OK;
}

static const struct {
    const char *name;
    fac_status (*run)(images *p, const cJSON *what, fac_error *err);
} commands[] = { { "setup", set_up },  { "reset", reset },  { "play", play }, { "pause", halt },
                 { "step", do_steps }, { "image", choose }, { "draw", draw } };

static fac_status command(void *self, const cJSON *what, fac_text *answer, fac_error *err) {
    images *p = self;
    const char *name = fac_json_string_of(what, "do");
    for (size_t k = 0; name && k < sizeof commands / sizeof *commands; k++) {
        if (strcmp(commands[k].name, name)) continue;
        FAC_TRY(commands[k].run(p, what, err));
        p->dirty = true;
        fac_json_put_pair(answer, "step", (double)p->done.step);
        return FAC_OK;
    }
    return fac_raise(err, FAC_E_ARGUMENT, "unknown command");
}

/* ---- files ---- */

static void write_command(const images *p, fac_text *to) {
    const images_setup *s = &p->setup;
    if (s->known) {
        fac_text_add(to, "facula evaluate model.onnx mnist --data DIR\n"
                         "# The network comes with facula; scripts/digits_model.py made it.\n");
        return;
    }
    const int64_t done = (p->done.step + p->in_epoch - 1) / p->in_epoch;
    fac_text_print(to,
                   "facula train %s --model zoo:lenet --augment none --optimizer adam --lr %.9g "
                   "--schedule constant "
                   "--batch %lld --epochs %lld --seed %lld --threads %d --out run\n",
                   fac_images_digits(p) ? "mnist --data DIR" : "fashion-mnist", s->lr,
                   (long long)s->batch, (long long)(done ? done : s->epochs), (long long)s->seed,
                   p->threads);
    if (p->train.count < p->all.count)
        fac_text_print(to, "# The page trains on the first %lld images, the command on all.\n",
                       (long long)p->train.count);
}

static fac_status file(void *self, const char *name, fac_text *out, const char **type,
                       fac_error *err) {
    images *p = self;
    if (!p->model) return fac_raise(err, FAC_E_ARGUMENT, "no network is loaded");
    if (strcmp(name, "command.txt")) return fac_export_file(p->model, name, out, type, err);
    *type = "text/plain; charset=utf-8";
    write_command(p, out);
    return FAC_OK;
}

const page fac_page_images = { .name = "images",
                               .open = open_page,
                               .close = close_page,
                               .command = command,
                               .work = work,
                               .show = fac_images_show,
                               .file = file };
