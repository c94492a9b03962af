/* facula train: sounds.  The spectrogram is part of the network, so the model takes waveforms. */
#include <stdlib.h>
#include <string.h>
#include "facula/data/sound.h"
#include "train.h"

/* What is not given: of the digits, and of folders. */
static const struct {
    const char *set;
    int rate, mels;
    double seconds;
} sets[] = {
    { "spoken-digits", 8000, 40, 1 },
    { "sound-folder", 16000, 64, 2 },
};
enum { SETS = sizeof sets / sizeof *sets };

static int find(const char *set) {
    int k = 0;
    while (k < SETS && (!set || strcmp(sets[k].set, set))) k++;
    return k;
}

bool sound_is_set(const char *set) { return find(set) < SETS; }

static int rate_of(const train_options *o) {
    return o->rate ? (int)o->rate : sets[find(o->set)].rate;
}

int sound_data(train_options *o, fac_dataset *train, fac_dataset *test) {
    fac_error err = { 0 };
    const int set = find(o->set);
    const fac_dataset *like = o->like;
    const fac_sounds_opts opts = { .rate = rate_of(o),
                                   .seconds = o->seconds > 0 ? o->seconds : sets[set].seconds,
                                   .seed = (uint64_t)o->seed,
                                   .hold_out = o->hold_out,
                                   .memory = (int64_t)o->sound_memory << 20,
                                   .test = o->test_part,
                                   .digits = set == 0,
                                   .zeros = set == 0,
                                   .classes = like ? like->class_names : NULL,
                                   .nclasses = like ? like->classes : 0 };
    if (fac_dataset_sounds(o->data, &opts, o->whole ? NULL : train, test, &err)) return fail(&err);
    if (o->whole)
        *train = (fac_dataset){ .item = test->item,
                                .classes = test->classes,
                                .class_names = test->class_names };
    return EXIT_OK;
}

bool sound_is_own(const char *name) { return sound_net_is(name) || !strncmp(name, "zoo:", 4); }

int sound_heard(train_options *o, const model *m) {
    const char *note = fac_graph_note(m->graph, FAC_NOTE_RATE);
    const fac_type t = fac_value_type(fac_graph_input(m->graph, 0));
    const long rate = note ? strtol(note, NULL, 10) : 0;
    if (o->rate && rate > 0 && o->rate != rate)
        return fail_text("%s takes sound at %ld Hz, but --rate is %ld", o->model, rate, o->rate);
    if (!o->rate) o->rate = rate > 0 && rate <= 10000000 ? rate : 0;
    if (!(o->seconds > 0) && t.dims.n == 2 && t.dims.d[1] > 0)
        o->seconds = (double)t.dims.d[1] / rate_of(o);
    return EXIT_OK;
}

static bool per_band(const train_options *o) {
    return o->normalize && !strcmp(o->normalize, "bands");
}

/* Frames of 32 ms, rounded up to a power of two, every 10 ms. */
static fac_value *picture(const train_options *o, fac_value *wave) {
    const int rate = rate_of(o);
    fac_nn_spectrogram_opts s = {
        .rate = rate, .length = 64, .hop = rate / 100, .normalize = true
    };
    while (s.length < rate * 0.032) s.length *= 2;
    s.mels = o->mels ? (int)o->mels : sets[find(o->set)].mels;
    s.low = o->low;
    s.high = o->high;
    s.per_band = per_band(o);
    return fac_nn_spectrogram(wave, &s);
}

/* What stands after the picture; networks for photos see three equal channels. */
static fac_value *logits_of(const train_options *o, fac_value *x, int classes) {
    const fac_zoo *zoo = strncmp(o->model, "zoo:", 4) ? NULL : fac_zoo_find(o->model + 4);
    const double mask = o->mask > 0 ? o->mask : 0;
    x = fac_nn_mask_spectrum(x, mask, mask);
    if (sound_net_is(o->model)) return sound_net(o->model, x, classes);
    return zoo ? zoo->build(fac_concat((fac_value *[]){ x, x, x }, 3, 1)) : NULL;
}

static fac_value *new_input(const train_options *o, fac_graph *g, const char *name,
                            const fac_dims *item) {
    fac_dims dims = { .n = item->n + 1, .d = { fac_symbol(g, "N") } };
    memcpy(dims.d + 1, item->d, (size_t)item->n * sizeof *dims.d);
    fac_nn_seed(g, (uint64_t)o->seed);
    return fac_input(g, name, FAC_F32, dims);
}

