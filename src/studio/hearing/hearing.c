/* The page of sounds: its commands. */
#include "studio/hearing/hearing.h"
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "studio/server/export.h"

enum { SHORTEST = 64, LONGEST = 4096, MOST_PART = 16, MOST_MELS = 256 };

static void close_page(void *self) {
    fac_hearing_release(self);
    fac_release(self);
}

static fac_status read_setup(hearing_setup *s, const cJSON *from, fac_error *err) {
    hearing_setup new = *s;
    FAC_TRY(fac_json_int(from, "length", SHORTEST, LONGEST, &new.length, err));
    FAC_TRY(fac_json_int(from, "part", 1, MOST_PART, &new.part, err));
    FAC_TRY(fac_json_int(from, "mels", 0, MOST_MELS, &new.mels, err));
    FAC_TRY(fac_json_real(from, "speed", 0, 100, &new.speed, err));
    if (new.length &(new.length - 1))
        return fac_raise(err, FAC_E_ARGUMENT, "length must be a power of two");
    *s = new;
    return FAC_OK;
}

/* Without a sound, the picture uses the rate of the model. */
static fac_status open_page(const studio_means *with, const cJSON *how, void **self,
                            fac_error *err) {
    hearing *p = fac_alloc(1, sizeof *p);
    const fac_device_opts one = { .threads = with->opts.threads ? with->opts.threads : 1 };
    hearing_setup s = { .length = 512, .part = 4, .speed = 1 };
    if (!p) return fac_raise_memory(err, "a page");
    fac_status status = fac_device_open("cpu", &one, &p->device, err);
    if (!status) fac_hearing_model(p, with->opts.model);
    p->rate = p->model.rate ? p->model.rate : 16000;
    if (!status) status = read_setup(&s, how, err);
    if (!status) status = fac_hearing_build(p, &s, err);
    if (status)
        close_page(p);
    else
        *self = p;
    return status;
}

/* ---- commands ---- */

static bool over(const hearing *p) { return p->source == HEARING_FILE && p->at == p->first + p->n; }

static fac_status go_to(hearing *p, int64_t sample, fac_error *err) {
    p->at = sample;
    p->last = 0;
    p->owed = 0;
    return fac_hearing_build(p, &p->setup, err);
}

static fac_status set_up(hearing *p, const cJSON *what, fac_error *err) {
    hearing_setup s = p->setup;
    FAC_TRY(read_setup(&s, what, err));
    const bool same =
        s.length == p->setup.length && s.part == p->setup.part && s.mels == p->setup.mels;
    if (!same) return fac_hearing_build(p, &s, err);
    p->setup = s;
    p->fresh_setup = true;
    return FAC_OK;
}

static fac_status play(hearing *p, const cJSON *what, fac_error *err) {
    (void)what;
    if (p->source == HEARING_NOTHING)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "no sound yet: choose a file or start the microphone");
    if (over(p)) FAC_TRY(go_to(p, 0, err));
    p->last = 0;
    p->playing = true;
    return FAC_OK;
}

static fac_status halt(hearing *p, const cJSON *what, fac_error *err) {
    (void)what, (void)err;
    p->playing = false;
    return FAC_OK;
}

static fac_status seek(hearing *p, const cJSON *what, fac_error *err) {
    double seconds = 0;
    if (p->source != HEARING_FILE)
        return fac_raise(err, FAC_E_ARGUMENT, "only a file has positions to go to");
    FAC_TRY(fac_json_real(what, "seconds", 0, (double)p->n / p->rate, &seconds, err));
    const int64_t sample = (int64_t)(seconds * p->rate);
    return go_to(p, sample < p->n ? sample : p->n, err);
}

static fac_status microphone(hearing *p, const cJSON *what, fac_error *err) {
    int64_t rate = 0;
    FAC_TRY(fac_json_int(what, "rate", 0, INT32_MAX, &rate, err));
    return fac_hearing_microphone(p, rate, err);
}

static const struct {
    const char *name;
    fac_status (*run)(hearing *p, const cJSON *what, fac_error *err);
} commands[] = { { "setup", set_up },
                 { "play", play },
                 { "pause", halt },
                 { "seek", seek },
                 { "microphone", microphone } };

static fac_status command(void *self, const cJSON *what, fac_text *answer, fac_error *err) {
    hearing *p = self;
    const char *name = fac_json_string_of(what, "do");
    for (size_t k = 0; name && k < sizeof commands / sizeof *commands; k++) {
        if (strcmp(commands[k].name, name)) continue;
        FAC_TRY(commands[k].run(p, what, err));
        p->dirty = true;
        fac_json_put_pair(answer, "generation", p->generation);
        return FAC_OK;
    }
    return fac_raise(err, FAC_E_ARGUMENT, "unknown command");
}

/* ---- bytes in, files out ---- */

static fac_status put(void *self, const char *name, const void *bytes, size_t n, fac_error *err) {
    if (!strcmp(name, "wav")) return fac_hearing_file(self, bytes, n, err);
    if (!strcmp(name, "block")) return fac_hearing_block(self, bytes, n, err);
    return fac_raise(err, FAC_E_ARGUMENT, "this page accepts wav and block");
}

static fac_status file(void *self, const char *name, fac_text *out, const char **type,
                       fac_error *err) {
    hearing *p = self;
    if (!p->model.graph) return fac_raise(err, FAC_E_ARGUMENT, "no model for sounds is loaded");
    if (strcmp(name, "command.txt")) return fac_export_file(p->model.graph, name, out, type, err);
    *type = "text/plain; charset=utf-8";
    fac_text_add(out, "facula run model.onnx sound.wav --json\nfacula listen model.onnx\n");
    return FAC_OK;
}

const page fac_page_sound = { .name = "sound",
                              .open = open_page,
                              .close = close_page,
                              .command = command,
                              .work = fac_hearing_work,
                              .show = fac_hearing_show,
                              .file = file,
                              .put = put };