/* pictures: the samples are these already. */
static int build(const train_options *o, const fac_dataset *like, bool pictures, model *out) {
    fac_error err = { 0 };
    fac_graph *g = fac_graph_new();
    if (!g) return fail_text("out of memory");
    fac_value *x = new_input(o, g, pictures ? "picture" : "wave", &like->item);
    fac_value *logits = logits_of(o, pictures ? x : picture(o, x), like->classes);
    if (logits) fac_output(g, "logits", logits);
    const fac_status status = fac_graph_check(g, &err);
    if (status || !logits) {
        fac_graph_free(g);
        return status
                   ? fail(&err)
                   : usage_error(verb_find("train"),
                                 "%s takes --model sound-cnn, zoo:NAME or a file that takes sound",
                                 o->set);
    }
    out->graph = g;
    return EXIT_OK;
}

int sound_model(const train_options *o, const fac_dataset *like, model *out) {
    if (o->weights)
        return fail_text("--weights goes with photos; continue a training with --resume");
    return build(o, like, false, out);
}

/* ---- pictures that are kept ---- */

static bool same_each_epoch(const fac_augment *a, const fac_dataset *d) {
    bool same = !(a->shift > 0) && !(a->gain > 0) && !(a->noise > 0) && !(a->mixup > 0);
    for (int64_t i = 0; i < d->count && same; i++)
        same = !d->anew || d->cuts[i].size <= d->item.d[0];
    return same;
}

static fac_status to_pictures(const train_options *o, fac_device *device, const fac_dataset *d,
                              fac_dataset *out, fac_error *err) {
    fac_graph *g = fac_graph_new();
    fac_program *p = NULL;
    if (!g) return out_of_memory(err);
    fac_output(g, "picture", picture(o, new_input(o, g, "wave", &d->item)));
    fac_status s = fac_graph_check(g, err);
    if (!s) s = fac_program_new(g, device, NULL, &p, err);
    if (!s) s = fac_dataset_through(d, p, o->batch, out, err);
    fac_program_free(p);
    fac_graph_free(g);
    return s;
}

static int keep_pictures(const train_options *o, train_job *j) {
    fac_error err = { 0 };
    fac_dataset train = { 0 }, test = { 0 };
    fac_status s = to_pictures(o, j->dev, &j->train, &train, &err);
    if (!s) s = to_pictures(o, j->dev, &j->test, &test, &err);
    if (s) {
        fac_dataset_free(&train);
        return fail(&err);
    }
    fac_dataset_free(&j->test);
    j->waves = j->train;
    j->train = train;
    j->test = test;
    return EXIT_OK;
}

static bool is_of_images(const fac_augment *a) {
    return a->flip || a->crop || a->scale > 0 || a->rotate > 0 || a->brightness > 0 ||
           a->contrast > 0 || a->saturation > 0 || a->hue > 0 || a->cutout || a->erase > 0;
}

int sound_keep(const train_options *o, train_job *j) {
    bool fresh;
    if (is_of_images(&j->augment))
        return fail_text("augmentation: waveforms take shift, gain, noise and mixup");
    if (!j->train.values) return EXIT_OK; /* too large to keep, and so are its pictures */
    if (!sound_is_own(o->model) || !same_each_epoch(&j->augment, &j->train)) return EXIT_OK;
    int code = keep_pictures(o, j);
    if (code) return code;
    j->whole = j->m;
    j->m = (model){ 0 };
    code = build(o, &j->train, true, &j->m);
    if (!code) code = train_fit_head(o, j->train.classes, &j->m, &fresh);
    return code ? code : train_quantize(o, &j->m);
}

int sound_whole(train_job *j, const char *weights) {
    fac_error err = { 0 };
    fac_weights *w = NULL;
    if (fac_weights_load(weights, &w, &err)) return fail(&err);
    const fac_status s = fac_graph_load_weights(j->whole.graph, w, NULL, NULL, &err);
    fac_weights_free(w);
    return s ? fail(&err) : EXIT_OK;
}

int sound_note(const train_options *o, fac_graph *g) {
    char text[32];
    snprintf(text, sizeof text, "%d", rate_of(o));
    fac_graph_set_note(g, FAC_NOTE_RATE, text);
    return EXIT_OK;
}
